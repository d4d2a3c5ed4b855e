//! The design choices of the protocol. Each choice can be switched off, to check that it is needed.

/// When, and in what form, a merge is recorded in the state header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Recorded before the rename, with the name of the temp file. If that file no longer exists,
    /// the merge happened.
    NamesTempFile,
    /// Recorded before the rename, as if the merge had already happened.
    AsDone,
    /// Recorded after the rename.
    AfterRename,
}

/// How to restore merged messages after a process lost its lock and may have overwritten them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    Never,
    /// The original protocol: when another program first writes after a steal, restore the
    /// messages. Do so only if the inbox was empty at the steal, or still has a message from before
    /// the steal. After that write, forget the risk.
    Original,
    /// For each steal, restore the messages merged after the steal if the newest of them is gone.
    /// Do this only once per steal.
    Once,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtocolRules {
    pub(crate) intent: Intent,
    pub(crate) rewind: Rewind,
    /// Messages already in the inbox are not appended again.
    pub(crate) dedup: bool,
    /// Lock and inbox are checked again before the rename.
    pub(crate) recheck: bool,
    /// The check before the rename comes after the intent is written, and checks the lock last, so
    /// that the rename follows immediately.
    pub(crate) check_last: bool,
    /// The name of a leftover temp file is removed from the header before the file is deleted.
    pub(crate) clear_header_first: bool,
    /// The risk that a steal causes is recorded in the header before the lock is removed.
    pub(crate) record_risk_first: bool,
    /// The lock is checked after the rename. If the lock is gone, the merged messages are at risk.
    pub(crate) check_lock_after: bool,
    /// A lock is removed by renaming it and then checking which lock was renamed. If the renamed
    /// lock belongs to another process, all messages merged from then on are at risk.
    pub(crate) verify_removed: bool,
    /// If a process finds that its own lock is stale, it does not rely on that lock, and does not remove it.
    pub(crate) check_age: bool,
    /// If all native processes are known to be dead, the inbox is compared once more, to find
    /// overwritten messages.
    pub(crate) final_compare: bool,
    /// Overwritten messages are restored before a new native process starts.
    pub(crate) merge_on_restart: bool,
    /// Once all native processes have ended, no message counts as at risk any more.
    pub(crate) clear_risk_on_restart: bool,
}

impl ProtocolRules {
    /// The original protocol.
    pub(crate) const ORIGINAL: Self = Self {
        intent: Intent::NamesTempFile,
        rewind: Rewind::Original,
        dedup: true,
        recheck: true,
        check_last: false,
        clear_header_first: false,
        record_risk_first: false,
        check_lock_after: false,
        verify_removed: false,
        check_age: false,
        final_compare: false,
        merge_on_restart: false,
        clear_risk_on_restart: false,
    };

    /// The current protocol, with the fixes that this model led to.
    pub(crate) const CURRENT: Self = Self {
        rewind: Rewind::Once,
        check_last: true,
        clear_header_first: true,
        record_risk_first: true,
        check_lock_after: true,
        verify_removed: true,
        check_age: true,
        final_compare: true,
        merge_on_restart: true,
        clear_risk_on_restart: true,
        ..Self::ORIGINAL
    };
}
