//! Changes to an inbox, compared byte by byte, and inboxes that were cut off.

use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::{GenerationFields, InboxEntry, NewMessage};
use brigade_wire::task::Task;
use brigade_wire::team::Team;
use brigade_wire::{Damage, JsonKind};

use crate::files::text;

fn message(text: &str) -> NewMessage<'_> {
    NewMessage {
        from: "alice",
        text,
        summary: None,
        timestamp: "2026-11-15T00:00:29.290Z",
        color: None,
        read: false,
        stamp: GenerationFields::Old { msg_id: None },
    }
}

/// Checks that appending a message to inbox `before` gives `after`, both by splicing bytes and by parsing.
#[track_caller]
fn check_append(before: &str, after: &str) {
    let mut spliced = before.as_bytes().to_vec();
    inbox::append(&mut spliced, &[message("x")]).unwrap();
    assert_eq!(text(&spliced), after);
    let parsed = Inbox::read(before.as_bytes()).unwrap().with_appended(&[message("x")]);
    assert_eq!(text(&parsed), after);
}

#[test]
fn appended_messages_are_formatted_like_existing_ones() {
    const ONE: &str = "{\n    \"from\": \"alice\",\n    \"text\": \"x\",\n    \
                       \"timestamp\": \"2026-11-15T00:00:29.290Z\",\n    \"read\": false\n  }";
    let compact =
        r#"{"from":"alice","text":"x","timestamp":"2026-11-15T00:00:29.290Z","read":false}"#;
    check_append("[]", &format!("[\n  {ONE}\n]"));
    check_append("[\n]\n", &format!("[\n  {ONE}\n]\n"));
    check_append(&format!("[\n  {ONE}\n]"), &format!("[\n  {ONE},\n  {ONE}\n]"));
    check_append("[{}]", &format!("[{{}},{compact}]"));
    check_append("[{}, {}] ", &format!("[{{}}, {{}}, {compact}] "));
    check_append("[\n  {\n  }\n]", &format!("[\n  {{\n  }},\n  {ONE}\n]"));
}

#[test]
fn nothing_is_appended_to_an_inbox_that_was_cut_off() {
    let mut complete = inbox::EMPTY.to_vec();
    let text = "ends like an inbox: \n  }\n]";
    inbox::append(&mut complete, &[message(text), message(text)]).unwrap();
    for len in 0..complete.len() {
        let mut cut = complete[..len].to_vec();
        assert!(inbox::append(&mut cut, &[message("x")]).is_err(), "cut at {len}");
        assert_eq!(cut, &complete[..len], "the inbox that was cut off at {len} was changed");
    }
}

#[test]
fn nothing_is_appended_to_an_overwritten_inbox_or_one_with_nul_bytes() {
    let inbox_of = |messages: &[NewMessage<'_>]| {
        let mut bytes = inbox::EMPTY.to_vec();
        inbox::append(&mut bytes, messages).unwrap();
        bytes
    };
    let (short, long) = (inbox_of(&[message("a")]), inbox_of(&[message("b"), message("c")]));
    let mut over = short.clone();
    over.extend_from_slice(&long[short.len()..]);
    let mut hole = long.clone();
    hole[40..80].fill(0);
    for damaged in [over, hole] {
        let mut after = damaged.clone();
        assert!(inbox::append(&mut after, &[message("x")]).is_err());
        assert_eq!(after, damaged);
    }
}

#[test]
fn layouts_similar_to_that_of_claude_code_are_parsed() {
    // These layouts differ slightly from Claude Code's. Splicing would give a wrong result, so they must be parsed.
    for before in [
        "[\n    {\n    }\n]",
        "[ \n  {\n  }\n]",
        "[\n  7,\n  {\n  }\n]",
        "[\n{\n}\n]",
        "[\n{\n  }\n]",
        "[\n7,\n  {\n  }\n]",
        "[\n  {\n  }\n]\n",
        "[\n  {\n    \"a\": [\n]\n  }\n]",
    ] {
        let parsed = Inbox::read(before.as_bytes()).unwrap();
        let mut spliced = before.as_bytes().to_vec();
        inbox::append(&mut spliced, &[message("x")]).unwrap();
        assert_eq!(parsed.with_appended(&[message("x")]), spliced, "{before}");
    }
}

#[test]
fn the_messages_determine_the_generation_of_an_inbox() {
    let generation = |json: &str| Inbox::read(json.as_bytes()).unwrap().generation();
    let old = r#"{"from":"a","text":"t","timestamp":"t","read":true}"#;
    let new = r#"{"from":"a","text":"t","timestamp":"t","msgV":1,"read":true}"#;
    assert_eq!(generation("[]"), None);
    assert_eq!(generation("[7]"), None);
    assert_eq!(generation(&format!("[{old}]")), Some(Generation::Old));
    assert_eq!(generation(&format!("[{old},{new}]")), Some(Generation::New));
}

#[test]
fn messages_have_the_index_of_their_entry() {
    let old = r#"{"from":"a","text":"t","timestamp":"t","read":true}"#;
    let inbox = format!("[{old},7,{}]", old.replace("true", "false"));
    let inbox = Inbox::read(inbox.as_bytes()).unwrap();
    assert_eq!(inbox.messages().map(|message| message.index()).collect::<Vec<_>>(), [0, 2]);
    let mut asked = Vec::new();
    inbox.with_read(|message| {
        asked.push(message.index());
        true
    });
    assert_eq!(asked, [2], "the closure must be called only for unread messages");
}

