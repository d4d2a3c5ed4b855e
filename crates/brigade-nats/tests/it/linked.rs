//! Reads of a mailbox that follow the links between the messages of each sender.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use brigade_core::event::MessageKey;
use brigade_core::roster;
use brigade_core::store::{Mail, MailStore as _, Mark};
use brigade_nats::identity::CredentialRole;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::nats_server::TestServers;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::json;

use crate::forgery;

async fn connect(servers: &TestServers) -> Arc<NatsStore> {
    let options = NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() };
    Arc::new(NatsStore::connect(options).await.unwrap())
}

/// Returns the texts of the unread messages that a new process finds in bob's mailbox.
async fn read_as_new_process(servers: &TestServers) -> Vec<String> {
    let (store, team, bob) = (connect(servers).await, team(), member("bob"));
    let inbox = store.inbox(&team, &bob).await.unwrap();
    inbox.iter().filter(|mail| mail.is_unread()).map(Mail::text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_read_searches_no_other_mail() {
    brigade_testkit::needs!(NatsServer);
    let servers = TestServers::single();
    let store = connect(&servers).await;
    let env = TestEnv::build(Arc::clone(&store) as _).await;
    env.say("alice", "bob", "old").await;
    let old = store.inbox(&team(), &member("bob")).await.unwrap();
    let keys: Vec<MessageKey> = old.iter().map(|mail| mail.key).collect();
    store.mark(&team(), &member("bob"), &keys, Mark::Shown).await.unwrap();
    env.say("team-lead", "bob", "1").await;
    // Another process of the same sender continues where the first one stopped.
    let other = TestEnv { store: connect(&servers).await, clock: Arc::clone(&env.clock) };
    env.say("alice", "bob", "2").await;
    other.say("alice", "bob", "3").await;
    env.say("alice", "bob", "4").await;

    // The server searches a stream only for a consumer.
    let client = async_nats::connect(&servers.urls).await.unwrap();
    let created = "$JS.EVENT.ADVISORY.CONSUMER.CREATED.MB_0.>";
    let mut created = client.subscribe(created).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(read_as_new_process(&servers).await, ["1", "2", "3", "4"]);
    client.flush().await.unwrap();
    let more = tokio::time::timeout(Duration::from_millis(200), created.next()).await;
    assert!(more.is_err(), "the read created a consumer: {more:?}");
}

/// Publishes a message whose headers begin with a status, as only the server's own answers do. The client library cannot do that.
fn publish_with_status(servers: &TestServers, subject: &str, status: u16) {
    let url = servers.urls.first().unwrap();
    let mut stream = TcpStream::connect(url.trim_start_matches("nats://")).unwrap();
    let headers = format!("NATS/1.0 {status} no message\r\nA: b\r\n\r\n");
    let (head, all) = (headers.len(), headers.len() + 2);
    write!(stream, "CONNECT {{\"headers\":true,\"verbose\":false,\"pedantic\":false}}\r\n")
        .unwrap();
    write!(stream, "HPUB {subject} {head} {all}\r\n{headers}{{}}\r\nPING\r\n").unwrap();
    let answer = BufReader::new(stream).lines().nth(1).unwrap().unwrap();
    assert_eq!(answer, "PONG");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_with_a_status_does_not_hide_other_mail() {
    brigade_testkit::needs!(NatsServer);
    for status in [204, 404, 500] {
        let servers = TestServers::single();
        let store = connect(&servers).await;
        let env = TestEnv::build(Arc::clone(&store) as _).await;
        env.say("alice", "bob", "1").await;
        let texts = async || {
            let inbox = store.inbox(&team(), &member("bob")).await.unwrap();
            inbox.iter().map(Mail::text).collect::<Vec<String>>()
        };
        assert_eq!(texts().await, ["1"]);
        let other = TestEnv { store: connect(&servers).await, clock: Arc::clone(&env.clock) };
        other.say("team-lead", "bob", "2").await;
        publish_with_status(&servers, "mb.0.demo.bob.alice.w", status);
        assert_eq!(texts().await, ["1", "2"], "status {status}");
        assert_eq!(read_as_new_process(&servers).await, ["1", "2"], "status {status}");
    }
}

/// Every message arrives once, and the messages of one process in order, whether they have links or not.
async fn check_mixed_mail(nodes: usize) {
    let servers = TestServers::cluster(nodes);
    let env = TestEnv::build(connect(&servers).await).await;
    let other = TestEnv { store: connect(&servers).await, clock: Arc::clone(&env.clock) };
    let client = async_nats::connect(&servers.urls).await.unwrap();
    let roster = client.request("$JS.API.DIRECT.GET.TM_0.tm.0.demo.doc.>", "".into()).await;
    let incarnation = roster.unwrap().headers.unwrap().get("Brigade-Life").unwrap().to_string();
    let mut expected = BTreeSet::new();
    for round in 0..4 {
        let texts: Vec<String> = (0..8).map(|number| format!("{round} {number}")).collect();
        // Two processes of one sender send at the same time, several messages at once.
        let sends = texts.iter().enumerate().map(async |(number, text)| {
            let env = if number % 2 == 0 { &env } else { &other };
            env.say("alice", "bob", text).await;
        });
        join_all(sends).await;
        expected.extend(texts);
        // An older version of brigade sends a message without a link.
        let text = format!("{round} old");
        let entry = json!({ "from": "alice", "text": text, "read": false,
            "timestamp": format!("2026-11-15T12:00:0{round}.000Z") });
        let mut headers = HeaderMap::new();
        headers.insert("Brigade-Life", incarnation.as_str());
        let subject = "mb.0.demo.bob.alice.w";
        client.request_with_headers(subject, headers, entry.to_string().into()).await.unwrap();
        expected.insert(text);
        for number in 0..3 {
            let text = format!("{round} in order {number}");
            env.say("alice", "bob", &text).await;
            expected.insert(text);
        }
    }
    // The sender leaves the team, and later mail from another sender arrives.
    roster::leave(&env.seat("alice"), &member("alice")).await.unwrap();
    env.say("team-lead", "bob", "after").await;
    expected.insert("after".to_owned());
    let found = read_as_new_process(&servers).await;
    let in_order: Vec<&String> = found.iter().filter(|text| text.contains("in order")).collect();
    assert!(in_order.is_sorted(), "{in_order:?}");
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeSet<String>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_with_and_without_links_arrives_once() {
    brigade_testkit::needs!(NatsServer);
    check_mixed_mail(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_with_and_without_links_arrives_once_from_three_nodes() {
    brigade_testkit::needs!(NatsServer);
    check_mixed_mail(3).await;
}

/// A seat may not ask for a sequence. It reads the same messages in another way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_reads_linked_mail() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme, env) = forgery::organisation(1).await;
    let bob = servers.grant(&mut acme, "demo", &["bob"], (CredentialRole::Member, false));
    for text in ["1", "2", "3"] {
        env.say("alice", "bob", text).await;
        env.say("team-lead", "bob", text).await;
    }
    roster::leave(&env.seat("alice"), &member("alice")).await.unwrap();
    let store = forgery::store(&servers, &bob.file).await;
    let inbox = store.inbox(&team(), &member("bob")).await.unwrap();
    let texts: Vec<String> = inbox.iter().map(Mail::text).collect();
    assert_eq!(texts, ["1", "1", "2", "2", "3", "3"]);
}
