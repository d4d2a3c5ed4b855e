//! The person's own rules for permission requests, in a file beside the person's configuration.
//!
//! ```toml
//! [[rules]]
//! ruling = "allow"
//! command = "cargo test -p core"
//! folder = "/home/me/proj"
//! ```
//!
//! A rule is written as in `brigade.toml`. `folder` limits it to members that work in this folder or below it. A file with
//! mistakes is an error, and never the same as a file without rules: a rule that denies must not disappear.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::policy::{self, Rule, RuleDecision};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::{HostError, Trouble, file_failed};

/// The name of the file in the folder of the person's configuration.
const FILE: &str = "policy.toml";
/// The first lines of the file.
const HEADER: &str = "# Your rules for permission requests. `brigade policy` and `--always` replace the whole file, so comments\n\
     # are lost.\n";
/// The size of the largest file that is read, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// A rule of the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleKeys")]
pub struct PersonalRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// The folder in which members must work so that the rule applies; any folder if this is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

/// The keys of a rule in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleKeys {
    ruling: RuleDecision,
    tool: Option<String>,
    command: Option<String>,
    folder: Option<PathBuf>,
}

impl TryFrom<RuleKeys> for PersonalRule {
    type Error = String;

    fn try_from(keys: RuleKeys) -> Result<Self, String> {
        let RuleKeys { ruling, tool, command, folder } = keys;
        let is_blank =
            |text: &Option<String>| text.as_deref().is_some_and(|text| text.trim().is_empty());
        if (tool.is_none() && command.is_none()) || is_blank(&tool) || is_blank(&command) {
            return Err("a rule needs a command or a tool".to_owned());
        }
        if folder.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err("the folder of a rule must be an absolute path".to_owned());
        }
        if let (RuleDecision::Allow, None, Some(pattern)) = (ruling, &tool, &command) {
            policy::check_allowed_command(pattern).map_err(|reason| {
                format!("the rule {pattern:?} can never allow a command: {reason}")
            })?;
        }
        Ok(Self { rule: Rule { ruling, tool, command }, folder })
    }
}

impl PersonalRule {
    /// Returns the lines that describe the rule in the file.
    pub fn to_toml(&self) -> String {
        // A JSON string is also a TOML string, except that TOML does not allow the character U+007F in it.
        let quoted =
            |text: &str| serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f");
        let mut text = format!("[[rules]]\nruling = \"{}\"\n", self.rule.ruling.as_str());
        let folder = self.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        for (key, value) in
            [("tool", &self.rule.tool), ("command", &self.rule.command), ("folder", &folder)]
        {
            if let Some(value) = value {
                let _infallible = writeln!(text, "{key} = {}", quoted(value));
            }
        }
        text
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    rules: Vec<PersonalRule>,
}

/// The rules in the person's policy file.
#[derive(Debug)]
pub struct PersonalPolicy {
    path: PathBuf,
    rules: Vec<PersonalRule>,
}

impl PersonalPolicy {
    /// Returns the path of the policy file in the folder of the person's configuration.
    pub fn path_in(config_dir: &Path) -> PathBuf {
        config_dir.join(FILE)
    }

    /// Reads the policy file of the person who runs the command. There are no rules without a home directory.
    pub fn of_context(context: &Context) -> Result<Self, HostError> {
        match context.config_dir() {
            Ok(dir) => Self::read(&dir.join(FILE)),
            Err(_) => Ok(Self { path: PathBuf::new(), rules: Vec::new() }),
        }
    }

