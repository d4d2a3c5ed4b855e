//! The real Claude Code as a member: how it is started, so that it knows its lead and goes on where it
//! was.
//!
//! It does everything itself: it reads its mail, asks its lead and answers it. What is left to do is
//! what it does not: to send again what it took and its model never saw, to resume its session, and to
//! take it off the team when it has agreed to stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use brigade_agents::resend::{self, Heard, Shown};
use brigade_core::handshake::{self, plan_was_approved};
use brigade_core::roster;
use brigade_core::seat::Seat;
use brigade_core::store::Shelf;
use brigade_files::FileStore;
use brigade_wire::name::{AgentId, MemberName};
use brigade_wire::team::Team;
use jiff::Timestamp;
use rustix::process::getpid;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use uuid::Uuid;

use crate::error::{HostError, Trouble, failed};
use crate::installed::Programs;
use crate::keys::KeyRing;
use crate::signals::StopSignal;
use crate::spec::{AccessWord, Answers, MemberSpec};
use crate::transcript::{self, Whose};
use crate::{native_heartbeat, process_tree, signals, variables};

/// The first version that is known to take the lead's key. 2.1.50 ends if it is given one; what those
/// in between do was not tried, and without a key a teammate believes whoever calls itself its lead.
const KEYED: [u64; 3] = [2, 1, 325];
/// The agent type of a teammate that is none in particular.
const AGENT_TYPE: &str = "general-purpose";
/// How long Claude Code may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it has to end when it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// What has to be known of a native teammate when it is started again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    session: String,
    /// What its record had when it was last looked into.
    #[serde(flatten)]
    shown: Shown,
}

/// Its session: one to begin, or one to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Session {
    New(String),
    Old(String),
}

impl Session {
    fn id(&self) -> &str {
        let (Self::New(id) | Self::Old(id)) = self;
        id
    }
}

/// What a native teammate is started with.
#[derive(Debug)]
struct Start<'s> {
    agent: AgentId,
    color: Option<String>,
    lead_session: String,
    lead_key: Option<String>,
    spec: &'s MemberSpec,
    /// Whether it has to have a plan approved first.
    plan: bool,
    session: Session,
}

impl Start<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let (name, team) = (self.agent.name.to_string(), self.agent.team.to_string());
        let mut arguments: Vec<OsString> = Vec::new();
        let mut say = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
        say(&["--agent-id", &self.agent.to_string(), "--agent-name", &name, "--team-name", &team]);
        if let Some(color) = &self.color {
            say(&["--agent-color", color]);
        }
        say(&["--parent-session-id", &self.lead_session, "--agent-type", AGENT_TYPE]);
        if let Some(key) = &self.lead_key {
            say(&["--lead-verify-key", key]);
        }
        match self.spec.access {
            _ if self.plan => say(&["--plan-mode-required"]),
            AccessWord::Full => say(&["--dangerously-skip-permissions"]),
            // Its own choice would be a mode in which it decides by itself.
            AccessWord::Ask => say(&["--permission-mode", "default"]),
        }
        if let Some(model) = &self.spec.model {
            say(&["--model", model]);
        }
        match &self.session {
            Session::New(id) => say(&["--session-id", id]),
            Session::Old(id) => say(&["--resume", id]),
        }
        arguments
    }
}

/// Where a native teammate finds its things.
#[derive(Debug)]
pub struct Surroundings<'s> {
    /// Where programs are looked for.
    pub programs: &'s Programs,
    /// The name of this host.
    pub host: &'s str,
    /// Claude Code's folder.
    pub claude_dir: &'s Path,
    /// The keys of its team.
    pub keys: KeyRing,
    /// The variables it inherits; all if not said.
    pub inherits: Option<Vec<(OsString, OsString)>>,
    /// The files of its team, if no other Claude Code is in them.
    pub alone_in: Option<Arc<FileStore>>,
}

