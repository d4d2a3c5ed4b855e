//! The differences between a team file and the team that runs on this host.

use brigade_core::policy::{Rule, RuleDecision};
use brigade_core::text;
use brigade_wire::name::MemberName;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::HostError;
use crate::registry::Registry;
use crate::spec::{MemberSpec, TeamSpec};

/// The longest part of a value that is shown, in characters.
const MAX_SHOWN: usize = 60;

/// The differences between a team file and the members on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TeamDifferences {
    /// The members of the file that are not on this host.
    pub added: Vec<MemberName>,
    /// The members on this host that are not in the file.
    pub removed: Vec<MemberName>,
    /// The members with other settings than in the file.
    pub changed: Vec<MemberDifferences>,
}

/// The settings of a member that differ from the team file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberDifferences {
    /// The member.
    pub name: MemberName,
    /// The settings that differ.
    pub settings: Vec<SettingDifference>,
}

/// A setting of a member that differs from the team file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// The key of the setting in a team file.
    pub setting: &'static str,
    /// The value with which the member runs.
    pub old: Value,
    /// The value in the file.
    pub new: Value,
}

impl TeamDifferences {
    /// Compares a team file with the members on this host.
    pub fn find(registry: &Registry, spec: &TeamSpec) -> Result<Self, HostError> {
        let mut found = Self::default();
        let in_file: Vec<&MemberSpec> = spec.members.iter().chain(&spec.lead).collect();
        for wanted in &in_file {
            match registry.member(&spec.team, &wanted.name)? {
                None => found.added.push(wanted.name.clone()),
                Some(existing) => found.changed.extend(MemberDifferences::find(&existing, wanted)),
            }
        }
        found.removed = registry.members(&spec.team)?;
        found.removed.retain(|name| !in_file.iter().any(|member| member.name == *name));
        Ok(found)
    }

    /// Returns the differences of one member.
    pub fn of_member(&self, name: &MemberName) -> Option<&MemberDifferences> {
        self.changed.iter().find(|member| member.name == *name)
    }

    /// Returns a sentence for each difference to the running team. New members are left out.
    pub fn sentences(&self) -> Vec<String> {
        let changed = self.changed.iter().flat_map(|member| {
            member.settings.iter().map(|setting| setting.sentence(&member.name))
        });
        let removed =
            self.removed.iter().map(|name| format!("{name} is not in the file but keeps running"));
        changed.chain(removed).collect()
    }
}

impl MemberDifferences {
    /// Compares the settings of a member; `None` if they are the same.
    pub fn find(existing: &MemberSpec, wanted: &MemberSpec) -> Option<Self> {
        let pairs = settings(existing).into_iter().zip(settings(wanted));
        let differ = pairs.filter(|((_, old), (_, new))| old != new);
        let settings: Vec<SettingDifference> = differ
            .map(|((setting, old), (_, new))| SettingDifference { setting, old, new })
            .collect();
        (!settings.is_empty()).then(|| Self { name: wanted.name.clone(), settings })
    }

    /// Returns the keys of the settings, separated by commas.
    pub fn keys(&self) -> String {
        let keys: Vec<&str> = self.settings.iter().map(|setting| setting.setting).collect();
        keys.join(", ")
    }

    /// Returns whether one of these settings differs.
    pub(crate) fn has_any(&self, keys: &[&str]) -> bool {
        self.settings.iter().any(|setting| keys.contains(&setting.setting))
    }
}

impl SettingDifference {
    /// Returns a sentence about the difference.
    fn sentence(&self, name: &MemberName) -> String {
        let Self { setting, old, new } = self;
        if *setting == "rules" {
            return format!("{name} still uses its old rules; the file {}", rule_changes(old, new));
        }
        let word = match *setting {
            "dir" => "folder",
            "env" => "variables",
            "plan" => "plan mode",
            "access" => "access level",
            "restart" => "restart setting",
            setting => setting,
        };
        let (old, new) = (value_text(old), value_text(new));
        format!("{name} still uses its old {word} {old}; the file says {new}")
    }
}

