//! Line diffs of files for the terminal.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use brigade_agents::driver::FileChange;
use brigade_core::text;
use similar::{Change, ChangeTag, TextDiff};

use crate::output::{FAINT, HINT, READY, STRONG};

const REMOVED: Style = AnsiColor::Red.on_default();

/// Maximum number of lines in a short diff, and the maximum width of each.
const SHORT_LINES: usize = 8;
const SHORT_WIDTH: usize = 160;

/// How long to search for the shortest diff before accepting a longer one.
const DIFF_TIMEOUT: Duration = Duration::from_millis(50);

/// Renders a unified diff with three lines of context.
pub(crate) fn unified(path: &Path, before: Option<&str>, after: &str) -> String {
    let name = text::plain(&path.to_string_lossy());
    let from = if before.is_some() { name.as_str() } else { "/dev/null" };
    let mut text = format!("{STRONG}--- {from}{STRONG:#}\n{STRONG}+++ {name}{STRONG:#}\n");
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let _infallible = writeln!(text, "{HINT}{}{HINT:#}", hunk.header());
        for change in hunk.iter_changes() {
            let (style, line) = signed(&change);
            let _infallible = writeln!(text, "{style}{line}{style:#}");
            if change.missing_newline() {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// Renders a short summary of a change to a file: the number of added and removed lines, and the first few of
/// these.
pub(crate) fn short(change: &FileChange) -> String {
    let (mut added, mut removed, mut shown) = (0, 0, String::new());
    for part in &change.parts {
        let diff =
            TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&part.before, &part.after);
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => removed += 1,
                ChangeTag::Insert => added += 1,
            }
            if added + removed <= SHORT_LINES {
                let (style, line) = signed(&change);
                let line = text::cut(&line, SHORT_WIDTH);
                let _infallible = write!(shown, "\n  {style}{line}{style:#}");
            }
        }
    }
    let path = text::cut(&text::one_line(&change.path), SHORT_WIDTH);
    let mut text = format!(
        "  {STRONG}{path}{STRONG:#}  {READY}+{added}{READY:#} {REMOVED}-{removed}{REMOVED:#}{shown}"
    );
    match (added + removed).saturating_sub(SHORT_LINES) {
        0 => {}
        1 => text.push_str(&format!("\n  {FAINT}… 1 more line{FAINT:#}")),
        more => text.push_str(&format!("\n  {FAINT}… {more} more lines{FAINT:#}")),
    }
    text
}

/// Returns the style and the text of a diff line, with `+`, `-` or a space in front.
fn signed(change: &Change<&str>) -> (Style, String) {
    let (sign, style) = match change.tag() {
        ChangeTag::Delete => ('-', REMOVED),
        ChangeTag::Insert => ('+', READY),
        ChangeTag::Equal => (' ', Style::new()),
    };
    // Show a carriage return as an escape: printed raw, it would make the terminal overwrite the line.
    let line = text::plain(change.value().trim_end_matches('\n'));
    (style, format!("{sign}{line}"))
}

#[cfg(test)]
mod tests {
    use brigade_agents::driver::ChangedPart;

    use super::*;

    fn plain(before: Option<&str>, after: &str) -> String {
        let text = unified(Path::new("/x"), before, after);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn unified_diff_shows_removed_and_added_lines() {
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

    #[track_caller]
    fn check(path: &str, parts: &[(&str, &str)], expected: &[&str]) {
        let part = |&(before, after): &(&str, &str)| ChangedPart {
            before: before.to_owned(),
            after: after.to_owned(),
        };
        let parts = parts.iter().map(part).collect();
        let text = short(&FileChange { path: path.to_owned(), parts });
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn short_diff_shows_only_changed_lines() {
        check("a", &[("1\n2\n3\n", "1\n2!\n3\n")], &["  a  +1 -1", "  -2", "  +2!"]);
        check("a", &[("1\n", "2\n"), ("3\n", "")], &["  a  +1 -2", "  -1", "  +2", "  -3"]);
        check("new", &[("", "1\n\n2")], &["  new  +3 -0", "  +1", "  +", "  +2"]);
        check("moved", &[], &["  moved  +0 -0"]);
        check("same", &[("1\n", "1\n")], &["  same  +0 -0"]);
    }

    #[test]
    fn short_diff_shows_eight_lines_and_counts_the_rest() {
        let eight: Vec<_> = (1..=8).map(|line| format!("  +{line}")).collect();
        let check = |lines: u32, more: &[&str]| {
            let text: String = (1..=lines).map(|line| format!("{line}\n")).collect();
            let head = format!("  a  +{lines} -0");
            let shown = eight.iter().map(String::as_str);
            let expected: Vec<_> =
                [head.as_str()].into_iter().chain(shown).chain(more.iter().copied()).collect();
            check("a", &[("", &text)], &expected);
        };
        check(8, &[]);
        check(9, &["  … 1 more line"]);
        check(20, &["  … 12 more lines"]);
    }

    #[test]
    fn short_diff_escapes_control_characters() {
        let (path, line) = ("a\n\u{1b}[2J\u{202e}b", "\u{1b}]0;x\u{7}\tz\r\n");
        let shown = "  +\\u{1b}]0;x\\u{7}    z\\u{d}";
        check(path, &[("", line)], &["  a \\u{1b}[2J\\u{202e}b  +1 -0", shown]);
        let long = "x".repeat(1000);
        let cut = |from: &str, width| format!("  {from}{}…", "x".repeat(width));
        check(&long, &[("", &long)], &[&(cut("", 159) + "  +1 -0"), &cut("+", 158)]);
    }

    #[test]
    fn diff_of_unrelated_texts_finishes_in_time() {
        let text = |from: u32| (from..from + 40_000).map(|n| format!("{n}\n")).collect::<String>();
        let began = std::time::Instant::now();
        let parts = vec![ChangedPart { before: text(0), after: text(1_000_000) }];
        let text = short(&FileChange { path: "a".to_owned(), parts });
        assert!(
            anstream::adapter::strip_str(&text).to_string().starts_with("  a  +40000 -40000\n")
        );
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
