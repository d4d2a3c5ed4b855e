//! Tests which credentials the servers accept, how long they accept them, and what a seat may do.

use std::time::Duration;

use brigade_nats::NatsOptions;
use brigade_nats::identity::CredentialRole;
use brigade_nats::org::{Organisation, push};
use data_encoding::BASE64URL_NOPAD;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde_json::json;

use crate::attacks::streams::request;
use crate::served::{OrgServers, RawClient};

const MEMBER: (CredentialRole, bool) = (CredentialRole::Member, false);
const TIMEOUT: Duration = Duration::from_secs(5);

fn options(servers: &OrgServers) -> NatsOptions {
    NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() }
}

async fn acme(nodes: usize) -> (OrgServers, Organisation) {
    let servers = OrgServers::start(nodes);
    let acme = servers.organisation("acme").await;
    (servers, acme)
}

/// Whether the servers accept these credentials.
async fn can_connect(servers: &OrgServers, creds: &str) -> bool {
    RawClient::connect(&servers.urls, creds).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_issued_credentials_are_accepted() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme) = acme(1).await;
    let read = |path| std::fs::read_to_string(path).unwrap();
    let alice = read(servers.grant(&mut acme, "demo", &["alice"], MEMBER).file);
    let bob = read(servers.grant(&mut acme, "demo", &["bob"], MEMBER).file);
    assert!(can_connect(&servers, &alice).await);

    let anonymous = async_nats::connect(&servers.urls).await;
    assert!(anonymous.is_err(), "the server accepted a client without credentials");

    let (head, seed) = alice.split_once("------END NATS USER JWT").unwrap();
    let (bobs_head, _) = bob.split_once("------END NATS USER JWT").unwrap();
    let swapped = format!("{bobs_head}------END NATS USER JWT{seed}");
    assert!(!can_connect(&servers, &swapped).await, "accepted bob's JWT with alice's key");

    let jwt = head.lines().nth(1).unwrap();
    let body = BASE64URL_NOPAD.decode(jwt.split('.').nth(1).unwrap().as_bytes()).unwrap();
    let body = String::from_utf8(body).unwrap().replace("demo.alice", "demo.admin");
    let parts: Vec<&str> = jwt.split('.').collect();
    let changed = format!("{}.{}.{}", parts[0], BASE64URL_NOPAD.encode(body.as_bytes()), parts[2]);
    assert!(
        !can_connect(&servers, &alice.replace(jwt, &changed)).await,
        "accepted a JWT changed after signing"
    );

    // Another operator has an organisation, a team and a member with the same names.
    let other_operator = OrgServers::start(1);
    let mut same = other_operator.organisation("acme").await;
    let forged = read(other_operator.grant(&mut same, "demo", &["alice"], MEMBER).file);
    assert!(!can_connect(&servers, &forged).await, "accepted a JWT signed by another operator");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_clients_are_disconnected_and_stay_out() {
    brigade_testkit::needs!(NatsServer);
    let (mut servers, mut acme) = acme(1).await;
    let seat = servers.grant(&mut acme, "demo", &["alice"], MEMBER);
    let host = servers.grant(&mut acme, "demo", &["alice", "bob"], MEMBER);
    let bob = servers.grant(&mut acme, "demo", &["bob"], MEMBER);
    let (alice, with_alice) = (servers.raw(&seat.file).await, servers.raw(&host.file).await);
    let other = servers.raw(&bob.file).await;

    let (team, name) = ("demo".parse().unwrap(), "alice".parse().unwrap());
    let revoked = servers.folder.revoke(&mut acme, &team, &name, Timestamp::now()).unwrap();
    assert_eq!(revoked.len(), 2, "both credentials that can act as alice are revoked");
    let pushed = push(&servers.folder, &options(&servers), Timestamp::now()).await.unwrap();
    assert!(pushed.iter().all(|answer| answer.taken), "{pushed:?}");

    for cut_off in [&alice, &with_alice] {
        assert!(
            cut_off.sees_event("disconnected", TIMEOUT).await,
            "a revoked client is still connected: {:?}",
            cut_off.take_events()
        );
    }
    assert!(!other.take_events().iter().any(|event| event.contains("disconnected")));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    assert!(!can_connect(&servers, &read(&seat.file)).await);
    assert!(can_connect(&servers, &read(&bob.file)).await);
    assert!(
        servers.folder.revoke(&mut acme, &team, &name, Timestamp::now()).is_err(),
        "alice has no credentials left to revoke"
    );

    // The servers accept new credentials for the same member.
    let again = servers.grant(&mut acme, "demo", &["alice"], MEMBER);
    assert!(can_connect(&servers, &read(&again.file)).await);

    // The servers still refuse the revoked credentials after a restart.
    servers.kill();
    servers.launch();
    let mut back = false;
    for _ in 0..50 {
        back = can_connect(&servers, &read(&bob.file)).await;
        if back {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(back);
    assert!(!can_connect(&servers, &read(&host.file)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_expire() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme) = acme(1).await;
    let granted = brigade_nats::org::Granted {
        team: "demo".parse().unwrap(),
        members: vec!["alice".parse().unwrap()],
        role: CredentialRole::Member,
        answers: false,
        until: Some(Timestamp::now() + jiff::SignedDuration::from_secs(2)),
        out: None,
        shard: None,
    };
    let seat = servers.folder.grant(&mut acme, granted, Timestamp::now()).unwrap();
    let alice = servers.raw(&seat.file).await;
    assert!(alice.sees_event("disconnected", TIMEOUT).await, "{:?}", alice.take_events());
}

/// Tests a reader and a writer that are connected to different servers of a cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_across_three_servers() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme) = acme(3).await;
    let lead = servers.grant(&mut acme, "demo", &["team-lead"], (CredentialRole::Lead, true));
    let bob = servers.grant(&mut acme, "demo", &["bob"], MEMBER);
    let on = |number: usize, creds: &std::path::Path| {
        let (url, creds) = (servers.urls[number].clone(), std::fs::read_to_string(creds).unwrap());
        async move { RawClient::connect(&[url], &creds).await.unwrap() }
    };
    let (lead, bob) = (on(0, &lead.file).await, on(2, &bob.file).await);
    let mut wake = bob.client.subscribe("wake.mb.0.demo.bob.>").await.unwrap();
    bob.client.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;

    let stored = lead.client.request("mb.0.demo.bob.team-lead.w", "hello".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&stored.payload).contains("\"seq\":1"), "{stored:?}");
    let woken = tokio::time::timeout(TIMEOUT, wake.next()).await.unwrap().unwrap();
    assert_eq!(woken.subject.as_str(), "wake.mb.0.demo.bob.team-lead.w");

    let create = json!({ "stream_name": "MB_0", "config": { "name": "reader", "ack_policy": "none",
        "filter_subject": "mb.0.demo.bob.>", "mem_storage": true, "num_replicas": 1 }});
    let made =
        request(&bob.client, "js.CONSUMER.CREATE.MB_0.reader.mb.0.demo.bob.>", &create).await;
    assert!(made.get("error").is_none(), "{made}");
    // Subscribe and publish separately. The client's `request` method would not accept the answer, because the
    // answer has the subject of the stored message.
    let inbox = bob.client.new_inbox();
    let mut answers = bob.client.subscribe(inbox.clone()).await.unwrap();
    let next = || async {
        let subject = "js.CONSUMER.MSG.NEXT.MB_0.reader";
        bob.client.publish_with_reply(subject, inbox.clone(), "1".into()).await.unwrap();
    };
    next().await;
    // An answer without content is a status: the new consumer might not have a leader yet.
    let received = async {
        loop {
            match answers.next().await.unwrap().payload {
                empty if empty.is_empty() => next().await,
                payload => return payload,
            }
        }
    };
    let received = tokio::time::timeout(TIMEOUT, received).await.unwrap();
    assert_eq!(&received[..], b"hello");

    let (team, name) = ("demo".parse().unwrap(), "bob".parse().unwrap());
    servers.folder.revoke(&mut acme, &team, &name, Timestamp::now()).unwrap();
    let pushed = push(&servers.folder, &options(&servers), Timestamp::now()).await.unwrap();
    let servers: std::collections::BTreeSet<_> =
        pushed.iter().map(|answer| &answer.server).collect();
    assert_eq!(servers.len(), 3, "{pushed:?}");
    assert!(bob.sees_event("disconnected", TIMEOUT).await, "{:?}", bob.take_events());
}