/// Runs Claude Code as this member, in this terminal, until it leaves the team. If it ends without
/// having left, that is an error, and it can be started again.
pub async fn run(
    mut seat: Seat,
    spec: &MemberSpec,
    around: Surroundings<'_>,
) -> Result<(), HostError> {
    let program = spec.program.clone().or_else(|| around.programs.claude(Some(around.claude_dir)));
    let program = program.ok_or_else(|| {
        let error = HostError::failed(Trouble::NoClaude);
        error.hint(format!("put it on the PATH, or set {}", variables::CLAUDE))
    })?;
    let keyed = version(&program).await?.is_some_and(|version| version >= KEYED);
    let key = around.keys.of(&seat.name, seat.clock.as_ref()).map_err(HostError::failed)?;
    seat.lead_key = keyed.then(|| key.verify_key().parse().ok()).flatten();
    if seat.role().await?.is_none() {
        return Ok(());
    }
    if let Some(files) = &around.alone_in {
        // Its last process is gone, for we have its seat. What that one left locked nobody holds.
        if let Err(error) = files.natives_ended(&seat.team, &seat.name).await {
            // Its messages are in doubt as before, which costs some of them a second telling and no more.
            tracing::warn!(member = %seat.name, %error, "an inbox could not be freed");
        }
    }
    let session = session(&seat, around.claude_dir).await?;
    let lead_key = keyed.then(|| key.verify_key());
    let start = start(&seat, spec, session, lead_key).await?;
    let mut command = Command::new(&program);
    if let Some(variables) = &around.inherits {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    if around.programs.claude_dir.as_deref() != Some(around.claude_dir) {
        command.env(variables::CLAUDE_CONFIG_DIR, around.claude_dir);
    }
    // Whoever calls brigade from its shell is this member, and not the lead.
    command.env(variables::TEAM, seat.team.as_str()).env(variables::AS, seat.name.as_str());
    command.env(variables::CLAUDE_TEAMS, "1").env(variables::ANSWERS, Answers::Person.word());
    command.args(start.arguments()).current_dir(&spec.cwd);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let failed = |source| failed(&format!("start {}", program.display()), source);
    let mut child = command.spawn().map_err(failed)?;
    tokio::select! {
        ended = child.wait() => {
            let ended = ended.map_err(failed)?;
            let lead = seat.of(MemberName::lead());
            handshake::farewell(&lead).await.map_err(HostError::failed)?;
            match seat.role().await? {
                None => Ok(()),
                Some(_) => Err(HostError::failed(Trouble::ClaudeEnded { how: ended.to_string() })),
            }
        }
        never = native_heartbeat::beat(&seat, around.host, start.session.id()) => match never {},
        told = signals::stop_signal() => {
            let told = told?;
            process_tree::end(getpid(), GRACE).await;
            if told == StopSignal::HungUp {
                // The server of tmux died, or a window was closed: it is started again in another.
                let how = "its window is gone".to_owned();
                return Err(HostError::failed(Trouble::ClaudeEnded { how }));
            }
            // Somebody wants it gone: nobody will come back for the member.
            roster::leave(&seat, &seat.name).await?;
            Ok(())
        }
    }
}

/// The session it is to have. Before that, everything that its last one lost is sent again.
async fn session(seat: &Seat, claude_dir: &Path) -> Result<Session, HostError> {
    let kept = seat.store.kept(&seat.team, &seat.name, Shelf::Memory).await?;
    // What cannot be read is somebody else's note, of another kind of member.
    let note: Note = kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
    let since = created(seat).await?;
    let whose = Whose { team: &seat.team, member: &seat.name, since };
    let heard = match note.session.as_str() {
        "" => None,
        session => transcript::read(claude_dir, session, whose)
            .map_err(|source| failed("read the record of its session", source))?,
    };
    let session = match heard {
        Some(_) => Session::Old(note.session),
        None => Session::New(Uuid::new_v4().to_string()),
    };
    let again =
        resend::send_again(seat, &heard.unwrap_or_else(Heard::default), &note.shown).await?;
    let note = Note { session: session.id().to_owned(), shown: again.shown };
    let note = serde_json::to_vec(&note).map_err(HostError::failed)?;
    seat.store.keep(&seat.team, &seat.name, Shelf::Memory, Some(&note)).await?;
    Ok(session)
}

async fn start<'s>(
    seat: &Seat,
    spec: &'s MemberSpec,
    session: Session,
    lead_key: Option<String>,
) -> Result<Start<'s>, HostError> {
    let plan = spec.plan && !plan_was_approved(seat).await?;
    let config = config(seat).await?;
    let team = Team::read(&config).map_err(HostError::failed)?;
    let itself = team.member(seat.name.as_str());
    Ok(Start {
        agent: AgentId { name: seat.name.clone(), team: seat.team.clone() },
        color: itself.and_then(|its| Some(its.color()?.into_owned())),
        lead_session: team.lead_session_id().unwrap_or_default().into_owned(),
        lead_key,
        spec,
        plan,
        session,
    })
}

