//! Messages signed by the lead.

use std::sync::Arc;

use brigade_core::handshake::{self, Answer};
use brigade_core::mail::{self, MessageText};
use brigade_core::signature::{KeyTime, LeadKey, SigningKey};
use brigade_core::store::Outgoing;
use brigade_core::wire::inbox::with_message;
use brigade_testkit::env::{TestEnv, member, team};
use brigade_wire::color::Color;
use brigade_wire::inbox::{self, Inbox};

use brigade_testkit::files::in_memory;
use brigade_testkit::signing::LeadKeys;

/// Returns a message. The signatures below were computed for it with another library (Python's `cryptography`).
fn vector() -> Outgoing {
    Outgoing {
        msg_id: "0b9c5a5e-6a55-4c34-8b0e-3a4f3c0d9a11".into(),
        from: "team-lead".into(),
        text: "stop, \"now\" – <b>".into(),
        summary: None,
        timestamp: "2026-11-15T12:00:00.000Z".into(),
        color: None,
        msg_v: Some(1),
        lead_sig: None,
        team_created: 0,
    }
}

const SECRET: &[u8] = b"1794730000000.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
const PUBLIC: &str = "1794730000000.MCowBQYDK2VwAyEAA6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg";

fn verifies(key: &LeadKey, message: &Outgoing) -> bool {
    let mut bytes = inbox::EMPTY.to_vec();
    inbox::append(&mut bytes, &[message.to_inbox_entry()]).unwrap();
    let inbox = Inbox::read(&bytes).unwrap();
    key.verifies(&inbox.messages().next().unwrap())
}

#[test]
fn signatures_match_another_implementation() {
    let key = SigningKey::from_bytes(SECRET).unwrap();
    assert_eq!(key.verify_key(), PUBLIC);
    assert_eq!(key.to_bytes(), SECRET);
    let expected =
        "H7XCjOjgkoYTaMbfKPaCtRU9MOFUruSoJUjuwodRP4sghiZ20ZckKBRSP-z6AY0kYSCberqOFBo0TWd4e3Y1Cw";
    assert_eq!(key.sign(&vector()).unwrap(), expected);
    let (summary, color) = (Some("a summary".into()), Some(Color::Blue));
    let expected =
        "qSzEM-Ja0-FQ45fwz8k9IQzTnQVdSBn0rf0zHC3Bb01lFPEjcQakYveUE4wjJc9C9-DMSo1y4ag7sxt2pneQBA";
    assert_eq!(key.sign(&Outgoing { summary, color, ..vector() }).unwrap(), expected);
}

#[test]
fn only_the_unchanged_signed_message_verifies() {
    let key = SigningKey::generate(KeyTime::Made(7)).unwrap();
    let known: LeadKey = key.verify_key().parse().unwrap();
    assert_eq!(known, key.verify_key().parse().unwrap());
    let signed = Outgoing { lead_sig: key.sign(&vector()), ..vector() };
    assert!(verifies(&known, &signed));
    assert!(!verifies(&known, &vector()));
    let other = SigningKey::generate(KeyTime::Made(7)).unwrap();
    assert!(!verifies(&other.verify_key().parse().unwrap(), &signed));
    let changed = Outgoing { summary: Some(String::new()), ..signed };
    assert!(!verifies(&known, &changed));
}

#[test]
fn a_damaged_key_file_is_rejected() {
    for bytes in
        [&b""[..], b"1794730000000", b"1.AAEC", b"x.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
    {
        assert!(SigningKey::from_bytes(bytes).is_err(), "{bytes:?}");
    }
}

/// Returns whether the last message in an inbox has a lead's signature that this key verifies.
async fn last_is_signed(env: &TestEnv, of: &str, key: &LeadKey) -> bool {
    let mail = env.store.inbox(&team(), &member(of)).await.unwrap();
    with_message(&mail.last().unwrap().json, |message| key.verifies(&message.unwrap())).unwrap()
}

#[test]
fn only_the_lead_signs_and_only_for_members_with_a_key() {
    in_memory(async |env| {
        let keys = LeadKeys::new(&["bob"]);
        let known = keys.lead_key("bob");
        let signing = |name: &str| env.seat(name).with_signer(Arc::clone(&keys) as _);
        let (lead, alice, bob) = (signing("team-lead"), signing("alice"), signing("bob"));
        let message = MessageText { text: "hello", summary: Some("a greeting") };
        mail::send(&lead, "bob", message).await.unwrap();
        assert!(last_is_signed(&env, "bob", &known).await);
        mail::broadcast(&lead, message).await.unwrap();
        assert!(last_is_signed(&env, "bob", &known).await);
        assert!(!last_is_signed(&env, "alice", &known).await);
        mail::send(&alice, "bob", message).await.unwrap();
        assert!(!last_is_signed(&env, "bob", &known).await);
        let asked = handshake::submit_plan(&bob, "a plan", None).await.unwrap();
        handshake::answer_plan(&lead, &asked.request_id, Answer::Yes).await.unwrap();
        assert!(last_is_signed(&env, "bob", &known).await);
        handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        assert!(last_is_signed(&env, "bob", &known).await);
    });
}
