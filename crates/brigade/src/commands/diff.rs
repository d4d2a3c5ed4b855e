//! `brigade diff`

use std::io::IsTerminal as _;

use anstyle::Style;
use brigade_core::text;
use serde_json::json;

use crate::cli::DiffArgs;
use crate::context::{CliContext, trust};
use crate::error::{CliError, CliTrouble, Kind};
use crate::exit;
use crate::output::{self, ERROR, HINT, READY, STRONG};
use brigade_host::member_worktree;
use brigade_host::worktree::DiffFormat;

pub(crate) async fn run(context: &CliContext, diff: &DiffArgs) -> Result<u8, CliError> {
    let name = &diff.name;
    let worktree = member_worktree::find(context, name, &trust()?).await?;
    let format = match (diff.stat, diff.name_only) {
        (_, true) => DiffFormat::NameOnly,
        (true, false) => DiffFormat::Stat,
        (false, false) => DiffFormat::Patch,
    };
    let paths = diff.paths.as_slice();
    let diff = worktree.diff(format, paths)?;
    if context.json {
        let distance = worktree.distance()?;
        output::print_json(&json!({ "dir": worktree.dir, "distance": distance, "diff": diff }))?;
        return Ok(if diff.is_empty() { exit::NOTHING } else { exit::DONE });
    }
    if diff.is_empty() {
        return Err(CliError::new(
            Kind::Nothing,
            CliTrouble::NoDifference { name: name.to_string(), paths: paths.to_vec() },
        ));
    }
    if std::io::stdout().is_terminal() {
        output::print(&for_terminal(&diff))?;
    } else {
        output::print_raw(diff.as_bytes())?;
    }
    Ok(exit::DONE)
}

/// Colours a diff. Escapes the control characters in it, with which a file could change the terminal.
fn for_terminal(diff: &str) -> String {
    let mut shown = String::new();
    for line in diff.split_terminator('\n') {
        let style = match line.as_bytes().first() {
            Some(b'+') => READY,
            Some(b'-') => ERROR,
            Some(b'@') => HINT,
            Some(b' ') | None => Style::new(),
            Some(_) => STRONG,
        };
        shown += &format!("{style}{}{style:#}\n", text::plain(line));
    }
    shown
}

#[cfg(test)]
mod tests {
    use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal};

    use super::for_terminal;

    #[test]
    fn finding_15_no_file_can_attack_the_terminal() {
        for hostile in HOSTILE {
            for sign in ["+", "-", " ", ""] {
                assert_safe_for_terminal(&for_terminal(&format!("{sign}{hostile}\n")), "diff");
            }
        }
    }

    #[test]
    fn a_file_cannot_control_the_terminal() {
        let diff = "+\u{1b}]52;c;ZXZpbA==\u{7}x\u{1b}[2J\r\n-a\u{202e}b\n same\n";
        let shown = anstream::adapter::strip_str(&for_terminal(diff)).to_string();
        assert_eq!(shown, "+\\u{1b}]52;c;ZXZpbA==\\u{7}x\\u{1b}[2J\\u{d}\n-a\\u{202e}b\n same\n");
    }
}
