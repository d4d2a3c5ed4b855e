//! The context of a command: the output format, and the host's context as set by arguments and environment.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade_files::DEFAULT_LOCK_WAIT;
use brigade_host::Host;
use brigade_host::context::{self, ContextSettings};
use brigade_host::team_choice::TeamChoice;
use brigade_host::trust::{Trust, TrustPolicy};
use brigade_wire::name::TeamName;
use clap::ValueEnum;

use crate::cli::{DurabilityWord, GlobalArgs};
use crate::env;
use crate::error::{CliError, CliTrouble};
use crate::output::{self, FAINT};
use crate::progress;

/// How long commands that only read wait for a lock. After that, they show what they can read without it.
const SHORT_LOCK_WAIT: Duration = Duration::from_millis(100);

/// The context of a command.
#[derive(Debug)]
pub(crate) struct CliContext {
    host: brigade_host::Context,
    /// Whether to print JSON instead of text.
    pub(crate) json: bool,
}

impl Deref for CliContext {
    type Target = brigade_host::Context;

    fn deref(&self) -> &Self::Target {
        &self.host
    }
}

impl CliContext {
    /// Opens the context for commands that change something.
    pub(crate) async fn new(global: GlobalArgs) -> Result<Self, CliError> {
        let task_list = variable(env::TASK_LIST, str::parse)?;
        Self::open(global, DEFAULT_LOCK_WAIT, false, task_list).await
    }

    /// Opens the context for processes that keep running while the NATS server is unreachable.
    pub(crate) async fn lasting(global: GlobalArgs) -> Result<Self, CliError> {
        let task_list = variable(env::TASK_LIST, str::parse)?;
        Self::open(global, DEFAULT_LOCK_WAIT, true, task_list).await
    }

    /// Opens the context for a member that Claude Code started with this task list.
    pub(crate) async fn teammate(
        global: GlobalArgs,
        task_list: Option<TeamName>,
    ) -> Result<Self, CliError> {
        Self::open(global, DEFAULT_LOCK_WAIT, true, task_list).await
    }

    /// Opens the context for commands that only read.
    pub(crate) async fn reading(global: GlobalArgs) -> Result<Self, CliError> {
        let task_list = variable(env::TASK_LIST, str::parse)?;
        Self::open(global, SHORT_LOCK_WAIT, false, task_list).await
    }

    /// Opens the context for reading in a way that changes no file and prints nothing.
    pub(crate) async fn untouched(global: GlobalArgs) -> Result<Self, CliError> {
        let json = global.json;
        let task_list = variable(env::TASK_LIST, str::parse)?;
        let settings = Self::settings(global, Duration::ZERO, false, task_list)?;
        let settings = ContextSettings { is_read_only: true, announce: |_| {}, ..settings };
        let host = brigade_host::Context::open(settings, &brigade_host::progress::silent).await?;
        Ok(Self { host, json })
    }

    async fn open(
        global: GlobalArgs,
        lock_wait: Duration,
        is_lasting: bool,
        task_list: Option<TeamName>,
    ) -> Result<Self, CliError> {
        let json = global.json;
        let settings = Self::settings(global, lock_wait, is_lasting, task_list)?;
        let host = brigade_host::Context::open(settings, &progress::print).await?;
        Ok(Self { host, json })
    }

