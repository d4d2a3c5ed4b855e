//! What is kept of members' work.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_agents::teammate::{self, Plan};
use brigade_agents::worker::{Desk, Worker, Workers};
use brigade_core::event::{Act, Ending, Event};
use brigade_core::handshake::{self, Answer};
use brigade_core::store::memory::MemoryStore;
use brigade_core::store::{Actor, Watch};
use brigade_testkit::contract::run;
use brigade_testkit::env::{House, clock, team};
use tokio::sync::mpsc;

use brigade_testkit::files::Files;
use brigade_testkit::flaky::Flaky;

async fn note(house: &House, name: &str, text: &str) {
    let event = Event::Worked { name: name.to_owned(), act: Act::Said { text: text.to_owned() } };
    house.store.record(&team(), event, &Actor(name.to_owned())).await.unwrap();
}

/// The next word that a watch tells.
async fn heard(watch: &mut Watch) -> String {
    let next = async {
        loop {
            if let Event::Worked { act: Act::Said { text }, .. } = watch.next().await.unwrap().event
            {
                return text;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), next).await.unwrap()
}

async fn kept(house: &House) -> Vec<String> {
    let history = house.store.history(&team()).await.unwrap();
    let said = |event| match event {
        Event::Worked { act: Act::Said { text }, .. } => Some(text),
        _ => None,
    };
    history.into_iter().filter_map(|record| said(record.event)).collect()
}

#[test]
fn work_stands_in_a_journal_of_its_own() {
    Files::run(async |files| {
        let before = fs::read(files.own().join("team.jsonl")).unwrap();
        note(&files.house, "alice", "hello").await;
        let its = fs::read_to_string(files.own().join("work/alice.jsonl")).unwrap();
        assert!(its.contains("hello"), "{its}");
        assert_eq!(fs::read(files.own().join("team.jsonl")).unwrap(), before);
        assert!(!files.own().join("mail/alice.jsonl").exists());
        // What is no member's name is no file's name either.
        note(&files.house, "../alice", "from elsewhere").await;
        assert_eq!(kept(&files.house).await, ["hello", "from elsewhere"]);
        assert!(!files.own().join("alice.jsonl").exists());
    });
}

#[test]
fn who_has_no_use_for_work_is_not_woken_by_it() {
    Files::run(async |files| {
        let reader = files.anew();
        let mut watch = reader.store.watch_proceedings(&team()).await.unwrap();
        for house in [&files.house, &reader] {
            note(house, "alice", "hello").await;
            house.say("bob", "alice", "mail").await;
            let told = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
            let told = told.unwrap().unwrap().event;
            assert!(matches!(told, Event::Sent { .. }), "{told:?}");
        }
    });
}

/// Whoever wants it gone removes the files, or the folder, and nobody has to be started again.
#[test]
fn work_that_was_removed_is_gone_and_goes_on() {
    Files::run(async |files| {
        let (writer, reader) = (&files.house, files.anew());
        let mut watch = reader.store.watch(&team()).await.unwrap();
        note(writer, "alice", "one").await;
        assert_eq!(heard(&mut watch).await, "one");
        fs::remove_file(files.own().join("work/alice.jsonl")).unwrap();
        note(writer, "alice", "two").await;
        assert_eq!(heard(&mut watch).await, "two");
        assert_eq!(kept(&reader).await, ["two"]);
        fs::remove_dir_all(files.own().join("work")).unwrap();
        note(writer, "alice", "three").await;
        assert_eq!(heard(&mut watch).await, "three");
        assert_eq!(kept(&reader).await, ["three"]);
        writer.say("bob", "alice", "mail goes on").await;
        let told =
            async { while !matches!(watch.next().await.unwrap().event, Event::Sent { .. }) {} };
        tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
    });
}

/// Says how much it was given, and stops when it is asked to.
struct Counter;

impl Worker for Counter {
    async fn turn(&mut self, desk: &Desk, text: &str) -> Result<String, String> {
        for request in handshake::open(&desk.seat).await.unwrap() {
            handshake::answer_shutdown(&desk.seat, &request.id, Answer::Yes).await.unwrap();
        }
        if text.contains("fail") {
            return Err("as it was told".to_owned());
        }
        Ok(format!("{} bytes", text.len()))
    }
}

/// Has a member do some turns and leave.
async fn work_and_leave(house: &House, letters: &[&str]) {
    let plan = Plan::in_process(house.seat("bob"), Workers::new(|| Counter));
    let (_nobody, typed) = mpsc::unbounded_channel();
    let bob = tokio::spawn(teammate::run_seen(plan, typed, |_| {}));
    let lead = house.seat("team-lead");
    for letter in letters {
        let before = reports(house).await;
        house.say("team-lead", "bob", letter).await;
        while reports(house).await == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    handshake::request_shutdown(&lead, "bob", None).await.unwrap();
    bob.await.unwrap().unwrap();
}

/// How often the lead heard that somebody is idle.
async fn reports(house: &House) -> usize {
    let texts = house.texts("team-lead").await;
    texts.iter().filter(|(text, _)| text.contains("idle_notification")).count()
}

#[test]
fn what_a_member_does_is_written_down_in_order() {
    Files::run(async |files| {
        work_and_leave(&files.house, &["begin", "fail"]).await;
        let history = files.anew().store.history(&team()).await.unwrap();
        let acts = history.into_iter().filter_map(|record| match record.event {
            Event::Worked { name, act } => {
                assert_eq!((name.as_str(), record.by.as_deref()), ("bob", Some("bob")));
                // How long the text is that it was given is no matter.
                Some(match act {
                    Act::Said { text } => Act::Said { text: text.replace(char::is_numeric, "") },
                    act => act,
                })
            }
            _ => None,
        });
        let said = || Act::Said { text: " bytes".into() };
        let ended = |end, why: Option<&str>| Act::TurnEnded { end, why: why.map(str::to_owned) };
        let expected = [
            Act::Started {},
            Act::Ready {},
            Act::TurnStarted {},
            said(),
            ended(Ending::Done, None),
            Act::TurnStarted {},
            ended(Ending::Failed, Some("as it was told")),
        ];
        // What follows is the turn in which it leaves. It is ended as soon as it has left, whether or not that
        // was written down.
        let acts: Vec<Act> = acts.take(expected.len()).collect();
        assert_eq!(acts, expected);
    });
}

#[test]
fn a_store_that_hangs_does_not_hold_up_the_agent() {
    run(async {
        let memory = Arc::new(MemoryStore::new(clock()));
        let store = Arc::new(Flaky::new(memory));
        let house = House::build(Arc::<Flaky>::clone(&store)).await;
        store.hang_work();
        let began = Instant::now();
        // More than can wait to be written down.
        let letters = vec!["go on"; 100];
        work_and_leave(&house, &letters).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!(kept(&house).await.is_empty());
    });
}
