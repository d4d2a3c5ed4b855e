//! Runs git without the programs that the settings of a repository name.
//!
//! An agent can write git's configuration, attributes and hooks in its worktree, and a repository may bring its own.
//! Many keys of the configuration name a program. Git runs it during harmless commands, for example `core.fsmonitor`
//! during `git status`. Every call here overrides these keys. The user's own configuration still applies, for example
//! filters for large files.
//!
//! An agent that can write the repository's `.git` folder while git runs can still win a race: it can add a driver
//! or a hook after they were listed. The overrides do not apply to git processes that git starts inside a submodule,
//! so no call here may inspect the files of a submodule.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{HostError, Trouble, failed};

/// The keys that name a program, or that make git start one, each with a value that starts none.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("sequence.editor", "false"),
    ("interactive.diffFilter", "cat"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("uploadpack.packObjectsHook", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.showUntrackedFiles", "all"),
    ("core.quotePath", "true"),
];

/// Drivers are named by the repository, and these keys of a driver name a program: section, and last part.
const DRIVERS: &[(&[u8], &[&[u8]])] = &[
    (b"filter.", &[b".clean", b".smudge", b".process", b".required"]),
    (b"diff.", &[b".command", b".textconv"]),
    (b"merge.", &[b".driver"]),
];

fn is_driver(key: &[u8]) -> bool {
    DRIVERS.iter().any(|(section, ends)| {
        key.starts_with(section) && ends.iter().any(|end| key.ends_with(end))
    })
}

/// Returns the key that disables the hook to which a key belongs. Git 2.54 also runs hooks that the configuration
/// names (`hook.NAME.command`); `core.hooksPath` does not affect them. Older versions ignore the key.
fn disabling_key(key: &[u8]) -> Option<Vec<u8>> {
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    let hook = key.get(..last).filter(|hook| hook.starts_with(b"hook."))?;
    Some([hook, b".enabled"].concat())
}

/// Variables that git must not inherit. If git started brigade, for example in a hook, some of them point to the
/// wrong repository; others name a program.
const VARIABLES: [&str; 20] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS",
];

/// The git commands used here that apply drivers or run hooks.
const RUNS_PROGRAMS: [&str; 5] = ["status", "diff", "add", "worktree", "branch"];

/// The repository in which git runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repository<'p> {
    /// The repository that contains this folder. Git searches for it.
    Containing(&'p Path),
    /// A worktree. Git does not read the file `.git` in it, which an agent can replace.
    Worktree {
        /// The folder of the worktree.
        dir: &'p Path,
        /// Git's data about the worktree, in the original repository.
        git_dir: &'p Path,
        /// The index to use instead of the worktree's own.
        index: Option<&'p Path>,
    },
}

/// A key of a driver in a repository's own configuration.
struct DriverSetting {
    key: Vec<u8>,
    /// The value of the same key in the user's configuration.
    of_user: Option<Vec<u8>>,
}

/// A key of git's configuration, and a value for it.
type Setting = (OsString, OsString);

