//! The event history: records events, reads the history and watches for new events.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use brigade_core::event::{Event, EventAuthor, Record, RefusedEvent};
use brigade_core::store::{Actor, EventLog, StoreError, Watch};
use brigade_wire::name::{MemberName, TeamName};

use super::NatsStore;
use crate::error::NatsError;
use crate::layout::{MessageClass, Stream, Subjects};
use crate::roster::Roster;
use crate::watch::{self, WatchedFilter};
use crate::watch_generations::WatchedMailboxes;
use crate::write::{INCARNATION, PendingWrite};

#[async_trait]
impl EventLog for NatsStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        let incarnation = self.incarnation(team).await?;
        // Members record work often, and the roster says nothing about whose work it is.
        let roster = match event.addressee() {
            Some(_) => self.roster(team).await?,
            None => Roster::default(),
        };
        let members = roster.members();
        event.check_author(EventAuthor {
            name: &by.0,
            leads: roster.lead().is_some_and(|lead| lead == by.0),
            answers: self.connection.identity.answers,
            members: members.as_deref(),
        })?;
        let text = serde_json::to_vec(&event).map_err(|error| {
            NatsError::Malformed(error.to_string()).while_doing("record an event")
        })?;
        let id = Some(uuid::Uuid::new_v4().to_string());
        let subjects = self.subjects(team);
        let class = if event.is_answer() { MessageClass::Answer } else { MessageClass::Text };
        let subject = match event.addressee() {
            Some(to) => subjects.event(to, &by.0, class),
            None => subjects.work_by(&by.0),
        };
        let pending = PendingWrite { id, ..PendingWrite::new(subject, &text) }
            .with_header(INCARNATION, incarnation);
        self.connection.write(pending, "record an event").await.map(drop)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.located(team).await?;
        let filters = self.visible_filters(&subjects);
        self.read_records(&subjects, filters, Arc::clone(&self.refused)).await
    }

    async fn history_without_work(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.located(team).await?;
        let filters = self.visible_filters_without_work(&subjects);
        self.read_records(&subjects, filters, Arc::clone(&self.refused)).await
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.located(team).await?;
        let filters = self.visible_filters(&subjects);
        self.follow(&subjects, None, filters).await
    }

    fn history_expires(&self) -> bool {
        true
    }

    fn refused_events(&self, team: &TeamName) -> Vec<(RefusedEvent, usize)> {
        self.refused.counts(team)
    }

    /// The connection may be interrupted.
    fn recheck_interval(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.located(team).await?;
        let filters = self.visible_filters_without_work(&subjects);
        self.follow(&subjects, None, filters).await
    }

    async fn watch_member(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Watch, StoreError> {
        let subjects = self.located(team).await?;
        let filters = subjects.member_filters(member);
        self.follow(&subjects, Some(member), filters).await
    }
}

impl NatsStore {
    async fn follow(
        &self,
        subjects: &Subjects,
        member: Option<&MemberName>,
        filters: Vec<(Stream, String)>,
    ) -> Result<Watch, StoreError> {
        self.incarnation(&subjects.team).await?;
        let scope = WatchedMailboxes { team: subjects.team.clone(), member: member.cloned() };
        let sources = filters.into_iter();
        let sources =
            sources.map(|(stream, filter)| WatchedFilter::new(subjects, stream, filter)).collect();
        let (generations, mailboxes) = (Arc::clone(&self.generations), Arc::clone(&self.mailboxes));
        let refused = Arc::clone(&self.refused);
        let connection = Arc::clone(&self.connection);
        watch::follow(connection, subjects, scope, sources, generations, mailboxes, refused).await
    }
}
