//! The tables and keys of `brigade.toml`. Their doc comments become the descriptions in the JSON Schema, which
//! editors show.

use brigade_agents::driver::{self, AGENTS};
use brigade_core::policy::RuleDecision;
use brigade_wire::name::TeamName;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::mistake::Mistakes;
use super::toml_value::{
    Field, Located, Named, TomlTable, TomlValue, doc_text, key_name, keywords, tables,
    with_copied_member,
};
use crate::location::{StoreAddress, StoreAddressError};
use crate::spec::{AccessLevel, ApprovalAuthority, MemberPlace, Restart, is_variable_name};

tables! {
    /// A team of coding agents, for `brigade up`.
    File needs "team" {
        /// The team's name: a-z, 0-9 and '-'.
        team: TeamName,
        /// The purpose of the team.
        description: String,
        /// Where the team is stored: `files` for files on this host (the default), or the NATS servers
        /// `nats://HOST:PORT` or `tls://HOST:PORT`, separated by commas. `--store` and
        /// `BRIGADE_STORE` override this key.
        store: StoreAddress,
        /// The credentials file for the NATS server, relative to this file.
        creds: NonEmpty,
        /// The agent that leads the team. Without this table a person leads.
        lead: Lead,
        /// Default settings for the lead and the members.
        defaults: Defaults,
        /// The members, by name.
        members: Named<Member>,
        /// The initial tasks, each under a name that is used only in this file.
        tasks: Named<TaskTable>,
    }

    /// Settings of a member or the lead.
    Common {
        /// The agent: a name that `brigade agents` lists, or `acp:COMMAND` for any program that
        /// speaks the Agent Client Protocol.
        agent: AgentName,
        /// The path of the agent's program, relative to this file; by default brigade searches `PATH`. In
        /// `[defaults]`, `program` applies only to members that use the agent in `[defaults]`.
        program: NonEmpty,
        /// The model, as the agent names it; by default the agent chooses. In
        /// `[defaults]`, `model` applies only to members that use the agent in `[defaults]`.
        model: NonEmpty,
        /// Which actions need permission. With `ask` (the default), the agent asks for every action that its
        /// own rules do not allow; with `full`, it never asks.
        access: AccessLevel,
        /// The names of the environment variables that the agent inherits, in addition to those that every program
        /// needs; `*` at the end of a name matches any rest. By default it inherits those of build tools and of its
        /// vendor.
        env: Vec<EnvName>,
        /// Where the agent runs: `headless` (the default) in the background, `tmux` in a
        /// tmux window, `native` as the real Claude Code in a tmux window.
        place: MemberPlace,
        /// The reaction to the death of a member's process: `always` (the default) restarts the member, `never`
        /// releases its tasks.
        restart: Restart,
        /// The folder that the agent works in, relative to this file; the folder of this file by default.
        dir: NonEmpty,
        /// Commands that the agent may run without asking. `*` at the end matches any arguments, elsewhere one
        /// argument, and inside a word any characters of it.
        allow: Vec<NonEmpty>,
        /// Commands that the agent may run only after asking, even if `allow` matches them.
        ask: Vec<NonEmpty>,
        /// Commands that the agent must not run, even if another rule allows them.
        deny: Vec<NonEmpty>,
        /// Rules written as tables. They are checked after `deny` and before `ask` and `allow`; the
        /// first matching rule applies.
        rules: Vec<Located<RuleTable>>,
    }

    /// Default settings for the lead and the members.
    Defaults with common: Common {
        /// Whether a member must not change anything before its plan is approved. Does not apply to the lead.
        plan: bool,
        /// Whether each member works in its own git worktree, on its own branch. Does not apply to the lead.
        worktree: bool,
    }

    /// A member.
    Member with common: Common {
        /// The first message that the agent gets.
        prompt: NonEmpty,
        /// A file with the first message, relative to this file. Use it instead of `prompt`.
        prompt_file: NonEmpty,
        /// Whether the member must not change anything before its plan is approved.
        plan: bool,
        /// Whether the member works in its own git worktree, on its own branch.
        worktree: bool,
    }

    /// The agent that leads the team.
    Lead with common: Common {
        /// The first message that the agent gets.
        prompt: NonEmpty,
        /// A file with the first message, relative to this file. Use it instead of `prompt`.
        prompt_file: NonEmpty,
        /// Determines who approves or rejects plans and permission requests: with `person` (the default), only a
        /// person; with `lead`, also the agent that leads.
        answers: ApprovalAuthority,
    }

    /// A rule that answers permission requests.
    RuleTable needs "ruling" {
        /// The answer: `allow`, `ask` or `deny`.
        ruling: RuleDecision,
        /// The tool, by the name that the agent uses; any tool by default. `*` matches any text. An `allow` rule
        /// with a command and without a tool is for tools that run command lines.
        tool: NonEmpty,
        /// The command, or the JSON input of a tool that runs no command; any command or input by default. In an
        /// `allow` rule, `*` matches arguments or a part of one; otherwise it matches any text.
        command: NonEmpty,
    }

    /// A task.
    TaskTable needs "subject" {
        /// The title.
        subject: NonEmpty,
        /// The full description.
        description: String,
        /// The tasks that must be done first, by their names in this file.
        after: Vec<Located<String>>,
        /// The initial owner: a member or `team-lead`; no owner by default.
        owner: String,
    }
}

