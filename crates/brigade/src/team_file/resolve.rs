//! Turns the parsed file into a team: fills in defaults and reports invalid combinations.

use std::ops::Range;
use std::path::{Path, PathBuf};

use brigade_core::driver::{self, AGENTS};
use brigade_core::policy::{Rule, Ruling};
use brigade_wire::name::{LEAD, MemberName};

use super::board;
use super::form::{Common, Defaults, File, Lead, Member, RuleTable, Words};
use super::mistake::Mistakes;
use super::prompt;
use super::shape::{At, Field};
use crate::host::spec::{MemberSpec, Place, TeamSpec};
use crate::near;

/// Returns the team, or `None` if there are mistakes.
pub(super) fn team(file: &File, root: &Path, mistakes: &mut Mistakes) -> Option<TeamSpec> {
    if file.team.is_absent() {
        let hint = "start the file with a name, such as team = \"demo\"";
        mistakes.hinted(&(0..0), "the team has no name", hint);
    }
    if let (Some(creds), true) = (file.creds.at(), file.store.is_absent()) {
        let hint = "add store = \"nats://…\", or remove creds";
        mistakes.hinted(&creds.span, "credentials need a NATS store", hint);
    }
    let none = Defaults::default();
    let defaults = file.defaults.get().unwrap_or(&none);
    let mut house = House { root, defaults, mistakes };
    let lead = file.lead.at().map(|lead| house.lead(lead));
    let mut members: Vec<Option<MemberSpec>> = Vec::new();
    let mut names: Vec<&At<String>> = Vec::new();
    for (name, member) in file.members.get().map_or(&[][..], |members| &members.0) {
        members.push(house.member(name, member, &names));
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
    let tasks = file.tasks.get().map_or(&[][..], |tasks| &tasks.0);
    let tasks = board::tasks(tasks, &names, mistakes);
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

/// State shared while resolving all members.
struct House<'h> {
    root: &'h Path,
    defaults: &'h Defaults,
    mistakes: &'h mut Mistakes,
}

/// The settings that both a member and the lead have.
struct Own<'o> {
    common: &'o Common,
    prompt: &'o Field<Words>,
    prompt_file: &'o Field<Words>,
}

