//! The keys with which a lead signs its messages to members.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_core::signature::{KeyAhead, KeyTime, LeadKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_wire::name::MemberName;

/// The lead's signing keys, one for each recipient.
#[derive(Debug)]
pub struct LeadKeys(HashMap<String, SigningKey>);

impl LeadKeys {
    /// Creates a key for each of these members.
    pub fn new(names: &[&str]) -> Arc<Self> {
        let key = |name: &&str| ((*name).to_owned(), SigningKey::generate(KeyTime::Any).unwrap());
        Arc::new(Self(names.iter().map(key).collect()))
    }

    /// Returns the key with which a member verifies the lead's signatures.
    pub fn lead_key(&self, name: &str) -> LeadKey {
        self.0[name].verify_key().parse().unwrap()
    }
}

impl Signer for LeadKeys {
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Result<Option<String>, KeyAhead> {
        Ok(self.0.get(to.as_str()).and_then(|key| key.sign(message)))
    }
}
