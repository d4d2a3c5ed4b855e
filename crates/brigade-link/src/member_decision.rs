//! Decides whether a member is local or remote, and how to synchronize it. The decision uses the
//! member's entries in the two rosters and other facts. This module does no I/O.

use brigade_wire::member::Member;
use brigade_wire::member_entry::MemberEntry;

use super::member_host::MemberHost;
use super::saved_state::KnownMember;
use brigade_core::wire::backend::REMOTE;

/// A member's entry in the local or the shared roster.
#[derive(Clone, Debug)]
pub(super) struct RosterEntry {
    pub(super) joined: Option<u64>,
    /// Whether a link wrote this entry for a member on another host.
    pub(super) remote: bool,
    pub(super) copied: MemberEntry,
    /// The entry to write to the rosters of other hosts.
    pub(super) mirror: MemberEntry,
}

impl RosterEntry {
    pub(super) fn new(member: &Member<'_>) -> Option<Self> {
        let copied = member.copied()?;
        let mut mirror = copied.clone();
        // The member has no pane on other hosts.
        mirror.set("tmuxPaneId", "");
        mirror.set("backendType", REMOTE);
        // Without this field, Claude Code assumes that the member is active, and the lead cannot
        // end the team.
        mirror.set("isActive", member.is_active().unwrap_or(false));
        let remote = member.is_remote();
        Some(Self { joined: member.joined_at(), remote, copied, mirror })
    }
}

/// How to synchronize a member.
#[derive(Debug)]
pub(super) enum RosterAction {
    /// Do nothing.
    None,
    /// Add the member to the shared roster.
    Join(RosterEntry),
    /// Record in the shared store that the member runs on this host.
    RecordHost(Option<u64>),
    /// Update the member's entry in the shared roster.
    Update(RosterEntry),
    /// Write the member's entry to the local roster.
    Mirror(RosterEntry),
    /// Remove the member from the local roster.
    LeaveLocal,
    /// Remove the member from the shared roster.
    LeaveShared,
}

/// Whether a member is local or remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberSide {
    Local,
    Remote,
    /// The member is in neither roster, or is about to be removed from both.
    Neither,
    /// Two hosts have a member of this name.
    Taken,
    /// According to the shared store, the member runs on this host. But the files on this host do
    /// not have the member, and the link does not know whether the member left.
    Missing,
}

/// Facts about a member apart from its roster entries.
pub(super) struct MemberFacts<'k> {
    pub(super) home: Option<&'k MemberHost>,
    pub(super) known: Option<KnownMember>,
    pub(super) host: &'k str,
    /// Whether the local entry is missing because a local lead removed it on purpose.
    pub(super) dismissed: bool,
    /// Whether the member is expected to run on this host, according to the link's credentials.
    pub(super) expected: bool,
    /// Whether the shared journal records that the member left. If a NATS server lags behind, its
    /// roster may lack a member that did not leave. In that case, the journal has no such record.
    pub(super) left: bool,
    /// Whether the shared entry with this name belongs to the member on this host, because no
    /// process on another host runs a member of this name.
    pub(super) vacant: bool,
}

impl MemberFacts<'_> {
    /// Returns whether the member was local. `joined` distinguishes the member from others of the same name.
    pub(super) fn was_local(&self, joined: Option<u64>) -> bool {
        self.known == Some(KnownMember { local: true, joined }) || self.recorded_here(joined)
    }

    fn recorded_here(&self, joined: Option<u64>) -> bool {
        self.home.is_some_and(|home| home.host == self.host && home.joined_at == joined)
    }

    fn is_on_another_host(&self) -> bool {
        self.home.is_some_and(|home| home.host != self.host)
    }
}

/// Decides whether a member is local or remote, and how to synchronize it.
pub(super) fn judge(
    local: Option<RosterEntry>,
    shared: Option<RosterEntry>,
    known: &MemberFacts<'_>,
) -> (MemberSide, RosterAction) {
    match (local, shared) {
        (None, None) => (MemberSide::Neither, RosterAction::None),
        (Some(local), None) if local.remote => (MemberSide::Neither, RosterAction::LeaveLocal),
        (Some(local), None) if known.was_local(local.joined) => {
            if known.left {
                (MemberSide::Neither, RosterAction::LeaveLocal)
            } else {
                (MemberSide::Local, RosterAction::None)
            }
        }
        (Some(local), None) => (MemberSide::Local, RosterAction::Join(local)),
        (Some(local), Some(shared)) if local.remote => {
            let same = shared.mirror.means(&local.copied);
            (
                MemberSide::Remote,
                if same { RosterAction::None } else { RosterAction::Mirror(shared) },
            )
        }
        (Some(local), Some(shared)) => {
            let same = local.joined == shared.joined;
            if known.known == Some(KnownMember { local: true, joined: local.joined }) && same {
                let is_equal = shared.copied.has_own_changes_of(&local.copied);
                return (
                    MemberSide::Local,
                    if is_equal { RosterAction::None } else { RosterAction::Update(local) },
                );
            }
            let ours = known.home.is_some_and(|home| home.host == known.host);
            if ours && !same {
                // The member left and joined again between two checks.
                (MemberSide::Local, RosterAction::Update(local))
            } else if same && !known.is_on_another_host() {
                (MemberSide::Local, RosterAction::RecordHost(local.joined))
            } else if known.vacant {
                // The lead added the member before the member started.
                (MemberSide::Local, RosterAction::Update(local))
            } else {
                (MemberSide::Taken, RosterAction::None)
            }
        }
        (None, Some(shared)) => match known.known {
            Some(KnownMember { local: true, joined }) if joined == shared.joined => {
                (MemberSide::Neither, RosterAction::LeaveShared)
            }
            Some(KnownMember { local: false, joined })
                if joined == shared.joined && known.dismissed =>
            {
                (MemberSide::Neither, RosterAction::LeaveShared)
            }
            _ if known.recorded_here(shared.joined) => (MemberSide::Missing, RosterAction::None),
            _ if known.expected && known.home.is_none() => {
                (MemberSide::Neither, RosterAction::None)
            }
            _ => (MemberSide::Remote, RosterAction::Mirror(shared)),
        },
    }
}

