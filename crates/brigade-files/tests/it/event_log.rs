//! Tests of a team's event stream in the file store, and of streaming a file of records.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::store::EventLog;
use brigade_core::store::event_log::{EventStream, RecordLookupHandle, RecordRef};
use brigade_files::{layout, stream_records_file};
use brigade_testkit::contract::run;
use brigade_testkit::env::team;
use proptest::prelude::*;
use tempfile::TempDir;

use brigade_testkit::files::{Files, store};

/// Returns a journal line which records that the member `name` left at this time.
fn record(at: &str, name: &str) -> String {
    format!(r#"{{"at":"{at}","event":{{"member_left":{{"name":"{name}"}}}}}}"#)
}

/// Returns the timestamp of this second of a fixed minute.
fn second(number: usize) -> String {
    format!("2026-11-15T12:00:{number:02}.5Z")
}

fn name((_, record): &(RecordRef, Arc<Record>)) -> String {
    match &record.event {
        Event::MemberLeft { name } => name.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns all records until the stream ends or has caught up.
async fn read_history(feed: &mut EventStream) -> Vec<(RecordRef, Arc<Record>)> {
    let mut records = Vec::new();
    while let Some(batch) = feed.next().await {
        records.extend(batch.records);
        if batch.caught_up {
            break;
        }
    }
    records
}

/// Checks that each record can be looked up by its position.
fn check_lookup(lookup: &RecordLookupHandle, records: &[(RecordRef, Arc<Record>)]) {
    for (spot, record) in records {
        let line = |record: &Record| serde_json::to_string(record).unwrap();
        assert_eq!(line(&lookup.record(*spot).unwrap()), line(record));
    }
}

/// Creates brigade's folder for a deleted team. The folder contains only journals.
fn deleted_team() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let (state, claude) = (home.path().join("state/brigade"), home.path().join("claude"));
    let team_state = layout::team_states_dir(&state, &claude).join("demo");
    for folder in ["mail", "work"] {
        fs::create_dir_all(team_state.join(folder)).unwrap();
    }
    (home, team_state)
}

/// Streams these journals. Returns the member names in the order of the streamed records.
fn streamed_names(journals: &[(&str, String)]) -> Vec<String> {
    let (home, team_state) = deleted_team();
    for (journal, text) in journals {
        fs::write(team_state.join(journal), text).unwrap();
    }
    let mut names = Vec::new();
    run(async {
        let (mut feed, lookup) = store(&home).event_stream(&team()).await.unwrap();
        let records = read_history(&mut feed).await;
        check_lookup(&lookup, &records);
        names = records.iter().map(name).collect();
        assert!(feed.next().await.is_none(), "the stream of a deleted team should end");
    });
    names
}

/// Returns the text of a journal with these lines.
fn journal(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _infallible = write!(text, "\n{line}\n");
        text
    })
}

#[test]
fn times_are_parsed_in_any_valid_form() {
    let at = |at: &str| record(at, at);
    let times = [
        "2024-02-29T23:59:59.999999999Z",
        "2024-03-01T00:00:00Z",
        "2024-03-01T00:00:00.000000001Z",
        "2024-03-01T01:00:00.1+01:00",
        "2024-03-01T00:00:00.25z",
        "2024-12-31T23:59:59Z",
        "2025-01-01T00:00:00Z",
    ];
    // Each record is in a separate journal, so only the times determine the order.
    let names: Vec<String> = (0..times.len()).map(|n| format!("mail/m{}.jsonl", 9 - n)).collect();
    let journals: Vec<(&str, String)> =
        names.iter().zip(times).map(|(name, time)| (name.as_str(), journal(&[at(time)]))).collect();
    assert_eq!(streamed_names(&journals), times);
    // A line with an invalid date or time is not a record.
    for time in ["2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z", "2026-11-15T24:00:00Z", "soon"] {
        assert!(streamed_names(&[("team.jsonl", journal(&[at(time)]))]).is_empty(), "{time}");
    }
}

