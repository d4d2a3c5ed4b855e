//! Signs the lead's messages and verifies the signatures.
//!
//! A lead of the newer generation creates a key pair for each teammate that it starts in a pane. It passes the
//! public key on the teammate's command line, and signs its messages to that teammate with the private key. A
//! signature does not name the recipient, so each recipient has its own key: a message signed for one member is
//! not valid for another.
//!
//! ```
//! use brigade_core::signature::{KeyTime, LeadKey, SigningKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = SigningKey::generate(KeyTime::Made(1_794_657_600_000))?;
//! let given_to_bob: LeadKey = key.verify_key().parse()?;
//! # let _ = given_to_bob;
//! # Ok(())
//! # }
//! ```

use std::fmt;

use brigade_wire::color::Color;
use brigade_wire::message::Message;
use brigade_wire::name::MemberName;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::store::Outgoing;

/// The DER prefix of an Ed25519 public key in SPKI format.
const SPKI: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The first element of the signed data.
const SIGNED_PREFIX: &str = "claude-team-lead-entry-v1";
/// How much older than the key a signed message may be. Claude Code uses the same limit.
const MAX_AGE_BEFORE_KEY: SignedDuration = SignedDuration::from_mins(-2);

/// The public keys with which a teammate verifies its lead's messages. A message needs the signature of one of them.
///
/// In a team that brigade leads, there is one key. In a team that Claude Code leads, there is Claude Code's key, and the
/// key of the person who uses brigade on the teammate's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadKey {
    keys: Vec<PublicKey>,
}

/// One of the keys of a [`LeadKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct PublicKey {
    key: VerifyingKey,
    /// Messages with a timestamp before this time are rejected.
    earliest: Timestamp,
}

/// The error for a string that is not a lead key.
#[derive(Debug, Error)]
#[error(
    "not a lead key: expected the form <milliseconds>.<base64url>, or several of them with commas between them"
)]
pub struct NotALeadKey;

impl std::str::FromStr for LeadKey {
    type Err = NotALeadKey;

    fn from_str(text: &str) -> Result<Self, NotALeadKey> {
        let keys = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }
}

impl std::str::FromStr for PublicKey {
    type Err = NotALeadKey;

    fn from_str(text: &str) -> Result<Self, NotALeadKey> {
        let (millis, key) = text.split_once('.').ok_or(NotALeadKey)?;
        if !millis.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotALeadKey);
        }
        let millis = millis.parse().map_err(|_| NotALeadKey)?;
        let made = Timestamp::from_millisecond(millis).map_err(|_| NotALeadKey)?;
        let earliest = made.checked_add(MAX_AGE_BEFORE_KEY).map_err(|_| NotALeadKey)?;
        let key = BASE64URL_NOPAD.decode(key.trim_end_matches('=').as_bytes());
        let key = key.map_err(|_| NotALeadKey)?;
        let key: &[u8; 32] =
            key.strip_prefix(SPKI).and_then(|key| key.try_into().ok()).ok_or(NotALeadKey)?;
        let key = VerifyingKey::from_bytes(key).map_err(|_| NotALeadKey)?;
        Ok(Self { key, earliest })
    }
}

impl LeadKey {
    /// Returns whether the message was signed with the matching private key, is unchanged, and is at most two
    /// minutes older than the key. A key without a time accepts a message of any age.
    ///
    /// A Claude Code teammate that restarts rejects all messages from before the restart, because it has forgotten
    /// which messages it was shown. A member that brigade runs remembers them, so it also accepts messages that
    /// were sent while it was down.
    pub fn verifies(&self, message: &Message<'_>) -> bool {
        self.keys.iter().any(|key| key.verifies(message))
    }
}

