//! Tests that members' work is recorded in the journal.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_agents::teammate::{self, TeammateConfig};
use brigade_agents::worker::{Worker, WorkerContext, Workers};
use brigade_core::event::{Event, Record, TurnOutcome, WorkEvent};
use brigade_core::handshake::{self, Answer};
use brigade_core::store::memory::MemoryStore;
use brigade_core::store::{Actor, Watch};
use brigade_testkit::contract::run;
use brigade_testkit::env::{TestEnv, clock, team};

use brigade_testkit::files::Files;
use brigade_testkit::flaky::FlakyStore;

async fn record_text(env: &TestEnv, name: &str, text: &str) {
    let event =
        Event::Worked { name: name.to_owned(), act: WorkEvent::Said { text: text.to_owned() } };
    env.store.record(&team(), event, &Actor(name.to_owned())).await.unwrap();
}

/// Waits for the next recorded text in an event stream and returns it.
async fn next_text(watch: &mut Watch) -> String {
    let next = async {
        loop {
            if let Event::Worked { act: WorkEvent::Said { text }, .. } =
                watch.next().await.unwrap().into_inner().event
            {
                return text;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), next).await.unwrap()
}

async fn recorded_texts(env: &TestEnv) -> Vec<String> {
    let history = env.store.history(&team()).await.unwrap();
    let said = |event| match event {
        Event::Worked { act: WorkEvent::Said { text }, .. } => Some(text),
        _ => None,
    };
    history.into_iter().filter_map(|record| said(record.into_inner().event)).collect()
}

#[test]
fn work_has_its_own_journal() {
    Files::run(async |files| {
        let before = fs::read(files.team_state_dir().join("team.jsonl")).unwrap();
        record_text(&files.env, "alice", "hello").await;
        let journal = fs::read_to_string(files.team_state_dir().join("work/alice.jsonl")).unwrap();
        assert!(journal.contains("hello"), "{journal}");
        assert_eq!(fs::read(files.team_state_dir().join("team.jsonl")).unwrap(), before);
        assert!(!files.team_state_dir().join("mail/alice.jsonl").exists());
        // An invalid member name must not become a file name.
        record_text(&files.env, "../alice", "from elsewhere").await;
        assert_eq!(recorded_texts(&files.env).await, ["hello", "from elsewhere"]);
        assert!(!files.team_state_dir().join("alice.jsonl").exists());
    });
}

#[test]
fn work_does_not_wake_watchers_without_interest_in_it() {
    Files::run(async |files| {
        let reader = files.reopen();
        let mut watch = reader.store.watch_without_work(&team()).await.unwrap();
        for env in [&files.env, &reader] {
            record_text(env, "alice", "hello").await;
            env.say("bob", "alice", "mail").await;
            let event = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
            let event = event.unwrap().unwrap().into_inner().event;
            assert!(matches!(event, Event::Sent { .. }), "{event:?}");
        }
    });
}

/// A person may delete the journal's files or folder while processes write to the journal.
#[test]
fn recording_continues_after_the_files_were_removed() {
    Files::run(async |files| {
        let (writer, reader) = (&files.env, files.reopen());
        let mut watch = reader.store.watch(&team()).await.unwrap();
        record_text(writer, "alice", "one").await;
        assert_eq!(next_text(&mut watch).await, "one");
        fs::remove_file(files.team_state_dir().join("work/alice.jsonl")).unwrap();
        record_text(writer, "alice", "two").await;
        assert_eq!(next_text(&mut watch).await, "two");
        assert_eq!(recorded_texts(&reader).await, ["two"]);
        fs::remove_dir_all(files.team_state_dir().join("work")).unwrap();
        record_text(writer, "alice", "three").await;
        assert_eq!(next_text(&mut watch).await, "three");
        assert_eq!(recorded_texts(&reader).await, ["three"]);
        writer.say("bob", "alice", "mail goes on").await;
        let delivered = async {
            while !matches!(watch.next().await.unwrap().into_inner().event, Event::Sent { .. }) {}
        };
        tokio::time::timeout(Duration::from_secs(10), delivered).await.unwrap();
    });
}

/// A worker that returns the size of its input, and agrees to every shutdown request.
struct ByteCounter;

impl Worker for ByteCounter {
    async fn turn(&mut self, context: &WorkerContext, text: &str) -> Result<String, String> {
        for request in handshake::open(&context.seat).await.unwrap() {
            handshake::answer_shutdown(&context.seat, &request.id, Answer::Yes).await.unwrap();
        }
        if text.contains("fail") {
            return Err("as requested".to_owned());
        }
        Ok(format!("{} bytes", text.len()))
    }
}

/// Runs bob for one turn per text, and then lets bob shut down.
async fn work_and_leave(env: &TestEnv, texts: &[&str]) {
    let plan = TeammateConfig::in_process(env.seat("bob"), Workers::new(|| ByteCounter));
    let bob = tokio::spawn(teammate::run(plan));
    let lead = env.seat("team-lead");
    for text in texts {
        let before = reports(env).await;
        env.say("team-lead", "bob", text).await;
        while reports(env).await == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    handshake::request_shutdown(&lead, "bob", None).await.unwrap();
    bob.await.unwrap().unwrap();
}

/// Returns how many idle notifications the lead has received.
async fn reports(env: &TestEnv) -> usize {
    let texts = env.texts("team-lead").await;
    texts.iter().filter(|(text, _)| text.contains("idle_notification")).count()
}

#[test]
fn work_is_recorded_in_order() {
    Files::run(async |files| {
        work_and_leave(&files.env, &["begin", "fail"]).await;
        let history = files.reopen().store.history(&team()).await.unwrap();
        let history = history.into_iter().map(Record::into_inner);
        let events = history.filter_map(|record| match record.event {
            Event::Worked { name, act } => {
                assert_eq!((name.as_str(), record.by.as_deref()), ("bob", Some("bob")));
                // Remove the number: the length of the worker's input does not matter here.
                Some(match act {
                    WorkEvent::Said { text } => {
                        WorkEvent::Said { text: text.replace(char::is_numeric, "") }
                    }
                    act => act,
                })
            }
            _ => None,
        });
        let said = || WorkEvent::Said { text: " bytes".into() };
        let ended =
            |end, why: Option<&str>| WorkEvent::TurnEnded { end, why: why.map(str::to_owned) };
        let expected = [
            WorkEvent::Started {},
            WorkEvent::Ready {},
            WorkEvent::TurnStarted {},
            said(),
            ended(TurnOutcome::Done, None),
            WorkEvent::TurnStarted {},
            ended(TurnOutcome::Failed, Some("as requested")),
        ];
        // Later events belong to the turn in which bob leaves the team. That turn may be aborted before all its
        // events are recorded.
        let events: Vec<WorkEvent> = events.take(expected.len()).collect();
        assert_eq!(events, expected);
    });
}

#[test]
fn a_hanging_store_does_not_block_the_agent() {
    run(async {
        let memory = Arc::new(MemoryStore::new(clock()));
        let store = Arc::new(FlakyStore::new(memory));
        let env = TestEnv::build(Arc::<FlakyStore>::clone(&store)).await;
        store.hang_work();
        let began = Instant::now();
        // These turns produce more events than fit into the recorder's queue.
        let texts = vec!["go on"; 100];
        work_and_leave(&env, &texts).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!(recorded_texts(&env).await.is_empty());
    });
}