impl Repository<'_> {
    /// Returns a call of git with these settings in addition to [`OVERRIDES`].
    fn command(&self, more: Vec<Setting>) -> Command {
        let mut git = Command::new("git");
        git.stdin(Stdio::null()).arg("--no-pager").arg("--literal-pathspecs");
        for name in VARIABLES {
            git.env_remove(name);
        }
        git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        // A missing object must not be fetched: a repository can name the program that fetches it.
        git.env("GIT_ALLOW_PROTOCOL", "").env("GIT_NO_LAZY_FETCH", "1");
        match *self {
            Self::Containing(dir) => {
                git.arg("-C").arg(dir);
            }
            Self::Worktree { dir, git_dir, index } => {
                git.arg("-C").arg(dir);
                git.arg("--git-dir").arg(git_dir).arg("--work-tree").arg(dir);
                git.envs(index.map(|index| ("GIT_INDEX_FILE", index)));
            }
        }
        // Not with `-c`: the name of a driver may contain `=`.
        let overrides = OVERRIDES.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        let settings: Vec<Setting> = overrides.chain(more).collect();
        git.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{number}"), key);
            git.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        git
    }

    /// Returns settings that disable the drivers and the hooks in the repository's own configuration. Drivers in the
    /// user's configuration stay.
    fn without_own_programs(&self) -> Result<Vec<Setting>, HostError> {
        let os_string = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let setting = |driver: DriverSetting| {
            let value: &[u8] = match &driver.of_user {
                Some(value) => value,
                None if driver.key.ends_with(b".required") => b"false",
                None => b"",
            };
            (os_string(&driver.key), os_string(value))
        };
        let (drivers, hooks) = self.own_programs()?;
        let hooks = hooks.iter().map(|key| (os_string(key), OsString::from("false")));
        Ok(drivers.into_iter().map(setting).chain(hooks).collect())
    }

    /// Returns the settings of drivers in the repository's own configuration, and the keys that disable its hooks.
    fn own_programs(&self) -> Result<(Vec<DriverSetting>, Vec<Vec<u8>>), HostError> {
        let mut git = self.command(Vec::new());
        // Not with a pattern: it would not match a name that is not UTF-8.
        git.args(["config", "--null", "--show-scope", "--list"]);
        let done = git.output().map_err(|source| failed("run git", source))?;
        if !done.status.success() {
            return Err(self.failure(&done.stderr));
        }
        let mut fields = done.stdout.split(|byte| *byte == 0);
        let (mut own, mut of_user, mut hooks) = (Vec::new(), Vec::new(), Vec::new());
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let (key, value) = entry.split_at(end);
            match scope {
                b"system" | b"global" if is_driver(key) => {
                    of_user.push((key, value.get(1..).unwrap_or_default()));
                }
                b"command" | b"system" | b"global" => {}
                _ if is_driver(key) => own.push(key),
                _ => hooks.extend(disabling_key(key)),
            }
        }
        let driver = |key: &[u8]| {
            let last = of_user.iter().rev().find(|(name, _)| *name == key);
            DriverSetting { key: key.to_vec(), of_user: last.map(|(_, value)| value.to_vec()) }
        };
        Ok((own.into_iter().map(driver).collect(), hooks))
    }

    /// Returns the filters of tracked files that only the repository configures. Git does not apply them here, so a new
    /// worktree would have other content than the user's checkout. The repository must be named by its top folder.
    pub(crate) fn disabled_filters(&self) -> Result<Vec<String>, HostError> {
        let name = |driver: &DriverSetting| {
            let name = driver.key.strip_prefix(b"filter.")?;
            let ends = [&b".smudge"[..], b".clean", b".process"];
            let name = ends.iter().find_map(|end| name.strip_suffix(*end))?;
            driver.of_user.is_none().then(|| name.to_vec())
        };
        let own: BTreeSet<Vec<u8>> = self.own_programs()?.0.iter().filter_map(name).collect();
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.run_with(&["ls-files", "-z"], b"")?;
        let attributes = ["check-attr", "--cached", "-z", "--stdin", "filter"];
        let attributes = self.run_with(&attributes, &files)?;
        // The output has three fields for each file: path, attribute, value.
        let used: BTreeSet<&[u8]> =
            attributes.split(|byte| *byte == 0).skip(2).step_by(3).collect();
        let disabled = own.iter().filter(|name| used.contains(name.as_slice()));
        Ok(disabled.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Runs git and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, HostError> {
        self.run_for(&[], args)
    }

    /// Like [`Self::run`], for a command that also works in another worktree of the repository.
    pub(crate) fn run_for<A: AsRef<OsStr>>(
        &self,
        others: &[Repository<'_>],
        args: &[A],
    ) -> Result<String, HostError> {
        let stdout = self.output(others, args, b"")?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Like [`Self::run`], for names that need not be UTF-8. Git reads `input`.
    pub(crate) fn run_with<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        input: &[u8],
    ) -> Result<Vec<u8>, HostError> {
        self.output(&[], args, input)
    }

    fn output<A: AsRef<OsStr>>(
        &self,
        others: &[Repository<'_>],
        args: &[A],
        input: &[u8],
    ) -> Result<Vec<u8>, HostError> {
        let command = args.first().and_then(|command| command.as_ref().to_str());
        let mut settings = Vec::new();
        if command.is_some_and(|command| RUNS_PROGRAMS.contains(&command)) {
            settings = self.without_own_programs()?;
            for other in others {
                settings.extend(other.without_own_programs()?);
            }
        }
        let mut git = self.command(settings);
        git.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = git.spawn().map_err(|source| failed("run git", source))?;
        let stdin = child.stdin.take();
        let done = std::thread::scope(|scope| {
            // Write in another thread, because git writes output before it has read all input. If git ends before it has
            // read everything, its exit status says why.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let done = done.map_err(|source| failed("run git", source))?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        Err(self.failure(&done.stderr))
    }

    fn failure(&self, stderr: &[u8]) -> HostError {
        let said = String::from_utf8_lossy(stderr).trim().to_owned();
        let (Self::Containing(dir) | Self::Worktree { dir, .. }) = self;
        HostError::failed(Trouble::Git { said }).hint(format!("in {}", dir.display()))
    }

    /// Like [`Self::run`], without the final line break.
    pub(crate) fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, HostError> {
        Ok(self.run(args)?.trim_end_matches('\n').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_in_the_configuration_of_a_repository_are_disabled() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::Containing(dir.path());
        repository.run(&["init", "--quiet"]).unwrap();
        for (key, value) in [("hook.a.b.command", "/evil"), ("hook.x.event", "post-checkout")] {
            repository.run(&["config", key, value]).unwrap();
        }
        let settings = repository.without_own_programs().unwrap();
        for key in ["hook.a.b.enabled", "hook.x.enabled"] {
            assert!(settings.contains(&(key.into(), "false".into())), "{key}: {settings:?}");
        }
        assert_eq!(disabling_key(b"hook.jobs"), None);
        assert_eq!(disabling_key(b"core.hookspath"), None);
    }
}