impl House<'_> {
    fn lead(&mut self, lead: &At<Lead>) -> Option<MemberSpec> {
        let At { span, value: Lead { common, prompt, prompt_file, .. } } = lead;
        self.spec(MemberName::lead(), span, &Own { common, prompt, prompt_file })
    }

    fn member(
        &mut self,
        name: &At<String>,
        member: &Member,
        before: &[&At<String>],
    ) -> Option<MemberSpec> {
        let Member { common, prompt, prompt_file, .. } = member;
        let own = Own { common, prompt, prompt_file };
        let others = before.iter().map(|other| other.value.as_str());
        let parsed = name.value.parse::<MemberName>().and_then(|parsed| {
            parsed.check_free(others)?;
            Ok(parsed)
        });
        let lead = |parsed: &MemberName| parsed.check_free([LEAD]).is_err();
        let parsed = match parsed {
            Ok(parsed) if lead(&parsed) => {
                let message = format!("{LEAD:?} is reserved for the lead");
                self.mistakes.hinted(&name.span, message, "define an agent that leads in [lead]");
                None
            }
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.mistakes.add(&name.span, error.to_string());
                None
            }
        };
        // Report the other mistakes even if the name is invalid.
        let spec = self.spec(parsed.clone().unwrap_or_else(MemberName::lead), &name.span, &own)?;
        Some(MemberSpec {
            name: parsed?,
            plan: inherited(&member.plan, &self.defaults.plan).unwrap_or_default(),
            worktree: inherited(&member.worktree, &self.defaults.worktree).unwrap_or_default(),
            ..spec
        })
    }

    fn spec(&mut self, name: MemberName, at: &Range<usize>, own: &Own<'_>) -> Option<MemberSpec> {
        let (mine, all) = (own.common, &self.defaults.common);
        let agent = inherited(&mine.agent, &all.agent);
        if mine.agent.is_absent() && all.agent.is_absent() {
            let hint = "add agent = \"…\" here or in [defaults]; `brigade agents` lists them";
            self.mistakes.hinted(at, "no agent is set", hint);
        }
        let place = inherited(&mine.place, &all.place).unwrap_or_default();
        let native = |agent: &str| driver::agent(agent).is_some_and(|choice| choice.agent.native);
        if let Some(agent) = agent.as_ref().filter(|agent| !native(&agent.0))
            && place == Place::Native
        {
            let agent_at = mine.agent.at().map(|agent| &agent.span);
            let span = mine.place.at().map(|place| &place.span).or(agent_at).unwrap_or(at).clone();
            let natives = AGENTS.iter().filter(|agent| agent.native).map(|agent| agent.name);
            let natives = near::list(&natives.collect::<Vec<_>>());
            let message =
                format!("agent {:?} cannot have place \"native\"; only {natives} can", agent.0);
            self.mistakes.hinted(&span, message, "use place = \"tmux\" or \"headless\"");
        }
        let prompt = prompt::read(own.prompt, own.prompt_file, self.root, self.mistakes);
        let cwd = self.cwd(&mine.dir, &all.dir);
        let same_agent = all.agent.get().is_none_or(|its| Some(its) == agent.as_ref());
        let of_agent = |mine: &Field<Words>, all: &Field<Words>| match mine {
            Field::Absent if same_agent => all.get().map(|words| words.0.clone()),
            mine => mine.get().map(|words| words.0.clone()),
        };
        let rules = rules(mine, all, self.mistakes);
        Some(MemberSpec {
            name,
            // A default program or model only applies to the default agent.
            program: of_agent(&mine.program, &all.program).map(|program| self.root.join(program)),
            model: of_agent(&mine.model, &all.model),
            agent: agent?.0,
            prompt,
            plan: false,
            access: inherited(&mine.access, &all.access).unwrap_or_default(),
            rules,
            cwd: cwd?,
            worktree: false,
            env: inherited(&mine.env, &all.env)
                .map(|names| names.into_iter().map(|name| name.0).collect()),
            place,
            restart: inherited(&mine.restart, &all.restart).unwrap_or_default(),
        })
    }

    fn cwd(&mut self, mine: &Field<Words>, all: &Field<Words>) -> Option<PathBuf> {
        let Some(dir) = mine.at().or_else(|| all.at()) else { return Some(self.root.to_owned()) };
        let path = self.root.join(&dir.value.0);
        if !path.is_dir() {
            let message = format!("there is no folder {:?} relative to this file", dir.value.0);
            self.mistakes.add(&dir.span, message);
            return None;
        }
        Some(path)
    }
}

/// The member's own value, or the default.
fn inherited<T: Clone>(mine: &Field<T>, all: &Field<T>) -> Option<T> {
    mine.get().or_else(|| all.get()).cloned()
}

/// All rules in order of precedence: `deny` comes first, so that no other rule can allow a denied command.
fn rules(mine: &Common, all: &Common, mistakes: &mut Mistakes) -> Vec<Rule> {
    let short = |ruling: Ruling, lists: [&Field<Vec<Words>>; 2]| {
        let commands = lists.into_iter().filter_map(Field::get).flatten();
        let rule = move |command: &Words| {
            let Words(command) = command.clone();
            Rule { ruling, tool: None, command: Some(command) }
        };
        commands.map(rule).collect::<Vec<_>>()
    };
    let mut rules = short(Ruling::Deny, [&mine.deny, &all.deny]);
    for table in [&mine.rules, &all.rules] {
        let table = table.get().into_iter().flatten();
        rules.extend(table.filter_map(|rule| long(rule, mistakes)));
    }
    rules.extend(short(Ruling::Ask, [&mine.ask, &all.ask]));
    rules.extend(short(Ruling::Allow, [&mine.allow, &all.allow]));
    rules
}

fn long(rule: &At<RuleTable>, mistakes: &mut Mistakes) -> Option<Rule> {
    let At { span, value: RuleTable { ruling, tool, command } } = rule;
    if ruling.is_absent() {
        let hint = "add ruling = \"allow\", \"ask\" or \"deny\"";
        mistakes.hinted(span, "this rule has no ruling", hint);
    }
    let words = |field: &Field<Words>| field.get().map(|words| words.0.clone());
    Some(Rule { ruling: *ruling.get()?, tool: words(tool), command: words(command) })
}
