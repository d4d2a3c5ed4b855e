//! A member writes its own entry in the roster. Tests what it can cause with that, as an attacker with a raw client.

use async_nats::{Client, HeaderMap};
use brigade_core::mail;
use brigade_core::roster;
use brigade_core::store::{Actor, Outgoing, StoreError};
use brigade_nats::identity::CredentialRole;
use brigade_testkit::env::{TestEnv, member, member_plan, team};
use brigade_wire::change::Change;
use brigade_wire::inbox::with_message;
use brigade_wire::team::{Team, TeamChange};
use serde_json::json;

use crate::forgery::{organisation, store};
use crate::served::OrgServers;

const ENTRY: &str = "tm.0.demo.doc.m.alice";

async fn alice() -> (OrgServers, TestEnv, Client, brigade_nats::org::Organisation) {
    let (servers, mut acme, env) = organisation(1).await;
    let alice = servers.grant(&mut acme, "demo", &["alice"], (CredentialRole::Member, false)).file;
    let client = servers.raw(&alice).await.client;
    (servers, env, client, acme)
}

/// Writes an entry, and returns the sequence at which the server stored it.
async fn write(client: &Client, headers: HeaderMap, entry: String) -> u64 {
    let answer = client.request_with_headers(ENTRY, headers, entry.into()).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
    answer["seq"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_changes_only_fields_that_concern_itself() {
    brigade_testkit::needs!(NatsServer);
    let (_servers, env, client, _acme) = alice().await;
    let before = env.store.team(&team()).await.unwrap().unwrap();
    let joined = Team::read(&before.bytes).unwrap().member("alice").unwrap().joined_at().unwrap();
    let entry = format!(
        r#"{{"name":"alice","joinedAt":{joined},"isActive":true,"agentId":"team-lead@demo","agentType":"opencode",
            "cwd":"/evil","prompt":"evil","planModeRequired":false,"worktreePath":"/home","tmuxPaneId":"","tmuxPaneId":"%7"}}"#
    );
    write(&client, HeaderMap::new(), entry).await;
    let after = env.store.team(&team()).await.unwrap().unwrap();
    let (before, after) = (Team::read(&before.bytes).unwrap(), Team::read(&after.bytes).unwrap());
    let [before, after] = [&before, &after].map(|team| team.member("alice").unwrap());
    assert_eq!((after.is_active(), after.tmux_pane_id().as_deref()), (Some(true), Some("%7")));
    for field in ["agentId", "agentType", "cwd", "prompt", "planModeRequired", "worktreePath"] {
        assert_eq!(after.field(field), before.field(field), "{field}");
    }
    let text = String::from_utf8_lossy(after.json());
    assert_eq!(text.matches("tmuxPaneId").count(), 1, "{text}");
}

/// A reader that knows the roster up to one message applies the next message without reading the others. The author
/// of a message could claim that no message lies between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_cannot_hide_an_earlier_change_of_the_lead() {
    brigade_testkit::needs!(NatsServer);
    let (servers, env, client, mut acme) = alice().await;
    let bob = servers.grant(&mut acme, "demo", &["bob"], (CredentialRole::Member, false)).file;
    let bob = store(&servers, &bob).await;
    let entry = |active| json!({ "name": "alice", "isActive": active }).to_string();
    let known = write(&client, HeaderMap::new(), entry(true)).await;
    bob.team(&team()).await.unwrap();
    roster::join(&env.seat("team-lead"), &member("carol"), member_plan()).await.unwrap();
    for twice in [false, true] {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", known.to_string());
        headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", ENTRY);
        if twice {
            headers = HeaderMap::new();
            headers.append("Nats-Expected-Last-Subject-Sequence-Subject", ENTRY);
            headers.append("Nats-Expected-Last-Subject-Sequence-Subject", "tm.0.demo.doc.>");
        }
        write(&client, headers, entry(twice)).await;
        let roster = bob.team(&team()).await.unwrap().unwrap();
        let names = Team::read(&roster.bytes).unwrap().member_names();
        assert!(names.contains(&"carol".to_owned()), "twice: {twice}: {names:?}");
    }
}

