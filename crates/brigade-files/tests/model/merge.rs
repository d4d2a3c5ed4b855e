//! Merges the journal into the inbox, and restores overwritten messages.

use crate::brigade::{BrigadeProcess, BrigadeStep};
use crate::ids::Ids;
use crate::rules::{Intent, ProtocolRules, Rewind};
use crate::state::{ModelHeader, ModelInbox, ModelState, NEW};

/// Reads journal and inbox, and writes the temp file.
pub(crate) fn merge(state: &mut ModelState, rules: &ProtocolRules, this: &mut BrigadeProcess) {
    let ModelInbox { file, ids } = state.inbox;
    let mut next =
        ModelHeader { base: this.merged, upto: state.journal.len(), tmp: NEW, ..state.header };
    if !next.risks.is_empty() && file != ours(state) {
        rewind(rules, state, this.merged, &mut next);
    }
    let unmerged = state.journal.starting_at(next.base);
    let missing = unmerged.filtered(|id| !rules.dedup || !ids.contains(id));
    this.merged = next.base;
    if missing.is_empty() {
        this.next = ModelHeader { base: next.upto, tmp: 0, ours: file, ..next };
        this.step = BrigadeStep::WriteMerged;
        return;
    }
    next.ours = ours(state);
    if rules.intent != Intent::NamesTempFile {
        next = ModelHeader { base: next.upto, tmp: 0, ours: NEW, ..next };
    }
    (this.file, this.tmp, this.content, this.next) = (file, NEW, ids.followed_by(missing), next);
    state.tmp = NEW;
    this.step = match rules {
        ProtocolRules { recheck: true, check_last: false, .. } => BrigadeStep::CheckLock,
        ProtocolRules { intent: Intent::AfterRename, recheck: true, .. } => BrigadeStep::CheckInbox,
        ProtocolRules { intent: Intent::AfterRename, .. } => BrigadeStep::Rename,
        _ => BrigadeStep::Intent,
    };
}

fn rewind(rules: &ProtocolRules, state: &ModelState, merged: u8, next: &mut ModelHeader) {
    let present = |id| state.inbox.ids.contains(id);
    match rules.rewind {
        Rewind::Never => {}
        Rewind::Original => {
            if next.known.is_empty() || next.known.iter().any(present) {
                next.base = next.base.min(next.risks.get(0) - 1);
            }
            (next.risks, next.known) = (Ids::default(), Ids::default());
        }
        Rewind::Once => {
            let oldest = next.risks.iter().min().expect("not empty");
            // If the newest message is present, no message was overwritten. Reason: if a process
            // loses its lock, its copy of the inbox is older than all messages merged since then,
            // and a reader removes messages in order.
            if oldest <= merged && !present(state.journal.get(merged - 1)) {
                next.base = oldest - 1;
                let mut moved = false;
                let rest = next
                    .risks
                    .filtered(|from| from != oldest || std::mem::replace(&mut moved, true));
                next.risks = rest;
                next.risks.push(merged + 1);
            }
        }
    }
}

/// Cleans up when all native processes are known to be dead: removes their lock, compares the inbox
/// once more, restores overwritten messages, and clears the risk. The model treats this as one
/// step, because no native process starts before the cleanup ends.
pub(crate) fn recover_after_natives_ended(state: &mut ModelState, rules: &ProtocolRules) {
    let before = state.header;
    let mut header = ModelHeader { tmp: 0, ..before };
    if before.tmp != 0 && before.tmp == state.tmp {
        header.upto = before.base;
        state.tmp = 0;
    } else if before.tmp != 0 {
        header.ours = before.tmp;
        if state.lock.is_none_or(|lock| lock.dir != before.lock) {
            header = header.with_risk(rules, before.base, state.inbox);
        }
    }
    header.base = header.upto;
    state.lock = None;
    if rules.final_compare && !header.risks.is_empty() && state.inbox.file != header.ours {
        rewind(rules, state, header.upto, &mut header);
        header = ModelHeader { upto: header.base, ours: state.inbox.file, ..header };
    }
    if rules.clear_risk_on_restart {
        header.risks = Ids::default();
    }
    let (present, unmerged) = (state.inbox.ids, state.journal.starting_at(header.base));
    let missing = unmerged.filtered(|id| !present.contains(id));
    if rules.merge_on_restart && !missing.is_empty() {
        state.inbox = ModelInbox { file: NEW, ids: present.followed_by(missing) };
        header.ours = NEW;
        (header.base, header.upto) = (state.journal.len(), state.journal.len());
    }
    state.header = header;
}

/// Returns the inbox file that a brigade process last wrote or read.
pub(crate) fn ours(state: &ModelState) -> u8 {
    let ModelHeader { tmp, ours, .. } = state.header;
    if tmp != 0 && tmp != state.tmp { tmp } else { ours }
}

impl ModelHeader {
    /// Records that messages after the offset `from` are at risk, if the rules require that.
    pub(crate) fn with_risk(mut self, rules: &ProtocolRules, from: u8, inbox: ModelInbox) -> Self {
        match rules.rewind {
            Rewind::Never => {}
            Rewind::Original => {
                if self.risks.is_empty() {
                    self.risks.push(from + 1);
                    self.known = inbox.ids;
                }
            }
            // Messages that an older risk covers may be missing now. The new risk covers those
            // messages too, so that they are restored later.
            Rewind::Once => self.risks.push(self.risks.iter().fold(from + 1, u8::min)),
        }
        self
    }
}
