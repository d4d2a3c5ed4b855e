//! File changes made by an agent. Some agents report the text before and after a change, others report the hunks
//! of a diff. Both are converted to [`ChangedPart`]s.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Time limit for finding a minimal diff. After this time, a diff that is not minimal is accepted.
const DIFF_TIMEOUT: Duration = Duration::from_millis(20);

/// A change to one file, as the agent reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file's path, as the agent writes it. For a moved file, the new path.
    pub path: String,
    /// The parts that changed, in order. A part may include unchanged lines around the change.
    pub parts: Vec<ChangedPart>,
}

impl FileChange {
    /// Returns the numbers of added and removed lines.
    pub fn lines(&self) -> (usize, usize) {
        let (mut added, mut removed) = (0, 0);
        for part in &self.parts {
            let diff =
                TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&part.before, &part.after);
            for change in diff.iter_all_changes() {
                match change.tag() {
                    ChangeTag::Equal => {}
                    ChangeTag::Insert => added += 1,
                    ChangeTag::Delete => removed += 1,
                }
            }
        }
        (added, removed)
    }
}

impl FileChange {
    /// Returns the changed lines with one unchanged line around them, at most `limit` bytes. Each line begins with a space, a
    /// minus or a plus. Returns `None` if the agent did not report the lines.
    pub fn diff_text(&self, limit: usize) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            let diff =
                TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&part.before, &part.after);
            for change in diff.grouped_ops(1).iter().flatten().flat_map(|op| diff.iter_changes(op))
            {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Insert => '+',
                    ChangeTag::Delete => '-',
                };
                let line = change.value().trim_end_matches(['\n', '\r']);
                if text.len() + line.len() + 2 > limit {
                    text.push_str(" …");
                    return Some(text);
                }
                text.push(sign);
                text.push_str(line);
                text.push('\n');
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        Some(text).filter(|text| !text.is_empty())
    }
}

/// A changed part of a file. `before` is empty for an addition, and `after` is empty for a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPart {
    /// The old text.
    pub before: String,
    /// The new text.
    pub after: String,
}

impl ChangedPart {
    /// Converts the lines of one hunk. Each line begins with a space, a minus or a plus.
    fn from_hunk<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut part = Self::default();
        for line in lines {
            let (in_before, in_after) = match line.as_bytes().first() {
                Some(b' ') => (true, true),
                Some(b'-') => (true, false),
                Some(b'+') => (false, true),
                // Ignore other lines, such as `\ No newline at end of file`.
                _ => continue,
            };
            let line = line.get(1..).unwrap_or_default().trim_end_matches('\n');
            if in_before {
                part.before.extend([line, "\n"]);
            }
            if in_after {
                part.after.extend([line, "\n"]);
            }
        }
        part
    }
}

/// Parses a diff into parts, one for each hunk.
pub(super) fn parts_of_diff(diff: &str) -> Vec<ChangedPart> {
    let mut hunks: Vec<Vec<&str>> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Vec::new());
        } else if let Some(hunk) = hunks.last_mut() {
            // Lines before the first hunk only name the file, so they are skipped.
            hunk.push(line);
        }
    }
    hunks.into_iter().map(ChangedPart::from_hunk).collect()
}

/// Parses a diff in JSON form, where each hunk has an array of lines.
pub(super) fn parts_of_hunks(hunks: &[Value]) -> Vec<ChangedPart> {
    let lines = |hunk: &Value| {
        let lines = hunk.get("lines").and_then(Value::as_array);
        ChangedPart::from_hunk(lines.into_iter().flatten().filter_map(Value::as_str))
    };
    hunks.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diff: &str, expected: &[(&str, &str)]) {
        let part = |&(before, after): &(&str, &str)| ChangedPart {
            before: before.to_owned(),
            after: after.to_owned(),
        };
        assert_eq!(parts_of_diff(diff), expected.iter().map(part).collect::<Vec<_>>(), "{diff}");
    }

    #[test]
    fn the_text_of_a_change_has_the_changed_lines_and_is_cut() {
        let change = |before: &str, after: &str| FileChange {
            path: "a".into(),
            parts: vec![ChangedPart { before: before.into(), after: after.into() }],
        };
        let text = change("1\n2\n3\n4\n", "1\n2\n3\nfour\n").diff_text(100);
        assert_eq!(text.as_deref(), Some(" 3\n-4\n+four"));
        assert_eq!(
            change("", "a long line\nb\n").diff_text(15).as_deref(),
            Some("+a long line\n …")
        );
        assert_eq!(change("a\n", "a\n").diff_text(16), None);
    }

    #[test]
    fn a_hunk_becomes_the_text_before_and_after() {
        check("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n", &[("one\ntwo\n", "one\nTWO\n")]);
        check("@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n", &[("a\n", "b\n"), ("c\n", "")]);
        // Inside a hunk, a line that looks like a file header is content.
        check("--- x\n+++ x\n@@ -1,2 +1 @@\n--- x\n+++ y\n", &[("-- x\n", "++ y\n")]);
        check("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+é", &[("a\n", "é\n")]);
        check("@@ -1 +1 @@\n-\n+@@\n", &[("\n", "@@\n")]);
        check("no diff at all", &[]);
        check("", &[]);
    }
}
