//! Who lives here and who elsewhere, and both rosters brought to say so.

use std::collections::BTreeSet;
use std::time::Duration;

use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use super::home::Home;
use super::judge::{Deed, Entry, Side, Told, judge};
use super::memory::Known;
use super::{Link, LinkError, News, REMOTE};

/// How often the rosters are compared before the rest is left to the next time.
const ROUNDS: usize = 10;
/// How long an entry that was written here may still be lost to a native program that takes no lock, and
/// so does not tell that somebody left.
const LATE_WRITE: Duration = Duration::from_secs(3);

/// Who lives where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    /// Those whose inboxes natives of this host read.
    pub(super) local: BTreeSet<MemberName>,
    /// The others.
    pub(super) remote: BTreeSet<MemberName>,
    /// Who leads.
    pub(super) lead: Option<String>,
    /// When the team was created.
    pub(super) created: Option<u64>,
}

impl Sides {
    pub(super) fn is_local(&self, name: &str) -> bool {
        self.local.iter().any(|local| local.as_str() == name)
    }

    /// Whether the lead lives here.
    pub(super) fn leads(&self) -> bool {
        self.lead.as_deref().is_some_and(|lead| self.is_local(lead))
    }
}

impl Link {
    /// Brings the rosters into step, and tells who lives where.
    pub(super) async fn meet(&mut self) -> Result<Sides, LinkError> {
        let mut stuck = BTreeSet::new();
        let mut sides = Sides::default();
        for _ in 0..ROUNDS {
            let deeds;
            (sides, deeds) = self.compare(&stuck).await?;
            self.memory.lead_here = sides.leads();
            if deeds.is_empty() {
                break;
            }
            for (name, deed) in deeds {
                match self.act(&name, deed, &sides).await {
                    Ok(()) => {}
                    // Somebody else changed the roster; the next round sees what is left to do.
                    Err(error) if error.is_conflict() => {}
                    Err(error) if error.is_forbidden() => {
                        self.complain(format!("{name} cannot be brought into step: {error}"));
                        stuck.insert(name);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(sides)
    }

    /// One look at both rosters.
    async fn compare(
        &mut self,
        stuck: &BTreeSet<MemberName>,
    ) -> Result<(Sides, Vec<(MemberName, Deed)>), LinkError> {
        let (here, there) = self.teams().await?;
        let here = self.read(&here)?;
        let there = self.read(&there)?;
        let lead = there.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let mut sides = Sides { lead, created: there.created_at(), ..Sides::default() };
        let mut deeds = Vec::new();
        let lead_here = sides.lead.as_deref().and_then(|lead| here.member(lead));
        let lead_here =
            lead_here.is_some_and(|lead| lead.backend_type().as_deref() != Some(REMOTE));
        for name in self.names(&here, &there) {
            if stuck.contains(&name) {
                continue;
            }
            let entry = |team: &Team<'_>| team.member(name.as_str()).as_ref().and_then(Entry::of);
            let (l, f) = (entry(&here), entry(&there));
            let known = self.memory.members.get(name.as_str()).copied();
            // Asked for only where it decides something.
            let home = match (&l, &f) {
                (Some(l), _) if l.remote => None,
                (Some(l), Some(_)) if known == Some(Known { here: true, joined: l.joined }) => None,
                (None, Some(f)) if known.is_some_and(|known| known.joined == f.joined) => None,
                (None, None) => None,
                _ => self.ends.home(&name).await?,
            };
            let speaks_for = &self.ends.speaks_for;
            let expected = speaks_for.contains(&name);
            let may = speaks_for.is_empty() || expected;
            let vacant = match (&l, &f, &home) {
                (Some(l), Some(f), None) if !l.remote && l.joined != f.joined => {
                    may && !self.ends.is_played(&name).await?
                }
                _ => false,
            };
            let left = match (&l, &f) {
                (Some(l), None) if !l.remote && self.was_here(known, home.as_ref(), l.joined) => {
                    self.ends.has_left(&name).await?
                }
                _ => false,
            };
            let settled = self.mirrored.get(&name).is_none_or(|at| at.elapsed() > LATE_WRITE);
            let host = &self.ends.host;
            let dismissed = lead_here && settled;
            let home_note = home.as_ref();
            let known = Told { home: home_note, known, host, dismissed, expected, left, vacant };
            let (side, deed) = judge(l, f, &known);
            match side {
                Side::Local => drop(sides.local.insert(name.clone())),
                Side::Remote => drop(sides.remote.insert(name.clone())),
                Side::Neither => {}
                Side::Taken => {
                    let host = home.map_or_else(|| "another host".into(), |home| home.host);
                    self.complain(format!("{name} lives on {host}, and here is one of that name"));
                }
                Side::Missing => {
                    let why = "is said to live here, and is not in the files; take it off the team";
                    self.complain(format!("{name} {why}"));
                }
            }
            if !matches!(deed, Deed::None) {
                deeds.push((name, deed));
            }
        }
        self.forget(&here, &there);
        Ok((sides, deeds))
    }

    /// Whether a member lived here and joined then, by what is remembered and what the far store says.
    fn was_here(&self, known: Option<Known>, home: Option<&Home>, joined: Option<u64>) -> bool {
        let noted =
            home.is_some_and(|home| home.host == self.ends.host && home.joined_at == joined);
        noted || known == Some(Known { here: true, joined })
    }

    /// The names of both rosters that can be carried, the lead's first.
    fn names(&mut self, here: &Team<'_>, there: &Team<'_>) -> Vec<MemberName> {
        let mut names: Vec<MemberName> = Vec::new();
        for member in there.members().chain(here.members()) {
            let Some(name) = member.name() else { continue };
            match name.parse::<MemberName>() {
                Ok(name) if names.contains(&name) => {}
                Ok(name) => names.push(name),
                Err(error) => self.complain(format!("a member is left out: {error}")),
            }
        }
        names
    }

    /// Forgets who is on neither side.
    fn forget(&mut self, here: &Team<'_>, there: &Team<'_>) {
        let there = |name: &str| here.member(name).or(there.member(name)).is_some();
        self.memory.members.retain(|name, _| there(name));
    }

    async fn act(&mut self, name: &MemberName, deed: Deed, sides: &Sides) -> Result<(), LinkError> {
        match deed {
            Deed::None => {}
            Deed::Join(entry) => {
                // A lead may add whom it likes; with a member's credentials the engine may say no.
                let by = sides.lead.clone().filter(|_| sides.leads());
                let by = by.unwrap_or_else(|| name.to_string());
                self.write_there(name, &entry.copied, by).await?;
                self.ends.settle(name, entry.joined).await?;
                self.know(name, true, entry.joined);
                self.say(&News::Joined { member: name.to_string() });
            }
            Deed::Settle(joined) => {
                self.ends.settle(name, joined).await?;
                self.know(name, true, joined);
                self.say(&News::Joined { member: name.to_string() });
            }
            Deed::Update(entry) => {
                self.write_there(name, &entry.copied, name.to_string()).await?;
                if self.memory.members.get(name.as_str()).map(|known| known.joined)
                    != Some(entry.joined)
                {
                    self.ends.settle(name, entry.joined).await?;
                    self.know(name, true, entry.joined);
                    self.say(&News::Joined { member: name.to_string() });
                }
            }
            Deed::Mirror(entry) => {
                let new = self.write_here(name, &entry.mirror).await?;
                self.mirrored.insert(name.clone(), tokio::time::Instant::now());
                self.know(name, false, entry.joined);
                if new {
                    let home = self.ends.home(name).await?.map(|home| home.host);
                    self.say(&News::Mirrored { member: name.to_string(), home });
                }
            }
            Deed::LeaveHere => {
                self.take_off_here(name).await?;
                self.memory.members.remove(name.as_str());
                self.say(&News::Left { member: name.to_string() });
            }
            Deed::LeaveThere => {
                let by = if self.memory.members.get(name.as_str()).is_some_and(|known| known.here) {
                    name.to_string()
                } else {
                    sides.lead.clone().unwrap_or_else(|| name.to_string())
                };
                self.take_off_there(name, by).await?;
                self.memory.members.remove(name.as_str());
                self.say(&News::Left { member: name.to_string() });
            }
        }
        Ok(())
    }

    fn know(&mut self, name: &MemberName, here: bool, joined: Option<u64>) {
        self.memory.members.insert(name.to_string(), Known { here, joined });
    }
}
