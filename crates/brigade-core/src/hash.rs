//! The 64-bit FNV-1a hash. Unlike the standard library's hashes, it is stable across machines and versions. It
//! protects against accidental collisions, not against deliberate ones.

use uuid::{Builder, Uuid};

/// An FNV-1a hash to which bytes can be added.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes to the hash.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    /// Adds a field to the hash: its bytes and its length. Without the length, the fields `ab` and `c` would hash
    /// like the fields `a` and `bc`.
    pub fn field(self, bytes: &[u8]) -> Self {
        self.bytes(bytes).bytes(&bytes.len().to_le_bytes())
    }

    /// Returns the hash.
    pub fn finish(self) -> u64 {
        self.0
    }
}

/// Derives a UUID from these fields. The same fields always give the same UUID.
pub fn derived_uuid(fields: &[&[u8]]) -> Uuid {
    Builder::from_custom_bytes(hash_128(["high", "low"], fields)).into_uuid()
}

/// Derives 128 bits from these fields, with one 64-bit hash per salt. Some stored message ids were derived with
/// salts other than those of [`derived_uuid`]. The code that derives these ids must keep its salts.
pub fn hash_128(salts: [&str; 2], fields: &[&[u8]]) -> [u8; 16] {
    let [high, low] = salts.map(|salt| {
        let hash = Fnv::default().field(salt.as_bytes());
        fields.iter().fold(hash, |hash, field| hash.field(field)).finish()
    });
    *Uuid::from_u64_pair(high, low).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the derived id of a stored message changed, the message would be sent a second time.
    #[test]
    fn derived_ids_are_stable() {
        let fields: [&[u8]; 2] = [b"demo", b"bob"];
        assert_eq!(derived_uuid(&fields).to_string(), "822b75ed-a74a-87ba-b48d-b36a9d84a4a3");
        assert_eq!(
            Uuid::from_bytes(hash_128(["one", "two"], &fields)).to_string(),
            "0b885c3f-2f2d-ac95-241b-d942c87d744b"
        );
    }
}
