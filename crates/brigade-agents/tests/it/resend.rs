//! Tests that mail is resent if Claude Code took it out of the inbox but did not show it to the model.

use std::fs;
use std::sync::Arc;

use brigade_agents::resend::{ModelInput, ResendReport, ShownMessages, resend_lost_mail};
use brigade_core::handshake;
use brigade_core::mail;
use brigade_core::seat::Seat;
use brigade_core::store::Outgoing;
use brigade_core::wire::inbox::with_message;
use brigade_testkit::env::{TestEnv, member, team};
use brigade_wire::color::Color;
use brigade_wire::inbox::Inbox;
use brigade_wire::team::Team;

use brigade_testkit::files::Files;
use brigade_testkit::signing::LeadKeys;

/// How Claude Code takes its mail: newer versions remove it from the inbox, older ones mark it as read.
#[derive(Clone, Copy, Debug)]
enum TakeMode {
    Out,
    Read,
}

/// Simulates bob's native Claude Code, which reads and writes the team's files itself.
trait NativeBob {
    /// Takes the unread mail from bob's inbox, as Claude Code does, and returns the envelopes that bob's model
    /// would see.
    fn take(&self, takes: TakeMode) -> String;

    /// Returns the texts of the unread messages in bob's inbox.
    async fn waiting(&self) -> Vec<String>;
}

impl NativeBob for Files {
    fn take(&self, takes: TakeMode) -> String {
        let bytes = fs::read(self.inbox("bob")).unwrap();
        let inbox = Inbox::read(&bytes).unwrap();
        let unread: Vec<_> = inbox.messages().filter(|message| !message.read()).collect();
        let envelopes = unread.iter().map(|message| {
            let (from, text) = (message.from(), message.text());
            format!("<teammate-message teammate_id=\"{from}\" summary=\"a > b\">\n{text}\n</teammate-message>")
        });
        let envelopes: Vec<String> = envelopes.collect();
        let left = match takes {
            TakeMode::Out => b"[]".to_vec(),
            TakeMode::Read => inbox.with_read(|_| true).into_owned(),
        };
        fs::write(self.inbox("bob"), left).unwrap();
        envelopes.join("\n\n")
    }

    async fn waiting(&self) -> Vec<String> {
        let texts = self.reopen().texts("bob").await;
        texts.into_iter().filter(|(_, read)| !read).map(|(text, _)| text).collect()
    }
}

async fn start(env: &TestEnv, heard: &ModelInput) -> ResendReport {
    start_seat(&env.seat("bob"), heard, &ShownMessages::default()).await
}

async fn start_seat(bob: &Seat, heard: &ModelInput, known: &ShownMessages) -> ResendReport {
    resend_lost_mail(bob, heard, known).await.unwrap()
}

fn heard(turns: &[&str]) -> ModelInput {
    ModelInput { turns: turns.iter().map(|&turn| turn.to_owned()).collect(), unfinished: None }
}

#[test]
fn mail_taken_but_not_shown_is_resent_until_it_is_shown() {
    for takes in [TakeMode::Out, TakeMode::Read] {
        Files::run(async |files| {
            let env = files.reopen();
            env.say("alice", "bob", "first").await;
            env.say("team-lead", "bob", "second").await;
            let shown = files.take(takes);
            env.say("alice", "bob", "lost").await;
            files.take(takes);
            env.say("alice", "bob", "waits").await;
            let one = heard(&[&shown]);
            let again = start(&env, &one).await;
            assert_eq!((again.sent.len(), again.go_on), (1, false));
            assert_eq!(files.waiting().await, ["waits", "lost"], "{takes:?}");
            // A second call sends nothing, because the copy is still in the inbox.
            assert_eq!(start(&env, &one).await.sent, []);
            // The copy is lost as well, and another copy is sent. The model sees that copy.
            files.take(takes);
            assert_eq!(start(&env, &one).await.sent.len(), 2);
            assert_eq!(files.waiting().await, ["lost", "waits"], "{takes:?}");
            let rest = files.take(takes);
            let all = heard(&[&shown, &rest]);
            assert_eq!(start(&env, &all).await.sent, []);
            assert_eq!(files.waiting().await, [""; 0]);
        });
    }
}

#[test]
fn the_same_text_sent_twice_is_two_messages() {
    Files::run(async |files| {
        let env = files.reopen();
        env.say("alice", "bob", "again!").await;
        let once = files.take(TakeMode::Out);
        env.say("alice", "bob", "again!").await;
        files.take(TakeMode::Out);
        assert_eq!(start(&env, &heard(&[&once])).await.sent.len(), 1);
        let twice = files.take(TakeMode::Out);
        assert_eq!(start(&env, &heard(&[&once, &twice])).await.sent, []);
    });
}

#[test]
fn a_copy_has_the_same_text_and_sender() {
    Files::run(async |files| {
        let env = files.reopen();
        let config = env.store.team(&team()).await.unwrap().unwrap();
        // Write the message directly to the store: `mail::send` would reject the tag in the text.
        let message = Outgoing {
            msg_id: uuid::Uuid::new_v4().to_string(),
            from: "alice".into(),
            text: "words with </teammate-message in\nthem, \"quoted\"".into(),
            summary: Some("a summary".into()),
            timestamp: "2026-11-15T12:00:00.000Z".into(),
            color: Some(Color::Green),
            msg_v: Some(1),
            lead_sig: None,
            team_created: Team::read(&config.bytes).unwrap().created_at().unwrap(),
        };
        env.store.send(&team(), &member("bob"), &message).await.unwrap();
        let before = fs::read(files.inbox("bob")).unwrap();
        files.take(TakeMode::Out);
        let again = start(&env, &ModelInput::default()).await;
        assert_eq!(again.sent, [message.key()]);
        let after = fs::read(files.inbox("bob")).unwrap();
        let (before, after) = (Inbox::read(&before).unwrap(), Inbox::read(&after).unwrap());
        let (before, after) = (before.messages().next().unwrap(), after.messages().next().unwrap());
        assert_eq!(before.from(), after.from());
        assert_eq!(before.text(), after.text());
        assert_eq!(before.timestamp(), after.timestamp());
        assert_eq!(before.color(), after.color());
        assert_eq!(before.summary(), after.summary());
        assert_ne!(before.msg_id(), after.msg_id());
        // Newer versions of Claude Code escape the closing tag.
        let turn = "<teammate-message teammate_id=\"alice\">\nwords with <\\/teammate-message in\nthem, \"quoted\"\n</teammate-message>";
        files.take(TakeMode::Out);
        assert_eq!(start(&env, &heard(&[turn])).await.sent, []);
    });
}

