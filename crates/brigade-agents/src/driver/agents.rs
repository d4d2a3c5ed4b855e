//! The table of agents.

use std::borrow::Cow;

use brigade_wire::member::Member;

use super::{
    Agent, AgentCapabilities, LoginCheck, MidTurn, ReadOnly, ResumeTiming, UsageReporting, acp,
    claude, codex, in_process, login,
};

/// The known agents: their names, programs, capabilities and drivers.
pub const AGENTS: &[Agent] = &[
    Agent {
        name: "codex",
        title: "Codex",
        program: "codex",
        package: "@openai/codex",
        tested: "0.166.0",
        login: "`codex login` logs in",
        login_check: LoginCheck::CodexAccount,
        native: false,
        variables: &["OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"],
        can: AgentCapabilities {
            mid_turn: MidTurn::Steered,
            read_only: ReadOnly::Sandbox,
            usage: UsageReporting::Tokens,
            resumes: ResumeTiming::AtOnce,
        },
        interactive: &["resume", "--no-daemon", "{session}"],
        busy_session: "active writer",
        driver: |launch| Box::new(codex::Codex::new(launch)),
    },
    Agent {
        name: "claude",
        title: "Claude Code",
        program: "claude",
        package: "@anthropic-ai/claude-code",
        tested: "2.1.325",
        login: "`claude` and then `/login` logs in",
        login_check: LoginCheck::Command {
            arguments: &["auth", "status", "--json"],
            read: login::read_claude_status,
        },
        native: true,
        variables: &[
            "ANTHROPIC_*",
            "CLAUDE_*",
            "DISABLE_*",
            "ENABLE_*",
            "IS_SANDBOX",
            "BASH_*",
            "MAX_*",
            "MCP_*",
            "AWS_*",
            "VERTEX_*",
            "CLOUD_ML_*",
            "GOOGLE_*",
        ],
        can: AgentCapabilities {
            mid_turn: MidTurn::Steered,
            read_only: ReadOnly::PlanMode,
            usage: UsageReporting::TokensAndCost,
            resumes: ResumeTiming::AtOnce,
        },
        interactive: &["--resume", "{session}"],
        busy_session: "",
        driver: |launch| Box::new(claude::Claude::new(launch)),
    },
    Agent {
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        package: "@google/gemini-cli",
        tested: "0.61.0",
        login: "`gemini` asks how to log in; or set GEMINI_API_KEY",
        login_check: LoginCheck::AcpSession {
            arguments: acp::GEMINI.args,
            environment: acp::GEMINI.env,
            project_files: &[".env", ".gemini"],
        },
        native: false,
        variables: &["GEMINI_*", "GOOGLE_*"],
        can: AgentCapabilities {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: UsageReporting::Tokens,
            resumes: ResumeTiming::NextMinute,
        },
        interactive: &["--resume", "{session}"],
        busy_session: "",
        driver: |launch| Box::new(acp::Acp::new(&acp::GEMINI, launch)),
    },
    Agent {
        name: "opencode",
        title: "opencode",
        program: "opencode",
        package: "opencode-ai",
        tested: "1.18.33",
        login: "`opencode auth login` logs in",
        login_check: LoginCheck::Command {
            arguments: &["auth", "list"],
            read: login::read_opencode_list,
        },
        native: false,
        variables: &[
            "OPENCODE_*",
            "ANTHROPIC_*",
            "OPENAI_*",
            "GEMINI_*",
            "GOOGLE_*",
            "OPENROUTER_*",
            "GROQ_*",
            "MISTRAL_*",
            "XAI_*",
            "DEEPSEEK_*",
        ],
        can: AgentCapabilities {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: UsageReporting::TokensAndCost,
            resumes: ResumeTiming::AtOnce,
        },
        interactive: &["-s", "{session}"],
        busy_session: "",
        driver: |launch| Box::new(acp::Acp::new(&acp::OPENCODE, launch)),
    },
    Agent {
        name: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        package: "@github/copilot",
        tested: "1.0.102",
        login: "`copilot` and then `/login` logs in",
        login_check: LoginCheck::AcpSession {
            arguments: acp::COPILOT.args,
            environment: acp::COPILOT.env,
            project_files: &[],
        },
        native: false,
        variables: &["COPILOT_*", "GITHUB_*", "GH_*"],
        can: AgentCapabilities {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: UsageReporting::Tokens,
            resumes: ResumeTiming::AtOnce,
        },
        interactive: &["--resume={session}"],
        busy_session: "",
        driver: |launch| Box::new(acp::Acp::new(&acp::COPILOT, launch)),
    },
    // ANCHOR: qwen
    Agent {
        name: "qwen",
        title: "Qwen Code",
        program: "qwen",
        package: "@qwen-code/qwen-code",
        tested: "0.24.4",
        login: "`qwen` and then `/auth` logs in",
        login_check: LoginCheck::AcpSession {
            arguments: acp::QWEN.args,
            environment: acp::QWEN.env,
            project_files: &[".env", ".qwen"],
        },
        native: false,
        variables: &["QWEN_*", "DASHSCOPE_*", "OPENAI_*"],
        can: AgentCapabilities {
            mid_turn: MidTurn::Held,
            read_only: ReadOnly::PlanMode,
            usage: UsageReporting::Nothing,
            resumes: ResumeTiming::AtOnce,
        },
        interactive: &["--resume", "{session}"],
        busy_session: "",
        driver: |launch| Box::new(acp::Acp::new(&acp::QWEN, launch)),
    },
    // ANCHOR_END: qwen
];

