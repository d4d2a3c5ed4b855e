//! Files with very deeply nested JSON. Reading them gives an error or the rest of the file, and never exhausts the stack.

use std::fs;

use brigade_core::board::{self, TaskPlan};
use brigade_core::mail;
use brigade_testkit::env::{member, team};
use brigade_testkit::files::Files;

use crate::helpers::texts;

const DEPTH: usize = 100_000;

/// Returns deeply nested arrays, and deeply nested objects.
fn nested() -> [String; 2] {
    [
        ["[".repeat(DEPTH), "]".repeat(DEPTH)].concat(),
        [r#"{"a":"#.repeat(DEPTH), "1".to_owned(), "}".repeat(DEPTH)].concat(),
    ]
}

/// Returns whether to damage a whole file with these bytes. A reader waits some seconds for another program to complete a
/// damaged file, so only one form is tested.
fn has_slow_checks(nested: &str) -> bool {
    nested.starts_with('[')
}

#[test]
fn a_deeply_nested_inbox_does_not_hide_other_messages() {
    let message =
        r#"{"from":"alice","text":"hello","timestamp":"2026-11-15T12:00:00.000Z","read":false"#;
    for nested in nested() {
        let check = |inbox: String, expected: &[&str]| {
            Files::run(async |files| {
                fs::write(files.inbox("bob"), &inbox).unwrap();
                assert_eq!(texts(&files.env, "bob").await, expected, "{inbox:.200}");
                mail::send(&files.env.seat("alice"), "bob", "after it").await.unwrap();
                let all = texts(&files.env, "bob").await;
                assert_eq!(all, [expected, &["after it"]].concat(), "{inbox:.200}");
            });
        };
        check(format!("[{nested},{message}}}]"), &["hello"]);
        check(format!(r#"[{message},"more":{nested}}}]"#), &["hello"]);
    }
}

#[test]
fn a_deeply_nested_task_does_not_hide_other_tasks() {
    for nested in nested() {
        Files::run(async |files| {
            let lead = files.env.seat("team-lead");
            let id = board::add(&lead, &TaskPlan::new("first")).await.unwrap();
            let other = board::add(&lead, &TaskPlan::new("second")).await.unwrap();
            let task = fs::read_to_string(files.task(id.get())).unwrap();
            let deep = task.replacen('{', &format!(r#"{{"metadata":{{"x":{nested}}},"#), 1);
            fs::write(files.task(id.get()), &deep).unwrap();
            let (tasks, graph) = board::list(&lead).await.unwrap();
            assert_eq!((tasks.len(), graph.nodes().count()), (2, 2));
            board::claim(&lead, id).await.unwrap();
            if !has_slow_checks(&nested) {
                return;
            }
            fs::write(files.task(id.get()), &nested).unwrap();
            let (tasks, graph) = board::list(&lead).await.unwrap();
            assert_eq!((tasks.len(), graph.nodes().count()), (2, 1));
            assert!(board::claim(&lead, id).await.is_err());
            board::claim(&lead, other).await.unwrap();
        });
    }
}

#[test]
fn a_deeply_nested_roster_is_not_read_as_an_empty_one() {
    for nested in nested() {
        Files::run(async |files| {
            let lead = files.env.seat("team-lead");
            let config = fs::read_to_string(files.config()).unwrap();
            let more = config.replacen('{', &format!(r#"{{"more":{nested},"#), 1);
            fs::write(files.config(), more).unwrap();
            mail::send(&lead, "bob", "hello").await.unwrap();
            if !has_slow_checks(&nested) {
                return;
            }
            let (before, after) = config.split_once(r#""members":"#).unwrap();
            let members = format!(r#"{before}"members":{nested},"old":{after}"#);
            for config in [nested.clone(), members] {
                fs::write(files.config(), config).unwrap();
                // A damaged roster is restored, or it is an error.
                if mail::send(&lead, "bob", "hello").await.is_ok() {
                    let restored = fs::read_to_string(files.config()).unwrap();
                    assert!(restored.contains(r#""bob""#), "{restored:.200}");
                }
            }
            fs::write(files.config(), config).unwrap();
            let texts = texts(&files.env, "bob").await;
            assert!(!texts.is_empty() && texts.iter().all(|text| text == "hello"), "{texts:?}");
        });
    }
}

#[test]
fn a_deeply_nested_line_in_a_journal_does_not_hide_other_records() {
    for nested in nested() {
        Files::run(async |files| {
            files.env.say("alice", "bob", "first").await;
            let journal = files.team_state_dir().join("mail/bob.jsonl");
            let mut lines = fs::read_to_string(&journal).unwrap();
            lines.push_str(&format!("\n{nested}\n"));
            fs::write(&journal, lines).unwrap();
            let env = files.reopen();
            env.say("alice", "bob", "second").await;
            let records = env.store.mailbox_history(&team(), &member("bob")).await.unwrap();
            assert_eq!(records.len(), 2);
            assert_eq!(texts(&env, "bob").await, ["first", "second"]);
        });
    }
}
