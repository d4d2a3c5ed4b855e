//! Passes version and build information to the program. Uses no time, user name or path, so that builds of the same
//! sources are identical.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable in which a packager passes the commit hash of a build without a git checkout. The packager appends
/// `-dirty` to the hash if the sources differ from that commit.
const COMMIT_VARIABLE: &str = "BRIGADE_BUILD_COMMIT";

/// Cargo writes the commit hash into this file when it creates a package.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// The sources of the program, relative to this folder.
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
    let origin = match std::env::var(COMMIT_VARIABLE) {
        Ok(value) if !value.is_empty() => Origin::from_variable(&value),
        // Debug builds do not read the commit from git. Otherwise, cargo would rebuild them after every commit.
        _ if !is_release => Origin::None("not recorded in debug builds"),
        _ => Origin::detect(&here),
    };
    let (commit, state, text, short) = origin.describe();
    println!("cargo:rustc-env=BRIGADE_COMMIT={commit}");
    println!("cargo:rustc-env=BRIGADE_COMMIT_STATE={state}");
    println!("cargo:rustc-env=BRIGADE_COMMIT_TEXT={text}");
    println!("cargo:rustc-env=BRIGADE_SHORT={}{short}", variable("CARGO_PKG_VERSION"));

    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let link =
        if features.split(',').any(|one| one == "crt-static") { "static" } else { "dynamic" };
    let engine = if variable("CARGO_FEATURE_NATS").is_empty() { "none" } else { "nats" };
    println!("cargo:rustc-env=BRIGADE_TARGET={}", variable("TARGET"));
    println!("cargo:rustc-env=BRIGADE_LINK={link}");
    println!("cargo:rustc-env=BRIGADE_PROFILE={}", variable("PROFILE"));
    let stores = if engine == "none" { "files" } else { "files, nats" };
    println!("cargo:rustc-env=BRIGADE_ENGINE={engine}");
    println!("cargo:rustc-env=BRIGADE_STORES={stores}");
    let rustc = output_of(Command::new(variable("RUSTC")).arg("--version"));
    println!("cargo:rustc-env=BRIGADE_RUSTC={}", rustc.unwrap_or_else(|| "unknown".to_owned()));

    println!("cargo:rerun-if-env-changed={COMMIT_VARIABLE}");
    println!("cargo:rerun-if-changed=build.rs");
    if is_release {
        for place in watched(&here) {
            println!("cargo:rerun-if-changed={}", place.display());
        }
    }
}

/// The commit that the sources come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The hash of the commit, and whether the sources differ from it.
    Commit(String, bool),
    /// The commit is unknown, for this reason.
    None(&'static str),
}

impl Origin {
    /// Parses the variable set by a packager.
    pub(crate) fn from_variable(value: &str) -> Self {
        let commit = value.strip_suffix("-dirty").unwrap_or(value);
        Self::new(commit, commit != value)
    }

    /// Detects the commit from the package metadata or from git.
    pub(crate) fn detect(here: &Path) -> Self {
        if let Ok(packaged) = std::fs::read_to_string(here.join(PACKAGED)) {
            return Self::packaged(&packaged);
        }
        // The folder may be inside an unrelated git repository, such as a home folder under version control.
        if git(here, &["ls-files", "--error-unmatch", "build.rs"]).is_none() {
            return Self::None("built outside a git checkout");
        }
        let (Some(commit), Some(changes)) = (
            git(here, &["rev-parse", "HEAD"]),
            git(here, &[&["status", "--porcelain", "--"], SOURCES].concat()),
        ) else {
            return Self::None("git could not determine the commit");
        };
        Self::new(&commit, !changes.is_empty())
    }

    /// Parses cargo's package metadata. Reads the fields by hand to avoid a build dependency on a JSON parser.
    pub(crate) fn packaged(text: &str) -> Self {
        let commit = text.split_once("\"sha1\"").and_then(|(_, rest)| rest.split('"').nth(1));
        let dirty = text
            .split_once("\"dirty\"")
            .is_some_and(|(_, rest)| rest.trim_start_matches([' ', ':']).starts_with("true"));
        Self::new(commit.unwrap_or_default(), dirty)
    }

    fn new(commit: &str, changed: bool) -> Self {
        let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash {
            Self::Commit(commit.to_owned(), changed)
        } else {
            Self::None("the given commit is not a hash")
        }
    }

    /// Returns the hash, the state of the sources, a text with both, and a suffix for the version number.
    pub(crate) fn describe(&self) -> (&str, &str, String, String) {
        match self {
            Self::Commit(commit, changed) => {
                let short = commit.get(..12).unwrap_or(commit);
                if *changed {
                    let text = format!("{commit}, with uncommitted changes");
                    (commit, "changed", text, format!(" ({short}, changed)"))
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

/// Returns the files on which the result depends: the sources, and the files in which git records the
/// checked-out commit. Omits missing files: with a missing file, cargo would run the build script every time.
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

fn git(here: &Path, args: &[&str]) -> Option<String> {
    output_of(Command::new("git").arg("--no-optional-locks").args(args).current_dir(here))
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
