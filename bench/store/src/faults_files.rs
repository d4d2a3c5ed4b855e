//! Inboxes and messages as they should not be: nothing is wiped, what is whole is kept.

use std::path::PathBuf;
use std::time::Instant;

use brigade_core::mail::{self, Which, Words};
use brigade_core::store::file::Durability;

use crate::Length;
use crate::cost::native_inbox;
use crate::faults::{chain, snapshot, try_send};
use crate::figures::Report;
use crate::kill::walk;
use crate::place::{Place, READER, block_on, member};

pub(crate) fn run(report: &mut Report, length: Length) {
    let many = length.of(200, 2_000);
    let whole = native_inbox(many);
    let cut = whole[..whole.len() * 6 / 10].to_vec();
    let kept = String::from_utf8_lossy(&cut).matches("\"type\": \"message\"").count();
    damaged(report, "cut at 60 %, never seen before", &cut, None, kept);
    damaged(report, "cut at 60 %, seen before", &cut, Some(&whole), many);
    damaged(report, "zero bytes, never seen before", b"", None, 0);
    damaged(report, "zero bytes, seen before", b"", Some(&whole), many);
    // Whatever is whole stays, as an entry, though it is no message.
    damaged(report, "an object, no array", br#"{"a": 1}"#, None, 1);
    damaged(report, "an object, no array, seen before", br#"{"a": 1}"#, Some(&whole), many + 1);
    damaged(report, "bytes that are no text", &[0xff, 0xfe, 0, 1], None, 0);
    deep(report);
    big(report, length);
}

/// One send into an inbox that cannot be read.
fn damaged(report: &mut Report, what: &str, bytes: &[u8], before: Option<&[u8]>, kept: usize) {
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    let inbox =
        || block_on(spot.store(Durability::Process).inbox(&crate::place::team(), &member(READER)));
    if let Some(before) = before {
        std::fs::write(spot.inbox(), before).unwrap();
        inbox().unwrap();
    }
    std::fs::write(spot.inbox(), bytes).unwrap();
    let said = try_send(spot, "after");
    println!("inbox: {what}\n      {said:?}");
    let mut aside: Vec<PathBuf> = walk(&spot.state);
    aside.retain(|path| path.parent().is_some_and(|dir| dir.ends_with("aside")));
    let copied = aside.iter().any(|path| std::fs::read(path).unwrap() == bytes);
    report.bar(copied, format!("{what}: copied aside byte for byte ({} copies)", aside.len()));
    report.bar(said == Ok(None), format!("{what}: the send goes through"));
    let now = std::fs::read(spot.inbox()).unwrap();
    let count = serde_json::from_slice::<Vec<serde_json::Value>>(&now).map(|all| all.len());
    let text = format!("{what}: {count:?} messages, {kept} + 1 to be kept");
    report.bar(count.is_ok_and(|count| count == kept + 1), text);
}

/// JSON nested ten thousand deep, in an inbox and in a text.
fn deep(report: &mut Report) {
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    let said = try_send(spot, &nested);
    report.bar(said == Ok(None), format!("a text nested 10,000 deep is sent: {said:?}"));
    let read =
        block_on(mail::inbox(&spot.seat(READER, Durability::Process), &member(READER), Which::All));
    report.bar(read.is_ok_and(|all| all.len() == 1), "and read");
    let entry = |extra: &str| {
        format!(
            r#"{{"from": "native", "text": "t{extra}", "timestamp": "2026-01-01T00:00:00.000Z", "read": false, "x": {extra}}}"#
        )
    };
    let bytes = format!("[{}, {}, {}]", entry("1"), entry(&nested), entry("2"));
    std::fs::write(spot.inbox(), &bytes).unwrap();
    let before = snapshot(&spot.claude);
    let said = try_send(spot, "after");
    println!("inbox with an entry nested 10,000 deep\n      {said:?}");
    let now = std::fs::read_to_string(spot.inbox()).unwrap();
    let held = now.contains(&nested) && now.contains(r#""x": 1"#) && now.contains(r#""x": 2"#);
    let aside = walk(&spot.state)
        .iter()
        .any(|path| path.is_file() && std::fs::read(path).unwrap() == bytes.as_bytes());
    let intact = held || aside || snapshot(&spot.claude) == before;
    report.bar(
        intact,
        format!("nothing of it is lost (kept in place: {held}, copied aside: {aside})"),
    );
    let plain = now.contains(r#""x": 1"#) && now.contains(r#""x": 2"#);
    report.bar(plain, "the entries beside it stay in the inbox");
}

/// A hundred megabytes, as a message of ours and as one of others.
fn big(report: &mut Report, length: Length) {
    let size = length.of(20_000_000, 100_000_000);
    let place = Place::with_team(&["writer"]);
    let spot = &place.spot;
    let text = "x".repeat(size);
    let before = snapshot(&place.root);
    let seat = spot.seat("writer", Durability::Process);
    let sent = block_on(mail::send(&seat, READER, Words { text: &text, summary: None }));
    let said = sent.map_err(|error| chain(&error));
    println!("a message of {size} bytes\n      {:?}", said.as_ref().err());
    report.bar(said.is_err() && snapshot(&place.root) == before, "refused, and nothing changed");
    let entry = serde_json::json!([{
        "from": "native", "text": text, "timestamp": "2026-01-01T00:00:00.000Z", "read": false,
    }]);
    std::fs::write(spot.inbox(), serde_json::to_vec_pretty(&entry).unwrap()).unwrap();
    let start = Instant::now();
    let said = try_send(spot, "after");
    let took = start.elapsed();
    println!("an inbox with {size} bytes of another program's\n      {said:?} after {took:?}");
    let now: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(spot.inbox()).unwrap()).unwrap();
    let kept = now[0]["text"].as_str().is_some_and(|kept| kept.len() == size);
    report.bar(kept && now.len() == 2, "both messages are there");
}
