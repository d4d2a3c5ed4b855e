//! Contract tests for stores: export and import of a whole team.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::export::{self, ImportError};
use brigade_core::handshake::{self, Answer};
use brigade_core::roster;
use brigade_core::store::memory::MemoryStore;
use brigade_core::store::{Actor, Mark, NoteKind, Store, StoreError, TeamStore};
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;
use serde_json::Value;

use crate::env::{TestEnv, clock, member, member_plan, team};

/// Creates a team with data of every kind: tasks with a gap in their numbers, mail in every state,
/// a member that left, a note, an answered request and an unanswered request.
async fn build_full_team(store: Arc<dyn Store>) -> TestEnv {
    let env = TestEnv::build(store).await;
    let (lead, alice) = (env.seat("team-lead"), env.seat("alice"));
    for subject in ["one", "two\u{2028}\"ü", "three", "four"] {
        let plan = TaskPlan { subject: subject.into(), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
    }
    for gone in [2, 4] {
        board::delete(&lead, brigade_wire::name::TaskId::new(gone).unwrap()).await.unwrap();
    }
    board::claim(&alice, brigade_wire::name::TaskId::new(3).unwrap()).await.unwrap();
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    env.say("carol", "bob", "I am off\n\"soon\"").await;
    roster::leave(&lead, &member("carol")).await.unwrap();
    for text in ["read", "not read", "shown", "nor this"] {
        env.say("bob", "alice", text).await;
    }
    let inbox = env.store.inbox(&team(), &alice.name).await.unwrap();
    let key = |index: usize| [inbox[index].key];
    env.store.mark(&team(), &alice.name, &key(0), Mark::Read).await.unwrap();
    env.store.mark(&team(), &alice.name, &key(2), Mark::Shown).await.unwrap();
    let first = handshake::submit_plan(&alice, "first this", None).await.unwrap();
    handshake::answer_plan(&lead, &first.request_id, Answer::Yes).await.unwrap();
    handshake::submit_plan(&alice, "then that", None).await.unwrap();
    let note = Some(b"{\"session\":1}".as_slice());
    env.store.put_note(&team(), &alice.name, NoteKind::Memory, note).await.unwrap();
    env
}

async fn export(store: &dyn Store, team: &TeamName) -> Vec<u8> {
    let mut file = Vec::new();
    export::export(store, team, clock().now(), &mut file).await.unwrap();
    file
}

async fn import(
    store: &dyn Store,
    file: &[u8],
    name: Option<&TeamName>,
) -> Result<export::Imported, ImportError> {
    export::import(store, &mut Cursor::new(file), name).await
}

/// Returns the lines of an export without times, and without the events that were recorded when the team
/// was created. If `ids` is false, leaves out message ids too, because an import may assign new ids.
fn content(file: &[u8], ids: bool) -> Vec<Value> {
    let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut content = Vec::new();
    for line in lines {
        let mut line: Value = serde_json::from_slice(line).unwrap();
        if line.get("brigade_team").is_some() {
            continue;
        }
        if let Some(record) = line.get("record") {
            if record["event"].get("answered").is_none() {
                continue;
            }
            line = record["event"].clone();
        }
        if let Some(entry) = line.pointer_mut("/message/entry").and_then(Value::as_object_mut)
            && !ids
        {
            entry.remove("msg_id");
        }
        content.push(line);
    }
    content
}

/// Compares two exports line by line, so that a failure shows the line that differs.
fn assert_same(found: &[Value], expected: &[Value]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
}

/// If a team is exported to another store and back, no data is lost, added or changed. No unread
/// message is duplicated.
pub async fn a_team_survives_export_and_import(store: Arc<dyn Store>) {
    let env = build_full_team(Arc::clone(&store)).await;
    let first = export(store.as_ref(), &team()).await;
    let lines = content(&first, true);
    let count = |kind: &str| lines.iter().filter(|line| line.get(kind).is_some()).count();
    assert_eq!(count("task"), 2);
    assert_eq!((count("note"), count("decision"), count("answered")), (1, 1, 1));
    // Alice has four messages and an answer, bob has one message, and the lead has two plans.
    assert_eq!(count("message"), 8);

    let other = MemoryStore::new(clock());
    let imported = import(&other, &first, None).await.unwrap();
    assert_eq!((imported.exported.tasks, imported.exported.messages), (2, 8));
    let exported = export(&other, &team()).await;
    assert_same(&content(&exported, true), &lines);
    let config = |document: brigade_core::store::Document| document.bytes;
    let original = store.team(&team()).await.unwrap().map(config);
    assert_eq!(other.team(&team()).await.unwrap().map(config), original);

    // Import the team into the first store, under another name.
    let copy: TeamName = "copy".parse().unwrap();
    import(store.as_ref(), &exported, Some(&copy)).await.unwrap();
    let copied = export(store.as_ref(), &copy).await;
    assert_same(&content(&copied, true)[1..], &lines[1..]);
    let renamed = store.team(&copy).await.unwrap().unwrap();
    let renamed = Team::read(&renamed.bytes).unwrap();
    assert_eq!(renamed.name().as_deref(), Some("copy"));
    assert_eq!(renamed.lead().unwrap().agent_id().as_deref(), Some("team-lead@copy"));
    assert_eq!(renamed.member("alice").unwrap().agent_id().as_deref(), Some("alice@copy"));

    // Delete the first team and import it again, under the same name. The store still knows the old message ids.
    store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    import(store.as_ref(), &exported, None).await.unwrap();
    let again = export(store.as_ref(), &team()).await;
    assert_same(&content(&again, false), &content(&first, false));
    assert_eq!(store.team(&team()).await.unwrap().map(config), original);
    let texts = env.texts("alice").await;
    let unread: Vec<&str> =
        texts.iter().filter(|(_, read)| !read).map(|(text, _)| text.as_str()).collect();
    assert_eq!(unread[..2], ["not read", "nor this"]);
    let next = TaskPlan { subject: "five".into(), ..TaskPlan::default() };
    let next = board::add(&env.seat("team-lead"), &next).await.unwrap();
    assert_eq!(next.get(), 5);
}

/// An import does not change an existing team, and an import of an incomplete file changes nothing.
pub async fn an_import_overwrites_nothing(store: Arc<dyn Store>) {
    let env = build_full_team(Arc::clone(&store)).await;
    let file = export(store.as_ref(), &team()).await;
    env.say("bob", "alice", "sent later").await;
    let before = content(&export(store.as_ref(), &team()).await, true);
    let imported = import(store.as_ref(), &file, None).await;
    let exists =
        |error: &ImportError| matches!(error, ImportError::Store(StoreError::TeamExists { .. }));
    assert!(imported.as_ref().is_err_and(exists), "{imported:?}");
    assert_same(&content(&export(store.as_ref(), &team()).await, true), &before);

    let copy: TeamName = "copy".parse().unwrap();
    let ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    for cut in [0, ends[0] + 1, ends[3], ends[5] + 20, file.len() - 2] {
        let incomplete = import(store.as_ref(), &file[..cut], Some(&copy)).await;
        let known = matches!(incomplete, Err(ImportError::CutShort | ImportError::NotAnExport));
        assert!(known, "{cut}: {incomplete:?}");
        assert!(store.team(&copy).await.unwrap().is_none(), "{cut}");
    }
    let later = String::from_utf8(file).unwrap().replace(r#""version":1"#, r#""version":2"#);
    let later = import(store.as_ref(), later.as_bytes(), Some(&copy)).await;
    assert!(matches!(later, Err(ImportError::Version { found: 2 })), "{later:?}");
}

/// A file that can be read only once as a whole. The second time, reading fails at offset `upto`.
struct FailingFile {
    file: Cursor<Vec<u8>>,
    upto: u64,
    seeks: usize,
}

impl Read for FailingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.seeks > 1 && self.file.position() >= self.upto {
            return Err(io::Error::other("simulated disk error"));
        }
        let len = buffer.len().min(64);
        self.file.read(&mut buffer[..len])
    }
}

