//! What Claude Code is told: to start teammates with brigade, and which agents it can ask for.

use std::path::Path;

use brigade_agents::driver::{Agent, MidTurn};
use serde_json::json;

use super::edit::{Edit, Wish};
use crate::env;

/// The settings of Claude Code under which brigade plays its teammates.
pub(crate) fn settings(brigade: &Path, claude: Option<&Path>) -> Edit {
    let env = |key, value: &str| Wish { section: Some("env"), key, value: json!(value) };
    let mut wishes = vec![
        env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1"),
        env("CLAUDE_CODE_TEAMMATE_COMMAND", &brigade.to_string_lossy()),
        // Without it the lead of a newer version has no tools for the team's board.
        env("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
    ];
    if let Some(claude) = claude {
        wishes.push(env(env::CLAUDE, &claude.to_string_lossy()));
    }
    // Teammates that run inside the lead's own process are never anybody else's program.
    wishes.push(Wish { section: None, key: "teammateMode", value: json!("tmux") });
    Edit::Settings(wishes)
}

/// The agent type by which a lead asks for this agent.
pub(crate) fn agent_type(agent: &Agent) -> String {
    let Agent { name, title, .. } = agent;
    let article = if title.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']) {
        "An"
    } else {
        "A"
    };
    let mail = match agent.can.mid_turn {
        MidTurn::Steered => "in the middle of its turn",
        MidTurn::Held => "when its turn has ended",
    };
    format!(
        "---\n\
         name: {name}\n\
         description: {article} {title} teammate, run by brigade. Choose it when {title} is asked \
         for, or when a model of another vendor should do the work or check it. Give it a name, for it \
         exists only as a teammate; then write to it as to any other. Messages reach it {mail}.\n\
         ---\n\
         \n\
         Brigade plays this agent type. Started as a teammate, with a name, it is the real {title} in a \
         pane of its own, with the mail and the tasks of the team.\n\
         \n\
         If you read this you are not {title}: you were started without a name, or where teammates do \
         not run in tmux. Do not do the work in its place. Answer that a teammate of the type `{name}` \
         has to be started with a name, and that `brigade init` sets up what it needs.\n"
    )
}

#[cfg(test)]
mod tests {
    use brigade_agents::driver::{Can, ReadOnly, Resumes, Told};

    use super::*;

    fn made_up(title: &'static str, mid_turn: MidTurn) -> Agent {
        Agent {
            name: "other",
            title,
            program: "other-cli",
            package: "@other/cli",
            tested: "1.0.0",
            native: false,
            can: Can {
                mid_turn,
                read_only: ReadOnly::Asking,
                usage: Told::Nothing,
                resumes: Resumes::AtOnce,
            },
            driver: |_| unreachable!("nobody starts it"),
        }
    }

    #[test]
    fn an_agent_type_is_a_head_of_two_lines_and_a_body() {
        let text = agent_type(&made_up("Other", MidTurn::Held));
        let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n\n").unwrap();
        let lines: Vec<(&str, &str)> = head.lines().map(|l| l.split_once(": ").unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], ("name", "other"));
        let (key, description) = lines[1];
        assert_eq!(key, "description");
        assert!(description.starts_with("An Other teammate, run by brigade. "), "{description}");
        assert!(description.ends_with("when its turn has ended."), "{description}");
        // What would end a plain scalar of YAML.
        assert!(!description.contains(": ") && !description.contains(" #"), "{description}");
        assert!(body.contains("`other`"), "{body}");
        let text = agent_type(&made_up("Codex", MidTurn::Steered));
        assert!(text.contains("A Codex teammate") && text.contains("in the middle of its turn"));
    }
}