    /// Returns what the options and the environment say.
    fn settings(
        global: GlobalArgs,
        lock_wait: Duration,
        is_lasting: bool,
        task_list: Option<TeamName>,
    ) -> Result<ContextSettings, CliError> {
        let (claude_dir, state_dir) = dirs(&global)?;
        let durability = match global.durability {
            Some(word) => word,
            None => {
                let word = |word: &str| DurabilityWord::from_str(word, false);
                variable(env::DURABILITY, |text| word(text).map_err(|_| "use process or power"))?
                    .unwrap_or(DurabilityWord::Process)
            }
        };
        let (team, wait) = (named_team(&global)?, global.server_wait());
        let me = match global.me {
            Some(me) => Some(me),
            None => variable(env::AS, str::parse)?,
        };
        let lead_key = variable(env::LEAD_KEY, str::parse)?;
        let answers = variable(env::ANSWERS, |word| match word {
            "person" => Ok(false),
            "lead" => Ok(true),
            _ => Err("use person or lead"),
        })?;
        Ok(ContextSettings {
            location: global.home,
            claude_dir,
            state_dir,
            config_dir: env::config_dir(),
            durability: durability.into(),
            lock_wait,
            is_read_only: false,
            is_lasting,
            wait,
            team,
            me,
            lead_key,
            answers,
            programs: Arc::new(env::programs()),
            host_name: env::host_name(),
            cwd: current_dir(),
            task_list,
            claude_session: env::read(env::CLAUDE_SESSION).and_then(|id| id.into_string().ok()),
            announce: if global.json || global.is_silent { |_| {} } else { announce_team },
        })
    }

    /// Returns the same context for another team.
    pub(crate) fn with_team(self, team: Option<TeamName>) -> Self {
        Self { host: self.host.with_team(team), ..self }
    }

    /// Returns the host's context, without the output format, for another front end.
    pub(crate) fn into_host(self) -> brigade_host::Context {
        self.host
    }
}

/// Prints the team that the command works with. A command that asks for its team again prints it once.
fn announce_team(choice: &TeamChoice) {
    static ANNOUNCED: AtomicBool = AtomicBool::new(false);
    if !ANNOUNCED.swap(true, Ordering::Relaxed) {
        let (team, why) = (&choice.team, choice.source.as_text());
        output::eprint_line(&format!("{FAINT}team: {team} ({why}){FAINT:#}"));
    }
}

/// Returns Claude Code's folder and brigade's state folder.
pub(crate) fn dirs(global: &GlobalArgs) -> Result<(PathBuf, PathBuf), CliError> {
    let no_home = || CliError::failed(CliTrouble::NoHome);
    let claude_dir = global.claude_dir.clone().or_else(env::claude_dir).ok_or_else(no_home)?;
    Ok((claude_dir, env::state_dir().ok_or_else(no_home)?))
}

/// Opens the record of the team files that the user trusts.
pub(crate) fn trust() -> Result<Trust, CliError> {
    let policy = variable(env::TRUST, |word| match word {
        "all" => Ok(TrustPolicy::All),
        _ => Err("use all, or remove the variable"),
    })?;
    let state_dir = env::state_dir().ok_or_else(|| CliError::failed(CliTrouble::NoHome))?;
    let is_agent = env::read(env::ANSWERS).is_some();
    Ok(Trust::new(&state_dir, policy.unwrap_or(TrustPolicy::Recorded), is_agent))
}

/// Returns the team that is named on the command line or in the environment.
pub(crate) fn named_team(global: &GlobalArgs) -> Result<Option<TeamName>, CliError> {
    match &global.team {
        Some(team) => Ok(Some(team.clone())),
        None => variable(env::TEAM, str::parse),
    }
}

/// Opens this host's registry without the team store, for commands that run while the store is unreachable.
pub(crate) fn host_alone(global: &GlobalArgs) -> Result<Host, CliError> {
    let (claude_dir, state_dir) = dirs(global)?;
    let programs = Arc::new(env::programs());
    context::host_at(&global.home, &claude_dir, &state_dir, programs, env::host_name())
}

/// Reads and parses an environment variable; `None` if the variable is not set.
pub(crate) fn variable<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, CliError> {
    let Some(value) = env::read(name) else { return Ok(None) };
    let invalid = |source| CliError::usage(CliTrouble::Variable { variable: name, source });
    let value = value.to_str().ok_or_else(|| invalid("it is not UTF-8".into()))?;
    parse(value).map(Some).map_err(|error| invalid(error.into()))
}

/// Returns the current folder; an empty path if the folder no longer exists or is unreadable.
pub(crate) fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Returns the current folder as text, for a member's roster entry.
pub(crate) fn cwd() -> String {
    current_dir().to_string_lossy().into_owned()
}
