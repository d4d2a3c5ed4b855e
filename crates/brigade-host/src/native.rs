//! Runs the real Claude Code as a member.
//!
//! Claude Code itself reads its mail, sends requests to its lead and answers the lead's requests. Brigade does the
//! rest: it passes the lead's key to Claude Code, resends messages that Claude Code read but its model never saw,
//! resumes the session, and removes the member from the team after the member has agreed to stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use brigade_agents::resend::{self, ModelInput, ShownMessages};
use brigade_core::handshake::{self, is_plan_approved};
use brigade_core::roster;
use brigade_core::seat::Seat;
use brigade_core::store::NoteKind;
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
use crate::progress::{Progress, ReportProgress};
use crate::registry::Registry;
use crate::signals::StopSignal;
use crate::spec::{AccessLevel, ApprovalAuthority, MemberSpec};
use crate::transcript::{self, TranscriptOwner};
use crate::{native_heartbeat, process_tree, signals, variables};

/// The first Claude Code version that accepts the lead's key. Version 2.1.319 exits if it gets a key. Without the key, a
/// teammate trusts any sender that claims to be the lead.
const FIRST_VERSION_WITH_KEY: [u64; 3] = [2, 1, 323];
/// The default agent type of a teammate.
const AGENT_TYPE: &str = "general-purpose";
/// How long Claude Code may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// How long Claude Code may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// The saved state of a native teammate, needed for restarting the teammate.
#[derive(Debug, Default, Serialize, Deserialize)]
struct NativeNote {
    session: String,
    /// The messages that the session's transcript contained at the last start.
    #[serde(flatten)]
    shown: ShownMessages,
}

/// The Claude Code session to start with: a new session, or an old one to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NativeSession {
    New(String),
    Old(String),
}

impl NativeSession {
    fn id(&self) -> &str {
        let (Self::New(id) | Self::Old(id)) = self;
        id
    }
}

/// The data from which the command-line arguments of a native teammate are built.
#[derive(Debug)]
struct NativeStart<'s> {
    agent: AgentId,
    color: Option<String>,
    lead_session: String,
    lead_key: Option<String>,
    spec: &'s MemberSpec,
    /// Whether the teammate needs an approved plan before it changes anything.
    plan: bool,
    session: NativeSession,
}

impl NativeStart<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let (name, team) = (self.agent.name.to_string(), self.agent.team.to_string());
        let mut arguments: Vec<OsString> = Vec::new();
        let mut push = |values: &[&str]| arguments.extend(values.iter().map(OsString::from));
        push(&["--agent-id", &self.agent.to_string(), "--agent-name", &name, "--team-name", &team]);
        if let Some(color) = &self.color {
            push(&["--agent-color", color]);
        }
        push(&["--parent-session-id", &self.lead_session, "--agent-type", AGENT_TYPE]);
        if let Some(key) = &self.lead_key {
            push(&["--lead-verify-key", key]);
        }
        match self.spec.access {
            _ if self.plan => push(&["--plan-mode-required"]),
            AccessLevel::Full => push(&["--dangerously-skip-permissions"]),
            // Without this option Claude Code may start in a mode that does not ask for permission.
            AccessLevel::Ask => push(&["--permission-mode", "default"]),
        }
        if let Some(model) = &self.spec.model {
            push(&["--model", model]);
        }
        match &self.session {
            NativeSession::New(id) => push(&["--session-id", id]),
            NativeSession::Old(id) => push(&["--resume", id]),
        }
        arguments
    }
}

/// The settings with which a native teammate is started.
pub struct NativeOptions<'s> {
    /// The search path and the variables that locate programs.
    pub programs: &'s Programs,
    /// The name of this host.
    pub host: &'s str,
    /// Claude Code's folder.
    pub claude_dir: &'s Path,
    /// The keys of the team's members.
    pub keys: KeyRing,
    /// The registry that has the teammate's spec.
    pub registry: Registry,
    /// The environment variables that the teammate inherits.
    pub inherits: Vec<(OsString, OsString)>,
    /// The store that contains the team's files, if no other Claude Code process uses those files.
    pub alone_in: Option<Arc<FileStore>>,
    /// Shows what the user should know.
    pub report: ReportProgress<'s>,
}

