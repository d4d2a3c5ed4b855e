//! Every environment variable brigade reads, by name.

use std::ffi::OsString;
use std::path::PathBuf;

/// Which team, where `--team` does not say.
pub(crate) const TEAM: &str = "BRIGADE_TEAM";
/// Who I am, where `--as` does not say.
pub(crate) const AS: &str = "BRIGADE_AS";
/// What an acknowledged message survives, where `--durability` does not say.
pub(crate) const DURABILITY: &str = "BRIGADE_DURABILITY";
/// What to log, as in `debug` or `brigade_core=trace,warn`. Unset, nothing is logged.
pub(crate) const LOG: &str = "BRIGADE_LOG";
/// Where to log; standard error if unset.
pub(crate) const LOG_FILE: &str = "BRIGADE_LOG_FILE";
/// Claude Code's own variable for its folder.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Where programs keep their state.
pub(crate) const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// The home directory.
pub(crate) const HOME: &str = "HOME";
// `NO_COLOR` is read by `anstream`, which every character of ours goes through.

/// The value of a variable. An empty one counts as unset, so that `BRIGADE_TEAM= brigade` unsets it.
pub(crate) fn read(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Claude Code's folder.
pub(crate) fn claude_dir() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(read(HOME)?).join(".claude"));
    read(CLAUDE_CONFIG_DIR).map(PathBuf::from).or_else(home)
}

/// Brigade's own folder. The XDG rules ignore a relative path.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let xdg = read(XDG_STATE_HOME).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(read(HOME)?).join(".local/state"));
    Some(xdg.or_else(home)?.join("brigade"))
}
