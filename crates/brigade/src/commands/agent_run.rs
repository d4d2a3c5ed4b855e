//! Runs an agent as a member of a team, in this terminal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_agents::driver::{Access, AgentChoice, LaunchOptions, ToolServer};
use brigade_agents::instructions::{self, MailDelivery};
use brigade_agents::program::ProgramCommand;
use brigade_agents::teammate::{self, AgentRunner, MemberInput, Membership, TeammateConfig};
use brigade_core::authority::Role;
use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_host::control::ControlSocket;
use brigade_host::location::Location;
use brigade_host::registry::forget_turn_rules;
use brigade_host::signals::{self, StopSignal};
use brigade_host::spec::ApprovalAuthority;
use brigade_host::{claude_led, process, process_tree, takeover};
use brigade_wire::name::TeamName;
use tokio::sync::mpsc;

use crate::error::{CliError, CliTrouble, failed};
use crate::pane::Pane;
use crate::{env, exit};

/// How long a terminating member tries to leave its team. If the NATS server stays unreachable, the member exits
/// anyway and stays on the roster, where `brigade doctor` finds it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of a teammate's run.
#[derive(Default)]
pub(crate) struct PlayEnd {
    /// The teammate's pane.
    pub(crate) pane: Pane,
    /// The signal that ended the run; `None` if the teammate is no longer on the roster.
    pub(crate) signal: Option<StopSignal>,
}

/// How to run a teammate: everything except the choice of its agent.
pub(crate) struct TeammateSettings {
    /// The agent's program, if it differs from the one on the PATH.
    pub(crate) program: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) access: Access,
    pub(crate) lead_key: Option<String>,
    /// The first input to the agent, in addition to the member's mail.
    pub(crate) prompt: Option<String>,
    /// The teammate's working directory.
    pub(crate) cwd: String,
    /// The environment variables that the teammate inherits.
    pub(crate) inherits: Vec<(OsString, OsString)>,
    /// The authority to answer plans and permission requests: only a person, or also a lead that is an agent.
    pub(crate) answers: ApprovalAuthority,
    /// Where the team is stored.
    pub(crate) home: Location,
    /// The task list that Claude Code named for the teammate, if any.
    pub(crate) task_list: Option<TeamName>,
    /// The teammate's folder in the registry of this host, which has the socket for a person's commands.
    pub(crate) folder: Option<PathBuf>,
    /// Whether a person has paused the teammate.
    pub(crate) paused: bool,
}

/// Runs a teammate in this terminal until the teammate leaves the team, or until a signal asks this process to end.
pub(crate) async fn play(
    seat: Seat,
    choice: AgentChoice,
    settings: TeammateSettings,
) -> Result<PlayEnd, CliError> {
    let itself = std::env::current_exe();
    let itself = itself.map_err(|source| failed("find the brigade program", source))?;
    let AgentChoice { agent, program, mut arguments } = choice;
    arguments.extend(env::agent_arguments(agent.name));
    let instructions = match seat.role().await? {
        Some(Role::Lead) => instructions::lead_instructions(&seat, MailDelivery::Delivered).await?,
        _ => instructions::teammate_instructions(&seat, MailDelivery::Delivered).await?,
    };
    let tools = tools(&seat, &itself, &settings);
    let mut launch = LaunchOptions::new(settings.cwd.clone(), tools);
    launch.model = settings.model;
    launch.instructions = instructions;
    launch.access = settings.access;
    launch.arguments = arguments;
    launch.claude_dir =
        env::claude_dir().and_then(|folder| folder.into_os_string().into_string().ok());
    let named = settings.program.map(PathBuf::into_os_string);
    let named = named.or_else(|| env::agent_program(agent.name));
    // The agent may run brigade commands. These variables tell such a command that an agent of this
    // team runs it, even if the agent claims another identity.
    let mut variables = vec![(env::ANSWERS.into(), settings.answers.as_str().into())];
    variables.extend(settings.home.variables().into_iter().map(|(name, its)| (name.into(), its)));
    let task_list = settings.task_list.as_ref();
    variables.extend(task_list.map(|list| (env::TASK_LIST.into(), list.as_str().into())));
    let guard = vec![itself.into_os_string(), super::GUARD.into()];
    let mut start =
        ProgramCommand::new(guard, named.unwrap_or_else(|| program.into()), settings.cwd);
    start.sweep = process_tree::sweep;
    start.end_commands = process_tree::end_young;
    start.env = variables;
    start.inherits = Some(settings.inherits);
    process_tree::adopt();
    let (inputs, received) = mpsc::unbounded_channel();
    if let Some(prompt) = settings.prompt {
        // This cannot fail, because the receiver still exists: it is used below.
        let _heard = inputs.send(MemberInput::Line(prompt));
    }
    let folder = settings.folder;
    let socket = folder.as_deref().and_then(open_socket);
    let commands = inputs.clone();
    let mut pane = Pane::open(&seat, &agent, inputs);
    let mut plan = TeammateConfig::new(seat, agent, AgentRunner::Program(start), launch);
    plan.process = process::current();
    plan.host = env::host_name();
    plan.paused = settings.paused;
    if let Some(folder) = &folder {
        plan.session_use = takeover::session_use(folder);
    }
    let signal = tokio::select! {
        ended = teammate::run_observed(plan, received, |event| {
            if let Some(folder) = &folder {
                forget_turn_rules(folder, &event);
            }
            pane.show(&event);
        }) => {
            ended.map_err(CliError::failed)?;
            None
        }
        () = serve(socket, commands) => None,
        signal = signals::stop_signal() => Some(signal?),
    };
    Ok(PlayEnd { pane, signal })
}

