//! How a draft becomes the inbox: a temporary file is renamed.
//!
//! Never is a file written that was the inbox once. Claude Code reads inboxes without a lock, and may
//! be reading it still.

use super::dir::Sync;
use super::draft::Draft;
use super::journal::Place;
use super::lock::Lock;
use super::mailbox::{Mailbox, Step, World, nanoseconds};
use super::state::{Head, Merged, Temp};
use brigade_core::store::StoreError;

impl Mailbox {
    /// Puts the draft in the place of the inbox, if that is still the one it was made of.
    pub(super) fn commit(
        &self,
        world: &World<'_>,
        lock: &Lock<'_>,
        head: &mut Head,
        draft: &Draft,
        upto: Place,
    ) -> Result<Step, StoreError> {
        let known = draft.known.len() as u64;
        if !draft.renewed && known == head.after.known && draft.found.is_some() {
            head.after.upto = upto;
            head.before = head.after;
            self.state.write_head(head)?;
            return Ok(Step::Done);
        }
        let (inboxes, file) = (world.inboxes, self.file());
        let temp = Temp::next();
        let name = temp.name(&file);
        // A new name for what is not on the disk yet can be an empty file after a power cut. Where a
        // file is replaced the file systems take care, if not perfect care, that it is not.
        let new = draft.found.is_none();
        let sync = if head.power_safe || new { Sync::Yes } else { Sync::No };
        let left = inboxes.write_temp(&name, &draft.bytes, draft.mode, sync)?;
        let (at, start) = if draft.renewed {
            (head.after.beside(known), 0)
        } else {
            (head.after.at, head.after.known)
        };
        let added = usize::try_from(start).ok().and_then(|start| draft.known.get(start..));
        self.state.write_known(at + start, added.unwrap_or_default())?;
        let before = *head;
        *head = Head {
            before: head.after,
            after: Merged { upto, known, at },
            temp: Some(temp),
            closed: false,
            left,
            newest: draft.newest.or(head.newest),
            ..*head
        };
        self.state.write_head(head)?;
        // A process that slept under the lock finds out here, before it undoes what others wrote.
        // Nothing stands between this look and the rename.
        let untouched =
            inboxes.stamp(&file).and_then(|now| Ok(now == draft.found && lock.is_held()?));
        let renamed = match untouched {
            Ok(true) => inboxes.rename(&name, &file).map(|()| true),
            other => other,
        };
        if !matches!(renamed, Ok(true)) {
            *head = before;
            self.state.write_head(head)?;
            inboxes.remove_quietly(&name);
            return renamed.map(|_| Step::Again);
        }
        // If the lock was taken from us in between, its new holder may have read the inbox before
        // our rename, and write after it.
        if !lock.is_held()? {
            head.at_risk(head.before.upto, world.clock);
        }
        head.closed = true;
        head.closed_at = nanoseconds(world.clock);
        self.state.write_head(head)?;
        Ok(Step::Done)
    }
}