/// Any other program that speaks the Agent Client Protocol.
const GENERIC_ACP: Agent = Agent {
    name: "acp",
    title: "an ACP agent",
    program: "",
    package: "",
    tested: "",
    login: "log in with the agent's own program",
    login_check: LoginCheck::None,
    native: false,
    variables: &[],
    can: AgentCapabilities {
        mid_turn: MidTurn::Held,
        read_only: ReadOnly::Asking,
        usage: UsageReporting::Tokens,
        resumes: ResumeTiming::AtOnce,
    },
    interactive: &[],
    busy_session: "",
    driver: |launch| Box::new(acp::Acp::new(&acp::GENERIC, launch)),
};

/// A worker in our own process. A lead cannot spawn a worker by this name; only the program that embeds this
/// library can add workers.
pub(crate) const IN_PROCESS: Agent = Agent {
    name: "in-process",
    title: "a worker",
    can: AgentCapabilities { usage: UsageReporting::Nothing, ..GENERIC_ACP.can },
    interactive: &[],
    driver: |launch| Box::new(in_process::InProcess::new(&launch)),
    ..GENERIC_ACP
};

/// Parts of the error messages with which agents say that they are not logged in, in lower case.
const LOGIN_PROBLEMS: &[&str] = &[
    "not logged in",
    "log in",
    "login",
    "401",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "auth method",
    "api key",
    "api_key",
];

/// An agent, and the program to run for it.
#[derive(Clone, Debug)]
pub struct AgentChoice {
    /// The agent.
    pub agent: Agent,
    /// The agent's program.
    pub program: String,
    /// The program's arguments, for [`LaunchOptions::arguments`](super::LaunchOptions::arguments).
    pub arguments: Vec<String>,
}

/// An agent whose name begins with this prefix is any program that speaks the Agent Client Protocol.
const COMMAND_PREFIX: &str = "acp:";

/// Returns whether the name of an agent is a command: `acp:COMMAND`.
pub fn is_command(name: &str) -> bool {
    name.starts_with(COMMAND_PREFIX)
}

/// Returns the model of a member, as far as the roster tells it. In the entry of a teammate that Claude Code started, the model is
/// always one of Claude's, even if the agent of another vendor runs the teammate.
pub fn known_model<'t>(member: &Member<'t>) -> Option<Cow<'t, str>> {
    let is_started_by_claude = member.tmux_pane_id().is_some_and(|pane| !pane.is_empty());
    let choice = member.agent_type().and_then(|agent_type| agent(&agent_type));
    let is_of_other_vendor = choice.is_some_and(|choice| !choice.agent.native);
    member.model().filter(|_| !(is_started_by_claude && is_of_other_vendor))
}

