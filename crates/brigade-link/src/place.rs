//! The team itself on both sides, and one entry written on either.

use std::borrow::Cow;

use brigade_wire::member::{Copied, Member};
use brigade_wire::name::MemberName;
use brigade_wire::team::{NewTeam, Team};

use super::judge::Entry;
use super::{Link, LinkError, News, REMOTE, link};
use brigade_core::store::{Actor, Document, Store as _, StoreError};

impl Link {
    /// The configurations of both sides. What is missing on one side is made after the other, unless it
    /// was there and is gone.
    pub(super) async fn teams(&mut self) -> Result<(Document, Document), LinkError> {
        let ends = self.ends.clone();
        let team = &ends.team;
        // Two rounds: what is not there is made in the first.
        for _ in 0..2 {
            let here = ends.local.team(team).await.map_err(LinkError::Here)?;
            let there = ends.far(ends.far.team(team)).await?;
            match (here, there) {
                (None, None) => return Err(LinkError::NoTeam { team: team.clone() }),
                (Some(here), None) => self.make_there(&here).await?,
                (None, Some(there)) => self.make_here(&there).await?,
                (Some(here), Some(there)) => {
                    let (read_here, read_there) = (self.read(&here)?, self.read(&there)?);
                    let created = read_there.created_at();
                    if read_here.created_at() == created {
                        if self.memory.created != created {
                            self.posts.clear();
                            self.sent.clear();
                        }
                        self.memory.be_about(created);
                        self.memory.linked = true;
                        return Ok((here, there));
                    }
                    if !is_mirror(&read_here) {
                        return Err(LinkError::OtherTeam { team: team.clone() });
                    }
                    // The mirror of an earlier team of the name.
                    let gone = ends.local.delete_team(team, &link()).await;
                    gone.map_err(LinkError::Here)?;
                    self.make_here(&there).await?;
                }
            }
        }
        Err(LinkError::Far(StoreError::Conflict))
    }

