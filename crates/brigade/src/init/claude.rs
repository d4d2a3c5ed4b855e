//! The settings that make Claude Code start teammates through brigade, and an agent type file for each agent.

use std::path::Path;

use brigade_agents::driver::{Agent, MidTurn};
use serde_json::json;

use super::edit::{FileEdit, WantedSetting};
use crate::env;

/// Returns the settings that make Claude Code start its teammates through brigade.
pub(crate) fn settings(brigade: &Path, claude: Option<&Path>) -> FileEdit {
    let env = |key, value: &str| WantedSetting { section: Some("env"), key, value: json!(value) };
    let mut wanted = vec![
        env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1"),
        env("CLAUDE_CODE_TEAMMATE_COMMAND", &brigade.to_string_lossy()),
        // Newer versions of Claude Code give the lead the task board tools only with this setting.
        env("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
    ];
    if let Some(claude) = claude {
        wanted.push(env(env::CLAUDE, &claude.to_string_lossy()));
    }
    // Without tmux, teammates run inside the lead's own process and cannot be other programs.
    wanted.push(WantedSetting { section: None, key: "teammateMode", value: json!("tmux") });
    FileEdit::Settings(wanted)
}

/// Returns the content of the agent type file that lets a lead spawn this agent.
pub(crate) fn agent_type(agent: &Agent) -> String {
    let Agent { name, title, .. } = agent;
    let article = if title.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']) {
        "An"
    } else {
        "A"
    };
    let mail = match agent.can.mid_turn {
        MidTurn::Steered => "in the middle of its turn",
        MidTurn::Held => "after its turn",
    };
    format!(
        "---\n\
         name: {name}\n\
         description: {article} {title} teammate, run by brigade. Choose it when the user asks for {title}, \
         or when a model of another vendor should do or review the work. It must be spawned with a name, \
         because it exists only as a teammate; then send it messages as to any other teammate. Messages \
         reach it {mail}.\n\
         ---\n\
         \n\
         Brigade runs this agent type. Spawned as a teammate, with a name, it is the real {title} in its \
         own pane, with the team's mail and tasks.\n\
         \n\
         If you read this, you are not {title}: you were started without a name, or teammates do not \
         run in tmux here. Do not do the work yourself. Answer that a teammate of type `{name}` must be \
         spawned with a name, and that `brigade init` sets up what it needs.\n"
    )
}

#[cfg(test)]
mod tests {
    use brigade_agents::driver::{
        AgentCapabilities, LoginCheck, ReadOnly, ResumeTiming, UsageReporting,
    };

    use super::*;

    fn test_agent(title: &'static str, mid_turn: MidTurn) -> Agent {
        Agent {
            name: "other",
            title,
            program: "other-cli",
            package: "@other/cli",
            tested: "1.0.0",
            login: "",
            login_check: LoginCheck::None,
            native: false,
            variables: &[],
            can: AgentCapabilities {
                mid_turn,
                read_only: ReadOnly::Asking,
                usage: UsageReporting::Nothing,
                resumes: ResumeTiming::AtOnce,
            },
            interactive: &[],
            busy_session: "",
            driver: |_| unreachable!("never started"),
        }
    }

    #[test]
    fn agent_type_has_front_matter_and_a_body() {
        let text = agent_type(&test_agent("Other", MidTurn::Held));
        let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n\n").unwrap();
        let lines: Vec<(&str, &str)> = head.lines().map(|l| l.split_once(": ").unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], ("name", "other"));
        let (key, description) = lines[1];
        assert_eq!(key, "description");
        assert!(description.starts_with("An Other teammate, run by brigade. "), "{description}");
        assert!(description.ends_with("after its turn."), "{description}");
        // These characters would end a plain YAML scalar.
        assert!(!description.contains(": ") && !description.contains(" #"), "{description}");
        assert!(body.contains("`other`"), "{body}");
        let text = agent_type(&test_agent("Codex", MidTurn::Steered));
        assert!(text.contains("A Codex teammate") && text.contains("in the middle of its turn"));
    }
}
