//! Checks that the crate does no I/O, reads neither clock nor environment, and is not async.

use std::fs;
use std::path::Path;

#[test]
fn no_io_no_clock_no_async_no_environment() {
    let forbidden = [
        "std::fs",
        "std::io",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "std::time",
        "SystemTime",
        "Instant",
        "async fn",
        ".await",
        "std::{",
        "RandomState",
        "HashMap",
        "print!",
        "println!",
        "dbg!",
        "unsafe {",
    ];
    let mut files = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        for text in forbidden {
            assert!(!source.contains(text), "{} contains {text}", path.display());
        }
        files += 1;
    }
    assert!(files > 10, "too few source files found");
}
