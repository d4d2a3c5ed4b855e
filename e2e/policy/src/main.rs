//! Applies allow rules to lines, for the test that runs the allowed lines. Also checks the invariants of the rules on
//! random lines.
//!
//! ```text
//! brigade-e2e-policy decide FOLDER PATTERN...   reads lines that end with NUL; writes the allowed ones, with NUL
//! brigade-e2e-policy check COUNT SEED           checks the invariants for COUNT random lines
//! ```

#[path = "../../../crates/brigade-core/fuzz/laws.rs"]
mod laws;

use std::error::Error;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use brigade_core::policy::{RuleDecision, ToolUse, decide, shell};
use serde_json::json;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["decide", folder, patterns @ ..] => write_allowed(Path::new(folder), patterns),
        ["check", count, seed] => check(count.parse()?, seed.parse()?),
        _ => Err("usage: brigade-e2e-policy decide FOLDER PATTERN... | check COUNT SEED".into()),
    }
}

/// Reads lines, and writes those that the rules allow.
fn write_allowed(folder: &Path, patterns: &[&str]) -> Outcome {
    let rules = laws::allow(patterns);
    let mut lines = String::new();
    io::stdin().read_to_string(&mut lines)?;
    let mut output = BufWriter::new(io::stdout().lock());
    for line in lines.split_terminator('\0') {
        let input = json!({ "command": line });
        let tool_use = ToolUse { tool: "Bash", input: &input, cwd: folder, folder, files: &[] };
        if decide(&rules, &tool_use).is_some_and(|(_, decision)| decision == RuleDecision::Allow) {
            write!(output, "{line}\0")?;
        }
    }
    Ok(output.flush()?)
}

/// Checks the invariants for random lines, and prints how many lines were understood and allowed.
fn check(count: u64, seed: u64) -> Outcome {
    let mut state = seed | 1;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let rules = laws::allow(&laws::PATTERNS);
    let (mut understood, mut allowed) = (0_u64, 0_u64);
    for case in 0..count {
        let mut line = String::new();
        let pieces = if case % 2 == 0 { laws::PIECES.len() } else { 20 };
        for _ in 0..=below(7) {
            line.push_str(laws::PIECES[below(pieces)]);
        }
        understood += u64::from(shell::parse(&line).is_ok());
        allowed += u64::from(laws::is_allowed(&rules, &line));
        laws::check(line.as_bytes());
    }
    println!("{count} lines: {understood} understood, {allowed} allowed");
    Ok(())
}
