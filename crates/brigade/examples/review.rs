//! Runs two agents of any vendor: a writer drafts a text, a reviewer reviews it, and the writer revises it.
//!
//! `cargo run --example review -- codex gemini "Say in one sentence what this project is."`
#![expect(clippy::print_stdout, reason = "the example prints its result")]

use std::{env, error::Error, path::PathBuf, sync::Arc, time::Duration};

use brigade_agents::driver;
use brigade_agents::program::BrigadeProgram;
use brigade_agents::teammate::{self, TeammateConfig};
use brigade_core::mail;
use brigade_core::roster::{self, MemberPlan, SkipChecks, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::Mail;
use brigade_files::{FileStore, FileStoreOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, writer, reviewer, task] = args.as_slice() else {
        return Err("usage: review WRITER REVIEWER TASK".into());
    };
    let home = PathBuf::from(env::var("HOME")?);
    let files = FileStoreOptions::new(home.join(".claude"), home.join(".local/state/brigade"));
    let brigade = BrigadeProgram::on_files("brigade", &files.claude_dir, &files.state_dir);
    let here = env::current_dir()?.to_string_lossy().into_owned();

    // Create a team in Claude Code's files. This program leads the team.
    let name = format!("review-{}", std::process::id());
    let lead = Seat::new(Arc::new(FileStore::open(files)), name.parse()?, "team-lead".parse()?);
    roster::create(&lead, TeamPlan::new("a draft and its review", &here)).await?;

    // Add two members. Each runs its vendor's program. `brigade` guards that program and offers it the tools.
    let mut members = tokio::task::JoinSet::new();
    for (name, agent) in [("writer", writer), ("reviewer", reviewer)] {
        let seat = lead.for_member(name.parse()?);
        roster::join(&lead, &seat.name, MemberPlan::new(agent, &here)).await?;
        let agent = driver::agent(agent).ok_or("unknown agent")?;
        members.spawn(teammate::run(TeammateConfig::agent(seat, agent, &brigade, &here).await?));
    }

    let draft = ask(&lead, "writer", task).await?;
    let remarks = ask(&lead, "reviewer", &format!("What should be better? {draft}")).await?;
    ask(&lead, "writer", &format!("Rewrite it with these remarks in mind: {remarks}")).await?;
    members.shutdown().await;
    Ok(roster::delete(&lead, SkipChecks::Yes).await?)
}

/// Sends a message to an agent and waits for the message in which the agent answers.
async fn ask(lead: &Seat, name: &str, question: &str) -> Result<String, Box<dyn Error>> {
    mail::send(lead, name, question).await?;
    loop {
        let mail = mail::receive(lead, Duration::from_secs(600)).await?;
        let mut answers = mail.iter().filter(|mail| mail.from() == name);
        if let Some(answer) = answers.find_map(Mail::plain_text) {
            println!("{name}: {answer}");
            return Ok(answer);
        } else if mail.is_empty() {
            return Err(format!("{name} did not answer").into());
        }
    }
}
