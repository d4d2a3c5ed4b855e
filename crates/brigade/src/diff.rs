//! What would change in a file, line by line, as everybody knows it.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::output::{self, HINT, READY, STRONG};

const GONE: Style = AnsiColor::Red.on_default();

/// The lines that go and come, each hunk with three lines around it.
pub(crate) fn unified(path: &Path, before: Option<&str>, after: &str) -> String {
    let name = output::plain(&path.to_string_lossy());
    let from = if before.is_some() { name.as_str() } else { "/dev/null" };
    let mut text = format!("{STRONG}--- {from}{STRONG:#}\n{STRONG}+++ {name}{STRONG:#}\n");
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let _infallible = writeln!(text, "{HINT}{}{HINT:#}", hunk.header());
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', GONE),
                ChangeTag::Insert => ('+', READY),
                ChangeTag::Equal => (' ', Style::new()),
            };
            // A carriage return is part of the line, and would hide it.
            let line = output::plain(change.value().trim_end_matches('\n'));
            let _infallible = writeln!(text, "{style}{sign}{line}{style:#}");
            if change.missing_newline() {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(before: Option<&str>, after: &str) -> String {
        let text = unified(Path::new("/x"), before, after);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_line_goes_and_a_line_comes() {
        assert_eq!(
            plain(Some("a\nb\nc\n"), "a\nB\nc\n"),
            "--- /x\n+++ /x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
        assert_eq!(plain(None, "a\n"), "--- /dev/null\n+++ /x\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(
            plain(Some("{}"), "{\u{1b}}"),
            "--- /x\n+++ /x\n@@ -1 +1 @@\n-{}\n\\ No newline at end of file\n+{\\u{1b}}\n\
             \\ No newline at end of file\n"
        );
    }
}
