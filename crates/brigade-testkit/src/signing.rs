//! The keys of a lead that signs what it writes.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_core::signature::{LeadKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_wire::name::MemberName;

/// The keys of some members.
#[derive(Debug)]
pub struct LeadKeys(HashMap<String, SigningKey>);

impl LeadKeys {
    /// A key for each of these members.
    pub fn new(names: &[&str]) -> Arc<Self> {
        let key = |name: &&str| ((*name).to_owned(), SigningKey::generate(1).unwrap());
        Arc::new(Self(names.iter().map(key).collect()))
    }

    /// The key by which a member checks its lead.
    pub fn lead_key(&self, name: &str) -> LeadKey {
        self.0[name].verify_key().parse().unwrap()
    }
}

impl Signer for LeadKeys {
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Option<String> {
        self.0.get(to.as_str())?.sign(message)
    }
}