#[test]
fn text_takes_precedence_over_content() {
    let json = br#"[{"from":"a","content":"c","text":"t","timestamp":"t","read":true}]"#;
    let inbox = Inbox::read(json).unwrap();
    assert_eq!(inbox.messages().next().unwrap().text(), "t");
}

#[test]
fn new_messages_have_the_bytes_that_claude_code_writes() {
    let mut old = message("t");
    old.summary = Some("s");
    old.color = Some(Color::Blue);
    let json = |message: &NewMessage<'_>| serde_json::to_string(message).unwrap();
    assert_eq!(
        json(&old),
        r#"{"from":"alice","text":"t","summary":"s","timestamp":"2026-11-15T00:00:29.290Z","color":"blue","read":false}"#
    );
    let marked = NewMessage { stamp: GenerationFields::Old { msg_id: Some("i") }, ..old.clone() };
    assert!(json(&marked).ends_with(r#""read":false,"msg_id":"i"}"#));
    let signed = GenerationFields::New { msg_id: "i", lead_sig: Some("g") };
    assert_eq!(
        json(&NewMessage { stamp: signed, ..old }),
        r#"{"from":"alice","text":"t","summary":"s","timestamp":"2026-11-15T00:00:29.290Z","color":"blue","msgV":1,"msg_id":"i","type":"message","read":false,"lead_sig":"g"}"#
    );
}

#[test]
fn a_bad_entry_does_not_make_the_inbox_unreadable() {
    let before = r#"[7, {"from":"a"}, {"from":"a","content":"c","timestamp":"t","read":false}, null,
        {"from":"b","text":"x","timestamp":"t","read":"no"}]"#;
    let inbox = Inbox::read(before.as_bytes()).unwrap();
    let shown: Vec<String> = inbox
        .entries()
        .map(|entry| match entry {
            InboxEntry::Message(message) => format!("{}: {}", message.from(), message.text()),
            InboxEntry::Other(json) => format!("other: {}", text(json)),
        })
        .collect();
    assert_eq!(shown[..4], ["other: 7", "other: {\"from\":\"a\"}", "a: c", "other: null"]);
    assert!(shown[4].starts_with("other: {\"from\":\"b\""));
    assert_eq!(text(&inbox.with_read(|_| true)), before.replace("false", "true"));
}

#[test]
fn lone_surrogates_and_invalid_utf8_are_read_and_preserved() {
    let mut bytes =
        br#"[{"from":"a","text":"cut \ud83d","timestamp":"t","read":false},{"from":"b","text":""#
            .to_vec();
    bytes.extend_from_slice(b"\xff\xfe\",\"timestamp\":\"t\",\"read\":false}]");
    let inbox = Inbox::read(&bytes).unwrap();
    let texts: Vec<String> = inbox.messages().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["cut \u{fffd}", "??"]);
    let first = inbox.messages().next().unwrap();
    assert_eq!(
        first.field("text"),
        Some(r#""cut \ud83d""#),
        "the field is not returned byte for byte"
    );
    let entries: Vec<&[u8]> = inbox.entries().map(|entry| entry.json()).collect();
    assert_eq!(
        entries.join(&b","[..]),
        bytes[1..bytes.len() - 1],
        "the entries are not returned byte for byte"
    );
    let read = inbox.with_read(|message| message.from() == "b");
    let kept = bytes.len() - b"false}]".len();
    assert_eq!(read[..kept], bytes[..kept], "bytes before the marked message changed");
    assert_eq!(read[kept..], *b"true}]");
}

#[test]
fn entries_are_removed_with_their_commas() {
    let check = |before: &str, keep: &[bool], after: &str| {
        let mut keep = keep.iter();
        let inbox = Inbox::read(before.as_bytes()).unwrap();
        assert_eq!(text(&inbox.retain(|_| *keep.next().unwrap())), after);
    };
    check("[1, 2 ,3]", &[true, true, true], "[1, 2 ,3]");
    check("[1, 2 ,3]", &[false, true, true], "[2 ,3]");
    check("[1, 2 ,3]", &[true, false, true], "[1, 3]");
    check("[1, 2 ,3]", &[true, true, false], "[1, 2]");
    check("[1, 2 ,3]", &[true, false, false], "[1]");
    check("[1, 2 ,3]", &[false, false, true], "[3]");
    check("[1, 2 ,3]", &[false, true, false], "[2]");
    check("[1, 2 ,3]\n", &[false, false, false], "[]\n");
    check("[\n  1,\n  2\n]", &[true, false], "[\n  1\n]");
}

#[test]
fn incomplete_documents_are_reported_with_the_reason() {
    let check = |bytes: &[u8], damage: Damage| {
        assert_eq!(Inbox::read(bytes).unwrap_err(), damage);
        let mut image = bytes.to_vec();
        assert_eq!(inbox::append(&mut image, &[message("x")]), Err(damage));
        assert_eq!(image, bytes);
    };
    check(b"", Damage::Blank);
    check(b" \n", Damage::Blank);
    check(b"[{", Damage::CutOff { len: 2 });
    check(b"[]]", Damage::Tail { end: 2 });
    check(b"[1 2]", Damage::Syntax { line: 1, column: 4 });
    check(b"\xef\xbb\xbf[]", Damage::Syntax { line: 1, column: 1 });
    check(b"{}", Damage::Shape { expected: "an array of messages", found: JsonKind::Object });
    assert_eq!(
        Task::read(b"[]").unwrap_err().to_string(),
        "expected a task object, found an array"
    );
    assert_eq!(
        Team::read(b"{\"members\":{}}").unwrap_err().to_string(),
        "expected an array of members, found an object"
    );
}
