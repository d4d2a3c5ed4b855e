//! The protocol's choices, each of which can be switched off to see what it is good for.

/// When the state header is told of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Before the rename, naming the temp file: what is merged hangs on whether that file is gone.
    Named,
    /// Before the rename, as if it had happened.
    Blind,
    /// After the rename.
    Late,
}

/// What becomes of merged messages that may have been overwritten by a robbed holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    Never,
    /// As first written: at the first foreign rewrite after a steal, if a message from before the
    /// steal still stands or none stood there; then the risk is forgotten.
    First,
    /// Each steal puts each message merged after it back once, if the newest of them is gone.
    Once,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) intent: Intent,
    pub(crate) rewind: Rewind,
    /// Messages that stand in the inbox already are not appended again.
    pub(crate) dedup: bool,
    /// Lock and inbox are looked at again before the rename.
    pub(crate) recheck: bool,
    /// … after the intent is written and with the lock last, so that the rename follows at once.
    pub(crate) check_last: bool,
    /// A leftover temp file is disowned in the header before it is unlinked.
    pub(crate) disown_first: bool,
    /// The risk of a steal is in the header before the lock is taken away.
    pub(crate) risk_first: bool,
    /// After the rename the lock is looked at; if it is gone, what was merged is at risk.
    pub(crate) look_back: bool,
    /// A lock is removed by renaming it away and looking at what was moved; if it was another's, all
    /// that is merged from then on is at risk.
    pub(crate) look_at_taken: bool,
    /// A process that finds its own lock stale does not rely on it, and leaves it to be stolen.
    pub(crate) mind_age: bool,
    /// Where all natives are known to be dead, a last look is taken at what they may have overwritten …
    pub(crate) last_look: bool,
    /// … it is put back before one is started …
    pub(crate) merge_at_once: bool,
    /// … and nothing is at risk from then on.
    pub(crate) no_doubt: bool,
}

impl Rules {
    /// The protocol as first written.
    pub(crate) const FIRST: Self = Self {
        intent: Intent::Named,
        rewind: Rewind::First,
        dedup: true,
        recheck: true,
        check_last: false,
        disown_first: false,
        risk_first: false,
        look_back: false,
        look_at_taken: false,
        mind_age: false,
        last_look: false,
        merge_at_once: false,
        no_doubt: false,
    };

    /// The protocol with what this model taught.
    pub(crate) const MENDED: Self = Self {
        rewind: Rewind::Once,
        check_last: true,
        disown_first: true,
        risk_first: true,
        look_back: true,
        look_at_taken: true,
        mind_age: true,
        last_look: true,
        merge_at_once: true,
        no_doubt: true,
        ..Self::FIRST
    };
}
