//! Determines which members are local and which are remote, and synchronizes the rosters.

use std::collections::BTreeSet;
use std::time::Duration;

use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use super::member_decision::{MemberFacts, MemberSide, RosterAction, RosterEntry, judge};
use super::saved_state::KnownMember;
use super::{Link, LinkError, LinkEvent};

/// How many times the rosters are compared and changed in one synchronization. Remaining
/// differences wait for the next synchronization.
const ROUNDS: usize = 10;
/// For this long after the link wrote a roster entry, a native program that takes no lock may still
/// overwrite the entry. During that time, a missing entry does not mean that the member left.
const LATE_WRITE: Duration = Duration::from_secs(3);

/// Which members are local and which are remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberSides {
    /// Members whose inboxes are read on this host.
    pub(super) local: BTreeSet<MemberName>,
    /// Members on other hosts.
    pub(super) remote: BTreeSet<MemberName>,
    /// The lead's name.
    pub(super) lead: Option<String>,
    /// When the team was created, in milliseconds.
    pub(super) created: Option<u64>,
}

impl MemberSides {
    pub(super) fn is_local(&self, name: &str) -> bool {
        self.local.iter().any(|local| local.as_str() == name)
    }

    /// Returns whether the lead is local.
    pub(super) fn lead_is_local(&self) -> bool {
        self.lead.as_deref().is_some_and(|lead| self.is_local(lead))
    }
}

