//! Where a member lives, and what is to be done about it, by its two entries and what is known besides. No
//! I/O.

use brigade_wire::member::{Copied, Member};

use super::REMOTE;
use super::home::Home;
use super::memory::Known;

/// A member as one side has it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) joined: Option<u64>,
    /// Whether a link wrote it, for one who lives elsewhere.
    pub(super) remote: bool,
    pub(super) copied: Copied,
    /// What natives of another host are to see of it.
    pub(super) mirror: Copied,
}

impl Entry {
    pub(super) fn of(member: &Member<'_>) -> Option<Self> {
        let copied = member.copied()?;
        let mut mirror = copied.clone();
        // No pane of this host is its.
        mirror.set("tmuxPaneId", &"");
        mirror.set("backendType", &REMOTE);
        // Where nothing is said Claude Code takes a member for active, and its lead cannot end the team.
        mirror.set("isActive", &member.is_active().unwrap_or(false));
        let remote = member.backend_type().is_some_and(|word| word == REMOTE);
        Some(Self { joined: member.joined_at(), remote, copied, mirror })
    }
}

/// What is to be done about a member.
#[derive(Debug)]
pub(super) enum Deed {
    /// Nothing.
    None,
    /// It joins the far roster.
    Join(Entry),
    /// The far store is told that it lives here.
    Settle(Option<u64>),
    /// The far roster has its entry.
    Update(Entry),
    /// Its entry is written here.
    Mirror(Entry),
    /// It leaves the roster of this host.
    LeaveHere,
    /// It leaves the far roster.
    LeaveThere,
}

/// Where a member lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Local,
    Remote,
    /// It is about to be nowhere.
    Neither,
    /// Two have its name.
    Taken,
    /// It is said to live here, and does not; and we do not remember that it left.
    Missing,
}

/// What is known of a member besides its entries.
pub(super) struct Told<'k> {
    pub(super) home: Option<&'k Home>,
    pub(super) known: Option<Known>,
    pub(super) host: &'k str,
    /// Whether an entry of it that is not here was taken out on purpose, by the lead who lives here.
    pub(super) dismissed: bool,
    /// Whether it is to live here by the link's credentials, as soon as somebody starts it.
    pub(super) expected: bool,
    /// Whether the far journal tells that it left. A server that is behind shows a roster in which it is
    /// not yet, and nothing of its leaving.
    pub(super) left: bool,
    /// Whether nobody plays it elsewhere, and its place is kept for who comes.
    pub(super) vacant: bool,
}

impl Told<'_> {
    /// Whether it lived here and joined then.
    fn was_here(&self, joined: Option<u64>) -> bool {
        self.known == Some(Known { here: true, joined }) || self.noted(joined)
    }

    fn noted(&self, joined: Option<u64>) -> bool {
        self.home.is_some_and(|home| home.host == self.host && home.joined_at == joined)
    }

    fn lives_elsewhere(&self) -> bool {
        self.home.is_some_and(|home| home.host != self.host)
    }
}

/// Where a member lives, and what is to be done about it.
pub(super) fn judge(here: Option<Entry>, there: Option<Entry>, known: &Told<'_>) -> (Side, Deed) {
    match (here, there) {
        (None, None) => (Side::Neither, Deed::None),
        (Some(here), None) if here.remote => (Side::Neither, Deed::LeaveHere),
        (Some(here), None) if known.was_here(here.joined) => {
            if known.left {
                (Side::Neither, Deed::LeaveHere)
            } else {
                (Side::Local, Deed::None)
            }
        }
        (Some(here), None) => (Side::Local, Deed::Join(here)),
        (Some(here), Some(there)) if here.remote => {
            let same = there.mirror.means(&here.copied);
            (Side::Remote, if same { Deed::None } else { Deed::Mirror(there) })
        }
        (Some(here), Some(there)) => {
            let same = here.joined == there.joined;
            if known.known == Some(Known { here: true, joined: here.joined }) && same {
                let says = here.copied.means(&there.copied);
                return (Side::Local, if says { Deed::None } else { Deed::Update(here) });
            }
            let ours = known.home.is_some_and(|home| home.host == known.host);
            if ours && !same {
                // It left and came again before we looked.
                (Side::Local, Deed::Update(here))
            } else if same && !known.lives_elsewhere() {
                (Side::Local, Deed::Settle(here.joined))
            } else if known.vacant {
                // The lead made room for it before it came.
                (Side::Local, Deed::Update(here))
            } else {
                (Side::Taken, Deed::None)
            }
        }
        (None, Some(there)) => match known.known {
            Some(Known { here: true, joined }) if joined == there.joined => {
                (Side::Neither, Deed::LeaveThere)
            }
            Some(Known { here: false, joined }) if joined == there.joined && known.dismissed => {
                (Side::Neither, Deed::LeaveThere)
            }
            _ if known.noted(there.joined) => (Side::Missing, Deed::None),
            _ if known.expected && known.home.is_none() => (Side::Neither, Deed::None),
            _ => (Side::Remote, Deed::Mirror(there)),
        },
    }
}

