//! Tasks in a Markdown checklist.
//!
//! Each `- [ ] subject` becomes a task. Its dependencies follow from the list: a nested item must be done before the item
//! above it, and an item of a numbered list (`1. [ ] subject`) after the item before it. Items that are checked (`- [x]`)
//! are done and become no tasks. The text below an item is its description. At the end of the subject, `@NAME` is the owner,
//! `#WORD` a label and `!high` or `!low` the priority.
//!
//! ```
//! use brigade_core::checklist;
//!
//! let text = "# Release\n\n- [ ] Publish @alice !high\n  - [ ] Write the changelog #docs\n  - [x] Run the tests\n";
//! let tasks = checklist::read(text, "release.md").unwrap();
//! assert_eq!(tasks[0].plan.subject, "Publish");
//! assert_eq!(tasks[0].after, [1]);
//! assert_eq!(tasks.len(), 2);
//! ```

use std::collections::BTreeMap;

use crate::board::{BatchTask, TaskMistake, TaskPlan};
use crate::task_details::{Priority, TaskDetails, parse_label};

/// The width of a tab at the start of a line.
const TAB_WIDTH: usize = 4;

/// An item of the list, before done items are left out.
struct ChecklistItem {
    line: usize,
    indent: usize,
    is_done: bool,
    is_numbered: bool,
    subject: String,
    description: Vec<String>,
}

/// Reads a checklist. `file` is the name of the file, which identifies the tasks if the file is read again. Returns all mistakes
/// if there are some.
pub fn read(text: &str, file: &str) -> Result<Vec<BatchTask>, Vec<TaskMistake>> {
    let mut mistakes = Vec::new();
    let items = items(text, &mut mistakes);
    if items.is_empty() && mistakes.is_empty() {
        let message = "there is no checklist item; write each task as `- [ ] subject`";
        mistakes.push(TaskMistake::new("line 1", message));
    }
    let blockers = dependencies(&items);
    let mut positions = BTreeMap::new();
    for (index, _) in items.iter().enumerate().filter(|(_, item)| !item.is_done) {
        positions.insert(index, positions.len());
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut tasks = Vec::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_done) {
        let mut task = task(item, &mut mistakes);
        let nth = seen.entry(task.plan.subject.clone()).or_default();
        *nth += 1;
        let number = if *nth > 1 { format!(" ({nth})") } else { String::new() };
        task.source = format!("{file}/{}{number}", task.plan.subject);
        let after = blockers.get(index).map(Vec::as_slice).unwrap_or_default();
        task.after = after.iter().filter_map(|blocker| positions.get(blocker).copied()).collect();
        tasks.push(task);
    }
    if mistakes.is_empty() { Ok(tasks) } else { Err(mistakes) }
}

/// Returns the number of items that are checked and become no tasks.
pub fn count_done(text: &str) -> usize {
    items(text, &mut Vec::new()).iter().filter(|item| item.is_done).count()
}

fn items(text: &str, mistakes: &mut Vec<TaskMistake>) -> Vec<ChecklistItem> {
    let mut items: Vec<ChecklistItem> = Vec::new();
    // Inside a code block, a line is never an item. A heading or a paragraph at the margin ends the last item's description.
    let (mut in_code, mut is_open) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let (indent, rest) = unindent(line);
        if rest.starts_with("```") || rest.starts_with("~~~") {
            in_code = !in_code;
        } else if !in_code && let Some((mark, is_numbered, subject)) = checkbox(rest) {
            let line = number + 1;
            let is_done = matches!(mark, 'x' | 'X');
            if !is_done && mark != ' ' {
                let message =
                    format!("[{mark}] is not a checkbox; write [ ], or [x] for a done item");
                mistakes.push(TaskMistake::new(format!("line {line}"), message));
            }
            let (subject, description) = (subject.trim().to_owned(), Vec::new());
            items.push(ChecklistItem { line, indent, is_done, is_numbered, subject, description });
            is_open = true;
            continue;
        }
        let Some(item) = items.last_mut().filter(|_| is_open) else { continue };
        if rest.is_empty() || indent > item.indent || in_code {
            item.description.push(line.to_owned());
        } else {
            is_open = false;
        }
    }
    items
}

