//! A member writes its own entry in the roster. Tests what it can cause with that, as an attacker with a raw client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap};
use brigade_core::mail;
use brigade_core::roster::{self, SkipChecks};
use brigade_core::store::Outgoing;
use brigade_nats::identity::CredentialRole;
use brigade_testkit::env::{TestEnv, member, member_plan, team};
use brigade_wire::inbox::with_message;
use brigade_wire::team::Team;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_cannot_delay_changes_of_the_lead() {
    brigade_testkit::needs!(NatsServer);
    let (_servers, env, client, _acme) = alice().await;
    let ended = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicUsize::new(0));
    let (is_ended, count) = (Arc::clone(&ended), Arc::clone(&written));
    let flood = tokio::spawn(async move {
        let entry = json!({ "name": "alice", "isActive": true }).to_string();
        while !is_ended.load(Ordering::Relaxed) {
            for _ in 0..50 {
                client.publish(ENTRY, entry.clone().into()).await.unwrap();
            }
            write(&client, HeaderMap::new(), entry.clone()).await;
            count.fetch_add(51, Ordering::Relaxed);
        }
    });
    while written.load(Ordering::Relaxed) < 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (lead, began) = (env.seat("team-lead"), Instant::now());
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    roster::leave(&lead, &member("alice")).await.unwrap();
    let config = env.store.team(&team()).await.unwrap().unwrap();
    let names = Team::read(&config.bytes).unwrap().member_names();
    assert!(names.contains(&"carol".into()) && !names.contains(&"alice".into()), "{names:?}");
    roster::delete(&lead, SkipChecks::Yes).await.unwrap();
    assert_eq!(env.store.team(&team()).await.unwrap(), None);
    let (elapsed, before) = (began.elapsed(), written.load(Ordering::Relaxed));
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?} while alice wrote {before} entries");
    ended.store(true, Ordering::Relaxed);
    flood.await.unwrap();
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
