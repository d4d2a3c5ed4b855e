//! Two agents, a writer and a reviewer, of any vendor each: a draft, what should be better, a better draft.
//!
//! `cargo run --example review -- codex gemini "Say in one sentence what this project is."`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, path::PathBuf, sync::Arc, time::Duration};

use brigade_agents::driver;
use brigade_agents::program::Brigade;
use brigade_agents::teammate::{self, Plan};
use brigade_core::mail;
use brigade_core::roster::{self, Force, MemberPlan, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::Mail;
use brigade_files::{FileStore, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().collect();
    let [_, writer, reviewer, task] = words.as_slice() else { return Err("which agents?".into()) };
    let home = PathBuf::from(env::var("HOME")?);
    let files = Options::new(home.join(".claude"), home.join(".local/state/brigade"));
    let brigade = Brigade::on_files("brigade", &files.claude_dir, &files.state_dir);
    let here = env::current_dir()?.to_string_lossy().into_owned();

    // A team in Claude Code's files, led by this program.
    let name = format!("review-{}", std::process::id());
    let lead = Seat::new(Arc::new(FileStore::open(files)), name.parse()?, "team-lead".parse()?);
    roster::create(&lead, TeamPlan::new("a draft and its review", &here)).await?;

    // Two members, each the program of its vendor, guarded and given the team's tools by `brigade`.
    let mut members = tokio::task::JoinSet::new();
    for (name, agent) in [("writer", writer), ("reviewer", reviewer)] {
        let seat = lead.of(name.parse()?);
        roster::join(&lead, &seat.name, MemberPlan::new(agent, &here)).await?;
        let agent = driver::agent(agent).ok_or("there is no such agent")?;
        members.spawn(teammate::run(Plan::agent(seat, agent, &brigade, &here).await?));
    }

    let draft = ask(&lead, "writer", task).await?;
    let remarks = ask(&lead, "reviewer", &format!("What should be better? {draft}")).await?;
    ask(&lead, "writer", &format!("Write it anew with this in mind: {remarks}")).await?;
    members.shutdown().await;
    Ok(roster::delete(&lead, Force::Yes).await?)
}

/// Mail to an agent becomes a turn of its own; what it has to say comes back as mail.
async fn ask(lead: &Seat, name: &str, words: &str) -> Result<String, Box<dyn Error>> {
    mail::send(lead, name, words).await?;
    loop {
        let mail = mail::receive(lead, Duration::from_secs(600)).await?;
        let mut its = mail.iter().filter(|mail| mail.from() == name);
        if let Some(words) = its.find_map(Mail::words) {
            println!("{name}: {words}");
            return Ok(words);
        } else if mail.is_empty() {
            return Err(format!("{name} does not answer").into());
        }
    }
}