impl Link {
    /// Synchronizes the rosters. Returns which members are local and which are remote.
    pub(super) async fn sync_rosters(&mut self) -> Result<MemberSides, LinkError> {
        let mut stuck = BTreeSet::new();
        let mut sides = MemberSides::default();
        for _ in 0..ROUNDS {
            let actions;
            (sides, actions) = self.compare(&stuck).await?;
            self.state.lead_here = sides.lead_is_local();
            if actions.is_empty() {
                break;
            }
            for (name, action) in actions {
                match self.apply_member(&name, action, &sides).await {
                    Ok(()) => {}
                    // Another process changed the roster meanwhile; the next round of this loop
                    // compares again.
                    Err(error) if error.is_conflict() => {}
                    Err(error) if error.is_forbidden() => {
                        self.report_problem(format!("cannot synchronize member {name}: {error}"));
                        stuck.insert(name);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(sides)
    }

    /// Compares both rosters. Returns which members are local, which are remote, and the changes to make.
    async fn compare(
        &mut self,
        stuck: &BTreeSet<MemberName>,
    ) -> Result<(MemberSides, Vec<(MemberName, RosterAction)>), LinkError> {
        let (local, shared) = self.teams().await?;
        let local = self.read(&local)?;
        let shared = self.read(&shared)?;
        let lead = shared.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let mut sides =
            MemberSides { lead, created: shared.created_at(), ..MemberSides::default() };
        let mut actions = Vec::new();
        let lead_here = sides.lead.as_deref().and_then(|lead| local.member(lead));
        let lead_here = lead_here.is_some_and(|lead| !lead.is_remote());
        for name in self.names(&local, &shared) {
            if stuck.contains(&name) {
                continue;
            }
            let entry =
                |team: &Team<'_>| team.member(name.as_str()).as_ref().and_then(RosterEntry::new);
            let (local_entry, shared_entry) = (entry(&local), entry(&shared));
            let known = self.state.members.get(name.as_str()).copied();
            // Read the member's host only if the decision depends on it.
            let home = match (&local_entry, &shared_entry) {
                (Some(local_entry), _) if local_entry.remote => None,
                (Some(local_entry), Some(_))
                    if known == Some(KnownMember { local: true, joined: local_entry.joined }) =>
                {
                    None
                }
                (None, Some(shared_entry))
                    if known.is_some_and(|known| known.joined == shared_entry.joined) =>
                {
                    None
                }
                (None, None) => None,
                _ => self.config.member_host(&name).await?,
            };
            let speaks_for = &self.config.acts_for;
            let expected = speaks_for.contains(&name);
            let allowed = speaks_for.is_empty() || expected;
            let vacant = match (&local_entry, &shared_entry, &home) {
                (Some(local_entry), Some(shared_entry), None)
                    if !local_entry.remote && local_entry.joined != shared_entry.joined =>
                {
                    allowed && !self.config.has_pulse(&name).await?
                }
                _ => false,
            };
            let stable = self.written_entries.get(&name).is_none_or(|at| at.elapsed() > LATE_WRITE);
            let host = &self.config.host;
            let dismissed = lead_here && stable;
            let (home_note, left) = (home.as_ref(), false);
            let mut known =
                MemberFacts { home: home_note, known, host, dismissed, expected, left, vacant };
            if let (Some(local_entry), None) = (&local_entry, &shared_entry)
                && !local_entry.remote
                && known.was_local(local_entry.joined)
            {
                known.left = self.config.has_left(&name).await?;
            }
            let (side, action) = judge(local_entry, shared_entry, &known);
            match side {
                MemberSide::Local => drop(sides.local.insert(name.clone())),
                MemberSide::Remote => drop(sides.remote.insert(name.clone())),
                MemberSide::Neither => {}
                MemberSide::Taken => {
                    let host = home.map_or_else(|| "another host".into(), |home| home.host);
                    self.report_problem(format!("{name} runs on {host}, but a member of that name is in the files of this host"));
                }
                MemberSide::Missing => {
                    let why = "should run on this host but is not in the team's files here; remove it from the team";
                    self.report_problem(format!("{name} {why}"));
                }
            }
            if !matches!(action, RosterAction::None) {
                actions.push((name, action));
            }
        }
        self.forget(&local, &shared);
        Ok((sides, actions))
    }

    /// Returns the valid names in both rosters, the lead's first.
    fn names(&mut self, local: &Team<'_>, shared: &Team<'_>) -> Vec<MemberName> {
        let mut names: Vec<MemberName> = Vec::new();
        for member in shared.members().chain(local.members()) {
            let Some(name) = member.name() else { continue };
            match name.parse::<MemberName>() {
                Ok(name) if names.contains(&name) => {}
                Ok(name) => names.push(name),
                Err(error) => {
                    self.report_problem(format!("skipped a member with an invalid name: {error}"));
                }
            }
        }
        names
    }

    /// Forgets members that are in neither roster.
    fn forget(&mut self, local: &Team<'_>, shared: &Team<'_>) {
        let exists = |name: &str| local.member(name).or(shared.member(name)).is_some();
        self.state.members.retain(|name, _| exists(name));
    }

    async fn apply_member(
        &mut self,
        name: &MemberName,
        action: RosterAction,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        match action {
            RosterAction::None => {}
            RosterAction::Join(entry) => {
                // Act as the lead if the lead is local, because a lead may add any member.
                // Otherwise act as the member itself. The NATS server may reject that.
                let by = sides.lead.clone().filter(|_| sides.lead_is_local());
                let by = by.unwrap_or_else(|| name.to_string());
                self.write_shared(name, &entry.copied, by).await?;
                self.config.record_host(name, entry.joined).await?;
                self.remember(name, true, entry.joined);
                self.emit(&LinkEvent::Joined { member: name.to_string() });
            }
            RosterAction::RecordHost(joined) => {
                self.config.record_host(name, joined).await?;
                self.remember(name, true, joined);
                self.emit(&LinkEvent::Joined { member: name.to_string() });
            }
            RosterAction::Update(entry) => {
                self.write_shared(name, &entry.copied, name.to_string()).await?;
                if self.state.members.get(name.as_str()).map(|known| known.joined)
                    != Some(entry.joined)
                {
                    self.config.record_host(name, entry.joined).await?;
                    self.remember(name, true, entry.joined);
                    self.emit(&LinkEvent::Joined { member: name.to_string() });
                }
            }
            RosterAction::Mirror(entry) => {
                let new = self.write_local(name, &entry.mirror).await?;
                self.written_entries.insert(name.clone(), tokio::time::Instant::now());
                self.remember(name, false, entry.joined);
                if new {
                    let home = self.config.member_host(name).await?.map(|home| home.host);
                    self.emit(&LinkEvent::Mirrored { member: name.to_string(), home });
                }
            }
            RosterAction::LeaveLocal => {
                self.remove_local(name).await?;
                self.state.members.remove(name.as_str());
                self.emit(&LinkEvent::Left { member: name.to_string() });
            }
            RosterAction::LeaveShared => {
                let by = if self.state.members.get(name.as_str()).is_some_and(|known| known.local) {
                    name.to_string()
                } else {
                    sides.lead.clone().unwrap_or_else(|| name.to_string())
                };
                self.remove_shared(name, by).await?;
                self.state.members.remove(name.as_str());
                self.emit(&LinkEvent::Left { member: name.to_string() });
            }
        }
        Ok(())
    }

    fn remember(&mut self, name: &MemberName, local: bool, joined: Option<u64>) {
        self.state.members.insert(name.to_string(), KnownMember { local, joined });
    }
}
