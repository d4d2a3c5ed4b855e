//! Turns the parsed team file into the spec of a team. Fills in defaults and reports settings that make no sense.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use brigade_core::policy::{self, Rule, RuleDecision};
use brigade_wire::name::{LEAD, MemberName, inbox_stem};

use super::mistake::Mistakes;
use super::prompt;
use super::references::{OutsidePaths, PathKey, References, ReferredPath};
use super::tables::{Common, Defaults, File, Lead, Member, NonEmpty, RuleTable};
use super::tasks;
use super::toml_value::{Field, Located};
use crate::preflight;
use crate::spec::{MemberSpec, TeamSpec};

/// Returns the team, or `None` if there are mistakes.
pub(super) fn team(
    file: &File,
    root: &Path,
    references: &mut References,
    mistakes: &mut Mistakes,
) -> Option<TeamSpec> {
    if file.team.is_absent() {
        let hint = "start the file with a name, for example team = \"demo\"";
        mistakes.hinted(&(0..0), "the team has no name", hint);
    }
    if let (Some(creds), true) = (file.creds.located(), file.store.is_absent()) {
        let hint = "add store = \"nats://…\", or remove the credentials";
        mistakes.hinted(&creds.span, "credentials without a NATS server", hint);
    }
    let none = Defaults::default();
    let defaults = file.defaults.get().unwrap_or(&none);
    let inboxes = HashMap::new();
    let mut resolver = Resolver { root, defaults, references, mistakes, inboxes };
    let lead = file.lead.located().map(|lead| resolver.lead(lead));
    let mut members: Vec<Option<MemberSpec>> = Vec::new();
    let mut names: Vec<&Located<String>> = Vec::new();
    for (name, member) in file.members.get().map_or(&[][..], |members| &members.0) {
        members.push(resolver.member(name, member));
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
    let tasks = file.tasks.get().map_or(&[][..], |tasks| &tasks.0);
    let tasks = tasks::tasks(tasks, &names, mistakes);
    if !mistakes.is_empty() {
        return None;
    }
    Some(TeamSpec {
        team: file.team.get()?.clone(),
        description: file.description.get().cloned().unwrap_or_default(),
        root: root.to_owned(),
        answers: file.lead.get().and_then(|lead| lead.answers.get().copied()).unwrap_or_default(),
        lead: lead.flatten(),
        members: members.into_iter().collect::<Option<_>>()?,
        tasks,
    })
}

/// The data needed for creating the specs of the lead and of each member.
struct Resolver<'r> {
    root: &'r Path,
    defaults: &'r Defaults,
    references: &'r mut References,
    mistakes: &'r mut Mistakes,
    /// The members so far, by the names of their inbox files.
    inboxes: HashMap<String, String>,
}

/// The settings that members and the lead have in common.
struct OwnSettings<'o> {
    common: &'o Common,
    prompt: &'o Field<NonEmpty>,
    prompt_file: &'o Field<NonEmpty>,
}

