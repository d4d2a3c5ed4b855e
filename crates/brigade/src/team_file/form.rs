//! The tables and keys of `brigade.toml`. Their doc comments are the descriptions in the JSON Schema.

use brigade_core::driver::{self, AGENTS};
use brigade_core::policy::Ruling;
use brigade_wire::name::TeamName;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::mistake::Mistakes;
use super::shape::{At, Field, Named, Shape, Table, said, spelled, tables, told, words};
use crate::home::{Address, AddressError};
use crate::host::spec::{AccessWord, Answers, Place, Restart};

tables! {
    /// A team of coding agents, for `brigade up`.
    File needs "team" {
        /// The team's name: a-z, 0-9 and '-'.
        team: TeamName,
        /// Purpose of the team.
        description: String,
        /// Where the team is stored: `files` on this host (default), or a NATS server at
        /// `nats://HOST:PORT` or `tls://HOST:PORT`. Separate several servers with commas. `--store` and
        /// `BRIGADE_STORE` override it.
        store: Address,
        /// The credentials file for the NATS server, relative to this file.
        creds: Words,
        /// The agent that leads the team. Without this table, you lead it.
        lead: Lead,
        /// Default settings for the lead and all members.
        defaults: Defaults,
        /// The members, by name.
        members: Named<Member>,
        /// The initial tasks, by name. The names are only used in this file.
        tasks: Named<TaskTable>,
    }

    /// Settings that members and the lead have in common.
    Common {
        /// The agent: a name listed by `brigade agents`, or `acp:COMMAND` for any program that
        /// supports the Agent Client Protocol.
        agent: AgentWord,
        /// The agent's program, if it is not on the PATH. Relative to this file. A value in
        /// `[defaults]` only applies to the agent of `[defaults]`.
        program: Words,
        /// The model, as the agent names it. Default: the agent's own default. A value in
        /// `[defaults]` only applies to the agent of `[defaults]`.
        model: Words,
        /// Permissions without asking: `ask` (default) permits what the agent's own rules permit, `full`
        /// permits everything.
        access: AccessWord,
        /// The environment variables it inherits, in addition to a few that every program needs.
        /// Default: all.
        env: Vec<EnvName>,
        /// Where it runs: `headless` (default) in the background, `tmux` in a tmux window, `native`
        /// runs the real Claude Code in a tmux window.
        place: Place,
        /// Action when its process dies: `always` (default) restarts it, `never` unassigns its tasks.
        restart: Restart,
        /// Its working directory, relative to this file. Default: the folder of this file.
        dir: Words,
        /// Commands that are allowed without asking. `*` matches any text.
        allow: Vec<Words>,
        /// Commands that need approval even if `allow` matches.
        ask: Vec<Words>,
        /// Commands that are always denied.
        deny: Vec<Words>,
        /// Rules for any tool. They are checked after `deny` and before `ask` and `allow`. The first
        /// match decides.
        rules: Vec<At<RuleTable>>,
    }

    /// Default settings for the lead and all members.
    Defaults with common: Common {
        /// Whether members start in plan mode: no changes until their plan is approved. Does not apply to the lead.
        plan: bool,
        /// Whether each member works in its own git worktree and branch. Does not apply to the lead.
        worktree: bool,
    }

    /// A member.
    Member with common: Common {
        /// The initial prompt.
        prompt: Words,
        /// A file with the initial prompt, relative to this file. Use instead of `prompt`.
        prompt_file: Words,
        /// Whether it starts in plan mode: no changes until its plan is approved.
        plan: bool,
        /// Whether it works in its own git worktree and branch.
        worktree: bool,
    }

    /// The agent that leads the team.
    Lead with common: Common {
        /// The initial prompt.
        prompt: Words,
        /// A file with the initial prompt, relative to this file. Use instead of `prompt`.
        prompt_file: Words,
        /// Permission to answer plans and permission requests: `person` (default) only you, `lead` also the
        /// agent that leads.
        answers: Answers,
    }

    /// A rule for permission requests.
    RuleTable needs "ruling" {
        /// The decision: `allow`, `ask` or `deny`.
        ruling: Ruling,
        /// The tool, as the agent names it. `*` matches any text. Default: any tool.
        tool: Words,
        /// The command; for other tools, the input as JSON. `*` matches any text. Default: anything.
        command: Words,
    }

    /// A task.
    TaskTable needs "subject" {
        /// A short summary of the task.
        subject: Words,
        /// The full description.
        description: String,
        /// The tasks that must be completed first, by their names in this file.
        after: Vec<At<String>>,
        /// The member that owns it, or `team-lead`. Default: unassigned.
        owner: String,
    }
}

words! {
    "access" AccessWord { "ask" => Self::Ask, "full" => Self::Full, }
    "place" Place {
        "headless" => Self::Headless, "tmux" => Self::Tmux, "native" => Self::Native,
    }
    "restart" Restart { "always" => Self::Always, "never" => Self::Never, }
    "answers" Answers { "person" => Self::Person, "lead" => Self::Lead, }
    "ruling" Ruling { "allow" => Self::Allow, "ask" => Self::Ask, "deny" => Self::Deny, }
}

/// Text that is not blank.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) String);

impl Shape for Words {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let text = String::read(value, mistakes)?;
        if text.trim().is_empty() {
            mistakes.hinted(&span, "this is empty", "fill it in, or remove the key");
            return None;
        }
        Some(Self(text))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "\\S" })
    }
}

impl Shape for TeamName {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let parsed = String::read(value, mistakes)?.parse();
        parsed
            .map_err(|error: brigade_wire::name::NameError| mistakes.add(&span, error.to_string()))
            .ok()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" })
    }
}

impl Shape for Address {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let parsed = String::read(value, mistakes)?.parse();
        parsed.map_err(|error: AddressError| mistakes.add(&span, error.to_string())).ok()
    }

    fn schema() -> Value {
        let server = "(nats|tls)://[^@,\\s]+";
        json!({ "type": "string", "pattern": format!("^(files|{server}(,\\s*{server})*)$") })
    }
}

/// A supported agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentWord(pub(super) String);

impl Shape for AgentWord {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let name = String::read(value, mistakes)?;
        if driver::agent(&name).is_some() {
            return Some(Self(name));
        }
        if name.starts_with("acp:") {
            let hint = "write acp:COMMAND, such as \"acp:my-agent --acp\"";
            mistakes.hinted(&span, "the command of this agent is missing", hint);
        } else {
            let known = AGENTS.iter().map(|agent| agent.name).chain(["acp:COMMAND"]);
            mistakes.unknown(&span, format!("unknown agent {name:?}"), &name, known);
        }
        None
    }

    fn schema() -> Value {
        let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        let acp = json!({ "type": "string", "pattern": "^acp:\\s*\\S" });
        json!({ "anyOf": [{ "enum": names }, acp] })
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug)]
pub(super) struct EnvName(pub(super) String);

impl Shape for EnvName {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let name = String::read(value, mistakes)?;
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.chars().all(letter) && name.starts_with(|c: char| !c.is_ascii_digit()) {
            return Some(Self(name));
        }
        if name.contains('=') {
            let hint =
                "list only the name; the value comes from the environment when the team starts";
            mistakes.hinted(&span, "environment values do not belong in this file", hint);
        } else {
            mistakes.add(&span, format!("{name:?} is not a valid variable name"));
        }
        None
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// The JSON Schema of the file, for editors.
pub(crate) fn schema() -> Value {
    let schema = said(File::schema(), "title", "brigade.toml");
    said(schema, "$schema", "https://json-schema.org/draft/2020-12/schema")
}
