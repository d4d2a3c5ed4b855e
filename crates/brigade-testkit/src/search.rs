//! Contract tests for stores: searches in the history.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, MessageKey, Record, Topic, TopicKind};
use brigade_core::handshake::{self, Answer, PermissionAsk};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::{FoundRequest, MailQuery, Mark, RequestQuery, Store};
use serde_json::{Value, json};

use crate::env::{TestEnv, member, team};

const KINDS: [TopicKind; 5] = [
    TopicKind::Request,
    TopicKind::ShutdownAnswer,
    TopicKind::PlanAnswer,
    TopicKind::PermissionAnswer,
    TopicKind::Assignment,
];

/// A search finds the same as a look through the whole history.
pub async fn a_search_finds_what_the_history_contains(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    let open = fill_history(&env, 3, 10).await;
    check_searches(&env, &open).await;
}

/// Adds messages, requests, answers and assignments in this many rounds. Each text has at least this many bytes. Returns the ids
/// of the requests to the lead that stay open.
pub async fn fill_history(env: &TestEnv, rounds: usize, bytes: usize) -> BTreeSet<String> {
    let (lead, alice, bob) = (env.seat("team-lead"), env.seat("alice"), env.seat("bob"));
    let mut open = BTreeSet::new();
    for round in 0..rounds {
        for (from, to) in [("alice", "bob"), ("bob", "team-lead"), ("team-lead", "alice")] {
            env.say(from, to, &format!("{:.<bytes$}", format!("{round} "))).await;
        }
        let answered = ask(&alice).await;
        handshake::answer_permission(&lead, &answered, Answer::No("not now")).await.unwrap();
        let withdrawn = ask(&bob).await;
        handshake::withdraw(&bob, |id| id == withdrawn).await.unwrap();
        let plan = handshake::submit_plan(&bob, "a plan", None).await.unwrap();
        handshake::answer_plan(&lead, &plan.request_id, Answer::Yes).await.unwrap();
        if round % 2 == 0 {
            open.insert(ask(&alice).await);
        }
        let task = board::add(&lead, &TaskPlan::new("a task")).await.unwrap();
        board::notify_owner_once(&lead, task, &alice.name).await.unwrap();
        for (seat, mark) in [(&bob, Mark::Shown), (&lead, Mark::Read), (&alice, Mark::Shown)] {
            read_some(seat, mark).await;
        }
    }
    open
}

/// Checks every search in the history of the test team. `open` are the ids of the open requests to the lead.
pub async fn check_searches(env: &TestEnv, open: &BTreeSet<String>) {
    for name in ["team-lead", "alice", "bob"] {
        check_mailbox(env, name).await;
    }
    let lead = env.seat("team-lead");
    let found = handshake::open(&lead).await.unwrap().into_iter().map(|request| request.id);
    assert_eq!(found.collect::<BTreeSet<String>>(), *open, "the open requests");

    let past = env.store.history_without_work(&team()).await.unwrap();
    let team_events = env.store.team_history(&team()).await.unwrap();
    let expected = past.iter().filter(|record| record.event.mailbox().is_none());
    assert_eq!(lines(&team_events), lines(expected), "the events of the team");
    for ids in [&[][..], &[1], &[2, 3], &[999]] {
        let found = env.store.task_history(&team(), ids).await.unwrap();
        let expected = past.iter().filter(|record| record.event.is_about_tasks(ids));
        assert_eq!(lines(&found), lines(expected), "the events of the tasks {ids:?}");
    }
    let last = env.store.last_events(&team(), 7).await.unwrap();
    assert_eq!(lines(&last), lines(&past[past.len() - 7..]), "the last events");

    let answers = |record: &Record| match &record.event {
        Event::Answered { request_id, .. } => Some((record.by.clone()?, request_id.clone())),
        _ => None,
    };
    let answers: HashSet<(String, String)> = past.iter().filter_map(answers).collect();
    let ids: Vec<&str> = answers.iter().map(|(_, id)| id.as_str()).chain(["unknown"]).collect();
    for name in ["team-lead", "bob"] {
        let found = env.store.recorded_answers(&team(), &member(name), &ids).await.unwrap();
        let by_member = answers.iter().filter(|(by, _)| by == name);
        assert_eq!(found, by_member.map(|(_, id)| id.clone()).collect(), "answers of {name}");
    }
    let members = ["team-lead", "alice", "bob"].map(member);
    let found = env.store.unread_history(&team(), &members).await.unwrap();
    let read = |record: &Record| match &record.event {
        Event::Read { to, key, .. } | Event::Shown { to, key } => Some((to.clone(), *key)),
        _ => None,
    };
    let read: HashSet<(String, MessageKey)> = past.iter().filter_map(read).collect();
    let is_unread = |record: &&Record| match &record.event {
        Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
            !read.contains(&(to.clone(), *key))
        }
        _ => false,
    };
    assert_eq!(lines(&found), lines(past.iter().filter(is_unread)), "the unread messages");
}

