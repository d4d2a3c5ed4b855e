//! `brigade teammate`: Claude Code runs this command, instead of itself, when a lead spawns a teammate.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;

use brigade_agents::driver::{self, Access};
use brigade_host::claude_led;
use brigade_host::spec::{AccessLevel, MemberPlace, MemberSpec};

use super::claude_member::ClaudeMember;
use crate::claude_args::Native;
use crate::cli::GlobalArgs;
use crate::context::{CliContext, current_dir};
use crate::env;
use crate::error::{CliError, CliTrouble, failed};

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
    let access = native.access();
    let spec = MemberSpec {
        place: MemberPlace::Pane,
        plan: access == Access::ReadOnly,
        access: if access == Access::Full { AccessLevel::Full } else { AccessLevel::Ask },
        ..MemberSpec::new(name, agent, current_dir())
    };
    let registration = claude_led::register(&context.host()?, &team, spec).await?;
    let parent_session = native.parent_session_id.as_deref();
    let member = ClaudeMember { context: &context, choice, task_list };
    member.run(registration, native.lead_verify_key.as_deref(), parent_session).await
}

/// Replaces this process with the real Claude Code, with the same arguments.
fn exec_claude(claude_dir: Option<&Path>, arguments: &[OsString]) -> Result<u8, CliError> {
    let claude = env::programs().require_claude(claude_dir)?;
    let source = std::process::Command::new(&claude).args(arguments).exec();
    Err(failed(format!("start {}", claude.display()), source))
}
