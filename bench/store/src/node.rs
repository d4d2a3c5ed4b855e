//! Runs `peer.js`, a Node program that behaves like Claude Code and uses the same lock library.

use std::path::{Path, PathBuf};
use std::process::Command;

const LOCKFILE: &str = "proper-lockfile@4.1.2";

/// Returns the folder of the npm packages. Installs the packages if they are missing.
pub(crate) fn modules() -> PathBuf {
    let prefix = cache().join(LOCKFILE);
    let modules = prefix.join("node_modules");
    assert!(has("node"), "node is missing; install Node.js 18 or later");
    if !modules.join("proper-lockfile/package.json").is_file() {
        assert!(has("npm"), "npm is missing; install it with Node.js");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
        let status = npm.arg(&prefix).arg(LOCKFILE).status().unwrap();
        assert!(status.success(), "npm could not install {LOCKFILE}");
    }
    modules
}

fn cache() -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("BRIGADE_CI_CACHE").unwrap_or_else(|| {
        let home = || var("HOME").expect("HOME is not set").join(".cache");
        var("XDG_CACHE_HOME").unwrap_or_else(home).join("brigade-ci")
    })
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the command that runs `peer.js` on an inbox. `what` is the operation of `peer.js`.
pub(crate) fn peer(modules: &Path, what: &str, inbox: &Path, name: &str) -> Command {
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peer.js"));
    node.arg(modules).arg(what).arg(inbox).arg(name);
    node
}
