//! A lead that signs what it writes.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_core::handshake::{self, Answer};
use brigade_core::mail::{self, Words, with_message};
use brigade_core::signature::{LeadKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_testkit::env::{House, member, team};
use brigade_wire::color::Color;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::name::MemberName;

use brigade_testkit::files::in_memory;
use brigade_testkit::signing::Keys;

/// A message whose signature another program made (Python's `cryptography`) from the same words.
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
    inbox::append(&mut bytes, &[message.as_new()]).unwrap();
    let inbox = Inbox::read(&bytes).unwrap();
    key.verifies(&inbox.messages().next().unwrap())
}

#[test]
fn a_signature_is_the_one_another_program_makes() {
    let key = SigningKey::from_bytes(SECRET).unwrap();
    assert_eq!(key.verify_key(), PUBLIC);
    assert_eq!(key.to_bytes(), SECRET);
    let made =
        "H7XCjOjgkoYTaMbfKPaCtRU9MOFUruSoJUjuwodRP4sghiZ20ZckKBRSP-z6AY0kYSCberqOFBo0TWd4e3Y1Cw";
    assert_eq!(key.sign(&vector()).unwrap(), made);
    let (summary, color) = (Some("a summary".into()), Some(Color::Blue));
    let made =
        "qSzEM-Ja0-FQ45fwz8k9IQzTnQVdSBn0rf0zHC3Bb01lFPEjcQakYveUE4wjJc9C9-DMSo1y4ag7sxt2pneQBA";
    assert_eq!(key.sign(&Outgoing { summary, color, ..vector() }).unwrap(), made);
}

#[test]
fn what_was_signed_is_known_and_nothing_else() {
    let key = SigningKey::make(7).unwrap();
    let known: LeadKey = key.verify_key().parse().unwrap();
    assert_eq!(known, key.verify_key().parse().unwrap());
    let signed = Outgoing { lead_sig: key.sign(&vector()), ..vector() };
    assert!(verifies(&known, &signed));
    assert!(!verifies(&known, &vector()));
    let other = SigningKey::make(7).unwrap();
    assert!(!verifies(&other.verify_key().parse().unwrap(), &signed));
    for changed in [
        Outgoing { text: "go on".into(), ..signed.clone() },
        Outgoing { from: "bob".into(), ..signed.clone() },
        Outgoing { summary: Some(String::new()), ..signed.clone() },
        Outgoing { color: Some(Color::Red), ..signed.clone() },
        Outgoing { msg_id: "another".into(), ..signed.clone() },
        Outgoing { timestamp: "2026-11-15T12:00:00.001Z".into(), ..signed },
    ] {
        assert!(!verifies(&known, &changed), "{changed:?}");
    }
}

#[test]
fn a_key_that_was_not_kept_whole_is_none() {
    for bytes in
        [&b""[..], b"1794730000000", b"1.AAEC", b"x.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
    {
        assert!(SigningKey::from_bytes(bytes).is_err(), "{bytes:?}");
    }
}

/// Whether the last message in an inbox is the lead's, by the key of its owner.
async fn last_is_signed(house: &House, of: &str, key: &LeadKey) -> bool {
    let mail = house.store.inbox(&team(), &member(of)).await.unwrap();
    with_message(&mail.last().unwrap().json, |message| key.verifies(&message.unwrap())).unwrap()
}

#[test]
fn the_lead_signs_for_those_who_have_a_key_and_nobody_else_does() {
    in_memory(async |house| {
        let keys = Keys::of(&["bob"]);
        let known = keys.lead_key("bob");
        let signing = |name: &str| house.seat(name).with_signer(Arc::clone(&keys) as _);
        let (lead, alice, bob) = (signing("team-lead"), signing("alice"), signing("bob"));
        let words = Words { text: "hello", summary: Some("a greeting") };
        mail::send(&lead, "bob", words).await.unwrap();
        assert!(last_is_signed(&house, "bob", &known).await);
        mail::broadcast(&lead, words).await.unwrap();
        assert!(last_is_signed(&house, "bob", &known).await);
        assert!(!last_is_signed(&house, "alice", &known).await);
        mail::send(&alice, "bob", words).await.unwrap();
        assert!(!last_is_signed(&house, "bob", &known).await);
        let asked = handshake::submit_plan(&bob, "a plan", None).await.unwrap();
        handshake::answer_plan(&lead, &asked.request_id, Answer::Yes).await.unwrap();
        assert!(last_is_signed(&house, "bob", &known).await);
        handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        assert!(last_is_signed(&house, "bob", &known).await);
    });
}