keywords! {
    "access" AccessLevel { "ask" => Self::Ask, "full" => Self::Full, }
    "place" MemberPlace {
        "headless" => Self::Headless, "tmux" => Self::Tmux, "native" => Self::Native,
    }
    "restart" Restart { "always" => Self::Always, "never" => Self::Never, }
    "answers" ApprovalAuthority { "person" => Self::Person, "lead" => Self::Lead, }
    "ruling" RuleDecision { "allow" => Self::Allow, "ask" => Self::Ask, "deny" => Self::Deny, }
}

/// Text that is not blank.
#[derive(Clone, Debug)]
pub(super) struct NonEmpty(pub(super) String);

impl TomlValue for NonEmpty {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let text = String::read(value, mistakes)?;
        if text.trim().is_empty() {
            mistakes.hinted(&span, "this text is empty", "fill it in, or remove the key");
            return None;
        }
        Some(Self(text))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "\\S" })
    }
}

impl TomlValue for TeamName {
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

impl TomlValue for StoreAddress {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let parsed = String::read(value, mistakes)?.parse();
        parsed.map_err(|error: StoreAddressError| mistakes.add(&span, error.to_string())).ok()
    }

    fn schema() -> Value {
        let server = "(nats|tls)://[^@,\\s]+";
        json!({ "type": "string", "pattern": format!("^(files|{server}(,\\s*{server})*)$") })
    }
}

/// The name of an agent that brigade supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentName(pub(super) String);

impl TomlValue for AgentName {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let name = String::read(value, mistakes)?;
        if driver::agent(&name).is_some() {
            return Some(Self(name));
        }
        if name.starts_with("acp:") {
            let hint = "write acp:COMMAND, as in \"acp:my-agent --acp\"";
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

impl TomlValue for EnvName {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let name = String::read(value, mistakes)?;
        if is_variable_name(&name) {
            return Some(Self(name));
        }
        if name.contains('=') {
            let hint = "write only the name; the value is read when the team starts";
            mistakes.hinted(&span, "this file must not contain values of variables", hint);
        } else {
            mistakes.add(&span, format!("{name:?} is not the name of a variable"));
        }
        None
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([A-Za-z_][A-Za-z0-9_]*)?[*]?$" })
    }
}

/// Returns the JSON Schema of `brigade.toml`, for editors.
pub fn schema() -> Value {
    let schema = with_copied_member(File::schema(), "title", "brigade.toml");
    with_copied_member(schema, "$schema", "https://json-schema.org/draft/2020-12/schema")
}
