//! The settings of a new member, as options of a command give them: the same settings as in `brigade.toml`.

use std::path::{Path, PathBuf};

use brigade_core::policy::{self, Rule, RuleDecision};
use brigade_wire::name::{MemberName, TeamName};

use crate::context::Context;
use crate::error::{HostError, Trouble, file_failed};
use crate::preflight;
use crate::spec::{AccessLevel, MemberPlace, MemberSpec, Restart, is_variable_name};
use crate::team_file;
use crate::trust::Trust;

/// The settings of a new member. A setting that is not given has the value of the member in `like`, or else the default.
#[derive(Clone, Debug, Default)]
pub struct MemberOptions {
    /// The member whose settings to copy: a member of the team on this host, in the team file, or one that was stopped on
    /// this host.
    pub like: Option<MemberName>,
    /// The agent. Needed without `like`.
    pub agent: Option<String>,
    /// The path of the agent's program, relative to the current folder.
    pub program: Option<PathBuf>,
    /// The model. A model of `like` is for its agent only.
    pub model: Option<String>,
    /// The first message that the member gets.
    pub prompt: Option<String>,
    /// A file with the first message, relative to the current folder.
    pub prompt_file: Option<PathBuf>,
    /// Whether the member must not change anything before its plan is approved.
    pub plan: Option<bool>,
    /// The actions that the member may take without asking.
    pub access: Option<AccessLevel>,
    /// Commands that the member may run without asking, in addition to those of `like`.
    pub allow: Vec<String>,
    /// Commands that the member may run only after asking.
    pub ask: Vec<String>,
    /// Commands that the member must not run.
    pub deny: Vec<String>,
    /// The folder that the member works in, relative to the current folder, which is the default.
    pub dir: Option<PathBuf>,
    /// Whether the member works in its own git worktree.
    pub worktree: Option<bool>,
    /// The names of the environment variables that the member inherits.
    pub env: Vec<String>,
    /// Where the member runs.
    pub place: Option<MemberPlace>,
    /// Whether the member is restarted when its process dies.
    pub restart: Option<Restart>,
}

impl MemberOptions {
    /// Returns the settings of the new member `name` of a team. Makes the same checks as reading a team file.
    pub fn resolve(
        &self,
        context: &Context,
        team: &TeamName,
        name: &MemberName,
        trust: &Trust,
    ) -> Result<MemberSpec, HostError> {
        let like = self.like.as_ref().map(|like| find_like(context, team, like, trust));
        let base = match (like.transpose()?, &self.agent) {
            (Some(like), _) => MemberSpec { name: name.clone(), ..like },
            (None, Some(agent)) => {
                MemberSpec::new(name.clone(), agent.clone(), context.cwd.clone())
            }
            (None, None) => return Err(HostError::usage(Trouble::AgentNeeded)),
        };
        let agent = self.agent.clone().unwrap_or_else(|| base.agent.clone());
        // The program and the model of a member are those of its agent.
        let is_same_agent = agent == base.agent;
        let (program, model) = (base.program.clone(), base.model.clone());
        let program = match &self.program {
            Some(program) => Some(context.cwd.join(program)),
            None => program.filter(|_| is_same_agent),
        };
        let spec = MemberSpec {
            program,
            model: self.model.clone().or_else(|| model.filter(|_| is_same_agent)),
            agent,
            prompt: self.prompt(&context.cwd)?.or_else(|| base.prompt.clone()),
            plan: self.plan.unwrap_or(base.plan),
            access: self.access.unwrap_or(base.access),
            rules: self.rules(base.rules)?,
            cwd: match &self.dir {
                Some(dir) => existing_folder(&context.cwd.join(dir))?,
                None => base.cwd,
            },
            worktree: self.worktree.unwrap_or(base.worktree),
            env: self.variables()?.or(base.env),
            place: self.place.unwrap_or(base.place),
            restart: self.restart.unwrap_or(base.restart),
            name: base.name,
        };
        if let Some(why) = preflight::why_not_native(&spec.agent, spec.place) {
            return Err(HostError::usage(Trouble::BadPlace { why }));
        }
        Ok(spec)
    }

    /// Fails if there are options that have no effect for a member that runs in a terminal, without the supervisor.
    pub fn check_in_terminal(&self) -> Result<(), HostError> {
        let given = [
            ("--like", self.like.is_some()),
            ("--allow", !self.allow.is_empty()),
            ("--ask", !self.ask.is_empty()),
            ("--deny", !self.deny.is_empty()),
            ("--worktree", self.worktree.is_some()),
            ("--restart", self.restart.is_some()),
        ];
        let options: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect();
        if options.is_empty() {
            return Ok(());
        }
        let error = HostError::usage(Trouble::NotInTerminal { options });
        Err(error.hint("use `--place headless` or `--place tmux`"))
    }

