//! The arguments Claude Code starts a teammate with.

use std::ffi::OsString;

use brigade_agents::driver::Access;
use brigade_wire::name::{AgentId, MemberName, TeamName};

/// What we need of them. What we do not know is for the real Claude Code, and is passed over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Native {
    agent_id: Option<String>,
    agent_name: Option<String>,
    team_name: Option<String>,
    pub(crate) agent_type: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) lead_verify_key: Option<String>,
    permission_mode: Option<String>,
    plan_mode_required: bool,
    skip_permissions: bool,
}

impl Native {
    pub(crate) fn read(arguments: &[OsString]) -> Self {
        let mut native = Self::default();
        let mut words = arguments.iter().filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            let place = match name {
                "--agent-id" => &mut native.agent_id,
                "--agent-name" => &mut native.agent_name,
                "--team-name" => &mut native.team_name,
                "--agent-type" => &mut native.agent_type,
                "--model" => &mut native.model,
                "--lead-verify-key" => &mut native.lead_verify_key,
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
            *place = value.or_else(|| words.next().map(str::to_owned));
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

    /// What the agent may do. A plan that is wanted first comes before everything.
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
    fn what_claude_code_writes_is_understood() {
        let native = read(
            "--agent-id rev@demo --agent-name rev --team-name demo --agent-color blue \
             --parent-session-id 1 --agent-type codex --model opus",
        );
        assert_eq!(native.name().map(|name| name.to_string()).as_deref(), Some("rev"));
        assert_eq!(native.team().map(|team| team.to_string()).as_deref(), Some("demo"));
        assert_eq!(native.agent_type.as_deref(), Some("codex"));
        assert_eq!(native.access(), Access::Ask);
        assert_eq!(read("--agent-id=rev@demo").team(), read("--team-name demo").team());
    }

    #[test]
    fn a_plan_comes_before_every_freedom() {
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
