//! Reads the team's configuration from the files and the shared store, and writes single roster
//! entries.

use std::borrow::Cow;

use brigade_wire::member::Member;
use brigade_wire::member_entry::MemberEntry;
use brigade_wire::name::MemberName;
use brigade_wire::team::{NewTeam, Team};

use super::end::EndedSide;
use super::member_decision::RosterEntry;
use super::{Link, LinkError, LinkEvent, link_actor};
use brigade_core::store::{Actor, Document, StoreError, TeamStore};

impl Link {
    /// Returns the team's configuration in the files and in the shared store. If one of them is
    /// missing, creates it from the other, unless the missing one was deleted.
    pub(super) async fn teams(&mut self) -> Result<(Document, Document), LinkError> {
        let config = self.config.clone();
        let team = &config.team;
        // The first iteration may delete the copy of an ended team, the next one may create a missing team, and the
        // last one reads it.
        for _ in 0..3 {
            let local = config.local.team(team).await.map_err(LinkError::Local)?;
            let shared = config.call_shared(config.shared.team(team)).await?;
            match (local, shared) {
                (None, None) if self.keeps_running && self.state.linked => {
                    return Err(self.confirm_end(EndedSide::Both)?);
                }
                (None, None) => return Err(LinkError::NoTeam { team: team.clone() }),
                (Some(local), None) => self.create_shared(&local).await?,
                (None, Some(shared)) => self.create_local(&shared).await?,
                (Some(local), Some(shared)) => {
                    let (local_team, shared_team) = (self.read(&local)?, self.read(&shared)?);
                    let created = shared_team.created_at();
                    if local_team.created_at() == created {
                        if self.state.created != created {
                            self.mailboxes.clear();
                            self.forwarded.clear();
                        }
                        self.state.reset_unless_created(created);
                        self.state.linked = true;
                        self.end_sign = None;
                        return Ok((local, shared));
                    }
                    if self.was_led_here(&shared_team) && self.keeps_running {
                        // A new team replaced the team that this link synchronized, as when Claude Code resumes a
                        // session after a crash.
                        self.confirm_end(EndedSide::Files)?;
                        self.end_shared(&shared).await?;
                        self.end_sign = None;
                        continue;
                    }
                    if !is_mirror(&local_team) {
                        return Err(LinkError::OtherTeam { team: team.clone() });
                    }
                    // The local team is the mirror of an earlier team of the same name, so replace
                    // it.
                    let deleted = config.local.delete_team(team, &link_actor()).await;
                    deleted.map_err(LinkError::Local)?;
                    self.create_local(&shared).await?;
                }
            }
        }
        Err(LinkError::Shared(StoreError::Conflict))
    }