    fn prompt(&self, cwd: &Path) -> Result<Option<String>, HostError> {
        let Some(file) = &self.prompt_file else {
            if self.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
                let why = "the prompt is empty".to_owned();
                return Err(HostError::usage(Trouble::BadPrompt { why }));
            }
            return Ok(self.prompt.clone());
        };
        let path = cwd.join(file);
        let name = file.to_string_lossy();
        if let Err(source) = std::fs::metadata(&path) {
            return Err(file_failed("read", &path, source));
        }
        let text = team_file::read_prompt_file(&path, &name);
        text.map(Some).map_err(|why| HostError::failed(Trouble::BadPrompt { why }))
    }

    /// Returns the rules in the order in which they are checked. As in a team file, a rule that denies comes before all
    /// others, and a rule that allows comes last.
    fn rules(&self, mut base: Vec<Rule>) -> Result<Vec<Rule>, HostError> {
        for pattern in &self.allow {
            if let Err(reason) = policy::check_allowed_command(pattern) {
                let (pattern, reason) = (pattern.clone(), reason.to_string());
                let error = HostError::usage(Trouble::NeverAllows { pattern, reason });
                return Err(error.hint(
                    "give one command, for example --allow \"cargo test *\"; several rules can allow a pipeline together",
                ));
            }
        }
        let short = |ruling: RuleDecision, commands: &[String]| -> Vec<Rule> {
            let rule =
                |command: &String| Rule { ruling, tool: None, command: Some(command.clone()) };
            commands.iter().map(rule).collect()
        };
        let denied = base.iter().take_while(|rule| rule.ruling == RuleDecision::Deny).count();
        let rest = base.split_off(denied);
        let mut rules = short(RuleDecision::Deny, &self.deny);
        rules.extend(base);
        rules.extend(short(RuleDecision::Ask, &self.ask));
        rules.extend(rest);
        rules.extend(short(RuleDecision::Allow, &self.allow));
        Ok(rules)
    }

    fn variables(&self) -> Result<Option<Vec<String>>, HostError> {
        if let Some(name) = self.env.iter().find(|name| !is_variable_name(name)) {
            let error = HostError::usage(Trouble::NotAVariable { name: name.clone() });
            return Err(error.hint("give only the name; the value is read when the member starts"));
        }
        Ok((!self.env.is_empty()).then(|| self.env.clone()))
    }
}

/// Returns the settings of a member of the team on this host or, if there is none, of the team file for the current folder, or
/// of a member that was stopped on this host.
fn find_like(
    context: &Context,
    team: &TeamName,
    like: &MemberName,
    trust: &Trust,
) -> Result<MemberSpec, HostError> {
    let host = context.host()?;
    if let Some(spec) = host.of_member(team, like)?.registry.member(team, like)? {
        return Ok(match spec.place {
            // Only Claude Code opens panes.
            MemberPlace::Pane => MemberSpec { place: MemberPlace::Headless, ..spec },
            _ => spec,
        });
    }
    let mut known: Vec<String> =
        host.registry.members(team)?.iter().map(ToString::to_string).collect();
    if let Ok(path) = team_file::find(&context.cwd)
        && team_file::team_name(&path)?.as_ref() == Some(team)
    {
        let file = trust.read(&path)?;
        if let Some(spec) = file.spec().members.iter().find(|member| member.name == *like) {
            return Ok(spec.clone());
        }
        known.extend(file.spec().members.iter().map(|member| member.name.to_string()));
    }
    if let Some(stopped) = host.registry.stopped_member(team, like)? {
        return Ok(stopped.spec);
    }
    known.sort();
    known.dedup();
    let (name, team) = (like.to_string(), team.to_string());
    let error = HostError::failed(Trouble::NoMemberLike { name, team });
    Err(match known.as_slice() {
        [] => error.hint("give the settings with options; see `brigade spawn --help`"),
        known => error.hint(format!("members: {}", known.join(", "))),
    })
}

/// Returns the real path of a folder. Fails if there is no such folder.
fn existing_folder(path: &Path) -> Result<PathBuf, HostError> {
    match path.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        _ => Err(HostError::failed(Trouble::NoFolder { path: path.to_owned() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(ruling: RuleDecision, command: &str) -> Rule {
        Rule { ruling, tool: None, command: Some(command.to_owned()) }
    }

    /// As in a team file, no rule overrides a rule that denies, and a rule that asks comes before those that allow.
    #[test]
    fn rules_of_options_are_added_to_those_of_the_copied_member() {
        use RuleDecision::{Allow, Ask, Deny};
        let base = vec![rule(Deny, "git push*"), rule(Ask, "make *"), rule(Allow, "cargo *")];
        let options = MemberOptions {
            allow: vec!["ls".to_owned()],
            ask: vec!["cargo publish*".to_owned()],
            deny: vec!["rm*".to_owned()],
            ..MemberOptions::default()
        };
        let expected = [
            rule(Deny, "rm*"),
            rule(Deny, "git push*"),
            rule(Ask, "cargo publish*"),
            rule(Ask, "make *"),
            rule(Allow, "cargo *"),
            rule(Allow, "ls"),
        ];
        assert_eq!(options.rules(base).unwrap(), expected);
    }

    #[test]
    fn a_rule_that_can_never_allow_a_command_is_refused() {
        let allow = vec!["git log | head *".to_owned()];
        let options = MemberOptions { allow, ..MemberOptions::default() };
        let error = options.rules(Vec::new()).unwrap_err();
        assert!(error.to_string().contains("can never allow"), "{error}");
    }
}
