//! The merge of the journal into the inbox, and what it puts back.

use crate::brigade::{At, Brigade};
use crate::ids::Ids;
use crate::rules::{Intent, Rewind, Rules};
use crate::world::{Header, Inbox, NEW, World};

/// Reads journal and inbox, and writes the temp file.
pub(crate) fn merge(world: &mut World, rules: &Rules, me: &mut Brigade) {
    let Inbox { file, ids } = world.inbox;
    let mut next = Header { base: me.merged, upto: world.journal.len(), tmp: NEW, ..world.header };
    if !next.risks.is_empty() && file != ours(world) {
        rewind(rules, world, me.merged, &mut next);
    }
    let unmerged = world.journal.starting_at(next.base);
    let missing = unmerged.filtered(|id| !rules.dedup || !ids.has(id));
    me.merged = next.base;
    if missing.is_empty() {
        me.next = Header { base: next.upto, tmp: 0, ours: file, ..next };
        me.at = At::Close;
        return;
    }
    next.ours = ours(world);
    if rules.intent != Intent::Named {
        next = Header { base: next.upto, tmp: 0, ours: NEW, ..next };
    }
    (me.file, me.tmp, me.content, me.next) = (file, NEW, ids.followed_by(missing), next);
    world.tmp = NEW;
    me.at = match rules {
        Rules { recheck: true, check_last: false, .. } => At::CheckLock,
        Rules { intent: Intent::Late, recheck: true, .. } => At::CheckInbox,
        Rules { intent: Intent::Late, .. } => At::Rename,
        _ => At::Intent,
    };
}

fn rewind(rules: &Rules, world: &World, merged: u8, next: &mut Header) {
    let stands = |id| world.inbox.ids.has(id);
    match rules.rewind {
        Rewind::Never => {}
        Rewind::First => {
            if next.known.is_empty() || next.known.iter().any(stands) {
                next.base = next.base.min(next.risks.get(0) - 1);
            }
            (next.risks, next.known) = (Ids::default(), Ids::default());
        }
        Rewind::Once => {
            let oldest = next.risks.iter().min().expect("not empty");
            // A robbed holder's copy is older than all that was merged since; and a reader prunes
            // in order. So if the newest stands, nothing was overwritten.
            if oldest <= merged && !stands(world.journal.get(merged - 1)) {
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

/// All native processes are known to be dead: their lock is taken away, what they may have overwritten is
/// looked for once more and put back, and then nothing is in doubt. In one step: no native is started before.
pub(crate) fn natives_ended(world: &mut World, rules: &Rules) {
    let before = world.header;
    let mut header = Header { tmp: 0, ..before };
    if before.tmp != 0 && before.tmp == world.tmp {
        header.upto = before.base;
        world.tmp = 0;
    } else if before.tmp != 0 {
        header.ours = before.tmp;
        if world.lock.is_none_or(|lock| lock.dir != before.lock) {
            header = header.at_risk(rules, before.base, world.inbox);
        }
    }
    header.base = header.upto;
    world.lock = None;
    if rules.last_look && !header.risks.is_empty() && world.inbox.file != header.ours {
        rewind(rules, world, header.upto, &mut header);
        header = Header { upto: header.base, ours: world.inbox.file, ..header };
    }
    if rules.no_doubt {
        header.risks = Ids::default();
    }
    let (stands, unmerged) = (world.inbox.ids, world.journal.starting_at(header.base));
    let missing = unmerged.filtered(|id| !stands.has(id));
    if rules.merge_at_once && !missing.is_empty() {
        world.inbox = Inbox { file: NEW, ids: stands.followed_by(missing) };
        header.ours = NEW;
        (header.base, header.upto) = (world.journal.len(), world.journal.len());
    }
    world.header = header;
}

/// The inbox as a brigade process last left it.
pub(crate) fn ours(world: &World) -> u8 {
    let Header { tmp, ours, .. } = world.header;
    if tmp != 0 && tmp != world.tmp { tmp } else { ours }
}

impl Header {
    /// With the messages from this offset on at risk, in the manner of the rules.
    pub(crate) fn at_risk(mut self, rules: &Rules, from: u8, inbox: Inbox) -> Self {
        match rules.rewind {
            Rewind::Never => {}
            Rewind::First => {
                if self.risks.is_empty() {
                    self.risks.push(from + 1);
                    self.known = inbox.ids;
                }
            }
            // What an older risk covers may be gone just now, and is put back only later.
            Rewind::Once => self.risks.push(self.risks.iter().fold(from + 1, u8::min)),
        }
        self
    }
}