impl PublicKey {
    fn verifies(&self, message: &Message<'_>) -> bool {
        let signed = || {
            let signature = message.lead_sig()?;
            let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
            let signature = Signature::from_slice(&signature).ok()?;
            let plugin: Option<String> =
                message.field("from_plugin").and_then(|json| serde_json::from_str(json).ok());
            let (summary, color) = (message.summary(), message.color());
            let entry = SignedEntry {
                msg_id: &message.msg_id()?,
                from: &message.from(),
                timestamp: &message.timestamp(),
                text: &message.text(),
                summary: summary.as_deref(),
                color: color.as_deref(),
                plugin: plugin.as_deref(),
            };
            let sent: Timestamp = message.timestamp().parse().ok()?;
            let fresh = sent >= self.earliest;
            let verified = self.key.verify_strict(&entry.bytes()?, &signature).is_ok();
            (fresh && verified).then_some(())
        };
        signed().is_some()
    }
}

/// The signed parts of a message.
struct SignedEntry<'e> {
    msg_id: &'e str,
    from: &'e str,
    timestamp: &'e str,
    text: &'e str,
    summary: Option<&'e str>,
    color: Option<&'e str>,
    plugin: Option<&'e str>,
}

impl SignedEntry<'_> {
    fn bytes(&self) -> Option<Vec<u8>> {
        let Self { msg_id, from, timestamp, text, summary, color, plugin } = self;
        let entry = (SIGNED_PREFIX, msg_id, from, timestamp, text, summary, color, plugin);
        serde_json::to_vec(&entry).ok()
    }
}

/// A private key with which the lead signs its messages to one teammate.
#[derive(Clone)]
pub struct SigningKey {
    /// When the key was created, in milliseconds. This time is part of the public key's text form. Zero for a key
    /// without a time.
    made: u64,
    key: ed25519_dalek::SigningKey,
}

/// The time of a key. A teammate rejects messages that are older than its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTime {
    /// The key has no time, so the teammate accepts messages of any age. For members that brigade runs: they
    /// remember which messages they were shown, and no message that is older than the key can have its signature.
    Any,
    /// The key has this time, in milliseconds since 1970. For Claude Code, which requires a time.
    Made(u64),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("made", &self.made).finish_non_exhaustive()
    }
}

/// The error if a signed message would be older than the recipient's key, so that the recipient would reject it. It
/// occurs after the clock was set back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{to} would reject the message: its key is from {made}, which is later than the time of the message"
)]
pub struct KeyAhead {
    /// The recipient.
    pub to: MemberName,
    /// When the recipient's key was created.
    pub made: Timestamp,
}

