//! FNV-1a, 64 bits: the same on every machine and in every version, which the standard library's
//! hashes do not promise. It guards against chance, not against an enemy.

/// A hash of fields.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Takes in bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    /// Takes in a field: its bytes and their number, so that two fields cannot pass for others.
    pub fn field(self, bytes: &[u8]) -> Self {
        self.bytes(bytes).bytes(&bytes.len().to_le_bytes())
    }

    /// The hash.
    pub fn finish(self) -> u64 {
        self.0
    }
}
