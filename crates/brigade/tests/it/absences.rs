//! Checks that the product contains no code that types into a terminal.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the product.
const SHIPPED: &[&str] = &["brigade-wire", "brigade-core", "brigade"];

/// Interfaces for typing into a terminal: of tmux, screen, zellij, kitty and iTerm2, of the kernel, and its devices.
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
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in SHIPPED {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "found only {} source files", files.len());
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