    /// Reads a policy file. A file that does not exist has no rules. Fails if the file has a mistake, or if other users can
    /// change it.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), rules: Vec::new() });
            }
            Err(source) => return Err(file_failed("read", path, source)),
        };
        if !found.is_file() || found.len() > MAX_SIZE {
            return Err(bad(path, "it is not a file of at most 1 MB").hint("remove it"));
        }
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let command = format!("`chmod 600 {}`", path.display());
            return Err(bad(path, "other users can change it")
                .hint(format!("check the rules in it, then make the file yours: {command}")));
        }
        let text = fs::read_to_string(path).map_err(|source| file_failed("read", path, source))?;
        let file: PolicyFile = toml::from_str(&text).map_err(|error| {
            bad(path, error.message())
                .hint("until you correct the file, no rule answers requests: they wait for you")
        })?;
        Ok(Self { path: path.to_owned(), rules: file.rules })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the rules in the order of the file.
    pub fn rules(&self) -> &[PersonalRule] {
        &self.rules
    }

    /// Adds rules to the policy file, except those that it already has. Returns the number of each rule. Only a person may
    /// call this.
    pub fn add(context: &Context, rules: &[PersonalRule]) -> Result<Vec<usize>, HostError> {
        context.require_person("add rules")?;
        Self::change(&context.config_dir()?.join(FILE), |all| {
            let position = |rule: &PersonalRule| {
                let at = all.iter().position(|known| known == rule).unwrap_or(all.len());
                if at == all.len() {
                    all.push(rule.clone());
                }
                at + 1
            };
            Ok(rules.iter().map(position).collect())
        })
    }

    /// Removes the rule with this number and returns it. Only a person may call this.
    pub fn remove(context: &Context, number: usize) -> Result<PersonalRule, HostError> {
        context.require_person("remove rules")?;
        Self::change(&context.config_dir()?.join(FILE), |all| {
            let at = number.checked_sub(1).filter(|at| *at < all.len());
            let at = at.ok_or_else(|| {
                HostError::failed(Trouble::NoPersonalRule { number })
                    .hint("`brigade policy list` shows the rules and their numbers")
            })?;
            Ok(all.remove(at))
        })
    }

    /// Changes the rules while no other process changes them. After a crash, the file has either all old or all new rules.
    fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut Vec<PersonalRule>) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let failed = |source| file_failed("write", path, source);
        let dir = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let lock = File::open(dir).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut policy = Self::read(path)?;
        let done = change(&mut policy.rules)?;
        // The file may be a link into a folder with all settings of the person.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let text = policy.render();
        if toml::from_str::<PolicyFile>(&text).is_err() {
            return Err(bad(path, "the rule cannot be written as TOML"));
        }
        let temp = target.with_file_name(format!("policy.{}.tmp", std::process::id()));
        let write = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temp, &target)?;
            lock.sync_all()
        };
        write().map_err(failed)?;
        Ok(done)
    }

    fn render(&self) -> String {
        let rules = self.rules.iter().map(|rule| format!("\n{}", rule.to_toml()));
        HEADER.to_owned() + &rules.collect::<String>()
    }
}

fn bad(path: &Path, why: &str) -> HostError {
    HostError::failed(Trouble::BadPolicy { path: path.to_owned(), why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn rule(ruling: RuleDecision, command: &str) -> PersonalRule {
        let rule = Rule { ruling, tool: None, command: Some(command.to_owned()) };
        PersonalRule { rule, folder: Some("/home/me/a \"b\"".into()) }
    }

    #[test]
    fn rules_survive_a_rewrite_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("brigade/policy.toml");
        let deny = PersonalRule { folder: None, ..rule(RuleDecision::Deny, "rm\u{7f}\u{1b}\n*\\") };
        let rules = [rule(RuleDecision::Allow, "cargo test '*'"), deny];
        PersonalPolicy::change(&path, |all| {
            all.extend(rules.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!(PersonalPolicy::read(&path).unwrap().rules(), rules);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_mistakes_is_never_taken_for_one_without_rules() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        assert_eq!(PersonalPolicy::read(&path).unwrap().rules(), []);
        for text in [
            "[[rules]]",
            "[[rules]]\nruling = \"allow\"",
            "[[rules]]\nruling = \"allow\"\ncommand = \" \"",
            "[[rules]]\nruling = \"yes\"\ncommand = \"ls\"",
            "[[rules]]\nruling = \"deny\"\ncommand = \"ls\"\nfolder = \"src\"",
            "[[rules]]\nruling = \"allow\"\ncommand = \"ls | sh\"",
            "[[rules]]\nruling = \"deny\"\ncommand = \"ls\"\nteam = \"demo\"",
            "[[rule]]\nruling = \"deny\"\ncommand = \"ls\"",
            "[[rules]",
            "\u{0}",
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = PersonalPolicy::read(&path).unwrap_err();
            assert!(error.to_string().contains("policy.toml is not valid: "), "{text}: {error}");
            let add = PersonalPolicy::change(&path, |all| {
                all.push(rule(RuleDecision::Allow, "ls"));
                Ok(())
            });
            assert!(add.is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_other_users_can_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        fs::write(&path, "").unwrap();
        for (mode, is_accepted) in [(0o600, true), (0o644, true), (0o660, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(PersonalPolicy::read(&path).is_ok(), is_accepted, "{mode:o}");
        }
    }

    #[test]
    fn rules_that_several_processes_add_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    PersonalPolicy::change(path, |all| {
                        all.push(rule(RuleDecision::Allow, &format!("make {number}")));
                        Ok(())
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(PersonalPolicy::read(&path).unwrap().rules().len(), 8);
    }
}