/// Members change their entries while the lead changes the roster. The lead need not start again, and no change is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_cannot_delay_changes_of_the_lead() {
    brigade_testkit::needs!(NatsServer);
    let (_servers, env, client, _acme) = alice().await;
    let lead = Actor("team-lead".into());
    for round in 0..3 {
        let read = env.store.team(&team()).await.unwrap().unwrap();
        let active = round % 2 == 0;
        let entry = json!({ "name": "alice", "isActive": active }).to_string();
        write(&client, HeaderMap::new(), entry).await;
        let roster = Team::read(&read.bytes).unwrap();
        let change = TeamChange { description: Change::Set("new"), ..TeamChange::default() };
        let next = match round {
            0 => roster.with(&change).into_owned(),
            1 => roster.without_member("bob").into_owned(),
            _ => roster.without_member("alice").into_owned(),
        };
        env.store.replace_team(&team(), &next, read.revision, &lead).await.unwrap();
        let after = env.store.team(&team()).await.unwrap().unwrap();
        let after = Team::read(&after.bytes).unwrap();
        let activity = after.member("alice").map(|alice| alice.is_active());
        assert_eq!(activity, (round < 2).then_some(Some(active)), "round {round}");
        assert_eq!(after.member("bob").is_some(), round < 1, "round {round}");
        assert_eq!(after.description().as_deref(), Some("new"));
        // A document that another lead has written since is not overwritten.
        let stale = env.store.replace_team(&team(), &next, read.revision, &lead).await;
        assert!(matches!(stale, Err(StoreError::Conflict)), "{stale:?}");
    }
    let read = env.store.team(&team()).await.unwrap().unwrap();
    write(&client, HeaderMap::new(), json!({ "name": "alice" }).to_string()).await;
    env.store.delete_team(&team(), &lead).await.unwrap();
    assert_eq!(env.store.team(&team()).await.unwrap(), None);
    let gone = env.store.replace_team(&team(), &read.bytes, read.revision, &lead).await;
    assert!(matches!(gone, Err(StoreError::NoTeam { .. })), "{gone:?}");
}

/// A number that no board reaches is ignored, and unreadable read marks concern only their own mailbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_cannot_spoil_task_numbers_or_the_marks_of_others() {
    use brigade_core::board::{self, TaskPlan};

    brigade_testkit::needs!(NatsServer);
    let (_servers, env, client, _acme) = alice().await;
    let lead = env.seat("team-lead");
    board::add(&lead, &TaskPlan::new("one")).await.unwrap();
    let roster = client.request("js.DIRECT.GET.TM_0.tm.0.demo.doc.>", "".into()).await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Brigade-Life", roster.headers.unwrap().get("Brigade-Life").unwrap().as_str());
    for number in [u64::MAX, u64::MAX - 1, 1 << 60] {
        let text = number.to_string().into();
        client.request_with_headers("bd.0.demo.0.alice", headers.clone(), text).await.unwrap();
        let id = board::add(&lead, &TaskPlan::new("next")).await.unwrap();
        assert!(id.get() <= 4, "{number}: {id}");
    }
    let marks = r#"{"floor":18446744073709551615,"clear":18446744073709551615}"#;
    client.request("mk.0.demo.alice", marks.into()).await.unwrap();
    assert_eq!(env.store.inbox(&team(), &member("alice")).await.unwrap().len(), 0);
    client.request("mk.0.demo.alice", "x".into()).await.unwrap();
    assert!(env.store.inbox(&team(), &member("alice")).await.is_err());
    env.say("alice", "bob", "hello").await;
    assert_eq!(env.store.inbox(&team(), &member("bob")).await.unwrap().len(), 1);
}

/// Another member knows the id of a message in advance, and sends a message with the same id first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_arrives_though_another_member_used_its_id() {
    brigade_testkit::needs!(NatsServer);
    let (_servers, env, _client, _acme) = alice().await;
    let (lead, bob) = (env.seat("team-lead"), member("bob"));
    let id = mail::send_once(&lead, &member("alice"), "prompt", "the prompt").await.unwrap().msg_id;
    env.say("alice", "bob", "not the prompt").await;
    let mail = env.store.inbox(&team(), &bob).await.unwrap();
    let forged =
        with_message(&mail[0].json, |message| Outgoing::copy_of(&message.unwrap(), id.clone()));
    let forged = forged.unwrap();
    env.store.send(&team(), &bob, &forged).await.unwrap();
    let message = Outgoing { from: "team-lead".into(), text: "the prompt".into(), ..forged };
    for _ in 0..2 {
        env.store.send(&team(), &bob, &message).await.unwrap();
    }
    let texts = env.texts("bob").await;
    let prompts = texts.iter().filter(|(text, _)| text == "the prompt").count();
    assert_eq!(prompts, 1, "{texts:?}");
}
