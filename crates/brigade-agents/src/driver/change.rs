//! What an agent changed in a file. Some tell texts, before and after, and some hunks of a diff; both are
//! parts of a file that were one text and are another.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// How long it is looked for the fewest lines that changed, before more will do.
const PATIENCE: Duration = Duration::from_millis(20);

/// What became of a file, as far as the agent tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file, as the agent names it; where it is now, if it was moved.
    pub path: String,
    /// Those parts of it that changed, in order; lines around them may be among them.
    pub parts: Vec<Part>,
}

impl FileChange {
    /// How many lines are new, and how many are gone.
    pub fn lines(&self) -> (usize, usize) {
        let (mut added, mut removed) = (0, 0);
        for part in &self.parts {
            let diff =
                TextDiff::configure().timeout(PATIENCE).diff_lines(&part.before, &part.after);
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

/// A part of a file. What is new was nothing, and what is gone has become nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What stood there.
    pub before: String,
    /// What stands there now.
    pub after: String,
}

impl Part {
    /// The part of a file that a hunk is about: lines that begin with a blank, a minus or a plus.
    fn of_hunk<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut part = Self::default();
        for line in lines {
            let (was, is) = match line.as_bytes().first() {
                Some(b' ') => (true, true),
                Some(b'-') => (true, false),
                Some(b'+') => (false, true),
                // Remarks, such as that the file has no last line break.
                _ => continue,
            };
            let line = line.get(1..).unwrap_or_default().trim_end_matches('\n');
            if was {
                part.before.extend([line, "\n"]);
            }
            if is {
                part.after.extend([line, "\n"]);
            }
        }
        part
    }
}

/// The parts that a diff is about, one for each of its hunks.
pub(super) fn parts_of_diff(diff: &str) -> Vec<Part> {
    let mut hunks: Vec<Vec<&str>> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Vec::new());
        } else if let Some(hunk) = hunks.last_mut() {
            // What stands before the first hunk are the names of the file.
            hunk.push(line);
        }
    }
    hunks.into_iter().map(Part::of_hunk).collect()
}

/// The same of a diff that is JSON, each hunk with its lines.
pub(super) fn parts_of_hunks(hunks: &[Value]) -> Vec<Part> {
    let lines = |hunk: &Value| {
        let lines = hunk.get("lines").and_then(Value::as_array);
        Part::of_hunk(lines.into_iter().flatten().filter_map(Value::as_str))
    };
    hunks.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diff: &str, expected: &[(&str, &str)]) {
        let part = |&(before, after): &(&str, &str)| Part {
            before: before.to_owned(),
            after: after.to_owned(),
        };
        assert_eq!(parts_of_diff(diff), expected.iter().map(part).collect::<Vec<_>>(), "{diff}");
    }

    #[test]
    fn a_hunk_is_what_was_and_what_is() {
        check("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n", &[("one\ntwo\n", "one\nTWO\n")]);
        check("@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n", &[("a\n", "b\n"), ("c\n", "")]);
        // A line that begins like a file's name is a line of the file, once a hunk has begun.
        check("--- x\n+++ x\n@@ -1,2 +1 @@\n--- x\n+++ y\n", &[("-- x\n", "++ y\n")]);
        check("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+é", &[("a\n", "é\n")]);
        check("@@ -1 +1 @@\n-\n+@@\n", &[("\n", "@@\n")]);
        check("no diff at all", &[]);
        check("", &[]);
    }
}