#[cfg(test)]
mod tests {
    use brigade_wire::team::Team;

    use super::*;

    fn entry(joined: u64, backend: &str) -> Entry {
        let config = format!(
            r#"{{"members":[{{"name":"bob","joinedAt":{joined},"backendType":"{backend}","isActive":false,"tmuxPaneId":""}}]}}"#
        );
        let team = Team::read(config.as_bytes()).unwrap();
        Entry::of(&team.member("bob").unwrap()).unwrap()
    }

    #[test]
    fn who_is_not_seen_has_not_left() {
        let known = Some(Known { here: true, joined: Some(1) });
        let (dismissed, expected, left, vacant) = (false, false, false, false);
        let known = Told { home: None, known, host: "a", dismissed, expected, left, vacant };
        let (side, deed) = judge(Some(entry(1, "tmux")), None, &known);
        assert!(matches!((side, deed), (Side::Local, Deed::None)));
    }

    fn check(
        (here, there): (Option<Entry>, Option<Entry>),
        home: Option<(&str, u64)>,
        known: Option<(bool, u64)>,
        expected: (Side, &str),
    ) {
        let home = home.map(|(host, joined)| Home { host: host.into(), joined_at: Some(joined) });
        let known = known.map(|(here, joined)| Known { here, joined: Some(joined) });
        let given = format!("{home:?} {known:?}");
        let known = Told {
            home: home.as_ref(),
            known,
            host: "a",
            dismissed: false,
            expected: false,
            left: true,
            vacant: false,
        };
        let (side, deed) = judge(here, there, &known);
        let deed = format!("{deed:?}");
        let word = deed.split('(').next().unwrap();
        assert_eq!((side, word), expected, "{given}");
    }

    #[test]
    fn where_a_member_lives_is_told_from_its_entries() {
        use Side::{Local, Missing, Neither, Remote, Taken};
        let ours = || Some(entry(1, "tmux"));
        let mirror = || Some(entry(1, REMOTE));
        let far = || Some(entry(1, "tmux"));
        let again = || Some(entry(2, "tmux"));
        check((ours(), None), None, None, (Local, "Join"));
        check((ours(), None), Some(("a", 1)), None, (Neither, "LeaveHere"));
        check((ours(), None), None, Some((true, 1)), (Neither, "LeaveHere"));
        // One of the same name who came later is another.
        check((again(), None), Some(("a", 1)), Some((true, 1)), (Local, "Join"));
        check((mirror(), None), None, None, (Neither, "LeaveHere"));
        check((mirror(), far()), None, None, (Remote, "None"));
        check((mirror(), again()), None, None, (Remote, "Mirror"));
        check((ours(), far()), None, None, (Local, "Settle"));
        check((ours(), far()), Some(("b", 1)), None, (Taken, "None"));
        check((ours(), far()), None, Some((true, 1)), (Local, "None"));
        check((ours(), again()), Some(("b", 2)), None, (Taken, "None"));
        check((again(), far()), Some(("a", 1)), Some((true, 1)), (Local, "Update"));
        check((None, far()), None, None, (Remote, "Mirror"));
        check((None, far()), Some(("b", 1)), Some((false, 1)), (Remote, "Mirror"));
        check((None, far()), None, Some((true, 1)), (Neither, "LeaveThere"));
        // Nobody leaves because the link forgot.
        check((None, far()), Some(("a", 1)), None, (Missing, "None"));
    }
}
