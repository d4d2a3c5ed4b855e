//! Finds programs on this machine.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use brigade_agents::driver::Agent;
use brigade_wire::settings::{SettingPath, SettingsFile};

use crate::error::{HostError, Trouble};
use crate::variables;

/// The parts of the environment that locate programs.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The search path, `PATH`.
    pub path: Option<OsString>,
    /// Maps an agent's name to its program, if a variable such as `BRIGADE_CODEX` sets one.
    pub named: HashMap<String, OsString>,
    /// The Claude Code program, if a variable sets it.
    pub claude: Option<PathBuf>,
    /// Claude Code's folder, from its variable or the home directory.
    pub claude_dir: Option<PathBuf>,
    /// The executable file of this process.
    pub running: Option<PathBuf>,
    /// The command name with which this process was started (`argv[0]`).
    pub called: Option<OsString>,
}

impl Programs {
    /// Returns the absolute path of an agent's program, as set by the agent's variable or found on `PATH`.
    pub fn program(&self, agent: &Agent) -> Option<PathBuf> {
        if agent.native {
            let claude = self.claude(self.claude_dir.as_deref()).filter(|path| path.exists())?;
            return absolute(&claude);
        }
        match self.named.get(agent.name) {
            Some(named) => self.find(named),
            None => self.find(agent.program.as_ref()),
        }
    }

    /// Returns the Claude Code program: from the variable, from Claude Code's settings, or from `PATH`. The
    /// settings are read because a Claude Code lead passes few variables to the tmux panes of its teammates.
    pub fn claude(&self, claude_dir: Option<&Path>) -> Option<PathBuf> {
        let itself = self.running.as_ref().and_then(|path| path.canonicalize().ok());
        // Skip a `claude` that is a link to brigade, because starting it would start brigade again.
        let other = |claude: &PathBuf| claude.canonicalize().is_ok_and(|path| Some(path) != itself);
        let in_settings = || {
            let settings = std::fs::read(claude_dir?.join("settings.json")).ok()?;
            let place = SettingPath { section: Some("env"), key: variables::CLAUDE };
            let path = SettingsFile::read(&settings).ok()?.get(place)?;
            Some(PathBuf::from(path.as_str()?)).filter(other)
        };
        let named = self.claude.clone();
        named.or_else(in_settings).or_else(|| self.on_path("claude".as_ref()).find(other))
    }

    /// Like [`claude`](Self::claude), but fails with a hint if there is no such program.
    pub fn require_claude(&self, claude_dir: Option<&Path>) -> Result<PathBuf, HostError> {
        self.claude(claude_dir).ok_or_else(|| {
            let error = HostError::failed(Trouble::NoClaude);
            error.hint(format!("put `claude` on the PATH, or set {}", variables::CLAUDE))
        })
    }

    /// Returns the absolute path of a program. `program` is a path, or the name of a file on `PATH`.
    pub fn find(&self, program: &OsStr) -> Option<PathBuf> {
        let path = Path::new(program);
        if path.components().count() > 1 {
            return path.is_file().then(|| absolute(path))?;
        }
        absolute(&self.on_path(program).next()?)
    }

    /// Returns whether a program can be started by name.
    pub fn has(&self, program: &str) -> bool {
        // The system searches these directories if `PATH` is not set.
        let in_default =
            || ["/bin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).is_file());
        self.find(program.as_ref()).is_some() || (self.path.is_none() && in_default())
    }

    /// Returns the path by which brigade was started, without resolving links. An update changes the target of the
    /// links but not this path, so the path can be written into settings.
    pub fn itself(&self) -> Result<PathBuf, HostError> {
        let Some(running) = self.running.clone() else {
            return Err(HostError::failed(Trouble::NoProgram));
        };
        let same = |path: &PathBuf| path.canonicalize().ok() == running.canonicalize().ok();
        let called = self.called.as_ref().and_then(|name| self.find(name)).filter(same);
        Ok(called.unwrap_or(running))
    }

    /// Returns all programs of this name on `PATH`, in search order.
    fn on_path(&self, program: &OsStr) -> impl Iterator<Item = PathBuf> {
        let dirs: Vec<PathBuf> = self
            .path
            .as_ref()
            .map(|path| std::env::split_paths(path).collect())
            .unwrap_or_default();
        let program = program.to_owned();
        let paths = dirs.into_iter().map(move |dir| dir.join(&program));
        paths.filter(|path| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    }
}

/// Returns the version of a program, read from its npm package or from a folder named after the version.
/// Running the program with `--version` would take seconds for some agents.
pub fn version(program: &Path, package: &str) -> Option<String> {
    let real = program.canonicalize().ok()?;
    for dir in real.ancestors().skip(1).take(6) {
        let Ok(bytes) = std::fs::read(dir.join("package.json")) else { continue };
        let Ok(manifest) = serde_json::from_slice::<serde_json::Value>(&bytes) else { continue };
        if manifest.get("name").and_then(serde_json::Value::as_str) == Some(package) {
            return manifest.get("version")?.as_str().map(str::to_owned);
        }
    }
    let parts = real.iter().rev().filter_map(|part| part.to_str());
    let is_version = |part: &&str| {
        part.split('.').count() >= 3 && part.split('.').all(|n| n.parse::<u32>().is_ok())
    };
    parts.into_iter().take(3).find(is_version).map(str::to_owned)
}

/// Returns the version of an agent's program if it is older than the version with which brigade is tested.
pub fn outdated(programs: &Programs, agent: &Agent) -> Option<String> {
    let version = version(&programs.program(agent)?, agent.package)?;
    (version_numbers(&version) < version_numbers(agent.tested)).then_some(version)
}

/// Parses a version into a list of numbers, so that versions can be compared.
fn version_numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

fn absolute(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        for (older, newer) in [
            ("0.61.0", "0.166.0"),
            ("2.1.50", "2.1.325"),
            ("1.0.102-beta.1", "1.0.103"),
            ("1.18.33", "2.0.0"),
        ] {
            assert!(version_numbers(older) < version_numbers(newer), "{older} {newer}");
        }
        assert_eq!(version_numbers("1.2.3"), version_numbers("1.2.3+build"));
    }
}
