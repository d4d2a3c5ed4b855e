//! Credentials: who gets in, for how long, and what an honest seat can do with them.

use std::time::Duration;

use brigade_nats::Options;
use brigade_nats::identity::Role;
use brigade_nats::org::{Organisation, push};
use data_encoding::BASE64URL_NOPAD;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde_json::json;

use crate::attacks::streams::ask;
use crate::served::{Raw, Served};

const MEMBER: (Role, bool) = (Role::Member, false);
const SOON: Duration = Duration::from_secs(5);

fn options(served: &Served) -> Options {
    Options { servers: served.urls.clone(), ..Options::default() }
}

async fn acme(nodes: usize) -> (Served, Organisation) {
    let served = Served::start(nodes);
    let acme = served.organisation("acme").await;
    (served, acme)
}

/// Whether somebody gets in.
async fn enters(served: &Served, creds: &str) -> bool {
    Raw::connect(&served.urls, creds).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_was_given_credentials_gets_in() {
    let (served, mut acme) = acme(1).await;
    let read = |path| std::fs::read_to_string(path).unwrap();
    let alice = read(served.grant(&mut acme, "demo", &["alice"], MEMBER).file);
    let bob = read(served.grant(&mut acme, "demo", &["bob"], MEMBER).file);
    assert!(enters(&served, &alice).await);

    let nobody = async_nats::connect(&served.urls).await;
    assert!(nobody.is_err(), "without credentials");

    let (head, seed) = alice.split_once("------END NATS USER JWT").unwrap();
    let (bobs_head, _) = bob.split_once("------END NATS USER JWT").unwrap();
    let swapped = format!("{bobs_head}------END NATS USER JWT{seed}");
    assert!(!enters(&served, &swapped).await, "what is said of bob, with the key of alice");

    let jwt = head.lines().nth(1).unwrap();
    let body = BASE64URL_NOPAD.decode(jwt.split('.').nth(1).unwrap().as_bytes()).unwrap();
    let body = String::from_utf8(body).unwrap().replace("demo.alice", "demo.admin");
    let parts: Vec<&str> = jwt.split('.').collect();
    let changed = format!("{}.{}.{}", parts[0], BASE64URL_NOPAD.encode(body.as_bytes()), parts[2]);
    assert!(!enters(&served, &alice.replace(jwt, &changed)).await, "changed after it was signed");

    // Somebody with an operator of their own, who knows all names.
    let theirs = Served::start(1);
    let mut same = theirs.organisation("acme").await;
    let forged = read(theirs.grant(&mut same, "demo", &["alice"], MEMBER).file);
    assert!(!enters(&served, &forged).await, "signed by somebody else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_revoked_is_cut_off_and_stays_out() {
    let (mut served, mut acme) = acme(1).await;
    let seat = served.grant(&mut acme, "demo", &["alice"], MEMBER);
    let host = served.grant(&mut acme, "demo", &["alice", "bob"], MEMBER);
    let bob = served.grant(&mut acme, "demo", &["bob"], MEMBER);
    let (alice, with_alice) = (served.raw(&seat.file).await, served.raw(&host.file).await);
    let other = served.raw(&bob.file).await;

    let (team, name) = ("demo".parse().unwrap(), "alice".parse().unwrap());
    let revoked = served.folder.revoke(&mut acme, &team, &name, Timestamp::now()).unwrap();
    assert_eq!(revoked.len(), 2, "every way to speak as alice");
    let pushed = push(&served.folder, &options(&served), Timestamp::now()).await.unwrap();
    assert!(pushed.iter().all(|its| its.taken), "{pushed:?}");

    for cut_off in [&alice, &with_alice] {
        assert!(cut_off.hears("disconnected", SOON).await, "still there: {:?}", cut_off.told());
    }
    assert!(!other.told().iter().any(|its| its.contains("disconnected")));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    assert!(!enters(&served, &read(&seat.file)).await);
    assert!(enters(&served, &read(&bob.file)).await);
    assert!(
        served.folder.revoke(&mut acme, &team, &name, Timestamp::now()).is_err(),
        "nothing left"
    );

    // New credentials of the same name are others.
    let again = served.grant(&mut acme, "demo", &["alice"], MEMBER);
    assert!(enters(&served, &read(&again.file)).await);

    // The servers remember, also when they are started again.
    served.kill();
    served.launch();
    let mut back = false;
    for _ in 0..50 {
        back = enters(&served, &read(&bob.file)).await;
        if back {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(back);
    assert!(!enters(&served, &read(&host.file)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_end_by_themselves() {
    let (served, mut acme) = acme(1).await;
    let granted = brigade_nats::org::Granted {
        team: "demo".parse().unwrap(),
        members: vec!["alice".parse().unwrap()],
        role: Role::Member,
        answers: false,
        until: Some(Timestamp::now() + jiff::SignedDuration::from_secs(2)),
        out: None,
    };
    let seat = served.folder.grant(&mut acme, granted, Timestamp::now()).unwrap();
    let alice = served.raw(&seat.file).await;
    assert!(alice.hears("disconnected", SOON).await, "{:?}", alice.told());
}

/// What was said on one server by one who is on another, between accounts and between servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_keep_the_same_rules() {
    let (served, mut acme) = acme(3).await;
    let lead = served.grant(&mut acme, "demo", &["team-lead"], (Role::Lead, true));
    let bob = served.grant(&mut acme, "demo", &["bob"], MEMBER);
    let on = |number: usize, creds: &std::path::Path| {
        let (url, creds) = (served.urls[number].clone(), std::fs::read_to_string(creds).unwrap());
        async move { Raw::connect(&[url], &creds).await.unwrap() }
    };
    let (lead, bob) = (on(0, &lead.file).await, on(2, &bob.file).await);
    let mut wake = bob.client.subscribe("wake.mb.0.demo.bob.>").await.unwrap();
    bob.client.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;

    let stored = lead.client.request("mb.0.demo.bob.team-lead.w", "hello".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&stored.payload).contains("\"seq\":1"), "{stored:?}");
    let woken = tokio::time::timeout(SOON, wake.next()).await.unwrap().unwrap();
    assert_eq!(woken.subject.as_str(), "wake.mb.0.demo.bob.team-lead.w");

    let create = json!({ "stream_name": "MB_0", "config": { "name": "reader", "ack_policy": "none",
        "filter_subject": "mb.0.demo.bob.>", "mem_storage": true, "num_replicas": 1 }});
    let made = ask(&bob.client, "js.CONSUMER.CREATE.MB_0.reader.mb.0.demo.bob.>", &create).await;
    assert!(made.get("error").is_none(), "{made}");
    // It comes under its own subject, which a request of the client's would not know for an answer.
    let inbox = bob.client.new_inbox();
    let mut answers = bob.client.subscribe(inbox.clone()).await.unwrap();
    let next = "js.CONSUMER.MSG.NEXT.MB_0.reader";
    bob.client.publish_with_reply(next, inbox, "1".into()).await.unwrap();
    let next = tokio::time::timeout(SOON, answers.next()).await.unwrap().unwrap();
    assert_eq!(&next.payload[..], b"hello");

    let (team, name) = ("demo".parse().unwrap(), "bob".parse().unwrap());
    served.folder.revoke(&mut acme, &team, &name, Timestamp::now()).unwrap();
    let pushed = push(&served.folder, &options(&served), Timestamp::now()).await.unwrap();
    let servers: std::collections::BTreeSet<_> = pushed.iter().map(|its| &its.server).collect();
    assert_eq!(servers.len(), 3, "{pushed:?}");
    assert!(bob.hears("disconnected", SOON).await, "{:?}", bob.told());
}
