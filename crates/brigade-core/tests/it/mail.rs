//! Mail operations.

use std::time::Duration;

use brigade_core::depth;
use brigade_core::mail::{self, InboxFilter, MAX_TEXT_BYTES, MessageText};
use brigade_core::store::Mark;
use brigade_core::wire::inbox::with_message;
use brigade_testkit::env::{member, team};

use brigade_testkit::files::in_memory;

fn with_summary(text: &str) -> MessageText<'_> {
    MessageText { text, summary: Some("a summary") }
}

#[test]
fn a_message_says_who_sent_it_and_when() {
    in_memory(async |env| {
        mail::send(&env.seat("alice"), "bob", with_summary("hello")).await.unwrap();
        let mail = mail::inbox(&env.seat("bob"), &member("bob"), InboxFilter::All).await.unwrap();
        with_message(&mail[0].json, |message| {
            let message = message.unwrap();
            assert_eq!(message.from(), "alice");
            assert_eq!(message.text(), "hello");
            assert_eq!(message.summary().unwrap(), "a summary");
            assert_eq!(message.color().unwrap(), "blue");
            assert!(message.timestamp().starts_with("2026-11-15T12:0"));
            assert!(message.timestamp().ends_with(".000Z"));
            assert!(!message.read());
            assert_eq!(message.msg_id().unwrap().len(), 36);
        })
        .unwrap();
    });
}

#[test]
fn receive_waits_and_returns_each_message_once() {
    in_memory(async |env| {
        let bob = env.seat("bob");
        let receive = async |millis| {
            let mail = mail::receive(&bob, Duration::from_millis(millis)).await.unwrap();
            mail.iter().map(|mail| (mail.from(), mail.plain_text())).collect::<Vec<_>>()
        };
        let later = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            env.say("bob", "alice", "for alice").await;
            env.say("alice", "bob", "hello").await;
        };
        let (given, ()) = tokio::join!(receive(60_000), later);
        assert_eq!(given, [("alice".to_owned(), Some("hello".to_owned()))]);
        assert_eq!(env.texts("bob").await, [("hello".into(), true)]);
        assert_eq!(receive(20).await, []);
    });
}

#[test]
fn a_protocol_message_is_not_plain_text() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        brigade_core::handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        let mail = mail::receive(&env.seat("bob"), Duration::ZERO).await.unwrap();
        assert_eq!((mail.len(), mail[0].plain_text()), (1, None));
        assert!(mail[0].text().contains("shutdown_request"));
    });
}

#[test]
fn a_broadcast_reaches_all_other_members() {
    in_memory(async |env| {
        let sent = mail::broadcast(&env.seat("alice"), with_summary("all")).await.unwrap();
        let to: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
        assert_eq!(to, ["team-lead", "bob"]);
        assert_eq!(env.texts("alice").await, []);
        assert_eq!(env.texts("bob").await, [("all".into(), false)]);
        assert_eq!(env.texts("team-lead").await, [("all".into(), false)]);
        assert_ne!(sent[0].receipt.msg_id, sent[1].receipt.msg_id);
    });
}

#[test]
fn rejected_messages_say_why() {
    in_memory(async |env| {
        let alice = env.seat("alice");
        let refused = async |seat, to, text: &str| {
            mail::send(seat, to, with_summary(text)).await.unwrap_err().to_string()
        };
        let unknown = "no member named \"carol\" in team \"demo\"";
        assert_eq!(refused(&alice, "carol", "hi").await, unknown);
        let unknown = "no member named \"../bob\" in team \"demo\"";
        assert_eq!(refused(&alice, "../bob", "hi").await, unknown);
        assert_eq!(
            refused(&alice, "alice", "hi").await,
            "cannot send a message to yourself (alice)"
        );
        assert_eq!(refused(&alice, "bob", "").await, "the message is empty");
        let long = "x".repeat(MAX_TEXT_BYTES + 1);
        let expected = "the message is 1048577 bytes long; the limit is 1048576";
        assert_eq!(refused(&alice, "bob", &long).await, expected);
        let mallory = env.seat("mallory");
        assert_eq!(refused(&mallory, "bob", "hi").await, "mallory is not a member of team demo");
        assert_eq!(env.texts("bob").await, []);
    });
}

#[test]
fn unread_excludes_marked_messages() {
    in_memory(async |env| {
        env.say("alice", "bob", "one").await;
        env.say("alice", "bob", "two").await;
        let bob = env.seat("bob");
        let all = mail::inbox(&bob, &bob.name, InboxFilter::All).await.unwrap();
        mail::mark(&bob, &[all[0].key], Mark::Read).await.unwrap();
        let unread = mail::inbox(&bob, &bob.name, InboxFilter::Unread).await.unwrap();
        assert_eq!(unread, [all[1].clone()]);
    });
}

#[test]
fn depth_counts_unread_mail_and_dates_the_oldest() {
    in_memory(async |env| {
        let (store, of) = (env.store.as_ref(), member("bob"));
        let depth = async || depth::depth(store, &team(), &of).await.unwrap();
        assert_eq!((depth().await.unread, depth().await.oldest_unshown), (Some(0), None));
        for text in ["one", "two", "three"] {
            env.say("alice", "bob", text).await;
        }
        let history = store.mailbox_history(&team(), &of).await.unwrap();
        let at: Vec<_> = history.iter().map(|record| record.at).collect();
        assert_eq!((depth().await.unread, depth().await.oldest_unshown), (Some(3), Some(at[0])));
        let keys: Vec<_> = history.iter().filter_map(|record| record.event.message()).collect();
        store.mark(&team(), &of, &keys[..1], Mark::Shown).await.unwrap();
        assert_eq!((depth().await.unread, depth().await.oldest_unshown), (Some(2), Some(at[1])));
        store.mark(&team(), &of, &keys, Mark::Read).await.unwrap();
        assert_eq!((depth().await.unread, depth().await.oldest_unshown), (Some(0), None));
        assert_eq!(depth().await.strain, None);
    });
}