/// Returns the settings of a member by their keys in a team file, always in the same order.
fn settings(spec: &MemberSpec) -> [(&'static str, Value); 12] {
    // This pattern has no rest, so that a new setting is not forgotten here.
    let MemberSpec {
        name: _,
        agent,
        program,
        model,
        prompt,
        plan,
        access,
        rules,
        cwd,
        worktree,
        env,
        place,
        restart,
    } = spec;
    [
        ("agent", json!(agent)),
        ("program", json!(program)),
        ("model", json!(model)),
        ("prompt", json!(prompt)),
        ("plan", json!(plan)),
        ("access", json!(access)),
        ("rules", json!(rules)),
        ("dir", json!(cwd)),
        ("worktree", json!(worktree)),
        ("env", json!(env)),
        ("place", json!(place)),
        ("restart", json!(restart)),
    ]
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "(not set)".to_owned(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::String(text) if text.contains(char::is_whitespace) => {
            format!("\"{}\"", text::cut(&text::one_line(text), MAX_SHOWN))
        }
        Value::String(text) => text::one_line(text),
        Value::Array(values) if values.is_empty() => "(none)".to_owned(),
        Value::Array(values) => values.iter().map(value_text).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

/// Returns which rules the file adds and removes.
fn rule_changes(old: &Value, new: &Value) -> String {
    let read =
        |value: &Value| -> Vec<Rule> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let (old, new) = (read(old), read(new));
    let missing = |from: &[Rule], of: &[Rule]| -> Vec<String> {
        of.iter().filter(|rule| !from.contains(rule)).map(rule_text).collect()
    };
    let (added, removed) = (missing(&old, &new), missing(&new, &old));
    let parts: Vec<String> = [("adds", added), ("removes", removed)]
        .into_iter()
        .filter(|(_, rules)| !rules.is_empty())
        .map(|(verb, rules)| format!("{verb} {}", rules.join(", ")))
        .collect();
    match parts.is_empty() {
        true => "has them in another order".to_owned(),
        false => parts.join(" and "),
    }
}

fn rule_text(rule: &Rule) -> String {
    let part = |text: &Option<String>| {
        let shown = text.as_ref().map(|text| text::cut(&text::one_line(text), MAX_SHOWN));
        shown.map(|text| format!(" {text}")).unwrap_or_default()
    };
    let ruling = match rule.ruling {
        RuleDecision::Allow => "allow",
        RuleDecision::Ask => "ask",
        RuleDecision::Deny => "deny",
    };
    format!("\"{ruling}{}{}\"", part(&rule.tool), part(&rule.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> MemberSpec {
        MemberSpec::new(name.parse().unwrap(), "codex".to_owned(), "/project".into())
    }

    #[test]
    fn each_difference_has_a_sentence_with_both_values() {
        let rule =
            |ruling, command: &str| Rule { ruling, tool: None, command: Some(command.to_owned()) };
        let old = MemberSpec {
            rules: vec![rule(RuleDecision::Allow, "make")],
            prompt: Some("Take a task".to_owned()),
            ..member("bob")
        };
        let new = MemberSpec {
            rules: vec![rule(RuleDecision::Deny, "git push*")],
            cwd: "/project/b".into(),
            model: Some("gpt".to_owned()),
            worktree: true,
            ..member("bob")
        };
        let state = tempfile::tempdir().unwrap();
        let registry = Registry::new(state.path().join("host/key"));
        let team = "demo".parse().unwrap();
        registry.add_member(&team, &old).unwrap();
        registry.add_member(&team, &member("carl")).unwrap();
        let mut spec = TeamSpec::new(team, "/project".into());
        spec.members = vec![new, member("eve")];
        let found = TeamDifferences::find(&registry, &spec).unwrap();
        assert_eq!(found.added, ["eve".parse().unwrap()]);
        assert_eq!(
            found.sentences(),
            [
                "bob still uses its old model (not set); the file says gpt",
                "bob still uses its old prompt \"Take a task\"; the file says (not set)",
                "bob still uses its old rules; the file adds \"deny git push*\" and removes \"allow make\"",
                "bob still uses its old folder /project; the file says /project/b",
                "bob still uses its old worktree off; the file says on",
                "carl is not in the file but keeps running",
            ]
        );
    }
}
