//! Tells the program what it is built from. No clock, no user and no folder gets in, so that the same
//! sources make the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How a packager says which commit it is, where there is no git: the hash, and `-dirty` behind it if the
/// sources are no longer those of the commit.
const SAID: &str = "BRIGADE_BUILD_COMMIT";

/// What cargo puts into a package beside the sources.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// What the program is made of, as seen from this folder.
const SOURCES: &[&str] = &[
    "build.rs",
    "Cargo.toml",
    "src",
    "../brigade-core/Cargo.toml",
    "../brigade-core/src",
    "../brigade-nats/Cargo.toml",
    "../brigade-nats/src",
    "../brigade-wire/Cargo.toml",
    "../brigade-wire/src",
    "../../Cargo.lock",
    "../../Cargo.toml",
];

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let is_release = variable("PROFILE") == "release";
    let origin = match std::env::var(SAID) {
        Ok(said) if !said.is_empty() => Origin::said(&said),
        // Asked of git for every commit, this would build the program anew for every commit. Whoever
        // works on it does not want that.
        _ if !is_release => Origin::None("a debug build does not know its commit"),
        _ => Origin::look(&here),
    };
    let (commit, state, words, short) = origin.told();
    println!("cargo:rustc-env=BRIGADE_COMMIT={commit}");
    println!("cargo:rustc-env=BRIGADE_COMMIT_STATE={state}");
    println!("cargo:rustc-env=BRIGADE_COMMIT_WORDS={words}");
    println!("cargo:rustc-env=BRIGADE_SHORT={}{short}", variable("CARGO_PKG_VERSION"));

    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let link =
        if features.split(',').any(|one| one == "crt-static") { "static" } else { "dynamic" };
    let engine = if variable("CARGO_FEATURE_NATS").is_empty() { "none" } else { "nats" };
    println!("cargo:rustc-env=BRIGADE_TARGET={}", variable("TARGET"));
    println!("cargo:rustc-env=BRIGADE_LINK={link}");
    println!("cargo:rustc-env=BRIGADE_PROFILE={}", variable("PROFILE"));
    println!("cargo:rustc-env=BRIGADE_ENGINE={engine}");
    let rustc = said_by(Command::new(variable("RUSTC")).arg("--version"));
    println!("cargo:rustc-env=BRIGADE_RUSTC={}", rustc.unwrap_or_else(|| "unknown".to_owned()));

    println!("cargo:rerun-if-env-changed={SAID}");
    println!("cargo:rerun-if-changed=build.rs");
    if is_release {
        for place in watched(&here) {
            println!("cargo:rerun-if-changed={}", place.display());
        }
    }
}

/// Where the sources come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This commit, and whether they were changed since.
    Commit(String, bool),
    /// Nobody knows, and why.
    None(&'static str),
}

impl Origin {
    /// What a packager said.
    pub(crate) fn said(words: &str) -> Self {
        let commit = words.strip_suffix("-dirty").unwrap_or(words);
        Self::of(commit, commit != words)
    }

    /// What the folder tells: what cargo wrote into a package, or git.
    pub(crate) fn look(here: &Path) -> Self {
        if let Ok(packaged) = std::fs::read_to_string(here.join(PACKAGED)) {
            return Self::packaged(&packaged);
        }
        // A folder of somebody else's repository, as a package in a home that is kept in git, is not ours.
        if git(here, &["ls-files", "--error-unmatch", "build.rs"]).is_none() {
            return Self::None("built outside a git checkout");
        }
        let (Some(commit), Some(changes)) = (
            git(here, &["rev-parse", "HEAD"]),
            git(here, &[&["status", "--porcelain", "--"], SOURCES].concat()),
        ) else {
            return Self::None("built from a git checkout that did not tell its commit");
        };
        Self::of(&commit, !changes.is_empty())
    }

    /// What cargo wrote. It is read by its one field, so that nothing has to be built for it.
    pub(crate) fn packaged(text: &str) -> Self {
        let commit = text.split_once("\"sha1\"").and_then(|(_, rest)| rest.split('"').nth(1));
        let dirty = text
            .split_once("\"dirty\"")
            .is_some_and(|(_, rest)| rest.trim_start_matches([' ', ':']).starts_with("true"));
        Self::of(commit.unwrap_or_default(), dirty)
    }

    fn of(commit: &str, changed: bool) -> Self {
        let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash {
            Self::Commit(commit.to_owned(), changed)
        } else {
            Self::None("built from a commit that was not told as a hash")
        }
    }

    /// The commit, its state, both in words, and in one word behind the version.
    pub(crate) fn told(&self) -> (&str, &str, String, String) {
        match self {
            Self::Commit(commit, changed) => {
                let short = commit.get(..12).unwrap_or(commit);
                if *changed {
                    let words = format!("{commit}, with changes that are not committed");
                    (commit, "changed", words, format!(" ({short}, changed)"))
                } else {
                    (commit, "clean", commit.clone(), format!(" ({short})"))
                }
            }
            Self::None(why) => {
                ("", "unknown", format!("unknown: {why}"), " (commit unknown)".to_owned())
            }
        }
    }
}

/// What changes when the answer does: the sources, and where git writes down what is checked out. What is
/// not there is left out: cargo would run this again every time.
fn watched(here: &Path) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = SOURCES.iter().map(PathBuf::from).collect();
    places.push(PACKAGED.into());
    let branch = git(here, &["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        if !name.is_empty() {
            places.extend(git(here, &["rev-parse", "--git-path", name]).map(PathBuf::from));
        }
    }
    places.retain(|place| here.join(place).exists());
    places
}

fn git(here: &Path, words: &[&str]) -> Option<String> {
    said_by(Command::new("git").arg("--no-optional-locks").args(words).current_dir(here))
}

fn said_by(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
