//! Which programs there are on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use brigade_core::driver::Agent;
use brigade_wire::settings::{Place, Settings};

use crate::env;
use crate::error::{CliError, Trouble};

/// The program of an agent, by its whole path: the one its variable names, or the one on the path.
pub(crate) fn program(agent: &Agent) -> Option<PathBuf> {
    if agent.native {
        return absolute(&claude(env::claude_dir().as_deref()).filter(|path| path.exists())?);
    }
    let named = env::agent_program(agent.name).unwrap_or_else(|| agent.program.into());
    find(&named)
}

/// Claude Code's own program: the one its variable names, the one in its settings, or the one on the
/// path. A lead hands little of its settings on to the panes of its teammates, so they are looked up.
pub(crate) fn claude(claude_dir: Option<&Path>) -> Option<PathBuf> {
    let itself = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    // Whoever linked `claude` to brigade would have it start itself for ever.
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

/// A program by its whole path, whether it was given as a path or as a name.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| absolute(path))?;
    }
    absolute(&env::on_path(program).next()?)
}

/// The version of a program by where it stands: in its npm package, or in a folder named for it. To ask
/// it would take some of them seconds.
pub(crate) fn version(program: &Path, package: &str) -> Option<String> {
    let real = program.canonicalize().ok()?;
    for dir in real.ancestors().skip(1).take(6) {
        let Ok(bytes) = std::fs::read(dir.join("package.json")) else { continue };
        let Ok(described) = serde_json::from_slice::<serde_json::Value>(&bytes) else { continue };
        if described.get("name").and_then(serde_json::Value::as_str) == Some(package) {
            return described.get("version")?.as_str().map(str::to_owned);
        }
    }
    let parts = real.iter().rev().filter_map(|part| part.to_str());
    let is_version = |part: &&str| {
        part.split('.').count() >= 3 && part.split('.').all(|n| n.parse::<u32>().is_ok())
    };
    parts.into_iter().take(3).find(is_version).map(str::to_owned)
}

/// This program, by the path it was called by: a package manager keeps that one and replaces what is
/// behind it, so what is written into settings still holds after an update.
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