/// The error if the system provides no random bytes.
#[derive(Debug, Error)]
#[error("the system provided no random bytes for a key")]
pub struct NoRandomness(#[source] getrandom::Error);

impl SigningKey {
    /// Creates a key.
    pub fn generate(time: KeyTime) -> Result<Self, NoRandomness> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(NoRandomness)?;
        Ok(Self { made: time.millis(), key: ed25519_dalek::SigningKey::from_bytes(&secret) })
    }

    /// Returns the same key with another time. Signatures do not depend on the time.
    pub fn with_time(self, time: KeyTime) -> Self {
        Self { made: time.millis(), ..self }
    }

    /// Returns the time of the key.
    pub fn time(&self) -> KeyTime {
        if self.made == 0 { KeyTime::Any } else { KeyTime::Made(self.made) }
    }

    /// If the recipient would reject a message with this timestamp because its key is newer, returns the time of
    /// the key.
    pub fn is_ahead_of(&self, timestamp: &str) -> Option<Timestamp> {
        let made = Timestamp::from_millisecond(i64::try_from(self.made).ok()?).ok()?;
        let earliest = made.checked_add(MAX_AGE_BEFORE_KEY).ok()?;
        let sent: Timestamp = timestamp.parse().ok()?;
        (self.made != 0 && sent < earliest).then_some(made)
    }

    /// Returns the key as one line of text, for storage. It must be kept secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{}.{}\n", self.made, BASE64URL_NOPAD.encode(self.key.as_bytes())).into_bytes()
    }

    /// Reads a stored key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotALeadKey> {
        let text = std::str::from_utf8(bytes).map_err(|_| NotALeadKey)?;
        let (made, secret) = text.trim_end().split_once('.').ok_or(NotALeadKey)?;
        let made = made.parse().map_err(|_| NotALeadKey)?;
        let secret = BASE64URL_NOPAD.decode(secret.as_bytes()).map_err(|_| NotALeadKey)?;
        let secret: [u8; 32] = secret.try_into().map_err(|_| NotALeadKey)?;
        Ok(Self { made, key: ed25519_dalek::SigningKey::from_bytes(&secret) })
    }

    /// Returns an id that only a holder of the key can compute. It does not depend on the key's time.
    pub fn private_id(&self) -> String {
        HEXLOWER.encode(&Sha256::digest([b"id of ".as_slice(), self.key.as_bytes()].concat()))
    }

    /// Returns the public key, in the form in which it is passed on a teammate's command line.
    pub fn verify_key(&self) -> String {
        let key = [SPKI, self.key.verifying_key().as_bytes()].concat();
        format!("{}.{}", self.made, BASE64URL_NOPAD.encode(&key))
    }

    /// Signs a message; `None` if the message cannot be signed.
    pub fn sign(&self, message: &Outgoing) -> Option<String> {
        let entry = SignedEntry {
            msg_id: &message.msg_id,
            from: &message.from,
            timestamp: &message.timestamp,
            text: &message.text,
            summary: message.summary.as_deref(),
            color: message.color.map(Color::as_str),
            plugin: None,
        };
        Some(BASE64URL_NOPAD.encode(&self.key.sign(&entry.bytes()?).to_bytes()))
    }
}

impl KeyTime {
    fn millis(self) -> u64 {
        match self {
            Self::Any => 0,
            Self::Made(millis) => millis,
        }
    }
}

/// Holds the lead's private keys.
pub trait Signer: fmt::Debug + Send + Sync {
    /// Signs a message for this member; `None` if the member has no key. Fails if the member would reject the
    /// signed message.
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Result<Option<String>, KeyAhead>;
}

#[cfg(test)]
mod tests {
    use brigade_wire::inbox::Inbox;
    use ed25519_dalek::{Signer as _, SigningKey};
    use serde_json::{Value, json};

    use super::*;

    /// When the test key was created, in milliseconds and in wire format.
    const MADE: (i64, &str) = (1_794_657_600_000, "2026-11-14T12:00:00.000Z");

    fn lead() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    /// Returns the public key, as passed on a command line.
    fn public(key: &SigningKey) -> String {
        let der = [SPKI, key.verifying_key().as_bytes()].concat();
        format!("{}.{}", MADE.0, BASE64URL_NOPAD.encode(&der))
    }

    /// Creates an inbox entry that has every signed field.
    fn signed(key: &SigningKey, timestamp: &str) -> Value {
        let (id, from, text) = ("an id", "team-lead", "an order \u{1f600} </x>\n");
        let entry =
            json!([SIGNED_PREFIX, id, from, timestamp, text, "in short", "blue", "a plugin"]);
        let signature = key.sign(entry.to_string().as_bytes());
        json!({
            "from": from, "text": text, "summary": "in short", "timestamp": timestamp,
            "color": "blue", "from_plugin": "a plugin", "msgV": 1, "msg_id": id, "read": false,
            "lead_sig": BASE64URL_NOPAD.encode(&signature.to_bytes()),
        })
    }

    fn verifies(entry: &Value) -> bool {
        let key: LeadKey = public(&lead()).parse().unwrap();
        let inbox = json!([entry]).to_string();
        let inbox = Inbox::read(inbox.as_bytes()).unwrap();
        key.verifies(&inbox.messages().next().unwrap())
    }