/// Runs Claude Code as this member, in this terminal, until the member leaves the team. Fails if Claude Code
/// exits while the member is still in the team; the supervisor then starts the member again.
pub async fn run(
    mut seat: Seat,
    spec: &MemberSpec,
    options: NativeOptions<'_>,
) -> Result<(), HostError> {
    let program = match &spec.program {
        Some(program) => program.clone(),
        None => options.programs.require_claude(Some(options.claude_dir))?,
    };
    let supports_key =
        version(&program).await?.is_some_and(|version| version >= FIRST_VERSION_WITH_KEY);
    let key = options.keys.native_key(&seat.name, seat.clock.as_ref());
    let (key, ahead) = key.map_err(HostError::failed)?;
    if let Some(made) = ahead {
        (options.report)(Progress::KeyWasAhead(seat.name.clone(), made));
    }
    seat.lead_key = supports_key.then(|| key.verify_key().parse().ok()).flatten();
    if seat.role().await?.is_none() {
        return Ok(());
    }
    if let Some(files) = &options.alone_in {
        // This process holds the member's lock, so the member's previous process has ended, and any inbox locks
        // which that process left behind are stale.
        if let Err(error) = files.recover_after_natives_ended(&seat.team, &seat.name).await {
            // Continue after this error: at worst, some messages are sent twice.
            tracing::warn!(member = %seat.name, %error, "cannot release a stale inbox lock");
        }
    }
    let session = session(&seat, options.claude_dir).await?;
    let lead_key = supports_key.then(|| key.verify_key());
    let start = start(&seat, spec, session, lead_key).await?;
    let mut command = Command::new(&program);
    command.env_clear().envs(options.inherits.iter().map(|(name, value)| (name, value)));
    if options.programs.claude_dir.as_deref() != Some(options.claude_dir) {
        command.env(variables::CLAUDE_CONFIG_DIR, options.claude_dir);
    }
    // These variables make a `brigade` command in Claude Code's shell act as this member, not as the lead.
    command.env(variables::TEAM, seat.team.as_str()).env(variables::AS, seat.name.as_str());
    command
        .env(variables::CLAUDE_TEAMS, "1")
        .env(variables::ANSWERS, ApprovalAuthority::Person.as_str());
    command.args(start.arguments()).current_dir(&spec.cwd);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let failed = |source| failed(format!("start {}", program.display()), source);
    let mut child = command.spawn().map_err(failed)?;
    tokio::select! {
        ended = child.wait() => {
            let ended = ended.map_err(failed)?;
            let lead = seat.for_member(MemberName::lead());
            handshake::remove_agreed_members(&lead).await.map_err(HostError::failed)?;
            match seat.role().await? {
                None => Ok(()),
                Some(_) => Err(HostError::failed(Trouble::ClaudeEnded { how: ended.to_string() })),
            }
        }
        never = native_heartbeat::beat(&seat, options.host, start.session.id()) => match never {},
        signal = signals::stop_signal() => {
            let signal = signal?;
            process_tree::end(getpid(), GRACE).await;
            if options.registry.expects(&seat.team, &seat.name) {
                // The tmux server died, the window was closed, or the computer shuts down. The supervisor or
                // `brigade resume` starts the member again.
                let how = match signal {
                    StopSignal::HungUp => "the window was closed",
                    StopSignal::Requested => "brigade was asked to end",
                };
                return Err(HostError::failed(Trouble::ClaudeEnded { how: how.to_owned() }));
            }
            // `brigade stop` or `brigade down` withdrew the member, so the member leaves the team for good.
            roster::leave(&seat, &seat.name).await?;
            Ok(())
        }
    }
}

/// Resends the messages that the model of the last session never saw. Returns the session to start with.
async fn session(seat: &Seat, claude_dir: &Path) -> Result<NativeSession, HostError> {
    let kept = seat.store.get_note(&seat.team, &seat.name, NoteKind::Memory).await?;
    // Ignore a note that cannot be parsed: a member of another kind had this name before and wrote the note.
    let note: NativeNote =
        kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
    let since = created(seat).await?;
    let whose = TranscriptOwner { team: &seat.team, member: &seat.name, since };
    let heard = match note.session.as_str() {
        "" => None,
        session => transcript::read(claude_dir, session, whose)
            .map_err(|source| failed("read the transcript of the last session", source))?,
    };
    let session = match heard {
        Some(_) => NativeSession::Old(note.session),
        None => NativeSession::New(Uuid::new_v4().to_string()),
    };
    let resent =
        resend::resend_lost_mail(seat, &heard.unwrap_or_else(ModelInput::default), &note.shown)
            .await?;
    let note = NativeNote { session: session.id().to_owned(), shown: resent.shown };
    let note = serde_json::to_vec(&note).map_err(HostError::failed)?;
    seat.store.put_note(&seat.team, &seat.name, NoteKind::Memory, Some(&note)).await?;
    Ok(session)
}