impl Seek for FailingFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.seeks += 1;
        self.file.seek(to)
    }
}

/// If an import was interrupted, the next import completes the team without duplicates.
pub async fn an_interrupted_import_can_be_continued(store: Arc<dyn Store>) {
    let other = MemoryStore::new(clock());
    let other: Arc<dyn Store> = Arc::new(other);
    build_full_team(Arc::clone(&other)).await;
    let file = export(other.as_ref(), &team()).await;
    let ends: Vec<u64> = (0_u64..)
        .zip(BufReader::new(file.as_slice()).lines())
        .scan(0, |at, (_, line)| {
            *at += line.unwrap().len() as u64 + 1;
            Some(*at)
        })
        .collect();
    for (index, upto) in [ends[1], ends[6], ends[8], ends[ends.len() - 3]].into_iter().enumerate() {
        let name: TeamName = format!("copy-{index}").parse().unwrap();
        let failing = FailingFile { file: Cursor::new(file.clone()), upto, seeks: 0 };
        let mut failing = BufReader::with_capacity(64, failing);
        let broken = export::import(store.as_ref(), &mut failing, Some(&name)).await;
        assert!(matches!(broken, Err(ImportError::Read(_))), "{broken:?}");
        assert!(store.team(&name).await.unwrap().is_some());
        import(store.as_ref(), &file, Some(&name)).await.unwrap();
        let completed = export(store.as_ref(), &name).await;
        assert_same(&content(&completed, true)[1..], &content(&file, true)[1..]);
        let answered = store.history(&name).await.unwrap();
        let answered = answered.iter().filter(|r| matches!(r.event, Event::Answered { .. }));
        assert_eq!(answered.count(), 1);
        let repeated = import(store.as_ref(), &file, Some(&name)).await;
        assert!(matches!(repeated, Err(ImportError::Store(StoreError::TeamExists { .. }))));
    }
}

