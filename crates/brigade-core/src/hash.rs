//! FNV-1a, 64 bits. Stable across machines and versions, unlike the hashes of the standard library. Protects
//! against accidental collisions, not against deliberate ones.

/// An FNV-1a hash in progress.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Hashes bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    /// Hashes a field: its bytes and their length, so that different splits into fields give different hashes.
    pub fn field(self, bytes: &[u8]) -> Self {
        self.bytes(bytes).bytes(&bytes.len().to_le_bytes())
    }

    /// Returns the hash.
    pub fn finish(self) -> u64 {
        self.0
    }
}
