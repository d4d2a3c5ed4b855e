//! What this program was built from, as `build.rs` found it.

use serde::Serialize;

/// One line, for `-V`.
pub(crate) const SHORT: &str = env!("BRIGADE_SHORT");

/// All of it, for `--version`.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit    ",
    env!("BRIGADE_COMMIT_WORDS"),
    "\ntarget    ",
    env!("BRIGADE_TARGET"),
    ", ",
    env!("BRIGADE_LINK"),
    "\ncompiler  ",
    env!("BRIGADE_RUSTC"),
    ", ",
    env!("BRIGADE_PROFILE"),
    "\nengine    ",
    env!("BRIGADE_ENGINE"),
);

/// The same for programs.
#[derive(Serialize)]
pub(crate) struct Version {
    version: &'static str,
    /// The hash of the commit, or nothing where nobody knows it.
    commit: Option<&'static str>,
    /// Whether the sources were changed since.
    changed: Option<bool>,
    target: &'static str,
    #[serde(rename = "static")]
    is_static: bool,
    compiler: &'static str,
    profile: &'static str,
    engine: Option<&'static str>,
}

/// What `--version --json` prints.
pub(crate) fn told() -> Version {
    let known = |text: &'static str, unknown: &str| (text != unknown).then_some(text);
    Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: known(env!("BRIGADE_COMMIT"), ""),
        changed: known(env!("BRIGADE_COMMIT_STATE"), "unknown").map(|state| state == "changed"),
        target: env!("BRIGADE_TARGET"),
        is_static: env!("BRIGADE_LINK") == "static",
        compiler: env!("BRIGADE_RUSTC"),
        profile: env!("BRIGADE_PROFILE"),
        engine: known(env!("BRIGADE_ENGINE"), "none"),
    }
}