/// The team's `config.json`, which is there if it has members.
async fn config(seat: &Seat) -> Result<Vec<u8>, HostError> {
    let config = seat.store.team(&seat.team).await?;
    Ok(config.map(|config| config.bytes).unwrap_or_default())
}

async fn created(seat: &Seat) -> Result<Timestamp, HostError> {
    let config = config(seat).await?;
    let team = Team::read(&config).map_err(HostError::failed)?;
    let created = i64::try_from(team.created_at().unwrap_or_default()).unwrap_or_default();
    Ok(Timestamp::from_millisecond(created).unwrap_or_default())
}

/// The version of Claude Code, as it tells it; `None` if that is no version.
async fn version(program: &PathBuf) -> Result<Option<[u64; 3]>, HostError> {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    let said = asked.map_err(std::io::Error::from).flatten();
    let said = said
        .map_err(|source| failed(&format!("ask {} for its version", program.display()), source))?;
    Ok(parse(&String::from_utf8_lossy(&said.stdout)))
}

fn parse(said: &str) -> Option<[u64; 3]> {
    let word = said.split_whitespace().next()?;
    let numbers: Option<Vec<u64>> = word.split('.').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn;

    #[test]
    fn a_version_is_read_from_what_the_program_says() {
        assert_eq!(parse("2.1.50 (Claude Code)\n"), Some([2, 1, 50]));
        assert!(parse("2.1.325 (Claude Code)\n") >= Some(KEYED));
        assert!(parse("2.1.50 (Claude Code)\n") < Some(KEYED));
        for strange in ["", "error: unknown", "2.1", "2.1.x (Claude Code)"] {
            assert_eq!(parse(strange), None, "{strange}");
        }
    }

    fn line(change: impl FnOnce(&mut MemberSpec), plan: bool, session: Session) -> String {
        let mut spec = spawn::plain("bob".parse().unwrap(), "claude".into(), "/".into());
        change(&mut spec);
        let start = Start {
            agent: AgentId { name: "bob".parse().unwrap(), team: "demo".parse().unwrap() },
            color: Some("blue".into()),
            lead_session: "lead".into(),
            lead_key: None,
            spec: &spec,
            plan,
            session,
        };
        let words = start.arguments();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    const WHO: &str = "--agent-id bob@demo --agent-name bob --team-name demo --agent-color blue \
                       --parent-session-id lead --agent-type general-purpose";

    #[test]
    fn it_is_started_as_its_lead_would() {
        let new = || Session::New("s".into());
        let asks = format!("{WHO} --permission-mode default --session-id s");
        assert_eq!(line(|_| {}, false, new()), asks);
        let full = |spec: &mut MemberSpec| spec.access = AccessWord::Full;
        let all = format!("{WHO} --dangerously-skip-permissions --resume s");
        assert_eq!(line(full, false, Session::Old("s".into())), all);
        // A plan that is wanted first comes before every freedom.
        let plan = format!("{WHO} --plan-mode-required --session-id s");
        assert_eq!(line(full, true, new()), plan);
        let model = |spec: &mut MemberSpec| spec.model = Some("opus".into());
        assert_eq!(
            line(model, false, new()),
            format!("{WHO} --permission-mode default --model opus --session-id s")
        );
    }
}
