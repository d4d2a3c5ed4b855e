//! The design choices of the protocol. Each can be switched off, to check that it is needed.

/// When a merge is recorded in the state header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Before the rename, naming the temp file: whether that file is gone decides if the merge
    /// happened.
    NamesTempFile,
    /// Before the rename, as if it had happened.
    AsDone,
    /// After the rename.
    AfterRename,
}

/// How merged messages are restored that a process whose lock was stolen may have overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    Never,
    /// The original protocol: restore at the first foreign write after a steal, if a message from
    /// before the steal is still in the inbox or there was none. Then forget the risk.
    Original,
    /// For each steal, restore each message merged after it once, if the newest of them is gone.
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
    /// The check comes after the intent is written and ends with the lock, so that the rename
    /// follows immediately.
    pub(crate) check_last: bool,
    /// A leftover temp file is removed from the header before it is unlinked.
    pub(crate) clear_header_first: bool,
    /// The risk of a steal is in the header before the lock is removed.
    pub(crate) record_risk_first: bool,
    /// The lock is checked after the rename. If it is gone, the merged messages are at risk.
    pub(crate) check_lock_after: bool,
    /// A lock is removed by renaming it and checking what was moved. If it was another process's
    /// lock, all messages merged from then on are at risk.
    pub(crate) verify_removed: bool,
    /// A process that finds its own lock stale does not rely on it, and leaves it to be stolen.
    pub(crate) check_age: bool,
    /// If all native processes are known to be dead, the inbox is compared once more, to find
    /// overwritten messages.
    pub(crate) final_compare: bool,
    /// These messages are restored before a new native process starts.
    pub(crate) merge_on_restart: bool,
    /// From then on nothing is at risk.
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
