//! Tests of the text of a history.

use brigade_core::event::{Event, MessageKey, Record, UncheckedRecord, WorkEvent};
use brigade_core::text::without_escapes;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::LogFormatter;

fn record(second: i64, event: Event) -> Record {
    let noon: Timestamp = "2026-03-03T12:00:00Z".parse().unwrap();
    let at = noon.checked_add(SignedDuration::from_secs(second)).unwrap();
    UncheckedRecord { at, by: None, event }.from_document()
}

fn said(text: &str) -> Event {
    Event::Worked { name: "bob".into(), act: WorkEvent::Said { text: text.into() } }
}

fn tool(about: &str) -> Event {
    let (id, tool, about) = ("1".into(), "Bash".into(), about.into());
    Event::Worked { name: "bob".into(), act: WorkEvent::ToolStarted { id, tool, about } }
}

fn message(text: &str, summary: Option<&str>) -> Event {
    let message = json!({
        "from": "alice", "text": text, "summary": summary, "timestamp": "2026-03-03T12:00:00.000Z", "read": false,
    });
    let (to, key) = ("bob".into(), MessageKey::from_id(text));
    Event::Seen { to, key, message: to_raw_value(&message).unwrap() }
}

fn history() -> Vec<Record> {
    let events = [
        message("Please check:\n\n1. the lexer\n2. the parser", Some("Check two files")),
        message("Is it done?\nPlease answer.", None),
        said("I checked it:\n\n    fn parse() {}\n\nIt \u{1b}[2Jworks."),
        tool("cat > a <<X\none\nX"),
    ];
    events.into_iter().zip(0..).map(|(event, second)| record(second, event)).collect()
}

fn format(formatter: LogFormatter, width: Option<usize>) -> String {
    let mut formatter = formatter;
    without_escapes(&formatter.format_history(&history(), width))
}

#[test]
fn a_line_shows_the_first_line_of_a_text() {
    insta::assert_snapshot!(format(LogFormatter::with_work(TimeZone::UTC), None), @r"
    2026-03-03
    12:00:00  alice → bob         Check two files  · unread
    12:00:01  alice → bob         Is it done? … (+1 line)  · unread
    12:00:02  bob                 “I checked it: … (+4 lines)
    12:00:03  bob                 Bash: cat > a <<X … (+2 lines)
    ");
}

#[test]
fn a_full_text_keeps_its_lines() {
    let formatter = || LogFormatter::with_work(TimeZone::UTC).with_all_text();
    insta::assert_snapshot!(format(formatter(), None), @r"
    2026-03-03
    12:00:00  alice → bob         Check two files  · unread
                                  Please check:

                                  1. the lexer
                                  2. the parser
    12:00:01  alice → bob         Is it done?  · unread
                                  Please answer.
    12:00:02  bob                 “I checked it:

                                      fn parse() {}

                                  It \u{1b}[2Jworks.”
    12:00:03  bob                 Bash: cat > a <<X
                                  one
                                  X
    ");
    let narrow = format(formatter(), Some(52));
    assert!(narrow.lines().all(|line| line.chars().count() <= 52), "{narrow}");
    // On a narrow terminal, the later lines begin further left.
    assert!(narrow.contains(&format!("Check two  · unread\n{:10}files\n", "")), "{narrow}");
}
