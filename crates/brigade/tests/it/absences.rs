//! Checks that no crate simulates typing into a terminal, and that no library prints, reads environment
//! variables or depends on a higher layer.

use std::fs;
use std::path::{Path, PathBuf};

/// The library crates. They must not print, exit the process or read environment variables.
const LIBRARIES: &[&str] = &[
    "brigade-wire",
    "brigade-core",
    "brigade-files",
    "brigade-nats",
    "brigade-link",
    "brigade-agents",
    "brigade-host",
];

/// For each shipped crate, the other shipped crates that it may depend on.
const MAY_USE: &[(&str, &[&str])] = &[
    ("brigade-wire", &[]),
    ("brigade-core", &["wire"]),
    ("brigade-files", &["wire", "core"]),
    ("brigade-nats", &["wire", "core"]),
    ("brigade-link", &["wire", "core", "files"]),
    ("brigade-agents", &["wire", "core"]),
    ("brigade-host", &["wire", "core", "files", "nats", "link", "agents"]),
    ("brigade-tui", &["wire", "core", "files", "agents", "host"]),
    ("brigade-mcp", &["wire", "core", "agents", "host"]),
];

/// Names that occur in code that types into a terminal: commands of tmux, screen, zellij, kitty and iTerm2, system
/// calls, files.
const WAYS_IN: &[&str] = &[
    "send-keys",
    "send_keys",
    "SendKeys",
    "paste-buffer",
    "load-buffer",
    "set-buffer",
    "write-chars",
    "send-text",
    "write text",
    "\"stuff\"",
    "TIOCSTI",
    "ioctl",
    "openpt",
    "openpty",
    "forkpty",
    "/dev/tty",
    "/dev/pts",
    "/dev/ptmx",
    "/dev/uinput",
    "xdotool",
    "osascript",
];

#[test]
fn no_code_types_into_a_terminal() {
    let files = sources(&[LIBRARIES, &["brigade-tui", "brigade-mcp", "brigade"]].concat());
    assert!(files.len() > 100, "found only {} source files", files.len());
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        for way in WAYS_IN {
            assert!(!source.contains(way), "{} has {way}", file.display());
        }
    }
}

#[test]
fn libraries_print_nothing_and_read_no_environment() {
    let absent = [
        "println!",
        "eprintln!",
        "print!(",
        "CliError",
        "process::exit",
        "env::var",
        "env::args",
        "env::current_dir",
        "env::current_exe",
        "env::home_dir",
    ];
    for file in sources(LIBRARIES) {
        let source = code(&file);
        for word in absent {
            assert!(!source.contains(word), "{} has {word}", file.display());
        }
    }
}

#[test]
fn the_core_reads_and_writes_no_files() {
    for file in sources(&["brigade-core"]) {
        let source = code(&file);
        for word in ["std::fs", "std::net", "std::process", "tokio::fs", "tokio::net", "File::"] {
            assert!(!source.contains(word), "{} has {word}", file.display());
        }
    }
}

#[test]
fn dependencies_point_one_way() {
    for (name, may_use) in MAY_USE {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let (_, rest) = manifest.split_once("[dependencies]").unwrap();
        let section = rest.split_once("\n[").map_or(rest, |(section, _)| section);
        for line in section.lines() {
            let Some(used) = line.strip_prefix("brigade-") else { continue };
            let used = used.split(['.', ' ', '=']).next().unwrap();
            assert!(may_use.contains(&used), "{name} must not depend on brigade-{used}");
        }
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns a source file's text without line comments and without the unit tests at the end.
fn code(file: &Path) -> String {
    let source = fs::read_to_string(file).unwrap();
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn sources(names: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        names.iter().map(|name| crates().join(name).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}
