//! Finds installed programs and their versions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use brigade_core::driver::Agent;
use brigade_wire::settings::{Place, Settings};

use crate::env;
use crate::error::{CliError, Trouble};

/// The absolute path of an agent's program: from its environment variable, or found on the PATH.
pub(crate) fn program(agent: &Agent) -> Option<PathBuf> {
    if agent.native {
        return absolute(&claude(env::claude_dir().as_deref()).filter(|path| path.exists())?);
    }
    let named = env::agent_program(agent.name).unwrap_or_else(|| agent.program.into());
    find(&named)
}

/// The path of Claude Code's program: from its environment variable, from Claude Code's settings, or found on
/// the PATH. The settings are read because a lead passes few of its variables on to its teammates' panes.
pub(crate) fn claude(claude_dir: Option<&Path>) -> Option<PathBuf> {
    let itself = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    // Skip a `claude` that links to brigade, which would start itself forever.
    let other = |claude: &PathBuf| claude.canonicalize().is_ok_and(|path| Some(path) != itself);
    let in_settings = || {
        let settings = std::fs::read(claude_dir?.join("settings.json")).ok()?;
        let place = Place { section: Some("env"), key: env::CLAUDE };
        let path = Settings::read(&settings).ok()?.get(place)?;
        Some(PathBuf::from(path.as_str()?)).filter(other)
    };
    let named = env::read(env::CLAUDE).map(PathBuf::from);
    named.or_else(in_settings).or_else(|| env::on_path("claude".as_ref()).find(other))
}

/// The absolute path of a program, given as a path or a name.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| absolute(path))?;
    }
    absolute(&env::on_path(program).next()?)
}

/// The version of a program, read from its npm package or from the name of its folder. Running the program
/// would take seconds for some agents.
pub(crate) fn version(program: &Path, package: &str) -> Option<String> {
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

/// The path of this program, as it was called. A package manager keeps this path and replaces the file behind
/// it, so the path stays valid in settings after an update.
pub(crate) fn itself() -> Result<PathBuf, CliError> {
    let running = std::env::current_exe().map_err(|source| {
        let doing = "find the brigade program".into();
        CliError::failed(Trouble::Io { doing, source })
    })?;
    let same = |path: &PathBuf| path.canonicalize().ok() == running.canonicalize().ok();
    let called = std::env::args_os().next().and_then(|name| find(&name)).filter(same);
    Ok(called.unwrap_or(running))
}

fn absolute(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}