/// Checks the searches in one mailbox.
async fn check_mailbox(env: &TestEnv, name: &str) {
    let (store, team, member) = (&env.store, &team(), &member(name));
    let past = store.mailbox_history(team, member).await.unwrap();
    let topics: Vec<Topic> =
        past.iter().filter_map(|record| Topic::of_event(&record.event)).collect();
    let keys: BTreeSet<MessageKey> =
        past.iter().filter_map(|record| record.event.message()).collect();
    let keys: Vec<MessageKey> = keys.into_iter().chain([MessageKey::from_id("unknown")]).collect();
    let mut queries = vec![MailQuery::Messages(&keys), MailQuery::Shown(&keys)];
    // Each search opens the index, so do not look for every single message.
    for key in keys.iter().step_by(7) {
        let one = std::slice::from_ref(key);
        queries.extend([MailQuery::Messages(one), MailQuery::Shown(one)]);
    }
    let ids: Vec<&str> = topics.iter().map(|topic| topic.id.as_str()).chain(["unknown"]).collect();
    for kind in KINDS.into_iter().filter(|kind| *kind != TopicKind::Request) {
        queries.extend([MailQuery::Topic(kind), MailQuery::About(kind, &ids)]);
        queries.extend(ids.chunks(1).step_by(7).map(|id| MailQuery::About(kind, id)));
    }
    for query in queries {
        let found = store.find_mail(team, member, query).await.unwrap();
        let expected = past.iter().filter(|record| query.matches(&record.event));
        assert_eq!(lines(&found), lines(expected), "{name}: {query:?}");
    }
    let config = env.seat(name).config().await.unwrap();
    let created = env.seat(name).read(&config).unwrap().created_at().unwrap();
    let all = FoundRequest::select(past.clone(), created, RequestQuery::All);
    let numbers = (0..all.len() + 2).step_by(3).map(RequestQuery::Number);
    let wanted = ids.iter().step_by(7).map(|id| RequestQuery::Id(id)).chain(numbers);
    for query in wanted.chain([RequestQuery::All]) {
        let found = store.find_requests(team, member, created, query).await.unwrap();
        let expected = FoundRequest::select(past.clone(), created, query);
        assert_eq!(numbered(&found), numbered(&expected), "{name}: {query:?}");
    }
}

/// Reads all messages but the last.
async fn read_some(seat: &Seat, mark: Mark) {
    let mail = mail::inbox(seat, &seat.name, InboxFilter::Unread).await.unwrap();
    let keys: Vec<MessageKey> = mail.iter().rev().skip(1).map(|mail| mail.key).collect();
    mail::mark(seat, &keys, mark).await.unwrap();
}

async fn ask(seat: &Seat) -> String {
    let (input, request) = (json!({ "command": "make" }), Value::Null);
    let (tool, tool_use_id, description, cwd) = ("Bash", "t", "to build", "/project");
    let ask =
        PermissionAsk { tool, tool_use_id, description, input: &input, request: &request, cwd };
    handshake::request_permission(seat, &ask).await.unwrap().request_id
}

fn lines<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<String> {
    records.into_iter().map(|record| serde_json::to_string(record).unwrap()).collect()
}

fn numbered(found: &[FoundRequest]) -> Vec<String> {
    let line = |found: &FoundRequest| {
        format!("{} {}", found.number, serde_json::to_string(&found.record).unwrap())
    };
    found.iter().map(line).collect()
}
