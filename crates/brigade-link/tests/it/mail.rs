//! Mail between hosts.

use brigade_core::event::Event;
use brigade_core::mail::with_message;
use brigade_core::signature::{LeadKey, Signer, SigningKey};
use brigade_core::store::{Outgoing, Store as _};
use brigade_link::News;
use brigade_testkit::contract::run;
use brigade_testkit::env::{member, team};
use brigade_wire::generation::Generation::{New, Old};
use brigade_wire::name::MemberName;

use super::world::{sync, two};

#[test]
fn a_message_reaches_a_native_on_another_host_once_whatever_the_generations() {
    run(async {
        let (_, a, b) = two().await;
        for (number, (from, to)) in
            [(Old, Old), (Old, New), (New, Old), (New, New)].iter().enumerate()
        {
            a.write(*from, "alice", "bob", &format!("{number}"));
            sync(&[&a, &b]).await;
            b.take(*to, "bob");
            sync(&[&b, &a]).await;
        }
        b.take(New, "bob");
        assert_eq!(b.taken("bob"), ["0", "1", "2", "3"]);
        // What was carried is marked in the files here, and what was taken in the engine.
        let out = a.store.inbox(&team(), &member("bob")).await.unwrap();
        assert!(out.iter().all(|mail| !mail.is_unread()));
        let far = b.far.inbox(&team(), &member("bob")).await.unwrap();
        assert_eq!(far.len(), 4);
        assert!(far.iter().all(|mail| !mail.is_unread()));
    });
}

#[test]
fn the_same_words_at_the_same_time_are_as_many_messages_as_were_written() {
    run(async {
        let (_, a, b) = two().await;
        let path = a.path("teams/demo/inboxes/bob.json");
        let one = r#"{"from":"alice","text":"again","timestamp":"2026-11-15T12:00:00.000Z","read":false}"#;
        std::fs::write(path, format!("[{one},{one}]")).unwrap();
        sync(&[&a, &b]).await;
        a.notes.lose();
        sync(&[&a, &b]).await;
        assert_eq!(b.texts("bob").await, ["again", "again"]);
    });
}

#[test]
fn every_field_of_a_message_arrives_as_it_was() {
    run(async {
        let (_, a, b) = two().await;
        a.write(New, "alice", "bob", "words \u{1f600} <x>\n");
        let sent = a.store.inbox(&team(), &member("bob")).await.unwrap();
        sync(&[&a, &b]).await;
        let got = b.store.inbox(&team(), &member("bob")).await.unwrap();
        let value = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&got[0].json), value(&sent[0].json));
    });
}

#[test]
fn only_those_who_live_here_are_carried() {
    run(async {
        let (engine, a, b) = two().await;
        // In the name of somebody elsewhere, of nobody, and of the one it is for.
        for from in ["team-lead", "mallory", "bob", "alice"] {
            b.write(New, from, "alice", from);
        }
        sync(&[&b, &a]).await;
        let refused = b.said().iter().filter(|news| matches!(news, News::Refused { .. })).count();
        assert_eq!(refused, 3);
        assert_eq!(a.texts("alice").await, ["bob"]);
        assert_eq!(engine.inbox(&team(), &member("alice")).await.unwrap().len(), 1);
    });
}

#[test]
fn mail_between_two_of_one_host_stays_there_and_is_in_the_journal_of_all() {
    run(async {
        let (engine, a, b) = two().await;
        a.write(Old, "team-lead", "alice", "between us");
        sync(&[&a, &b]).await;
        assert_eq!(a.texts("alice").await, ["between us"]);
        assert!(engine.inbox(&team(), &member("alice")).await.unwrap().is_empty());
        let seen = || async {
            let history = engine.mailbox_history(&team(), &member("alice")).await.unwrap();
            let seen = history.iter().filter(|record| {
                assert!(matches!(record.event, Event::Seen { .. }), "{record:?}");
                record.by.as_deref() == Some("team-lead")
            });
            seen.count()
        };
        assert_eq!(seen().await, 1);
        a.notes.lose();
        sync(&[&a, &b]).await;
        assert_eq!(seen().await, 1);
    });
}

#[test]
fn what_an_agent_at_the_engine_writes_comes_in_and_what_it_gets_does_not_come_twice() {
    run(async {
        let (engine, a, b) = two().await;
        let mut seat = a.seat("bob");
        seat.store = std::sync::Arc::clone(&engine);
        let words = brigade_core::mail::Words { text: "from the engine", summary: None };
        brigade_core::mail::send(&seat, "alice", words).await.unwrap();
        sync(&[&a, &b]).await;
        a.take(New, "alice");
        for _ in 0..3 {
            a.notes.lose();
            sync(&[&a, &b]).await;
            a.take(New, "alice");
        }
        assert_eq!(a.taken("alice"), ["from the engine"]);
    });
}

/// A key for bob.
#[derive(Debug)]
struct Bobs(SigningKey);

impl Signer for Bobs {
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Option<String> {
        (to.as_str() == "bob").then(|| self.0.sign(message)).flatten()
    }
}

#[test]
fn the_leads_words_bear_the_signature_their_reader_knows() {
    run(async {
        let (_, a, mut b) = two().await;
        let key = SigningKey::make(0).unwrap();
        let lead: LeadKey = key.verify_key().parse().unwrap();
        b.signer = Some(std::sync::Arc::new(Bobs(key)));
        a.write(Old, "team-lead", "bob", "an order");
        a.write(New, "alice", "bob", "no order");
        sync(&[&a, &b]).await;
        let mail = b.store.inbox(&team(), &member("bob")).await.unwrap();
        let verified: Vec<bool> = mail
            .iter()
            .map(|mail| {
                with_message(&mail.json, |message| lead.verifies(&message.unwrap())).unwrap()
            })
            .collect();
        assert_eq!(verified, [true, false]);
    });
}

#[test]
fn what_is_written_while_a_host_is_cut_off_arrives_when_it_is_back() {
    run(async {
        let (_, a, b) = two().await;
        b.far.cut(true);
        assert!(b.link().once().await.is_err());
        a.write(Old, "alice", "bob", "to the one cut off");
        b.write(Old, "bob", "alice", "from the one cut off");
        a.sync().await;
        assert!(b.link().once().await.is_err());
        assert!(b.texts("bob").await.is_empty());
        b.far.cut(false);
        sync(&[&b, &a]).await;
        assert_eq!(b.texts("bob").await, ["to the one cut off"]);
        assert_eq!(a.texts("alice").await, ["from the one cut off"]);
    });
}

#[test]
fn the_inbox_of_one_who_reads_elsewhere_does_not_grow_for_ever() {
    run(async {
        let (_, a, b) = two().await;
        let mut sent = Vec::new();
        for round in 0..4 {
            for number in 0..40 {
                let text = format!("{round} {number}");
                a.write(if number % 2 == 0 { Old } else { New }, "alice", "bob", &text);
                sent.push(text);
            }
            sync(&[&a, &b]).await;
            b.take(New, "bob");
        }
        assert!(a.texts("bob").await.len() < 80);
        a.notes.lose();
        sync(&[&a, &b]).await;
        b.take(New, "bob");
        assert_eq!(b.taken("bob"), sent);
    });
}
