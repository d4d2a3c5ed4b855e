//! Derives the revision of a document from its bytes.

use brigade_core::hash::Fnv;
use brigade_core::store::Revision;

/// Returns the revision of a document with these bytes. If a document gets its earlier bytes back,
/// it also gets its earlier revision back. That is harmless, because a change depends only on the
/// bytes.
pub(crate) fn revision(bytes: &[u8]) -> Revision {
    Revision(Fnv::default().bytes(bytes).finish())
}
