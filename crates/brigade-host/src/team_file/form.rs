//! The form of `brigade.toml`. The comments on the keys are what an editor shows.

use brigade_agents::driver::{self, AGENTS};
use brigade_core::policy::Ruling;
use brigade_wire::name::TeamName;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::mistake::Mistakes;
use super::shape::{At, Field, Named, Shape, Table, said, spelled, tables, told, words};
use crate::location::{Address, AddressError};
use crate::spec::{AccessWord, Answers, Place, Restart};

tables! {
    /// A team of coding agents, for `brigade up`.
    File needs "team" {
        /// The team's name: a-z, 0-9 and '-'.
        team: TeamName,
        /// What the team is for.
        description: String,
        /// Where the team lives: `files` of this host, the default, or an engine at
        /// `nats://HOST:PORT` or `tls://HOST:PORT`, several with a comma between them. `--store` and
        /// `BRIGADE_STORE` count before it.
        store: Address,
        /// The file with the credentials for the engine, seen from this file.
        creds: Words,
        /// The agent that leads. Without this table a person does.
        lead: Lead,
        /// What holds for the lead and every member that does not say otherwise.
        defaults: Defaults,
        /// The members, by name.
        members: Named<Member>,
        /// The tasks the board begins with, by a name of yours that stands in this file only.
        tasks: Named<TaskTable>,
    }

    /// What can be said of whoever runs on this host.
    Common {
        /// Which agent: a name that `brigade agents` lists, or `acp:COMMAND` for any program that
        /// speaks the Agent Client Protocol.
        agent: AgentWord,
        /// The agent's program, if it is not the one on the path: a path seen from this file. One of
        /// `[defaults]` holds only for the agent of `[defaults]`.
        program: Words,
        /// The model, as the agent names it; the agent's own choice if not said. One of
        /// `[defaults]` holds only for the agent of `[defaults]`.
        model: Words,
        /// What may be done without asking: `ask`, the default, is what the agent's own
        /// rules allow, `full` is everything.
        access: AccessWord,
        /// The variables it inherits, by name, beside the few no program can do without; all of them
        /// if not said.
        env: Vec<EnvName>,
        /// Where it runs: `headless`, the default, is nowhere to be seen, `tmux` in a
        /// window of tmux, `native` is the real Claude Code itself, in a window of tmux.
        place: Place,
        /// What becomes of it when its process dies: `always`, the default, starts it
        /// again, `never` gives its tasks back to the board.
        restart: Restart,
        /// The folder it works in, seen from this file; this file's own if not said.
        dir: Words,
        /// Commands that are allowed without asking, `*` standing for any letters.
        allow: Vec<Words>,
        /// Commands that somebody is asked about, whatever `allow` says.
        ask: Vec<Words>,
        /// Commands that are refused, whatever anything else says.
        deny: Vec<Words>,
        /// Rules in full. They are looked at after `deny` and before `ask` and `allow`; the first
        /// that fits counts.
        rules: Vec<At<RuleTable>>,
    }

    /// What holds for everybody who does not say otherwise.
    Defaults with common: Common {
        /// Whether nothing may be changed before a plan is approved. Not for the lead.
        plan: bool,
        /// Whether each works in a git worktree of its own, on a branch of its own. Not for the lead.
        worktree: bool,
    }

    /// A member.
    Member with common: Common {
        /// What it is told first.
        prompt: Words,
        /// The file that says what it is told first, seen from this file; instead of `prompt`.
        prompt_file: Words,
        /// Whether nothing may be changed before its plan is approved.
        plan: bool,
        /// Whether it works in a git worktree of its own, on a branch of its own.
        worktree: bool,
    }

    /// The agent that leads.
    Lead with common: Common {
        /// What it is told first.
        prompt: Words,
        /// The file that says what it is told first, seen from this file; instead of `prompt`.
        prompt_file: Words,
        /// Who answers plans and requests for leave: `person`, the default, is a person
        /// alone, `lead` the agent that leads, too.
        answers: Answers,
    }

    /// What is said to a request for leave.
    RuleTable needs "ruling" {
        /// What is said: `allow`, `ask` or `deny`.
        ruling: Ruling,
        /// The tool, as its agent names it, `*` standing for any letters; any tool if not said.
        tool: Words,
        /// The command as it would be run, of another tool its input as JSON, `*` standing for any
        /// letters; anything if not said.
        command: Words,
    }

    /// A task.
    TaskTable needs "subject" {
        /// What is to be done, in a few words.
        subject: Words,
        /// The same at length.
        description: String,
        /// The tasks that have to be done before, by their names in this file.
        after: Vec<At<String>>,
        /// The member whose task it is from the start, or `team-lead`; anybody's if not said.
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

/// Text that says something.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) String);

impl Shape for Words {
    fn read(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Self> {
        let span = value.span();
        let text = String::read(value, mistakes)?;
        if text.trim().is_empty() {
            mistakes.hinted(&span, "this says nothing", "fill it in, or leave the key out");
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

/// An agent there is a driver for.
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
            let hint = "write acp:COMMAND, as in \"acp:my-agent --acp\"";
            mistakes.hinted(&span, "the command of this agent is missing", hint);
        } else {
            let known = AGENTS.iter().map(|agent| agent.name).chain(["acp:COMMAND"]);
            mistakes.unknown(&span, format!("there is no agent {name:?}"), &name, known);
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
            let hint = "name the variable only; its value is the one it has when the team starts";
            mistakes.hinted(&span, "a value does not belong into this file", hint);
        } else {
            mistakes.add(&span, format!("{name:?} is not the name of a variable"));
        }
        None
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// The JSON Schema of the file, for editors.
pub fn schema() -> Value {
    let schema = said(File::schema(), "title", "brigade.toml");
    said(schema, "$schema", "https://json-schema.org/draft/2020-12/schema")
}
