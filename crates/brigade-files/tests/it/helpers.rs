//! Helpers that several tests use.

use std::fs;

use brigade_core::hash::Fnv;
use brigade_core::mail;
use brigade_testkit::env::TestEnv;
use brigade_testkit::files::Files;

/// Returns the texts of the messages in a member's inbox.
pub(crate) async fn texts(env: &TestEnv, member_name: &str) -> Vec<String> {
    env.texts(member_name).await.into_iter().map(|(text, _)| text).collect()
}

/// Sends a message from alice to bob. If the message is still pending, returns the reason.
pub(crate) async fn send(env: &TestEnv, text: &str) -> Result<Option<String>, String> {
    let message = mail::MessageText { text, summary: None };
    let sent = mail::send(&env.seat("alice"), "bob", message).await;
    sent.map(|sent| sent.receipt.pending.map(|why| why.to_string()))
        .map_err(|error| error.to_string())
}

/// Changes the head of bob's mailbox state, and updates the checksum.
pub(crate) fn edit_head(files: &Files, edit: impl FnOnce(&mut [u8])) {
    let path = files.team_state_dir().join("mail/bob.state");
    let mut bytes = fs::read(&path).unwrap();
    let (head, sum) = bytes[..160].split_at_mut(152);
    edit(head);
    sum.copy_from_slice(&Fnv::default().bytes(head).finish().to_le_bytes());
    fs::write(&path, bytes).unwrap();
}