#[cfg(test)]
mod tests {
    use brigade_wire::team::Team;

    use super::*;

    fn entry(joined: u64, backend: &str) -> RosterEntry {
        let config = format!(
            r#"{{"members":[{{"name":"bob","joinedAt":{joined},"backendType":"{backend}","isActive":false,"tmuxPaneId":""}}]}}"#
        );
        let team = Team::read(config.as_bytes()).unwrap();
        RosterEntry::new(&team.member("bob").unwrap()).unwrap()
    }

    /// A member writes its own entry. Other hosts take over only known fields, and where the member runs.
    #[test]
    fn a_mirror_contains_nothing_else_that_the_member_wrote() {
        let config = br#"{"members":[{"name":"bob","joinedAt":1,"worktreePath":"/home","hooks":{},
            "tmuxPaneId":"","backendType":"","tmuxPaneId":"%1","backendType":"tmux"}]}"#;
        let team = Team::read(config).unwrap();
        let entry = RosterEntry::new(&team.member("bob").unwrap()).unwrap();
        let mirror = serde_json::to_string(&entry.mirror).unwrap();
        let expected = r#"{"name":"bob","joinedAt":1,"tmuxPaneId":"","backendType":"remote","isActive":false}"#;
        assert_eq!(mirror, expected);
    }

    #[test]
    fn a_member_missing_from_a_lagging_roster_has_not_left() {
        let known = Some(KnownMember { local: true, joined: Some(1) });
        let (dismissed, expected, left, vacant) = (false, false, false, false);
        let known = MemberFacts { home: None, known, host: "a", dismissed, expected, left, vacant };
        let (side, action) = judge(Some(entry(1, "tmux")), None, &known);
        assert!(matches!((side, action), (MemberSide::Local, RosterAction::None)));
    }

    fn check(
        (local, shared): (Option<RosterEntry>, Option<RosterEntry>),
        home: Option<(&str, u64)>,
        known: Option<(bool, u64)>,
        expected: (MemberSide, &str),
    ) {
        let home =
            home.map(|(host, joined)| MemberHost { host: host.into(), joined_at: Some(joined) });
        let known = known.map(|(local, joined)| KnownMember { local, joined: Some(joined) });
        let facts = format!("{home:?} {known:?}");
        let known = MemberFacts {
            home: home.as_ref(),
            known,
            host: "a",
            dismissed: false,
            expected: false,
            left: true,
            vacant: false,
        };
        let (side, action) = judge(local, shared, &known);
        let action = format!("{action:?}");
        let action_name = action.split('(').next().unwrap();
        assert_eq!((side, action_name), expected, "{facts}");
    }

    #[test]
    fn entries_and_facts_decide_the_side_of_a_member() {
        use MemberSide::{Local, Missing, Neither, Remote, Taken};
        let ours = || Some(entry(1, "tmux"));
        let mirror = || Some(entry(1, REMOTE));
        let far = || Some(entry(1, "tmux"));
        let again = || Some(entry(2, "tmux"));
        check((ours(), None), None, None, (Local, "Join"));
        check((ours(), None), Some(("a", 1)), None, (Neither, "LeaveLocal"));
        check((ours(), None), None, Some((true, 1)), (Neither, "LeaveLocal"));
        // A later member of the same name is a different member.
        check((again(), None), Some(("a", 1)), Some((true, 1)), (Local, "Join"));
        check((mirror(), None), None, None, (Neither, "LeaveLocal"));
        check((mirror(), far()), None, None, (Remote, "None"));
        check((mirror(), again()), None, None, (Remote, "Mirror"));
        check((ours(), far()), None, None, (Local, "RecordHost"));
        check((ours(), far()), Some(("b", 1)), None, (Taken, "None"));
        check((ours(), far()), None, Some((true, 1)), (Local, "None"));
        check((ours(), again()), Some(("b", 2)), None, (Taken, "None"));
        check((again(), far()), Some(("a", 1)), Some((true, 1)), (Local, "Update"));
        check((None, far()), None, None, (Remote, "Mirror"));
        check((None, far()), Some(("b", 1)), Some((false, 1)), (Remote, "Mirror"));
        check((None, far()), None, Some((true, 1)), (Neither, "LeaveShared"));
        // A link that lost its state removes no member.
        check((None, far()), Some(("a", 1)), None, (Missing, "None"));
    }
}
