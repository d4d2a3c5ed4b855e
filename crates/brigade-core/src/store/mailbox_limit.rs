//! Limits on unread mail. One sender cannot fill a mailbox so that the mail of others does not fit, and the lead's mail and
//! protocol messages have room that plain messages cannot use.
//!
//! ```
//! use brigade_core::store::mailbox_limit::{MailPriority, MailboxUse, UnreadMail};
//!
//! let from_alice = UnreadMail { messages: 10_000, bytes: 2_000_000 };
//! let used = MailboxUse { from_sender: from_alice, bytes: 2_000_000 };
//! assert!(used.check(MailPriority::Normal, &"bob".parse().unwrap(), "alice").is_err());
//! assert!(used.check(MailPriority::Reserved, &"bob".parse().unwrap(), "alice").is_ok());
//! ```

use brigade_wire::body::Body;
use brigade_wire::name::MemberName;
use thiserror::Error;

/// The unread messages that one sender may have in a mailbox.
const SENDER_MESSAGES: usize = 10_000;
/// The bytes of unread messages that one sender may have in a mailbox.
const SENDER_BYTES: usize = 4 << 20;
/// The bytes of unread messages that a mailbox holds.
const MAILBOX_BYTES: usize = 64 << 20;
/// The lead's mail and protocol messages may use this many times as much as other messages.
const RESERVE: usize = 2;
/// Below this size, a mailbox exceeds no limit, and a store need not count its messages.
pub const UNLIMITED_BYTES: usize = 1 << 20;

/// Whether a message may use the room that is reserved for the lead and for protocol messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailPriority {
    /// A plain message of a member.
    Normal,
    /// A message of the lead, or a protocol message.
    Reserved,
}

impl MailPriority {
    /// Returns the priority of a message with this text.
    pub fn for_message(from_lead: bool, text: &str) -> Self {
        match Body::parse(text) {
            Body::Protocol(_) => Self::Reserved,
            _ if from_lead => Self::Reserved,
            _ => Self::Normal,
        }
    }
}

/// Unread messages of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadMail {
    /// The number of messages.
    pub messages: usize,
    /// Their size.
    pub bytes: usize,
}

impl UnreadMail {
    /// Counts an unread message.
    pub fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

/// How much unread mail a mailbox holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailboxUse {
    /// The unread messages of the sender that wants to send.
    pub from_sender: UnreadMail,
    /// The size of all unread messages.
    pub bytes: usize,
}

impl MailboxUse {
    /// Checks that the sender may send one more message.
    pub fn check(
        &self,
        priority: MailPriority,
        to: &MemberName,
        from: &str,
    ) -> Result<(), MailboxFull> {
        let factor = if priority == MailPriority::Reserved { RESERVE } else { 1 };
        let UnreadMail { messages, bytes } = self.from_sender;
        if messages >= SENDER_MESSAGES * factor || bytes >= SENDER_BYTES * factor {
            let (to, from) = (to.clone(), from.to_owned());
            return Err(MailboxFull::Sender { to, from, messages, kilobytes: bytes / 1000 });
        }
        if self.bytes >= MAILBOX_BYTES * factor {
            return Err(MailboxFull::Mailbox { to: to.clone(), kilobytes: self.bytes / 1000 });
        }
        Ok(())
    }
}

/// A mailbox has no room for a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MailboxFull {
    /// The sender has too much unread mail in the mailbox.
    #[error(
        "{to} has not read {messages} messages of {from} ({kilobytes} kB); no more fit until {to} reads them"
    )]
    Sender {
        /// The recipient.
        to: MemberName,
        /// The sender.
        from: String,
        /// The number of unread messages.
        messages: usize,
        /// Their size in kilobytes.
        kilobytes: usize,
    },
    /// All senders together have too much unread mail in the mailbox.
    #[error("the mailbox of {to} is full: {kilobytes} kB are unread")]
    Mailbox {
        /// The recipient.
        to: MemberName,
        /// The size of the unread messages in kilobytes.
        kilobytes: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::{MailPriority, MailboxUse, UnreadMail};

    #[test]
    fn one_sender_leaves_room_for_the_others() {
        let check = |messages, sender_bytes, bytes, priority, expected: &str| {
            let from_sender = UnreadMail { messages, bytes: sender_bytes };
            let used = MailboxUse { from_sender, bytes };
            let outcome = used.check(priority, &"bob".parse().unwrap(), "alice");
            let outcome = outcome.map_or_else(|full| full.to_string(), |()| "ok".to_owned());
            assert_eq!(outcome, expected, "{used:?}");
        };
        let (normal, reserved) = (MailPriority::Normal, MailPriority::Reserved);
        let full =
            "bob has not read 10000 messages of alice (2000 kB); no more fit until bob reads them";
        check(9999, 2_000_000, 2_000_000, normal, "ok");
        check(10_000, 2_000_000, 2_000_000, normal, full);
        check(10_000, 2_000_000, 2_000_000, reserved, "ok");
        let full =
            "bob has not read 9 messages of alice (5000 kB); no more fit until bob reads them";
        check(9, 5_000_000, 5_000_000, normal, full);
        check(9, 5_000_000, 5_000_000, reserved, "ok");
        check(1, 1, 68_000_000, normal, "the mailbox of bob is full: 68000 kB are unread");
        check(1, 1, 68_000_000, reserved, "ok");
        check(1, 1, 140_000_000, reserved, "the mailbox of bob is full: 140000 kB are unread");
    }

    #[test]
    fn protocol_messages_and_the_lead_use_the_reserve() {
        let idle = r#"{"type":"idle_notification","from":"bob","timestamp":"2026-11-15T12:00:00.000Z","idleReason":"available"}"#;
        let check = |from_lead, text, expected| {
            assert_eq!(MailPriority::for_message(from_lead, text), expected, "{text}");
        };
        check(false, "hello", MailPriority::Normal);
        check(false, r#"{"type":"something_new"}"#, MailPriority::Normal);
        check(false, idle, MailPriority::Reserved);
        check(true, "hello", MailPriority::Reserved);
    }
}
