//! Tasks as CSV (RFC 4180).

use super::TaskRow;
use crate::board::TaskMistake;
use crate::text;

/// The columns of an exported file. An imported file needs only `subject`.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "subject",
    "description",
    "status",
    "owner",
    "blocked_by",
    "labels",
    "priority",
    "source",
];

/// Spreadsheets run a cell that begins with one of these characters as a formula.
const FORMULA_SIGNS: [char; 4] = ['=', '+', '-', '@'];

/// Returns one line of CSV. A value that a spreadsheet would run as a formula gets an apostrophe in front. Characters that
/// control a terminal are escaped; only JSON keeps them.
pub(super) fn line(values: &[&str]) -> String {
    let quoted = |value: &&str| {
        let value = value.replace("\r\n", "\n");
        let value = value.split('\t').map(text::plain).collect::<Vec<_>>().join("\t");
        let sign =
            if value.starts_with(FORMULA_SIGNS) || value.starts_with('\'') { "'" } else { "" };
        let value = format!("{sign}{value}");
        match value.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", value.replace('"', "\"\"")),
            false => value,
        }
    };
    values.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Reads the tasks of a CSV file whose first line names the columns.
pub(super) fn entries(text: &str, file: &str) -> Result<Vec<TaskRow>, Vec<TaskMistake>> {
    let mut records = records(text.strip_prefix('\u{feff}').unwrap_or(text))?.into_iter();
    let (_, header) = records.next().unwrap_or_default();
    let header: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
    let unknown = header.iter().filter(|name| !COLUMNS.contains(&name.as_str()));
    let mut mistakes: Vec<TaskMistake> = unknown
        .map(|name| {
            let known = COLUMNS.join(", ");
            TaskMistake::new("line 1", format!("unknown column {name:?}; known columns: {known}"))
        })
        .collect();
    if !header.iter().any(|name| name == "subject") {
        mistakes.push(TaskMistake::new("line 1", "there is no column \"subject\""));
    }
    let mut entries = Vec::new();
    for (line, values) in records {
        if values.len() > header.len() {
            let count = values.len();
            let message =
                format!("the line has {count} values, and there are {} columns", header.len());
            mistakes.push(TaskMistake::new(format!("line {line}"), message));
        }
        entries.push(entry(line, &header, &values, file));
    }
    if mistakes.is_empty() { Ok(entries) } else { Err(mistakes) }
}

fn entry(line: usize, header: &[String], values: &[String], file: &str) -> TaskRow {
    let value = |column: &str| {
        let column = header.iter().position(|name| name == column);
        let value = column.and_then(|column| values.get(column)).map_or("", String::as_str);
        // Remove the apostrophe that an export added.
        let rest = value
            .strip_prefix('\'')
            .filter(|rest| rest.starts_with(FORMULA_SIGNS) || rest.starts_with('\''));
        rest.unwrap_or(value).to_owned()
    };
    let list = |column: &str| {
        let value = value(column);
        let parts = value.split([' ', ',', ';']).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (id, subject) = (value("id").trim().to_owned(), value("subject"));
    let name = if id.is_empty() { &subject } else { &id };
    let source = match value("source") {
        source if source.is_empty() => format!("{file}/{name}"),
        source => source,
    };
    TaskRow {
        place: format!("line {line}"),
        source,
        id,
        description: value("description"),
        status: value("status"),
        owner: value("owner"),
        blocked_by: list("blocked_by"),
        labels: list("labels"),
        priority: value("priority"),
        subject,
        ..TaskRow::default()
    }
}

/// A record of a CSV file: the number of its first line, and its values.
type CsvRecord = (usize, Vec<String>);

/// Splits the text into records. Leaves out empty lines.
fn records(text: &str) -> Result<Vec<CsvRecord>, Vec<TaskMistake>> {
    let mut records = Vec::new();
    let (mut line, mut first) = (1, 1);
    let (mut values, mut value) = (Vec::new(), String::new());
    let mut in_quotes = false;
    let mut characters = text.chars().peekable();
    loop {
        let next = characters.next();
        if next == Some('\n') {
            line += 1;
        }
        match next {
            Some('"') if in_quotes && characters.next_if_eq(&'"').is_some() => value.push('"'),
            Some('"') if in_quotes => in_quotes = false,
            Some('"') if value.is_empty() => in_quotes = true,
            Some(c) if in_quotes => value.push(c),
            None if in_quotes => {
                let message = "the quotation mark is not closed";
                return Err(vec![TaskMistake::new(format!("line {first}"), message)]);
            }
            Some(',') => values.push(std::mem::take(&mut value)),
            Some('\r') if characters.peek() == Some(&'\n') => {}
            Some('\n') | None => {
                values.push(std::mem::take(&mut value));
                let record: Vec<String> = std::mem::take(&mut values);
                if record.iter().any(|value| !value.trim().is_empty()) {
                    records.push((first, record));
                }
                first = line;
                if next.is_none() {
                    return Ok(records);
                }
            }
            Some(c) => value.push(c),
        }
    }
}
