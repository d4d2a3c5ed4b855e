//! Derives the revision of a document from its bytes.

use brigade_core::hash::Fnv;
use brigade_core::store::Revision;

/// Returns the revision of a document with these bytes. Restoring earlier bytes restores the
/// earlier revision. That is harmless, because a change depends on the bytes alone.
pub(crate) fn revision(bytes: &[u8]) -> Revision {
    Revision(Fnv::default().bytes(bytes).finish())
}
