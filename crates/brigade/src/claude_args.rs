//! Parses the arguments with which Claude Code starts a teammate.

use std::ffi::OsString;

use brigade_agents::driver::Access;
use brigade_wire::name::{AgentId, MemberName, TeamName};

/// The arguments that brigade needs. Brigade ignores all others, which are for the real Claude Code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Native {
    agent_id: Option<String>,
    agent_name: Option<String>,
    team_name: Option<String>,
    pub(crate) agent_type: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) lead_verify_key: Option<String>,
    /// The id of the session that starts the teammate.
    pub(crate) parent_session_id: Option<String>,
    permission_mode: Option<String>,
    plan_mode_required: bool,
    skip_permissions: bool,
}

impl Native {
    pub(crate) fn read(arguments: &[OsString]) -> Self {
        let mut native = Self::default();
        let mut args = arguments.iter().filter_map(|arg| arg.to_str());
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (arg, None),
            };
            let field = match name {
                "--agent-id" => &mut native.agent_id,
                "--agent-name" => &mut native.agent_name,
                "--team-name" => &mut native.team_name,
                "--agent-type" => &mut native.agent_type,
                "--model" => &mut native.model,
                "--lead-verify-key" => &mut native.lead_verify_key,
                "--parent-session-id" => &mut native.parent_session_id,
                "--permission-mode" => &mut native.permission_mode,
                "--plan-mode-required" => {
                    native.plan_mode_required = true;
                    continue;
                }
                "--dangerously-skip-permissions" => {
                    native.skip_permissions = true;
                    continue;
                }
                _ => continue,
            };
            *field = value.or_else(|| args.next().map(str::to_owned));
        }
        native
    }

    pub(crate) fn name(&self) -> Option<MemberName> {
        let named = self.agent_name.as_ref().and_then(|name| name.parse().ok());
        named.or_else(|| Some(self.id()?.name))
    }

    pub(crate) fn team(&self) -> Option<TeamName> {
        let named = self.team_name.as_ref().and_then(|name| name.parse().ok());
        named.or_else(|| Some(self.id()?.team))
    }

    fn id(&self) -> Option<AgentId> {
        self.agent_id.as_ref()?.parse().ok()
    }

    /// Returns the agent's permissions. `--plan-mode-required` overrides every other permission mode.
    pub(crate) fn access(&self) -> Access {
        match self.permission_mode.as_deref() {
            _ if self.plan_mode_required => Access::ReadOnly,
            Some("plan") => Access::ReadOnly,
            Some("bypassPermissions") => Access::Full,
            _ if self.skip_permissions => Access::Full,
            _ => Access::Ask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Native {
        Native::read(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn parses_claude_code_arguments() {
        let native = read(
            "--agent-id rev@demo --agent-name rev --team-name demo --agent-color blue \
             --parent-session-id 1 --agent-type codex --model opus",
        );
        assert_eq!(native.name().map(|name| name.to_string()).as_deref(), Some("rev"));
        assert_eq!(native.team().map(|team| team.to_string()).as_deref(), Some("demo"));
        assert_eq!(native.agent_type.as_deref(), Some("codex"));
        assert_eq!(native.parent_session_id.as_deref(), Some("1"));
        assert_eq!(native.access(), Access::Ask);
        assert_eq!(read("--agent-id=rev@demo").team(), read("--team-name demo").team());
    }

    #[test]
    fn plan_mode_overrides_other_permission_modes() {
        for (line, access) in [
            ("--plan-mode-required --dangerously-skip-permissions", Access::ReadOnly),
            ("--permission-mode plan", Access::ReadOnly),
            ("--dangerously-skip-permissions", Access::Full),
            ("--permission-mode bypassPermissions", Access::Full),
            ("--permission-mode acceptEdits", Access::Ask),
            ("--something new", Access::Ask),
        ] {
            assert_eq!(read(line).access(), access, "{line}");
        }
    }
}
