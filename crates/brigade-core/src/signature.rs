//! Whether a message is the lead's own.
//!
//! A lead of the new generation makes a key for each teammate it starts in a pane, gives it the
//! public half on its command line, and signs what it writes to it.

use brigade_wire::message::Message;
use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{Signature, VerifyingKey};
use thiserror::Error;

/// What an Ed25519 public key begins with where keys of many kinds are written (DER, SPKI).
const SPKI: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// What is signed begins with this word.
const ENTRY: &str = "claude-team-lead-entry-v1";

/// The key by which a teammate knows its lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadKey(Box<VerifyingKey>);

/// Not a key.
#[derive(Debug, Error)]
#[error("not a lead's key; it has the form <milliseconds>.<base64url>")]
pub struct NotAKey;

impl std::str::FromStr for LeadKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (millis, key) = text.split_once('.').ok_or(NotAKey)?;
        if millis.is_empty() || !millis.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotAKey);
        }
        let key = BASE64URL_NOPAD.decode(key.trim_end_matches('=').as_bytes());
        let key = key.map_err(|_| NotAKey)?;
        let key: &[u8; 32] =
            key.strip_prefix(SPKI).and_then(|key| key.try_into().ok()).ok_or(NotAKey)?;
        VerifyingKey::from_bytes(key).map(|key| Self(Box::new(key))).map_err(|_| NotAKey)
    }
}

impl LeadKey {
    /// Whether the holder of the other half wrote this message, as it stands.
    pub fn verifies(&self, message: &Message<'_>) -> bool {
        let signed = || {
            let signature = message.lead_sig()?;
            let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
            let signature = Signature::from_slice(&signature).ok()?;
            let plugin: Option<String> =
                message.field("from_plugin").and_then(|json| serde_json::from_str(json).ok());
            let entry = (
                ENTRY,
                message.msg_id()?,
                message.from(),
                message.timestamp(),
                message.text(),
                message.summary(),
                message.color(),
                plugin,
            );
            let entry = serde_json::to_vec(&entry).ok()?;
            self.0.verify_strict(&entry, &signature).ok()
        };
        signed().is_some()
    }
}
