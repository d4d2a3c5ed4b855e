//! Version and build information, collected by `build.rs`.

use serde::Serialize;

/// The one-line version for `-V`.
pub(crate) const SHORT: &str = env!("BRIGADE_SHORT");

/// The version with build information for `--version`, several lines.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit    ",
    env!("BRIGADE_COMMIT_TEXT"),
    "\ntarget    ",
    env!("BRIGADE_TARGET"),
    ", ",
    env!("BRIGADE_LINK"),
    "\ncompiler  ",
    env!("BRIGADE_RUSTC"),
    ", ",
    env!("BRIGADE_PROFILE"),
    "\nstores    ",
    env!("BRIGADE_STORES"),
);

/// The JSON form of the version.
#[derive(Serialize)]
pub(crate) struct VersionDocument {
    version: &'static str,
    /// The hash of the commit, if known.
    commit: Option<&'static str>,
    /// Whether the sources had uncommitted changes.
    changed: Option<bool>,
    target: &'static str,
    #[serde(rename = "static")]
    is_static: bool,
    compiler: &'static str,
    profile: &'static str,
    engine: Option<&'static str>,
}

/// Returns the output of `--version --json`.
pub(crate) fn document() -> VersionDocument {
    let known = |text: &'static str, unknown: &str| (text != unknown).then_some(text);
    VersionDocument {
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