    #[test]
    fn messages_more_than_two_minutes_older_than_the_key_are_rejected() {
        for (timestamp, fresh) in [
            ("2026-11-14T11:58:00.000Z", true),
            ("2026-11-14T11:57:59.999Z", false),
            ("2026-11-14T12:58:00.000+01:00", true),
            ("2026-11-14T12:57:59.999+01:00", false),
            (MADE.1, true),
            ("2025-11-14T12:00:00.000Z", false),
            // A key does not expire, because a team may exist for a long time.
            ("2027-11-14T12:00:00.000Z", true),
            // A timestamp must have a time zone, and a text that is not a timestamp is rejected.
            ("2026-11-14T12:00:00.000", false),
            ("now", false),
            ("", false),
        ] {
            assert_eq!(verifies(&signed(&lead(), timestamp)), fresh, "{timestamp}");
        }
    }

    /// Finding 26: a clock that was set back must not take the lead's authority away.
    #[test]
    fn finding_26_a_key_without_a_time_accepts_messages_of_any_age() {
        let key = lead().verifying_key();
        let key = format!("0.{}", BASE64URL_NOPAD.encode(&[SPKI, key.as_bytes()].concat()));
        let key: LeadKey = key.parse().unwrap();
        let (hour, day) = (SignedDuration::from_hours(1), SignedDuration::from_hours(24));
        let now: Timestamp = MADE.1.parse().unwrap();
        for at in [now - day, now - hour, now, now + hour, now + day] {
            let inbox = json!([signed(&lead(), &format!("{at:.3}"))]).to_string();
            let inbox = Inbox::read(inbox.as_bytes()).unwrap();
            assert!(key.verifies(&inbox.messages().next().unwrap()), "{at}");
        }
    }

    #[test]
    fn a_signature_is_valid_for_one_message_and_one_key() {
        let entry = signed(&lead(), MADE.1);
        assert!(verifies(&entry));
        for field in ["from", "text", "summary", "timestamp", "color", "from_plugin", "msg_id"] {
            let mut other = entry.clone();
            // The new value is a valid timestamp and differs from the original value of every field.
            *other.get_mut(field).unwrap() = json!("2026-11-14T12:00:00.001Z");
            assert!(!verifies(&other), "accepted a message with a changed {field}");
        }
        for field in ["summary", "color", "from_plugin", "msg_id", "lead_sig"] {
            let mut other = entry.clone();
            other.as_object_mut().unwrap().remove(field);
            assert!(!verifies(&other), "accepted a message without {field}");
        }
        assert!(!verifies(&signed(&SigningKey::from_bytes(&[8; 32]), MADE.1)));
    }

    /// In a team that Claude Code leads, the lead and the person have a key each.
    #[test]
    fn a_message_needs_the_signature_of_one_of_several_keys() {
        let (person, stranger) =
            (SigningKey::from_bytes(&[8; 32]), SigningKey::from_bytes(&[9; 32]));
        let both: LeadKey = format!("{},{}", public(&lead()), public(&person)).parse().unwrap();
        for (key, expected) in [(lead(), true), (person, true), (stranger, false)] {
            let inbox = json!([signed(&key, MADE.1)]).to_string();
            let inbox = Inbox::read(inbox.as_bytes()).unwrap();
            assert_eq!(both.verifies(&inbox.messages().next().unwrap()), expected);
        }
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let key = public(&lead());
        assert!(key.parse::<LeadKey>().is_ok());
        let (_, half) = key.split_once('.').unwrap();
        for text in [
            String::new(),
            half.to_owned(),
            format!(".{half}"),
            format!("-1.{half}"),
            format!("{key},"),
            format!("{key},{half}"),
            format!("99999999999999999999.{half}"),
            format!("{}.{half}", i64::MAX),
            format!("{}.{}", MADE.0, BASE64URL_NOPAD.encode(lead().verifying_key().as_bytes())),
        ] {
            assert!(text.parse::<LeadKey>().is_err(), "{text}");
        }
    }
}