    /// Creates the team in the shared store from the team in the files.
    async fn create_shared(&mut self, local: &Document) -> Result<(), LinkError> {
        let team = self.config.team.clone();
        let read = self.read(local)?;
        if is_mirror(&read) {
            let ended = self.confirm_end(EndedSide::Shared)?;
            let deleted = self.config.local.delete_team(&team, &link_actor()).await;
            deleted.map_err(LinkError::Local)?;
            self.emit(&LinkEvent::Deleted { side: "here" });
            return Err(ended);
        }
        if self.state.linked && self.state.created == read.created_at() {
            return Err(self.confirm_end(EndedSide::Shared)?);
        }
        let lead = read.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let by = Actor(lead.unwrap_or_else(|| MemberName::lead().to_string()));
        let mut config = local.bytes.clone();
        let remote: Vec<String> = read
            .members()
            .filter(Member::is_remote)
            .filter_map(|member| Some(member.name()?.into_owned()))
            .collect();
        for name in remote {
            let without = Team::read(&config).map(|team| team.without_member(&name).into_owned());
            config = without.unwrap_or(config);
        }
        match self.config.call_shared(self.config.shared.create_team(&team, &config, &by)).await {
            Ok(_) => {
                self.emit(&LinkEvent::Made { side: "in the NATS store" });
                Ok(())
            }
            // Another link created the team first, or the answer to our call was lost.
            Err(LinkError::Shared(StoreError::TeamExists { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates the team in the files from the team in the shared store. The team's lead runs on
    /// another host.
    ///
    /// The files always use the old format, because the new format names a process on the lead's
    /// host.
    async fn create_local(&mut self, shared: &Document) -> Result<(), LinkError> {
        let team = self.config.team.clone();
        let read = self.read(shared)?;
        if self.was_led_here(&read) {
            let ended = self.confirm_end(EndedSide::Files)?;
            if self.keeps_running {
                self.end_shared(shared).await?;
            }
            return Err(ended);
        }
        if self.is_own_session().await? {
            return Err(LinkError::Ended { team, side: EndedSide::Files });
        }
        let lead = read.lead();
        let text = |field: Option<Cow<'_, str>>| field.unwrap_or_default().into_owned();
        let new = NewTeam {
            name: &team,
            description: &text(read.description()),
            created_at: read.created_at().unwrap_or_default(),
            lead_session_id: &text(read.lead_session_id()),
            lead_model: &text(lead.as_ref().and_then(Member::model)),
            lead_cwd: &text(lead.as_ref().and_then(Member::cwd)),
        };
        let mut config = new.to_bytes();
        if let Some(entry) = lead.as_ref().and_then(RosterEntry::new)
            && let Ok(made) = Team::read(&config)
        {
            config = made.with_copied_member(MemberName::lead().as_str(), &entry.mirror);
        }
        match self.config.local.create_team(&team, &config, &link_actor()).await {
            Ok(_) => {
                // Forget the tasks of an earlier local team, which was deleted together with its
                // board. Otherwise the link would delete these tasks from the shared store too.
                self.state.tasks.clear();
                self.state.creating.clear();
                self.emit(&LinkEvent::Made { side: "here" });
                Ok(())
            }
            Err(StoreError::TeamExists { .. }) => Ok(()),
            Err(error) => Err(LinkError::Local(error)),
        }
    }

    pub(super) fn read<'d>(&self, config: &'d Document) -> Result<Team<'d>, LinkError> {
        Team::read(&config.bytes).map_err(|damage| {
            let place = format!("the configuration of team {}", self.config.team);
            LinkError::Local(StoreError::Damaged { place, damage })
        })
    }

    /// Writes an entry to the shared roster.
    pub(super) async fn write_shared(
        &self,
        name: &MemberName,
        entry: &MemberEntry,
        by: String,
    ) -> Result<(), LinkError> {
        let Some(config) =
            self.config.call_shared(self.config.shared.team(&self.config.team)).await?
        else {
            return Err(LinkError::Shared(StoreError::NoTeam { team: self.config.team.clone() }));
        };
        let team = self.read(&config)?;
        let edited = match team.with_own_changes(name.as_str(), entry) {
            Some(edited) => edited.into_owned(),
            None => team.with_copied_member(name.as_str(), entry),
        };
        self.replace_shared(&config, &edited, by).await
    }

    /// Writes an entry to the local roster. Returns true if the roster had no entry for this member
    /// before.
    pub(super) async fn write_local(
        &self,
        name: &MemberName,
        entry: &MemberEntry,
    ) -> Result<bool, LinkError> {
        let config = self.local_config().await?;
        let (edited, new) = {
            let team = self.read(&config)?;
            (team.with_copied_member(name.as_str(), entry), team.member(name.as_str()).is_none())
        };
        self.replace_local(&config, &edited).await?;
        Ok(new)
    }

    pub(super) async fn remove_local(&self, name: &MemberName) -> Result<(), LinkError> {
        let config = self.local_config().await?;
        let edited = self.read(&config)?.without_member(name.as_str()).into_owned();
        self.replace_local(&config, &edited).await
    }

    pub(super) async fn remove_shared(
        &self,
        name: &MemberName,
        by: String,
    ) -> Result<(), LinkError> {
        let Some(config) =
            self.config.call_shared(self.config.shared.team(&self.config.team)).await?
        else {
            return Ok(());
        };
        let edited = self.read(&config)?.without_member(name.as_str()).into_owned();
        self.replace_shared(&config, &edited, by).await
    }

    async fn local_config(&self) -> Result<Document, LinkError> {
        let config = self.config.local.team(&self.config.team).await.map_err(LinkError::Local)?;
        config
            .ok_or_else(|| LinkError::Local(StoreError::NoTeam { team: self.config.team.clone() }))
    }

    async fn replace_local(&self, before: &Document, edited: &[u8]) -> Result<(), LinkError> {
        if edited == before.bytes {
            return Ok(());
        }
        let Self { config, .. } = self;
        let written =
            config.local.replace_team(&config.team, edited, before.revision, &link_actor()).await;
        written.map(drop).map_err(LinkError::Local)
    }

    async fn replace_shared(
        &self,
        before: &Document,
        edited: &[u8],
        by: String,
    ) -> Result<(), LinkError> {
        if edited == before.bytes {
            return Ok(());
        }
        let (config, by) = (&self.config, Actor(by));
        let call = config.shared.replace_team(&config.team, edited, before.revision, &by);
        config.call_shared(call).await.map(drop)
    }
}

/// Returns whether a team is a mirror: a team that a link created because the lead runs on another host.
pub fn is_mirror(team: &Team<'_>) -> bool {
    team.lead().is_some_and(|lead| lead.is_remote())
}
