//! What the product deliberately does not have: a way to type into somebody's terminal.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that are the product.
const SHIPPED: &[&str] = &["brigade-wire", "brigade-core", "brigade"];

/// The ways in there are: what tmux, screen, zellij, kitty and iTerm2 do for others, what the kernel
/// does, and the devices behind it.
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
fn nothing_is_typed_into_an_agents_terminal() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in SHIPPED {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources are not where they should be: {}", files.len());
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        for way in WAYS_IN {
            assert!(!source.contains(way), "{} has {way}", file.display());
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}
