//! `brigade --version` and the build information.

#[expect(clippy::print_stdout, dead_code, reason = "cargo runs the rest of the build script")]
#[path = "../../build.rs"]
mod build;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use self::build::Origin;
use crate::env::CliEnv;

#[test]
fn version_shows_the_build() {
    let cli = CliEnv::new();
    let version = env!("CARGO_PKG_VERSION");
    let short = cli.run_ok(&["-V"]);
    assert_eq!(short.lines().count(), 1, "{short}");
    assert!(short.starts_with(&format!("brigade {version} (")), "{short}");

    let long = cli.run_ok(&["--version"]);
    let heads: Vec<_> = long.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(heads, ["brigade", "commit", "target", "compiler", "stores"]);
    assert_eq!(long.lines().next(), Some(&*format!("brigade {version}")));
    assert!(long.contains("rustc 1."), "{long}");

    for args in [["--version", "--json"], ["--json", "-V"]] {
        let told: Value = serde_json::from_str(&cli.run_ok(&args)).unwrap();
        assert_eq!(told["version"], version);
        assert!(long.contains(told["target"].as_str().unwrap()), "{told}");
        assert_eq!(told["commit"].is_null(), told["changed"].is_null(), "{told}");
        assert_eq!(told["commit"].is_null(), short.contains("commit unknown"), "{told}");
    }
}

#[test]
fn manual_pages_show_only_the_version() {
    let cli = CliEnv::new();
    let page = cli.run_ok(&["man"]);
    assert!(page.contains(&format!("\nv{}\n", env!("CARGO_PKG_VERSION"))), "{page}");
    assert!(!page.contains("compiler"), "{page}");
}

#[test]
fn the_commit_comes_from_a_variable_or_the_package() {
    let hash = "65cc4f19e0a1b2c3d4e5f60718293a4b5c6d7e8f";
    let is = |changed| Origin::Commit(hash.to_owned(), changed);
    assert_eq!(Origin::from_variable(hash), is(false));
    assert_eq!(Origin::from_variable(&format!("{hash}-dirty")), is(true));
    assert!(matches!(Origin::from_variable("v0.1.0"), Origin::None(_)));

    let package = |more| {
        Origin::packaged(&format!(
            "{{\n  \"git\": {{\n    \"sha1\": \"{hash}\"{more}\n  }},\n  \"path_in_vcs\": \"crates/brigade\"\n}}"
        ))
    };
    assert_eq!(package(""), is(false));
    assert_eq!(package(",\n    \"dirty\": true"), is(true));
    assert_eq!(package(",\n    \"dirty\": false"), is(false));
    assert!(matches!(Origin::packaged("{}"), Origin::None(_)));
}

#[test]
fn git_is_only_used_for_tracked_sources() {
    let cli = CliEnv::new();
    let here = cli.path("crates/brigade");
    cli.write("crates/brigade/build.rs", "// kept");
    cli.write("crates/brigade/Cargo.toml", "");
    let outside = Origin::None("built outside a git checkout");
    assert_eq!(Origin::detect(&here), outside, "in a folder without git");

    let root = cli.path(".");
    git(&root, &["init", "--quiet"]);
    git(&root, &["commit", "--quiet", "--allow-empty", "--message", "somebody else's"]);
    assert_eq!(Origin::detect(&here), outside, "in an unrelated git checkout");

    git(&root, &["add", "crates"]);
    git(&root, &["commit", "--quiet", "--message", "ours"]);
    let commit = git(&root, &["rev-parse", "HEAD"]);
    assert_eq!(Origin::detect(&here), Origin::Commit(commit.clone(), false));

    cli.write("notes.txt", "not part of the program");
    assert_eq!(Origin::detect(&here), Origin::Commit(commit.clone(), false));
    cli.write("crates/brigade/Cargo.toml", "changed");
    assert_eq!(Origin::detect(&here), Origin::Commit(commit, true));

    cli.write("crates/brigade/.cargo_vcs_info.json", r#"{"git": {"sha1": "0123456789abcdef"}}"#);
    assert_eq!(Origin::detect(&here), Origin::Commit("0123456789abcdef".to_owned(), false));
}

fn git(here: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
        .args(args)
        .current_dir(here)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