impl Resolver<'_> {
    fn lead(&mut self, lead: &Located<Lead>) -> Option<MemberSpec> {
        let Located { span, value: Lead { common, prompt, prompt_file, .. } } = lead;
        self.spec(MemberName::lead(), span, &OwnSettings { common, prompt, prompt_file })
    }

    fn member(&mut self, name: &Located<String>, member: &Member) -> Option<MemberSpec> {
        let Member { common, prompt, prompt_file, .. } = member;
        let own = OwnSettings { common, prompt, prompt_file };
        // A file may have thousands of members, so compare only with the one that could conflict.
        let inbox = inbox_stem(&name.value).to_ascii_lowercase();
        let other = self.inboxes.insert(inbox, name.value.clone());
        let parsed = name.value.parse::<MemberName>().and_then(|parsed| {
            parsed.check_free(other.as_deref())?;
            Ok(parsed)
        });
        let lead = |parsed: &MemberName| parsed.check_free([LEAD]).is_err();
        let parsed = match parsed {
            Ok(parsed) if lead(&parsed) => {
                let message = format!("{LEAD:?} is the lead's own name");
                self.mistakes.hinted(&name.span, message, "to let an agent lead, use [lead]");
                None
            }
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.mistakes.add(&name.span, error.to_string());
                None
            }
        };
        // Check the other settings even if the name is invalid, so that all mistakes are reported.
        let spec = self.spec(parsed.clone().unwrap_or_else(MemberName::lead), &name.span, &own)?;
        Some(MemberSpec {
            name: parsed?,
            plan: inherited(&member.plan, &self.defaults.plan).unwrap_or_default(),
            worktree: inherited(&member.worktree, &self.defaults.worktree).unwrap_or_default(),
            ..spec
        })
    }

    fn spec(
        &mut self,
        name: MemberName,
        at: &Range<usize>,
        own: &OwnSettings<'_>,
    ) -> Option<MemberSpec> {
        let (settings, own, default) = (own, own.common, &self.defaults.common);
        let agent = inherited(&own.agent, &default.agent);
        if own.agent.is_absent() && default.agent.is_absent() {
            let hint = "add agent = \"…\" here or in [defaults]; `brigade agents` lists the agents";
            self.mistakes.hinted(at, "no agent is set", hint);
        }
        let place = inherited(&own.place, &default.place).unwrap_or_default();
        if let Some(agent) = &agent
            && let Some(why) = preflight::why_not_native(&agent.0, place)
        {
            let agent_at = own.agent.located().map(|agent| &agent.span);
            let span =
                own.place.located().map(|place| &place.span).or(agent_at).unwrap_or(at).clone();
            self.mistakes.hinted(&span, why, "use place = \"tmux\" or \"headless\"");
        }
        let (prompt, prompt_file) = (settings.prompt, settings.prompt_file);
        let prompt = prompt::read(&name, prompt, prompt_file, self.references, self.mistakes);
        let cwd = self.cwd(&name, &own.dir, &default.dir);
        let same_agent = default.agent.get().is_none_or(|default| Some(default) == agent.as_ref());
        let of_agent = |own: &Field<NonEmpty>, default: &Field<NonEmpty>| match own {
            Field::Absent if same_agent => default.get().map(|text| text.0.clone()),
            own => own.get().map(|text| text.0.clone()),
        };
        let rules = rules(own, default, self.mistakes);
        Some(MemberSpec {
            name,
            // The default program and model apply only to members with the default agent.
            program: of_agent(&own.program, &default.program)
                .map(|program| self.root.join(program)),
            model: of_agent(&own.model, &default.model),
            agent: agent?.0,
            prompt,
            plan: false,
            access: inherited(&own.access, &default.access).unwrap_or_default(),
            rules,
            cwd: cwd?,
            worktree: false,
            env: inherited(&own.env, &default.env)
                .map(|names| names.into_iter().map(|name| name.0).collect()),
            place,
            restart: inherited(&own.restart, &default.restart).unwrap_or_default(),
        })
    }

    fn cwd(
        &mut self,
        name: &MemberName,
        own: &Field<NonEmpty>,
        default: &Field<NonEmpty>,
    ) -> Option<PathBuf> {
        let Some(dir) = own.located().or_else(|| default.located()) else {
            return Some(self.root.to_owned());
        };
        let path = self.root.join(&dir.value.0);
        let is_there = match self.references.resolve(PathKey::Dir, Some(name), &path) {
            ReferredPath::Outside(_) if self.references.policy == OutsidePaths::Skip => true,
            ReferredPath::Inside(real) | ReferredPath::Outside(real) => real.is_dir(),
        };
        if !is_there {
            let message = format!("there is no folder {:?} beside this file", dir.value.0);
            self.mistakes.add(&dir.span, message);
            return None;
        }
        Some(path)
    }
}

/// Returns the member's own value, or the value from `[defaults]` if the member has none.
fn inherited<T: Clone>(own: &Field<T>, default: &Field<T>) -> Option<T> {
    own.get().or_else(|| default.get()).cloned()
}

/// Returns all rules in the order in which they are checked. `deny` rules come first, so that no other rule
/// overrides them.
fn rules(own: &Common, default: &Common, mistakes: &mut Mistakes) -> Vec<Rule> {
    let short = |ruling: RuleDecision, lists: [&Field<Vec<NonEmpty>>; 2]| {
        let commands = lists.into_iter().filter_map(Field::get).flatten();
        let rule = move |command: &NonEmpty| {
            let NonEmpty(command) = command.clone();
            Rule { ruling, tool: None, command: Some(command) }
        };
        commands.map(rule).collect::<Vec<_>>()
    };
    for list in [&own.allow, &default.allow].into_iter().filter_map(Field::located) {
        list.value.iter().for_each(|command| check_allowed(&list.span, &command.0, mistakes));
    }
    let mut rules = short(RuleDecision::Deny, [&own.deny, &default.deny]);
    for table in [&own.rules, &default.rules] {
        let table = table.get().into_iter().flatten();
        rules.extend(table.filter_map(|rule| full_rule(rule, mistakes)));
    }
    rules.extend(short(RuleDecision::Ask, [&own.ask, &default.ask]));
    rules.extend(short(RuleDecision::Allow, [&own.allow, &default.allow]));
    rules
}

fn full_rule(rule: &Located<RuleTable>, mistakes: &mut Mistakes) -> Option<Rule> {
    let Located { span, value: RuleTable { ruling, tool, command } } = rule;
    if ruling.is_absent() {
        let hint = "add ruling = \"allow\", \"ask\" or \"deny\"";
        mistakes.hinted(span, "this rule has no key `ruling`", hint);
    }
    if let (Some(RuleDecision::Allow), true, Some(command)) =
        (ruling.get(), tool.is_absent(), command.located())
    {
        check_allowed(&command.span, &command.value.0, mistakes);
    }
    let text = |field: &Field<NonEmpty>| field.get().map(|text| text.0.clone());
    Some(Rule { ruling: *ruling.get()?, tool: text(tool), command: text(command) })
}

/// Reports the pattern of an allow rule that can never match a command.
fn check_allowed(span: &Range<usize>, pattern: &str, mistakes: &mut Mistakes) {
    if let Err(reason) = policy::check_allowed_command(pattern) {
        let message = format!("the rule {pattern:?} can never allow a command: {reason}");
        let hint = "write one command, for example \"cargo test *\"; several rules can allow a pipeline together";
        mistakes.hinted(span, message, hint);
    }
}