async fn start<'s>(
    seat: &Seat,
    spec: &'s MemberSpec,
    session: NativeSession,
    lead_key: Option<String>,
) -> Result<NativeStart<'s>, HostError> {
    let plan = spec.plan && !is_plan_approved(seat).await?;
    let config = config(seat).await?;
    let team = Team::read(&config).map_err(HostError::failed)?;
    let member = team.member(seat.name.as_str());
    Ok(NativeStart {
        agent: AgentId { name: seat.name.clone(), team: seat.team.clone() },
        color: member.and_then(|member| Some(member.color()?.into_owned())),
        lead_session: team.lead_session_id().unwrap_or_default().into_owned(),
        lead_key,
        spec,
        plan,
        session,
    })
}

/// Returns the contents of the team's `config.json`, which are empty if the team does not exist.
async fn config(seat: &Seat) -> Result<Vec<u8>, HostError> {
    let config = seat.find_config().await?;
    Ok(config.map(|config| config.bytes).unwrap_or_default())
}

async fn created(seat: &Seat) -> Result<Timestamp, HostError> {
    let config = config(seat).await?;
    let team = Team::read(&config).map_err(HostError::failed)?;
    let created = i64::try_from(team.created_at().unwrap_or_default()).unwrap_or_default();
    Ok(Timestamp::from_millisecond(created).unwrap_or_default())
}

/// Runs `claude --version`. Returns `None` if the output is not a version.
async fn version(program: &PathBuf) -> Result<Option<[u64; 3]>, HostError> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = tokio::time::timeout(VERSION_TIMEOUT, output).await;
    let output = output.map_err(std::io::Error::from).flatten();
    let output = output
        .map_err(|source| failed(format!("ask {} for its version", program.display()), source))?;
    Ok(parse_version(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_version(output: &str) -> Option<[u64; 3]> {
    let version = output.split_whitespace().next()?;
    let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MemberSpec;

    #[test]
    fn the_version_is_parsed_from_the_output_of_claude() {
        assert_eq!(parse_version("2.1.50 (Claude Code)\n"), Some([2, 1, 50]));
        assert!(parse_version("2.1.325 (Claude Code)\n") >= Some(FIRST_VERSION_WITH_KEY));
        assert!(parse_version("2.1.50 (Claude Code)\n") < Some(FIRST_VERSION_WITH_KEY));
        for strange in ["", "error: unknown", "2.1", "2.1.x (Claude Code)"] {
            assert_eq!(parse_version(strange), None, "{strange}");
        }
    }

    fn command_line(
        change: impl FnOnce(&mut MemberSpec),
        plan: bool,
        session: NativeSession,
    ) -> String {
        let mut spec = MemberSpec::new("bob".parse().unwrap(), "claude".into(), "/".into());
        change(&mut spec);
        let start = NativeStart {
            agent: AgentId { name: "bob".parse().unwrap(), team: "demo".parse().unwrap() },
            color: Some("blue".into()),
            lead_session: "lead".into(),
            lead_key: None,
            spec: &spec,
            plan,
            session,
        };
        let arguments = start.arguments();
        arguments.iter().map(|one| one.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    const COMMON_ARGUMENTS: &str = "--agent-id bob@demo --agent-name bob --team-name demo --agent-color blue \
                       --parent-session-id lead --agent-type general-purpose";

    #[test]
    fn claude_gets_the_arguments_its_own_lead_would_pass() {
        let new = || NativeSession::New("s".into());
        let asks = format!("{COMMON_ARGUMENTS} --permission-mode default --session-id s");
        assert_eq!(command_line(|_| {}, false, new()), asks);
        let full = |spec: &mut MemberSpec| spec.access = AccessLevel::Full;
        let all = format!("{COMMON_ARGUMENTS} --dangerously-skip-permissions --resume s");
        assert_eq!(command_line(full, false, NativeSession::Old("s".into())), all);
        // A required plan takes precedence over full access.
        let plan = format!("{COMMON_ARGUMENTS} --plan-mode-required --session-id s");
        assert_eq!(command_line(full, true, new()), plan);
        let model = |spec: &mut MemberSpec| spec.model = Some("opus".into());
        assert_eq!(
            command_line(model, false, new()),
            format!("{COMMON_ARGUMENTS} --permission-mode default --model opus --session-id s")
        );
    }
}
