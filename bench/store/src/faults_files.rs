//! Tests damaged inboxes and extreme messages. Checks that the store keeps every complete entry.

use std::path::PathBuf;
use std::time::Instant;

use brigade_core::mail::{self, InboxFilter};
use brigade_files::Durability;

use crate::Length;
use crate::cost::native_inbox;
use crate::faults::{chain, snapshot, try_send};
use crate::figures::BenchReport;
use crate::fixtures::member;
use crate::kill::walk;
use crate::temp_team::{READER, TempTeam, block_on, send_text, team};

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let many = length.pick(200, 2_000);
    let whole = native_inbox(many);
    let cut = whole[..whole.len() * 6 / 10].to_vec();
    let kept = String::from_utf8_lossy(&cut).matches("\"type\": \"message\"").count();
    damaged(report, "truncated to 60 %, never read before", &cut, None, kept);
    damaged(report, "truncated to 60 %, read before the damage", &cut, Some(&whole), many);
    damaged(report, "empty, never read before", b"", None, 0);
    damaged(report, "empty, read before the damage", b"", Some(&whole), many);
    // The store keeps a complete JSON value as an entry, even if the value is not a message.
    damaged(report, "an object instead of an array", br#"{"a": 1}"#, None, 1);
    damaged(
        report,
        "an object instead of an array, read before the damage",
        br#"{"a": 1}"#,
        Some(&whole),
        many + 1,
    );
    damaged(report, "bytes that are not UTF-8", &[0xff, 0xfe, 0, 1], None, 0);
    deep(report);
    big(report, length);
}

/// Sends a message to a damaged inbox. Checks that the store backs up the damaged file and keeps `kept` entries.
fn damaged(report: &mut BenchReport, what: &str, bytes: &[u8], before: Option<&[u8]>, kept: usize) {
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    let inbox = || block_on(dirs.store(Durability::Process).inbox(&team(), &member(READER)));
    if let Some(before) = before {
        std::fs::write(dirs.inbox(), before).unwrap();
        inbox().unwrap();
    }
    std::fs::write(dirs.inbox(), bytes).unwrap();
    let result = try_send(dirs, "after");
    println!("inbox: {what}\n      {result:?}");
    let mut aside: Vec<PathBuf> = walk(&dirs.state);
    aside.retain(|path| path.parent().is_some_and(|dir| dir.ends_with("aside")));
    let copied = aside.iter().any(|path| std::fs::read(path).unwrap() == bytes);
    report
        .check(copied, format!("{what}: the damaged inbox is backed up ({} copies)", aside.len()));
    report.check(result == Ok(None), format!("{what}: the send succeeds"));
    let now = std::fs::read(dirs.inbox()).unwrap();
    let count = serde_json::from_slice::<Vec<serde_json::Value>>(&now).map(|all| all.len());
    let text = format!("{what}: {count:?} messages, {kept} + 1 expected");
    report.check(count.is_ok_and(|count| count == kept + 1), text);
}

/// Tests JSON that is nested ten thousand levels deep, in the text of a message and in an inbox.
fn deep(report: &mut BenchReport) {
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    let result = try_send(dirs, &nested);
    report
        .check(result == Ok(None), format!("a text nested 10,000 levels deep is sent: {result:?}"));
    let read = block_on(mail::inbox(
        &dirs.seat(READER, Durability::Process),
        &member(READER),
        InboxFilter::All,
    ));
    report.check(
        read.is_ok_and(|all| all.len() == 1),
        "a text nested 10,000 levels deep is read back",
    );
    let entry = |extra: &str| {
        format!(
            r#"{{"from": "native", "text": "t{extra}", "timestamp": "2026-01-01T00:00:00.000Z", "read": false, "x": {extra}}}"#
        )
    };
    let bytes = format!("[{}, {}, {}]", entry("1"), entry(&nested), entry("2"));
    std::fs::write(dirs.inbox(), &bytes).unwrap();
    let before = snapshot(&dirs.claude);
    let result = try_send(dirs, "after");
    println!("inbox with an entry nested 10,000 deep\n      {result:?}");
    let now = std::fs::read_to_string(dirs.inbox()).unwrap();
    let held = now.contains(&nested) && now.contains(r#""x": 1"#) && now.contains(r#""x": 2"#);
    let aside = walk(&dirs.state)
        .iter()
        .any(|path| path.is_file() && std::fs::read(path).unwrap() == bytes.as_bytes());
    let intact = held || aside || snapshot(&dirs.claude) == before;
    report.check(
        intact,
        format!("no entry is lost (inbox has all entries: {held}; backup exists: {aside})"),
    );
    let plain = now.contains(r#""x": 1"#) && now.contains(r#""x": 2"#);
    report.check(plain, "the other entries stay in the inbox");
}

/// Tests a message of a hundred megabytes, sent by brigade and by another program.
fn big(report: &mut BenchReport, length: Length) {
    let size = length.pick(20_000_000, 100_000_000);
    let temp = TempTeam::with_team(&["writer"]);
    let dirs = &temp.dirs;
    let text = "x".repeat(size);
    let before = snapshot(&temp.root);
    let seat = dirs.seat("writer", Durability::Process);
    let result = send_text(&seat, READER, &text).map_err(|error| chain(&error));
    println!("a message of {size} bytes\n      {:?}", result.as_ref().err());
    report.check(
        result.is_err() && snapshot(&temp.root) == before,
        "sending a huge message fails and changes nothing",
    );
    let entry = serde_json::json!([{
        "from": "native", "text": text, "timestamp": "2026-01-01T00:00:00.000Z", "read": false,
    }]);
    std::fs::write(dirs.inbox(), serde_json::to_vec_pretty(&entry).unwrap()).unwrap();
    let start = Instant::now();
    let result = try_send(dirs, "after");
    let took = start.elapsed();
    println!(
        "an inbox with a message of {size} bytes from another program\n      {result:?} after {took:?}"
    );
    let now: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(dirs.inbox()).unwrap()).unwrap();
    let kept = now[0]["text"].as_str().is_some_and(|kept| kept.len() == size);
    report.check(
        kept && now.len() == 2,
        "the huge message from another program and the next message are stored",
    );
}
