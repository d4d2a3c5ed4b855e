//! The design choices of the protocol. Each choice can be switched off, to check that it is needed.

/// When a merge is recorded in the state header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Recorded before the rename, with the name of the temp file: the merge happened if that file
    /// is gone.
    NamesTempFile,
    /// Recorded before the rename, as if the merge had already happened.
    AsDone,
    /// The message is recorded in the journal after the rename.
    AfterRename,
}

/// How to restore merged messages that a process whose lock was stolen may have overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    Never,
    /// The original protocol: restore at the first foreign write after a steal, if a message from
    /// before the steal is still in the inbox or if the inbox was empty then. After that, forget
    /// the risk.
    Original,
    /// For each steal, restore the messages merged after the steal once, if the newest of them is
    /// gone.
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
    /// This second check comes after the intent is written and checks the lock last, so that the
    /// rename follows immediately.
    pub(crate) check_last: bool,
    /// A leftover temp file is removed from the header before it is unlinked.
    pub(crate) clear_header_first: bool,
    /// The risk that a steal causes is recorded in the header before the lock is removed.
    pub(crate) record_risk_first: bool,
    /// The lock is checked after the rename. If the lock is gone, the merged messages are at risk.
    pub(crate) check_lock_after: bool,
    /// A lock is removed by renaming it and then checking which lock was renamed. If that was
    /// another process's lock, all messages merged from then on are at risk.
    pub(crate) verify_removed: bool,
    /// A process that finds its own lock stale does not rely on it, and leaves it to be stolen.
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