/// Opens the socket for a person's commands. The teammate runs also without it.
fn open_socket(folder: &Path) -> Option<ControlSocket> {
    let socket = ControlSocket::open(folder);
    if let Err(error) = &socket {
        tracing::warn!(%error, "cannot open the socket for commands");
    }
    socket.ok()
}

/// Passes commands to the teammate. Never returns.
async fn serve(socket: Option<ControlSocket>, inputs: mpsc::UnboundedSender<MemberInput>) {
    match socket {
        Some(socket) => socket.serve(inputs).await,
        None => std::future::pending().await,
    }
}

/// Runs a teammate like [`play`]. If a signal ends the run, the teammate leaves its team, unless `keep` returns the reason why
/// it stays.
pub(crate) async fn play_and_leave(
    seat: Seat,
    choice: AgentChoice,
    settings: TeammateSettings,
    keep: impl FnOnce(StopSignal) -> Option<CliTrouble>,
) -> Result<u8, CliError> {
    let joined = Membership::present(&seat).await?.map(|membership| membership.joined);
    let PlayEnd { mut pane, signal } = play(seat.clone(), choice, settings).await?;
    pane.close();
    let Some(signal) = signal else { return Ok(exit::DONE) };
    if let Some(why) = keep(signal) {
        return Err(CliError::failed(why));
    }
    let leave = leave(&seat, joined, signal);
    if let Ok(left) = tokio::time::timeout(LEAVE_TIMEOUT, leave).await {
        left?;
    }
    Ok(exit::DONE)
}

/// Informs the lead, if that is Claude Code, and removes a member from its team.
async fn leave(seat: &Seat, joined: Option<u64>, signal: StopSignal) -> Result<(), CliError> {
    if seat.find_config().await?.is_none() || seat.role().await? != Some(Role::Teammate) {
        return Ok(());
    }
    claude_led::inform_lead(seat, &format!("{} has left the team: {signal}", seat.name)).await;
    match roster::leave_if_joined_at(seat, &seat.name, joined).await {
        // A later member has the name by now.
        Ok(_) | Err(RosterError::JoinedAgain { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Describes the MCP server that the agent starts: this program, with the member's identity in environment
/// variables.
fn tools(seat: &Seat, itself: &Path, settings: &TeammateSettings) -> ToolServer {
    let mut variables = vec![
        (env::TEAM.to_owned(), seat.team.to_string()),
        (env::AS.to_owned(), seat.name.to_string()),
        (env::DELIVERED.to_owned(), "1".to_owned()),
        (env::ANSWERS.to_owned(), settings.answers.as_str().to_owned()),
    ];
    // Agents pass almost none of their environment variables to MCP servers, so set these variables explicitly.
    for name in [env::HOME, env::CLAUDE_CONFIG_DIR, env::XDG_STATE_HOME, env::DURABILITY] {
        if let Some(value) = env::read(name).and_then(|value| value.into_string().ok()) {
            variables.push((name.to_owned(), value));
        }
    }
    for (name, value) in settings.home.variables() {
        variables.extend(value.into_string().ok().map(|value| (name.to_owned(), value)));
    }
    let task_list = settings.task_list.as_ref();
    variables.extend(task_list.map(|list| (env::TASK_LIST.to_owned(), list.to_string())));
    if let Some(key) = &settings.lead_key {
        variables.push((env::LEAD_KEY.to_owned(), key.clone()));
    }
    ToolServer {
        command: itself.to_string_lossy().into_owned(),
        args: vec!["mcp".to_owned()],
        env: variables,
    }
}
