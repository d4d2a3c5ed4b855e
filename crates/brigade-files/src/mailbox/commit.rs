//! Replaces the inbox with a draft, by renaming a temporary file.
//!
//! A file that has been the inbox is never written again, because Claude Code reads inboxes without
//! a lock and may still be reading that file.

use super::draft::InboxDraft;
use super::state::{MailboxHead, MergeState};
use super::{FileMailbox, MailboxContext, nanoseconds};
use crate::dir::Fsync;
use crate::journal::JournalPosition;
use crate::lock::{HeldLock, TryOutcome};
use crate::temp_file::TempFile;
use brigade_core::store::StoreError;

impl FileMailbox {
    /// Replaces the inbox with the draft, if the inbox is still the version that the draft was made
    /// from.
    pub(super) fn commit(
        &self,
        context: &MailboxContext<'_>,
        lock: &HeldLock<'_>,
        head: &mut MailboxHead,
        draft: &InboxDraft,
        upto: JournalPosition,
    ) -> Result<TryOutcome<()>, StoreError> {
        let known = draft.known.len() as u64;
        if !draft.rewritten && known == head.after.known && draft.found.is_some() {
            head.after.upto = upto;
            head.before = head.after;
            self.state.write_head(head)?;
            return Ok(TryOutcome::Done(()));
        }
        let (inboxes, file) = (context.inboxes, self.file());
        let temp = TempFile::next();
        let name = temp.name(&file);
        // Fsync a new inbox before the rename. Otherwise, after power loss, the new name may refer
        // to an empty file. When a rename replaces an existing file, most file systems prevent
        // that.
        let is_new = draft.found.is_none();
        let sync = if head.power_safe || is_new { Fsync::Yes } else { Fsync::No };
        let inbox_stamp = inboxes.write_temp(&name, &draft.bytes, draft.mode, sync)?;
        let (at, start) = if draft.rewritten {
            (head.after.free_start_for(known), 0)
        } else {
            (head.after.at, head.after.known)
        };
        let added = usize::try_from(start).ok().and_then(|start| draft.known.get(start..));
        self.state.write_known(at + start, added.unwrap_or_default())?;
        let before = *head;
        *head = MailboxHead {
            before: head.after,
            after: MergeState { upto, known, at },
            temp: Some(temp),
            verified: false,
            inbox_stamp,
            newest: draft.newest.or(head.newest),
            ..*head
        };
        self.state.write_head(head)?;
        // Check that this process was not suspended so long that it lost its lock. Otherwise it
        // could overwrite other processes' changes. Keep this check immediately before the rename.
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
            return renamed.map(|_| TryOutcome::Retry);
        }
        // If another process stole the lock just before the rename, that process may have read the
        // old inbox and may still overwrite the new inbox.
        if !lock.is_held()? {
            head.mark_at_risk(head.before.upto, context.clock);
        }
        head.verified = true;
        head.written_at = nanoseconds(context.clock);
        self.state.write_head(head)?;
        Ok(TryOutcome::Done(()))
    }
}