/// Finding 37: a manipulated export is refused, and no team is created.
pub async fn a_manipulated_export_is_refused(store: Arc<dyn Store>) {
    let env = build_full_team(Arc::clone(&store)).await;
    let export = String::from_utf8(export(env.store.as_ref(), &team()).await).unwrap();
    let line = |kind: &str| {
        let start = format!("{{\"{kind}\"");
        export.lines().find(|line| line.starts_with(&start)).unwrap().to_owned()
    };
    let (config, task, last, message, end) =
        (line("config"), line("task"), line("last_task"), line("message"), line("end"));
    let replaced = |from: &str, to: &str| export.replace(from, to);
    // Repeats a line, and adds these numbers to the counts in the last line.
    let repeated = |line: &str, counts: &[(&str, u64)]| {
        let mut counted: Value = serde_json::from_str(&end).unwrap();
        for (kind, number) in counts {
            counted["end"][*kind] = (counted["end"][*kind].as_u64().unwrap() + number).into();
        }
        replaced(line, &format!("{line}\n{line}")).replace(&end, &counted.to_string())
    };
    let unread = u64::from(message.contains("\"read\":false,\"shown\""));
    let other_id = task.replacen("\\\"id\\\": \\\"1", "\\\"id\\\": \\\"7", 1);
    for (what, file) in [
        ("is above", replaced(&last, "{\"last_task\":18446744073709551615}")),
        ("no creation time", replaced(&config, "{\"config\":\"{}\"}")),
        ("two copies of config.json", repeated(&config, &[])),
        ("two tasks", repeated(&task, &[("tasks", 1)])),
        ("has the id", replaced(&task, &other_id)),
        ("two messages", repeated(&message, &[("messages", 1), ("unread", unread)])),
    ] {
        let other = MemoryStore::new(clock());
        let refused = import(&other, file.as_bytes(), None).await.unwrap_err();
        assert!(refused.to_string().contains(what), "{what}: {refused}");
        assert_eq!(other.teams().await.unwrap(), []);
    }
}
