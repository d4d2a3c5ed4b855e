//! That a team can be carried from any store to any other, and is the same there.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::Event;
use brigade_core::export::{self, ImportError};
use brigade_core::handshake::{self, Answer};
use brigade_core::roster;
use brigade_core::store::memory::MemoryStore;
use brigade_core::store::{Actor, Mark, Shelf, Store, StoreError};
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;
use serde_json::Value;

use crate::env::{House, clock, member, member_plan, team};

/// A team with something of everything: a gap in its numbers, mail in every state, somebody who left,
/// a note, an answered request and one that waits.
async fn furnish(store: Arc<dyn Store>) -> House {
    let house = House::build(store).await;
    let (lead, alice) = (house.seat("team-lead"), house.seat("alice"));
    for subject in ["one", "two\u{2028}\"ü", "three", "four"] {
        let plan = TaskPlan { subject: subject.into(), ..TaskPlan::default() };
        board::add(&lead, &plan).await.unwrap();
    }
    for gone in [2, 4] {
        board::delete(&lead, brigade_wire::name::TaskId::new(gone).unwrap()).await.unwrap();
    }
    board::claim(&alice, brigade_wire::name::TaskId::new(3).unwrap()).await.unwrap();
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    house.say("carol", "bob", "I am off\n\"soon\"").await;
    roster::leave(&lead, &member("carol")).await.unwrap();
    for text in ["read", "not read", "shown", "nor this"] {
        house.say("bob", "alice", text).await;
    }
    let inbox = house.store.inbox(&team(), &alice.name).await.unwrap();
    let key = |index: usize| [inbox[index].key];
    house.store.mark(&team(), &alice.name, &key(0), Mark::Read).await.unwrap();
    house.store.mark(&team(), &alice.name, &key(2), Mark::Shown).await.unwrap();
    let first = handshake::submit_plan(&alice, "first this", None).await.unwrap();
    handshake::answer_plan(&lead, &first.request_id, Answer::Yes).await.unwrap();
    handshake::submit_plan(&alice, "then that", None).await.unwrap();
    let note = Some(b"{\"session\":1}".as_slice());
    house.store.keep(&team(), &alice.name, Shelf::Memory, note).await.unwrap();
    house
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

/// What an export says, but for what is of today: times, and what making the team wrote down. With ids of
/// messages, unless they were given anew.
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

/// Line by line, so that what differs can be seen.
fn assert_same(found: &[Value], expected: &[Value]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
}

/// There and back again nothing is lost, added or changed; what nobody read is unread once.
pub async fn a_team_is_carried_to_another_store_and_back(store: Arc<dyn Store>) {
    let house = furnish(Arc::clone(&store)).await;
    let first = export(store.as_ref(), &team()).await;
    let said = content(&first, true);
    let count = |kind: &str| said.iter().filter(|line| line.get(kind).is_some()).count();
    assert_eq!(count("task"), 2);
    assert_eq!((count("note"), count("decision"), count("answered")), (1, 1, 1));
    // Four to alice and the answer; one to bob, who was told of nothing else; two plans to the lead.
    assert_eq!(count("message"), 8);

    let other = MemoryStore::new(clock());
    let imported = import(&other, &first, None).await.unwrap();
    assert_eq!((imported.exported.tasks, imported.exported.messages), (2, 8));
    let there = export(&other, &team()).await;
    assert_same(&content(&there, true), &said);
    let config = |document: brigade_core::store::Document| document.bytes;
    let at_home = store.team(&team()).await.unwrap().map(config);
    assert_eq!(other.team(&team()).await.unwrap().map(config), at_home);

    // Back, beside the first, under another name.
    let copy: TeamName = "copy".parse().unwrap();
    import(store.as_ref(), &there, Some(&copy)).await.unwrap();
    let beside = export(store.as_ref(), &copy).await;
    assert_same(&content(&beside, true)[1..], &said[1..]);
    let renamed = store.team(&copy).await.unwrap().unwrap();
    let renamed = Team::read(&renamed.bytes).unwrap();
    assert_eq!(renamed.name().as_deref(), Some("copy"));
    assert_eq!(renamed.lead().unwrap().agent_id().as_deref(), Some("team-lead@copy"));
    assert_eq!(renamed.member("alice").unwrap().agent_id().as_deref(), Some("alice@copy"));

    // In the place of the first, whose ids the store remembers.
    store.delete_team(&team(), &Actor("team-lead".into())).await.unwrap();
    import(store.as_ref(), &there, None).await.unwrap();
    let again = export(store.as_ref(), &team()).await;
    assert_same(&content(&again, false), &content(&first, false));
    assert_eq!(store.team(&team()).await.unwrap().map(config), at_home);
    let texts = house.texts("alice").await;
    let unread: Vec<&str> =
        texts.iter().filter(|(_, read)| !read).map(|(text, _)| text.as_str()).collect();
    assert_eq!(unread[..2], ["not read", "nor this"]);
    let next = TaskPlan { subject: "five".into(), ..TaskPlan::default() };
    let next = board::add(&house.seat("team-lead"), &next).await.unwrap();
    assert_eq!(next.get(), 5);
}

/// A team that is there stays as it is, and so does a store that is given half a file.
pub async fn an_import_overwrites_nothing(store: Arc<dyn Store>) {
    let house = furnish(Arc::clone(&store)).await;
    let file = export(store.as_ref(), &team()).await;
    house.say("bob", "alice", "since then").await;
    let before = content(&export(store.as_ref(), &team()).await, true);
    let there = import(store.as_ref(), &file, None).await;
    let exists =
        |error: &ImportError| matches!(error, ImportError::Store(StoreError::TeamExists { .. }));
    assert!(there.as_ref().is_err_and(exists), "{there:?}");
    assert_same(&content(&export(store.as_ref(), &team()).await, true), &before);

    let copy: TeamName = "copy".parse().unwrap();
    let ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    for cut in [0, ends[0] + 1, ends[3], ends[5] + 20, file.len() - 2] {
        let half = import(store.as_ref(), &file[..cut], Some(&copy)).await;
        let known = matches!(half, Err(ImportError::CutShort | ImportError::NotAnExport));
        assert!(known, "{cut}: {half:?}");
        assert!(store.team(&copy).await.unwrap().is_none(), "{cut}");
    }
    let later = String::from_utf8(file).unwrap().replace(r#""version":1"#, r#""version":2"#);
    let later = import(store.as_ref(), later.as_bytes(), Some(&copy)).await;
    assert!(matches!(later, Err(ImportError::Version { found: 2 })), "{later:?}");
}

/// A file that can be read whole once, and the second time as far as a place.
struct Breaks {
    file: Cursor<Vec<u8>>,
    upto: u64,
    seeks: usize,
}

impl Read for Breaks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.seeks > 1 && self.file.position() >= self.upto {
            return Err(io::Error::other("the disk is gone"));
        }
        let most = buffer.len().min(64);
        self.file.read(&mut buffer[..most])
    }
}

