//! Implements [`TeamStore`]: teams and their rosters.

use std::collections::HashMap;

use async_trait::async_trait;
use brigade_core::store::{Actor, Document, Revision, StoreError, TeamStore, Written};
use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::team::Team;

use super::{NatsStore, locked};
use crate::layout::Stream;
use crate::placement::ShardChoice;
use crate::read::ReadRange;
use crate::write::{DELETED, ELSEWHERE, INCARNATION, OP, PendingWrite};

#[async_trait]
impl TeamStore for NatsStore {
    async fn teams(&self) -> Result<Vec<TeamName>, StoreError> {
        if let Some(team) = &self.connection.identity.team {
            let exists = self.roster(team).await?.incarnation().is_some();
            return Ok(exists.then(|| team.clone()).into_iter().collect());
        }
        let mut teams = Vec::new();
        for shard in 0..self.current_map().await?.total() {
            teams.append(&mut self.teams_in(shard).await?);
        }
        teams.sort();
        Ok(teams)
    }

    async fn team(&self, team: &TeamName) -> Result<Option<Document>, StoreError> {
        Ok(self.roster(team).await?.document())
    }

    async fn create_team(&self, team: &TeamName, config: &[u8], by: &Actor) -> Written {
        let by = &self.author(by);
        let incarnation = uuid::Uuid::new_v4().simple().to_string();
        self.create(team, config, &incarnation, by).await
    }

    async fn revive_team(
        &self,
        team: &TeamName,
        config: &[u8],
        tasks: &[(TaskId, Vec<u8>)],
        by: &Actor,
    ) -> Written {
        let by = &self.author(by);
        check_team(config)?;
        if self.roster(team).await?.incarnation().is_some() {
            return Err(StoreError::TeamExists { team: team.clone() });
        }
        // Write the board before the team. The board becomes visible when the team is created, because the
        // team gets the same incarnation.
        let subjects = self.assign(team, ShardChoice::ByName).await?;
        let incarnation = uuid::Uuid::new_v4().simple().to_string();
        let mut highest = 0;
        for (id, task) in tasks {
            let (_, seq) = self.connection.task(&subjects, *id, &incarnation).await?;
            self.connection.set_task(&subjects, &incarnation, *id, Some(task), seq, by).await?;
            highest = highest.max(id.get());
        }
        let stream = subjects.stream(Stream::Board);
        let last = self.connection.last(&stream, &subjects.number(), "read the board").await?;
        let seq = last.map_or(0, |last| last.seq);
        self.connection.set_number(&subjects, &incarnation, by, highest, seq).await?;
        self.create(team, config, &incarnation, by).await
    }

    async fn replace_team(
        &self,
        team: &TeamName,
        config: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        let by = &self.author(by);
        check_team(config)?;
        let roster = self.roster(team).await?;
        if roster.incarnation().is_none() {
            return Err(StoreError::NoTeam { team: team.clone() });
        }
        self.connection
            .replace_roster(&self.subjects(team), &roster, config, at, by)
            .await
            .map(Revision)
    }

    async fn delete_team(&self, team: &TeamName, by: &Actor) -> Result<(), StoreError> {
        let by = &self.author(by);
        loop {
            let roster = self.roster(team).await?;
            let subjects = self.subjects(team);
            if roster.incarnation().is_none() {
                return Err(StoreError::NoTeam { team: team.clone() });
            }
            let pending =
                PendingWrite::new(subjects.config_by(&by.0), &[]).with_header(OP, DELETED);
            // Members cannot delay this by changes to their own entries.
            let pending = pending.expect_last(subjects.config(), roster.document_seq());
            match self.connection.write(pending, "delete the team").await {
                Err(StoreError::Conflict) => {}
                written => {
                    locked(&self.incarnations).remove(team);
                    return written.map(drop);
                }
            }
        }
    }
}

impl NatsStore {
    /// Returns the teams in a shard, in no order.
    pub(crate) async fn teams_in(&self, shard: u16) -> Result<Vec<TeamName>, StoreError> {
        let mut last: HashMap<String, (u64, bool)> = HashMap::new();
        let filter = format!("tm.{shard}.*.doc.cfg.*");
        let stream = Stream::Team.name(shard);
        let found =
            self.connection.read(&stream, &filter, ReadRange::LastHeaders, "list the teams");
        for stored in found.await? {
            let Some(team) = stored.subject.split('.').nth(2) else { continue };
            let exists = !matches!(stored.header(OP), Some(DELETED | ELSEWHERE));
            let entry = last.entry(team.to_owned()).or_default();
            if stored.seq > entry.0 {
                *entry = (stored.seq, exists);
            }
        }
        let exists = last.into_iter().filter(|(_, (_, exists))| *exists);
        Ok(exists.filter_map(|(team, _)| team.parse().ok()).collect())
    }

    async fn create(
        &self,
        team: &TeamName,
        config: &[u8],
        incarnation: &str,
        by: &Actor,
    ) -> Written {
        check_team(config)?;
        loop {
            let subjects = self.assign(team, ShardChoice::ByName).await?;
            let roster = self.roster(team).await?;
            if roster.incarnation().is_some() {
                return Err(StoreError::TeamExists { team: team.clone() });
            }
            let pending = PendingWrite::new(subjects.config_by(&by.0), config)
                .with_header(INCARNATION, incarnation);
            match self
                .connection
                .write(
                    pending.expect_last(subjects.config(), roster.document_seq()),
                    "create the team",
                )
                .await
            {
                Err(StoreError::Conflict) => {}
                written => return written.map(Revision),
            }
        }
    }
}

fn check_team(config: &[u8]) -> Result<(), StoreError> {
    let read = Team::read(config);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new team".into(), damage })
}