/// Returns how the plan mode of an agent differs from what brigade's instructions say; `None` if it does not differ.
pub fn plan_mode_note(agent: &str) -> Option<&'static str> {
    match agent {
        "gemini" => Some(
            "in plan mode, Gemini CLI blocks submit_plan and send_message; it submits its plan with its own tool \
             exit_plan_mode, and sends no messages before the plan is approved",
        ),
        _ => None,
    }
}

/// Finds an agent by name: a row of [`AGENTS`], or `acp:COMMAND` for any program that speaks the Agent
/// Client Protocol. Arguments may follow the command.
pub fn agent(name: &str) -> Option<AgentChoice> {
    if let Some(command) = name.strip_prefix(COMMAND_PREFIX) {
        let mut parts = command.split_whitespace().map(str::to_owned);
        let program = parts.next()?;
        return Some(AgentChoice { agent: GENERIC_ACP, program, arguments: parts.collect() });
    }
    let agent = AGENTS.iter().find(|agent| agent.name == name)?;
    Some(AgentChoice { agent: *agent, program: agent.program.to_owned(), arguments: Vec::new() })
}

impl Agent {
    /// Returns whether an error says that another program has the agent's session open.
    pub fn is_session_busy(&self, why: &str) -> bool {
        !self.busy_session.is_empty() && why.contains(self.busy_session)
    }

    /// Returns the reason of a failure in the words of the vendor. If the agent is not logged in, adds what to do.
    pub fn explain_failure(&self, why: &str) -> String {
        let text = why.to_lowercase();
        let is_login = LOGIN_PROBLEMS.iter().any(|problem| text.contains(problem));
        if is_login { format!("{why}; {}", self.login) } else { why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use brigade_wire::team::Team;

    use super::*;

    #[test]
    fn a_login_problem_names_the_remedy() {
        let check = |name: &str, why: &str, expected: &str| {
            assert_eq!(agent(name).unwrap().agent.explain_failure(why), expected);
        };
        let missing = "Gemini API key is missing or not configured.";
        check(
            "gemini",
            missing,
            &format!("{missing}; `gemini` asks how to log in; or set GEMINI_API_KEY"),
        );
        check("codex", "401 Unauthorized", "401 Unauthorized; `codex login` logs in");
        check("codex", "the model is overloaded", "the model is overloaded");
    }

    /// Codex 0.166.0 refuses a thread that another process has open with this error.
    #[test]
    fn a_session_that_another_program_has_open_is_recognized() {
        let busy = |name: &str, why: &str| agent(name).unwrap().agent.is_session_busy(why);
        assert!(busy("codex", "thread 0198 already has an active writer"));
        assert!(!busy("codex", "no rollout found for thread id 0198"));
        assert!(!busy("gemini", "already has an active writer"));
    }

    #[test]
    fn n21_the_model_of_another_vendors_agent_is_not_one_of_claudes() {
        let check = |agent_type: &str, pane: &str, expected: Option<&str>| {
            let team = serde_json::json!({ "name": "demo", "members": [{
                "name": "rev", "agentType": agent_type, "model": "claude-opus-4-6", "tmuxPaneId": pane,
            }] });
            let team = team.to_string();
            let team = Team::read(team.as_bytes()).unwrap();
            let member = team.member("rev").unwrap();
            assert_eq!(known_model(&member).as_deref(), expected, "{agent_type} in {pane:?}");
        };
        check("codex", "%1", None);
        check("acp:some-agent", "%1", None);
        check("general-purpose", "%1", Some("claude-opus-4-6"));
        // brigade writes the model that the user chose.
        check("opencode", "", Some("claude-opus-4-6"));
    }
}