    /// The team in the far store, after the one here.
    async fn make_there(&mut self, here: &Document) -> Result<(), LinkError> {
        let team = self.ends.team.clone();
        let read = self.read(here)?;
        let ended = LinkError::Ended { team: team.clone(), side: "from the engine" };
        if is_mirror(&read) {
            let gone = self.ends.local.delete_team(&team, &link()).await;
            gone.map_err(LinkError::Here)?;
            return Err(ended);
        }
        if self.memory.linked && self.memory.created == read.created_at() {
            return Err(ended);
        }
        let lead = read.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let by = Actor(lead.unwrap_or_else(|| MemberName::lead().to_string()));
        let mut config = here.bytes.clone();
        let remote: Vec<String> = read
            .members()
            .filter(|member| member.backend_type().as_deref() == Some(REMOTE))
            .filter_map(|member| Some(member.name()?.into_owned()))
            .collect();
        for name in remote {
            let without = Team::read(&config).map(|team| team.without_member(&name).into_owned());
            config = without.unwrap_or(config);
        }
        match self.ends.far(self.ends.far.create_team(&team, &config, &by)).await {
            Ok(_) => {
                self.say(&News::Made { side: "in the engine" });
                Ok(())
            }
            // Somebody else was faster, or an answer got lost.
            Err(LinkError::Far(StoreError::TeamExists { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The team in the files, after the one in the far store: its lead lives elsewhere.
    ///
    /// It has the old form whatever the other has, for the new one names a process of its host.
    async fn make_here(&mut self, there: &Document) -> Result<(), LinkError> {
        let team = self.ends.team.clone();
        let read = self.read(there)?;
        if self.memory.lead_here && self.memory.created == read.created_at() {
            // Its lead ended it. Whether the others go on without is not for a link to say.
            return Err(LinkError::Ended { team, side: "from the files here, where its lead was" });
        }
        let lead = read.lead();
        let text = |of: Option<Cow<'_, str>>| of.unwrap_or_default().into_owned();
        let new = NewTeam {
            name: &team,
            description: &text(read.description()),
            created_at: read.created_at().unwrap_or_default(),
            lead_session_id: &text(read.lead_session_id()),
            lead_model: &text(lead.as_ref().and_then(Member::model)),
            lead_cwd: &text(lead.as_ref().and_then(Member::cwd)),
        };
        let mut config = new.to_bytes();
        if let Some(entry) = lead.as_ref().and_then(Entry::of)
            && let Ok(made) = Team::read(&config)
        {
            config = made.with_entry(MemberName::lead().as_str(), &entry.mirror);
        }
        match self.ends.local.create_team(&team, &config, &link()).await {
            Ok(_) => {
                // One that was here before is gone with its board, and nobody deleted a task of it.
                self.memory.tasks.clear();
                self.memory.making.clear();
                self.say(&News::Made { side: "here" });
                Ok(())
            }
            Err(StoreError::TeamExists { .. }) => Ok(()),
            Err(error) => Err(LinkError::Here(error)),
        }
    }

    pub(super) fn read<'d>(&self, config: &'d Document) -> Result<Team<'d>, LinkError> {
        Team::read(&config.bytes).map_err(|damage| {
            let place = format!("the configuration of team {}", self.ends.team);
            LinkError::Here(StoreError::Damaged { place, damage })
        })
    }

    /// Writes an entry into the far roster.
    pub(super) async fn write_there(
        &self,
        name: &MemberName,
        entry: &Copied,
        by: String,
    ) -> Result<(), LinkError> {
        let Some(config) = self.ends.far(self.ends.far.team(&self.ends.team)).await? else {
            return Err(LinkError::Far(StoreError::NoTeam { team: self.ends.team.clone() }));
        };
        let edited = self.read(&config)?.with_entry(name.as_str(), entry);
        self.replace_there(&config, &edited, by).await
    }

    /// Writes an entry into the roster here; whether there was none.
    pub(super) async fn write_here(
        &self,
        name: &MemberName,
        entry: &Copied,
    ) -> Result<bool, LinkError> {
        let config = self.config_here().await?;
        let (edited, new) = {
            let team = self.read(&config)?;
            (team.with_entry(name.as_str(), entry), team.member(name.as_str()).is_none())
        };
        self.replace_here(&config, &edited).await?;
        Ok(new)
    }

    pub(super) async fn take_off_here(&self, name: &MemberName) -> Result<(), LinkError> {
        let config = self.config_here().await?;
        let edited = self.read(&config)?.without_member(name.as_str()).into_owned();
        self.replace_here(&config, &edited).await
    }

    pub(super) async fn take_off_there(
        &self,
        name: &MemberName,
        by: String,
    ) -> Result<(), LinkError> {
        let Some(config) = self.ends.far(self.ends.far.team(&self.ends.team)).await? else {
            return Ok(());
        };
        let edited = self.read(&config)?.without_member(name.as_str()).into_owned();
        self.replace_there(&config, &edited, by).await
    }

    async fn config_here(&self) -> Result<Document, LinkError> {
        let config = self.ends.local.team(&self.ends.team).await.map_err(LinkError::Here)?;
        config.ok_or_else(|| LinkError::Here(StoreError::NoTeam { team: self.ends.team.clone() }))
    }

    async fn replace_here(&self, config: &Document, edited: &[u8]) -> Result<(), LinkError> {
        if edited == config.bytes {
            return Ok(());
        }
        let Self { ends, .. } = self;
        let written = ends.local.replace_team(&ends.team, edited, config.revision, &link()).await;
        written.map(drop).map_err(LinkError::Here)
    }

    async fn replace_there(
        &self,
        config: &Document,
        edited: &[u8],
        by: String,
    ) -> Result<(), LinkError> {
        if edited == config.bytes {
            return Ok(());
        }
        let (ends, by) = (&self.ends, Actor(by));
        let call = ends.far.replace_team(&ends.team, edited, config.revision, &by);
        ends.far(call).await.map(drop)
    }
}

/// Whether a team is the image of one whose lead lives elsewhere: a link made it.
pub fn is_mirror(team: &Team<'_>) -> bool {
    team.lead().is_some_and(|lead| lead.backend_type().as_deref() == Some(REMOTE))
}