impl Seek for Breaks {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.seeks += 1;
        self.file.seek(to)
    }
}

/// However far an import got, the next one ends it, and nothing is there twice.
pub async fn an_import_that_was_cut_off_is_gone_on_with(store: Arc<dyn Store>) {
    let other = MemoryStore::new(clock());
    let other: Arc<dyn Store> = Arc::new(other);
    furnish(Arc::clone(&other)).await;
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
        let breaks = Breaks { file: Cursor::new(file.clone()), upto, seeks: 0 };
        let mut breaks = BufReader::with_capacity(64, breaks);
        let broken = export::import(store.as_ref(), &mut breaks, Some(&name)).await;
        assert!(matches!(broken, Err(ImportError::Read(_))), "{broken:?}");
        assert!(store.team(&name).await.unwrap().is_some());
        import(store.as_ref(), &file, Some(&name)).await.unwrap();
        let whole = export(store.as_ref(), &name).await;
        assert_same(&content(&whole, true)[1..], &content(&file, true)[1..]);
        let answered = store.history(&name).await.unwrap();
        let answered = answered.iter().filter(|r| matches!(r.event, Event::Answered { .. }));
        assert_eq!(answered.count(), 1);
        let ended = import(store.as_ref(), &file, Some(&name)).await;
        assert!(matches!(ended, Err(ImportError::Store(StoreError::TeamExists { .. }))));
    }
}
