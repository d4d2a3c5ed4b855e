//! `brigade teammate`: Claude Code runs this command, instead of itself, when a lead spawns a teammate.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_agents::driver::{self, Access, AgentChoice, LaunchOptions, ToolServer};
use brigade_agents::instructions::{self, MailDelivery};
use brigade_agents::program::ProgramCommand;
use brigade_agents::teammate::{self, AgentRunner, TeammateConfig};
use brigade_core::authority::Role;
use brigade_core::seat::Seat;
use brigade_wire::name::TeamName;
use tokio::sync::mpsc;

use crate::claude_args::Native;
use crate::cli::GlobalArgs;
use crate::context::{CliContext, current_dir, cwd};
use crate::error::{CliError, CliTrouble, failed};
use crate::pane::Pane;
use brigade_host::claude_led;
use brigade_host::location::Location;
use brigade_host::preflight;
use brigade_host::process;
use brigade_host::process_tree;
use brigade_host::registry::Registry;
use brigade_host::signals::{self, StopSignal};
use brigade_host::spec::ApprovalAuthority;

use crate::{env, exit};

/// Runs the teammate, or replaces this process with the real Claude Code.
pub(crate) async fn run(global: GlobalArgs, arguments: Vec<OsString>) -> Result<u8, CliError> {
    let native = Native::read(&arguments);
    let choice = native.agent_type.as_deref().and_then(driver::agent);
    let Some(choice) = choice.filter(|choice| !choice.agent.native) else {
        let claude_dir = global.claude_dir.or_else(env::claude_dir);
        return exec_claude(claude_dir.as_deref(), &arguments);
    };
    if let Some(agent) = native.agent_type.as_deref().filter(|agent| driver::is_command(agent))
        && !env::allows_acp_command(agent)
    {
        let error = CliError::failed(CliTrouble::CommandByModel { agent: agent.to_owned() });
        return Err(error.hint(format!(
            "to allow it, set {} to the command, without `acp:`, in the environment of Claude Code",
            env::ACP_COMMANDS
        )));
    }
    let missing = |what| CliError::usage(CliTrouble::NativeArgument { what });
    let name = native.name().ok_or_else(|| missing("--agent-name"))?;
    let team = native.team().ok_or_else(|| missing("--team-name"))?;
    let task_list = env::claude_task_list();
    let context = CliContext::teammate(global, task_list.clone()).await?;
    let agent = native.agent_type.clone().unwrap_or_default();
    let registration =
        claude_led::register(&context.host()?, &team, name.clone(), agent, current_dir()).await?;
    let mut seat = context.seat_of(team, name);
    // Messages need the signature of Claude Code, or of the person who uses brigade on this host.
    let lead_key = native.lead_verify_key.as_ref();
    let lead_key = lead_key.map(|key| format!("{key},{}", registration.key.verify_key()));
    seat.lead_key = lead_key.as_deref().map(str::parse).transpose().map_err(CliError::usage)?;
    let access = native.access();
    // Ignore the model in the arguments: Claude Code always passes a Claude model, even for other agents.
    let settings = TeammateSettings {
        program: None,
        model: None,
        access,
        lead_key,
        prompt: None,
        cwd: cwd(),
        inherits: env::inherited(&choice.agent, None),
        // The teammate's lead is Claude Code, which answers requests.
        answers: ApprovalAuthority::Lead,
        home: context.location().clone(),
        task_list,
        supervised: None,
    };
    if let Err(error) = preflight::check(context.programs(), [registration.spec()]) {
        let why = format!("it cannot start: {}", error.to_one_line());
        let joined_at = claude_led::joined_at(&seat).await?;
        claude_led::leave(&seat, context.claude_dir(), joined_at, &why).await?;
        registration.remove()?;
        return Err(error);
    }
    let ended = play(seat, choice, settings).await;
    registration.remove()?;
    ended
}

/// How long a terminating member tries to leave its team. If the NATS server stays unreachable, the member exits
/// anyway and stays on the roster, where `brigade doctor` finds it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// The registry that has the teammate's spec, if the supervisor runs the teammate.
    pub(crate) supervised: Option<Registry>,
}

/// Runs a teammate in this terminal until the teammate leaves the team.
pub(crate) async fn play(
    seat: Seat,
    choice: AgentChoice,
    settings: TeammateSettings,
) -> Result<u8, CliError> {
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
    start.env = variables;
    start.inherits = Some(settings.inherits);
    process_tree::adopt();
    let (typed, lines) = mpsc::unbounded_channel();
    if let Some(prompt) = settings.prompt {
        // This cannot fail, because the receiver still exists: it is used below.
        let _heard = typed.send(prompt);
    }
    let joined_at = claude_led::joined_at(&seat).await?;
    let mut pane = Pane::open(&seat, &agent, typed);
    let mut plan = TeammateConfig::new(seat.clone(), agent, AgentRunner::Program(start), launch);
    plan.process = process::current();
    plan.host = env::host_name();
    let ended = tokio::select! {
        ended = teammate::run_observed(plan, lines, |sight| pane.show(&sight)) => ended,
        signal = signals::stop_signal() => {
            let signal = signal?;
            if settings.supervised.is_some_and(|registry| registry.expects(&seat.team, &seat.name)) {
                pane.close();
                return Err(CliError::failed(match signal {
                    StopSignal::HungUp => CliTrouble::WindowGone,
                    StopSignal::Requested => CliTrouble::Terminated,
                }));
            }
            // The member will not be restarted, so it leaves the team.
            let why = match signal {
                StopSignal::HungUp => "its pane was closed",
                StopSignal::Requested => "its process was terminated",
            };
            let claude_dir = env::claude_dir().unwrap_or_default();
            let leave = claude_led::leave(&seat, &claude_dir, joined_at, why);
            if let Ok(left) = tokio::time::timeout(LEAVE_TIMEOUT, leave).await {
                left?;
            }
            Ok(())
        }
    };
    pane.close();
    ended.map_err(CliError::failed)?;
    Ok(exit::DONE)
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

/// Replaces this process with the real Claude Code, with the same arguments.
fn exec_claude(claude_dir: Option<&Path>, arguments: &[OsString]) -> Result<u8, CliError> {
    let claude = env::programs().require_claude(claude_dir)?;
    let source = std::process::Command::new(&claude).args(arguments).exec();
    Err(failed(format!("start {}", claude.display()), source))
}