/// Returns the width of the indentation, and the rest of the line.
fn unindent(line: &str) -> (usize, &str) {
    let rest = line.trim_start();
    let indentation = line.strip_suffix(rest).unwrap_or_default();
    let width = indentation.chars().map(|c| if c == '\t' { TAB_WIDTH } else { 1 }).sum();
    (width, rest.trim_end())
}

/// Splits a list item with a checkbox into the character in the box, whether the list is numbered, and the subject.
fn checkbox(line: &str) -> Option<(char, bool, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (is_numbered, rest) = match line.split_at_checked(digits)? {
        ("", bullet) => (false, bullet.strip_prefix(['-', '*', '+'])?),
        (_, rest) => (true, rest.strip_prefix(['.', ')'])?),
    };
    let rest = rest.strip_prefix(' ')?.trim_start().strip_prefix('[')?;
    let mut characters = rest.chars();
    let mark = characters.next()?;
    // A link, `[text](target)`, is not a checkbox.
    let subject = characters.as_str().strip_prefix(']')?;
    (subject.is_empty() || subject.starts_with(' ')).then_some((mark, is_numbered, subject))
}

/// Returns for each item the items that must be done first.
fn dependencies(items: &[ChecklistItem]) -> Vec<Vec<usize>> {
    let mut blockers: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    // The item that is open at each level, from the outermost to the innermost.
    let mut levels: Vec<usize> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut before = None;
        while let Some(&last) = levels.last() {
            match items.get(last).map(|last| last.indent.cmp(&item.indent)) {
                Some(std::cmp::Ordering::Less) => break,
                Some(std::cmp::Ordering::Equal) => before = levels.pop(),
                _ => drop(levels.pop()),
            }
        }
        let parent = levels.last().copied();
        if let Some(parent) = parent.and_then(|parent| blockers.get_mut(parent)) {
            parent.push(index);
        }
        let is_numbered = |index: usize| items.get(index).is_some_and(|item| item.is_numbered);
        if let Some(before) = before.filter(|&before| item.is_numbered && is_numbered(before))
            && let Some(own) = blockers.get_mut(index)
        {
            own.push(before);
        }
        levels.push(index);
    }
    blockers
}

/// Converts an item to a task, without its dependencies.
fn task(item: &ChecklistItem, mistakes: &mut Vec<TaskMistake>) -> BatchTask {
    let place = format!("line {}", item.line);
    let mut mistake = |message: String| mistakes.push(TaskMistake::new(&place, message));
    let mut subject = item.subject.as_str();
    let (mut owner, mut details) = (None, TaskDetails::default());
    while let Some(word) = subject.split_whitespace().next_back() {
        let mut characters = word.chars();
        let sign = characters.next();
        let name = characters.as_str();
        match sign {
            _ if !name.starts_with(char::is_alphabetic) => break,
            Some('@') => match name.parse() {
                Ok(name) if owner.is_none() => owner = Some(name),
                Ok(_) => mistake("a task has only one owner".to_owned()),
                Err(error) => mistake(format!("{word}: {error}")),
            },
            Some('#') => match parse_label(name) {
                Ok(label) => details.labels.insert(0, label),
                Err(error) => mistake(error.to_string()),
            },
            Some('!') => match name.parse::<Priority>() {
                Ok(priority) => details.priority = priority,
                Err(error) => mistake(error.to_string()),
            },
            _ => break,
        }
        subject = subject.strip_suffix(word).unwrap_or_default().trim_end();
    }
    let plan = TaskPlan {
        subject: subject.to_owned(),
        description: description(&item.description),
        metadata: details.to_metadata(),
        ..TaskPlan::default()
    };
    BatchTask { place, plan, owner, ..BatchTask::default() }
}

/// Joins the lines of a description without the indentation that they have in common.
fn description(lines: &[String]) -> String {
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let blank = |line: &String| line.len() - line.trim_start().len();
    let common = filled.map(blank).min().unwrap_or_default();
    let cut = |line: &String| line.get(common..).unwrap_or_default().trim_end().to_owned();
    lines.iter().map(cut).collect::<Vec<_>>().join("\n").trim().to_owned()
}