#[test]
fn lines_that_are_not_records_are_skipped() {
    let lines = [
        record(&second(1), "first"),
        record(&second(2), "torn").chars().take(30).collect(),
        "{}".into(),
        r#"{"at":"2026-11-15T12:00:02Z","event":{"of a later version":{}}}"#.into(),
        record(&second(3), "second"),
    ];
    let unfinished = journal(&lines) + "\n" + &record(&second(4), "without an end");
    let names =
        streamed_names(&[("team.jsonl", unfinished), ("mail/bob.jsonl", "\n\n\u{0}\n".into())]);
    assert_eq!(names, ["first", "second"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Records are sorted by time, but keep the order within a journal. For equal times the team's
    /// journal comes first, then mail, then work.
    #[test]
    fn journals_are_merged_by_time(
        seconds in prop::collection::vec(prop::collection::vec(0_usize..8, 0..12), 5),
    ) {
        let paths =
            ["team.jsonl", "mail/alice.jsonl", "mail/bob.jsonl", "work/alice.jsonl", "work/bob.jsonl"];
        let label = |journal: usize, number: usize| format!("{journal}-{number}");
        let text = |(journal_number, seconds): (usize, &Vec<usize>)| {
            let line = |(n, s): (usize, &usize)| record(&second(*s), &label(journal_number, n));
            journal(&seconds.iter().enumerate().map(line).collect::<Vec<_>>())
        };
        let texts: Vec<String> = seconds.iter().enumerate().map(text).collect();
        let journals: Vec<(&str, String)> = paths.into_iter().zip(texts).collect();
        // Build the expected order by repeatedly taking the earliest of the journals' next records.
        let mut places = vec![0; seconds.len()];
        let mut expected = Vec::new();
        let next = |places: &[usize]| {
            let heads = places.iter().enumerate().filter_map(|(j, &n)| Some((*seconds[j].get(n)?, j)));
            heads.min()
        };
        while let Some((_, journal)) = next(&places) {
            expected.push(label(journal, places[journal]));
            places[journal] += 1;
        }
        prop_assert_eq!(streamed_names(&journals), expected);
    }
}

#[test]
fn long_journals_are_streamed_completely_and_in_order() {
    // Write so much data that several threads parse it. Make some lines longer than one read.
    let line = |number: usize, long: usize| {
        let at = format!(
            "2026-11-15T12:{:02}:{:02}.{:03}Z",
            number / 60_000,
            number / 1000 % 60,
            number % 1000
        );
        record(&at, &format!("{number}{}", ".".repeat(long)))
    };
    let long = |number: usize| if number % 5_000 == 4_999 { 3 << 20 } else { number % 150 };
    let all: Vec<usize> = (0..20_000).collect();
    let part = |of: usize| {
        let lines = all.iter().filter(|&&number| number % 3 == of);
        journal(&lines.map(|&number| line(number, long(number))).collect::<Vec<_>>())
    };
    let names = streamed_names(&[
        ("team.jsonl", part(0)),
        ("mail/bob.jsonl", part(1)),
        ("work/bob.jsonl", part(2)),
    ]);
    let numbers: Vec<usize> =
        names.iter().map(|n| n.trim_end_matches('.').parse().unwrap()).collect();
    assert_eq!(numbers, all);
    assert!(all.iter().zip(&names).all(|(&n, name)| name.len() == n.to_string().len() + long(n)));
}

/// Waits for the record with the member name `expected`. Returns the names in the records before
/// that record.
async fn names_before(feed: &mut EventStream, expected: &str) -> Vec<String> {
    let mut names = Vec::new();
    let wait = async {
        while let Some(batch) = feed.next().await {
            for record in &batch.records {
                if name(record) == expected {
                    return;
                }
                names.push(name(record));
            }
        }
        panic!("the stream ended before the record {expected:?}");
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
    names
}

fn append(path: &Path, lines: &[String]) {
    let old = fs::read(path).unwrap_or_default();
    let new = journal(lines);
    // Append all lines in one write, as the store does.
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, new.as_bytes()).unwrap();
    assert_eq!(fs::metadata(path).unwrap().len(), (old.len() + new.len()) as u64);
}

#[test]
fn a_journal_may_be_truncated_or_replaced_meanwhile() {
    Files::run(async |files| {
        let path = files.team_state_dir().join("work/carol.jsonl");
        let (mut feed, lookup) = files.env.store.event_stream(&team()).await.unwrap();
        read_history(&mut feed).await;
        append(&path, &[record(&second(1), "one"), record(&second(2), "two")]);
        assert_eq!(names_before(&mut feed, "two").await, ["one"]);
        // Truncate the journal. The remaining records were already sent, so only later records are
        // new.
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        append(&path, &[record(&second(3), "three")]);
        append(
            &path,
            &[record(&second(4), "four, which is longer than the part that was removed")],
        );
        let skipped =
            names_before(&mut feed, "four, which is longer than the part that was removed").await;
        assert!(skipped.iter().all(|name| name == "three"), "{skipped:?}");
        // Delete and re-create the journal. All records in the new file are new, and the old
        // records can no longer be looked up.
        fs::remove_file(&path).unwrap();
        append(&path, &[record(&second(5), "five")]);
        assert!(names_before(&mut feed, "five").await.is_empty());
        append(&path, &[record(&second(6), "six")]);
        let batch = feed.next().await.unwrap();
        assert_eq!(batch.records.iter().map(name).collect::<Vec<_>>(), ["six"]);
        check_lookup(&lookup, &batch.records);
        // Replace the team's whole state folder.
        let team_state = files.team_state_dir();
        fs::rename(&team_state, team_state.with_extension("gone")).unwrap();
        fs::remove_dir_all(team_state.with_extension("gone")).unwrap();
        files.env.store.inbox(&team(), &"alice".parse().unwrap()).await.unwrap();
        append(&path, &[record(&second(7), "seven")]);
        let wait = async {
            loop {
                let batch = feed.next().await.expect("the stream should continue");
                let is_seven = |(_, record): &(RecordRef, Arc<Record>)| matches!(&record.event, Event::MemberLeft { name } if name == "seven");
                if batch.records.iter().any(is_seven) {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
    });
}

#[test]
fn a_file_of_records_is_streamed_in_file_order() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journal.jsonl");
    let lines = [
        record(&second(5), "one"),
        "no record".into(),
        record(&second(1), "two"),
        "{\"at\":".into(),
    ];
    fs::write(&path, lines.join("\n") + "\r\n" + &record(&second(3), "three")).unwrap();
    run(async {
        let (mut feed, lookup) = stream_records_file(&path).unwrap();
        let records = read_history(&mut feed).await;
        assert_eq!(records.iter().map(name).collect::<Vec<_>>(), ["one", "two", "three"]);
        assert!(feed.next().await.is_none());
        assert_eq!(feed.skipped_lines(), 2);
        check_lookup(&lookup, &records);
    });
}

#[test]
fn a_file_without_records_is_rejected() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x");
    let error_for = |path: &Path| {
        let error = stream_records_file(path).unwrap_err().to_string();
        error.replace(&home.path().display().to_string(), "")
    };
    assert_eq!(error_for(&path), "cannot read /x");
    assert!(
        error_for(home.path())
            .ends_with(" is not a regular file; write the records to a file first")
    );
    let expected = "expected the output of `brigade log --json`";
    for (text, why) in [
        ("", "is empty"),
        ("hello\n{}\n\n[1,2]", "contains no records"),
        ("{\"brigade_team\":{\"version\":1,", "is a team export"),
        ("\n\n\n", "contains no records"),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(error_for(&path), format!("/x {why}; {expected}"));
    }
}
