//! A mailbox with more unread mail than a reader loads at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use brigade_core::event::MessageKey;
use brigade_core::store::{EventLog as _, Mail, MailStore as _, Mark};
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::nats_server::TestServers;
use brigade_wire::inbox::with_message;

/// More than the 8 MiB that a reader loads of a whole mailbox.
const MESSAGES: usize = 2_500;
const TEXT_LEN: usize = 4_000;

fn is_unread(mail: &Mail) -> bool {
    with_message(&mail.json, |message| !message.unwrap().read()).unwrap()
}

fn is_from(mail: &Mail, name: &str) -> bool {
    with_message(&mail.json, |message| message.unwrap().from() == name).unwrap()
}

/// One member sends much more than the lead reads at once. The mail of others is in the first part. The lead gets
/// every message once, if it marks each part as read before it asks for the next.
async fn check(watching: bool) {
    let server = TestServers::single();
    let options = NatsOptions { servers: server.urls.clone(), ..NatsOptions::default() };
    let store = Arc::new(NatsStore::connect(options).await.unwrap());
    let env = TestEnv::build(Arc::clone(&store) as _).await;
    let (team, lead) = (team(), member("team-lead"));
    let watch = if watching { Some(store.watch(&team).await.unwrap()) } else { None };
    assert_eq!(store.inbox(&team, &lead).await.unwrap().len(), 0);

    env.say("bob", "team-lead", "before").await;
    let text = "x".repeat(TEXT_LEN);
    for number in 0..MESSAGES {
        env.say("alice", "team-lead", &format!("{number} {text}")).await;
    }
    env.say("bob", "team-lead", "after").await;

    let mut seen = BTreeSet::<MessageKey>::new();
    for part in 0.. {
        let inbox = store.inbox(&team, &lead).await.unwrap();
        let unread: Vec<&Mail> = inbox.iter().filter(|mail| is_unread(mail)).collect();
        let bytes: usize = inbox.iter().map(|mail| mail.json.len()).sum();
        assert!(bytes < 8 << 20, "part {part} has {bytes} bytes");
        if part == 0 {
            let from_bob = unread.iter().filter(|mail| is_from(mail, "bob")).count();
            assert_eq!(from_bob, 2, "the mail of others is in the first part");
            assert!(unread.len() < MESSAGES, "one part has all {} messages", unread.len());
        }
        if unread.is_empty() {
            break;
        }
        let keys: Vec<MessageKey> = unread.iter().map(|mail| mail.key).collect();
        for key in &keys {
            assert!(seen.insert(*key), "a message is unread in two parts");
        }
        store.mark(&team, &lead, &keys, Mark::Read).await.unwrap();
    }
    assert_eq!(seen.len(), MESSAGES + 2);

    env.say("bob", "team-lead", "the mailbox is small again").await;
    let inbox = store.inbox(&team, &lead).await.unwrap();
    assert_eq!(inbox.iter().filter(|mail| is_unread(mail)).count(), 1);
    drop(watch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finding_21_one_sender_does_not_hide_the_mail_of_others() {
    brigade_testkit::needs!(NatsServer);
    check(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finding_21_a_watched_mailbox_is_read_in_parts() {
    brigade_testkit::needs!(NatsServer);
    check(true).await;
}