#[test]
fn shutdown_requests_are_resent_and_answers_are_not() {
    Files::run(async |files| {
        let env = files.reopen();
        let (lead, bob) = (env.seat("team-lead"), env.seat("bob"));
        let plan = handshake::submit_plan(&bob, "a plan", None).await.unwrap();
        handshake::answer_plan(&lead, &plan.request_id, handshake::Answer::Yes).await.unwrap();
        let asked = handshake::request_shutdown(&lead, "bob", None).await.unwrap();
        files.take(TakeMode::Out);
        assert_eq!(start(&env, &ModelInput::default()).await.sent.len(), 1);
        let waiting = files.waiting().await;
        assert!(waiting.len() == 1 && waiting[0].contains(&asked.request_id), "{waiting:?}");
    });
}

#[test]
fn messages_known_to_be_shown_need_no_transcript() {
    Files::run(async |files| {
        let env = files.reopen();
        let mut envelopes = Vec::new();
        for text in ["one", "two", "lost", "four"] {
            env.say("alice", "bob", text).await;
            envelopes.push(files.take(TakeMode::Out));
        }
        let [one, two, _, four] = &envelopes[..] else { unreachable!() };
        let again = start(&env, &heard(&[one, two, four])).await;
        assert_eq!(again.sent.len(), 1);
        // The saved state has only two keys: the second message as `upto`, and the fourth in `beyond`. The state
        // does not grow with the mailbox.
        assert!(again.shown.upto.is_some() && again.shown.beyond.len() == 1, "{again:?}");
        let later = start_seat(&env.seat("bob"), &ModelInput::default(), &again.shown).await;
        assert_eq!((&later.shown, later.sent), (&again.shown, vec![]));
        let lost = files.take(TakeMode::Out);
        let all = start_seat(&env.seat("bob"), &heard(&[&lost]), &later.shown).await;
        assert_eq!((all.shown.beyond.len(), all.sent), (0, vec![]));
    });
}

#[test]
fn an_unfinished_turn_is_continued_once() {
    Files::run(async |files| {
        let env = files.reopen();
        let cut = ModelInput { turns: Vec::new(), unfinished: Some("row 7".to_owned()) };
        assert!(start(&env, &cut).await.go_on);
        assert!(!start(&env, &cut).await.go_on);
        assert_eq!(files.waiting().await.len(), 1);
        let other = ModelInput { unfinished: Some("row 9".to_owned()), ..cut };
        assert!(start(&env, &other).await.go_on);
    });
}

/// Returns bob's seat with the lead's public key and the lead's signer.
fn keyed(env: &TestEnv, keys: &Arc<LeadKeys>) -> Seat {
    env.seat("bob").with_lead_key(keys.lead_key("bob")).with_signer(Arc::clone(keys) as _)
}

/// Sends bob an order that is signed by the lead.
async fn order(env: &TestEnv, keys: &Arc<LeadKeys>) {
    let lead = env.seat("team-lead").with_signer(Arc::clone(keys) as _);
    mail::send(&lead, "bob", "an order").await.unwrap();
}

#[test]
fn only_messages_signed_by_the_lead_are_signed_again() {
    Files::run(async |files| {
        let env = files.reopen();
        let keys = LeadKeys::new(&["bob"]);
        order(&env, &keys).await;
        // This message claims to be from the lead, but is not signed.
        env.say("team-lead", "bob", "a forged order").await;
        files.take(TakeMode::Out);
        let bob = keyed(&env, &keys);
        let again = start_seat(&bob, &ModelInput::default(), &ShownMessages::default()).await;
        assert_eq!(again.sent.len(), 2);
        let mail = env.store.inbox(&team(), &member("bob")).await.unwrap();
        let signed = mail.iter().map(|mail| {
            with_message(&mail.json, |message| {
                let message = message.unwrap();
                (message.text().into_owned(), keys.lead_key("bob").verifies(&message))
            })
        });
        let signed: Vec<(String, bool)> = signed.map(Result::unwrap).collect();
        assert_eq!(signed, [("an order".to_owned(), true), ("a forged order".to_owned(), false)]);
    });
}

#[test]
fn an_order_with_an_old_signature_is_signed_again() {
    Files::run(async |files| {
        let keys = LeadKeys::new(&["bob"]);
        let env = files.reopen();
        order(&env, &keys).await;
        let now = keyed(&env, &keys);
        let none = ShownMessages::default();
        assert_eq!(start_seat(&now, &ModelInput::default(), &none).await.sent, []);
        let hour = jiff::SignedDuration::from_hours(1);
        let later = brigade_core::clock::SteppingClock::from(jiff::Timestamp::now() + hour);
        let later = now.with_clock(Arc::new(later));
        assert_eq!(start_seat(&later, &ModelInput::default(), &none).await.sent.len(), 1);
        assert_eq!(files.waiting().await, ["an order"]);
    });
}
