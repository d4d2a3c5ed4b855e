//! The event history: records events, reads the history and watches for new events.

use std::sync::Arc;

use async_trait::async_trait;
use brigade_core::event::{Event, Record, RefusedEvent};
use brigade_core::store::{Actor, EventLog, StoreError, Watch};
use brigade_wire::name::TeamName;

use super::NatsStore;
use crate::error::NatsError;
use crate::layout::{Stream, Subjects};
use crate::watch::{self, WatchedFilter};
use crate::write::{INCARNATION, PendingWrite};

#[async_trait]
impl EventLog for NatsStore {
    async fn record(&self, team: &TeamName, event: Event, by: &Actor) -> Result<(), StoreError> {
        // Readers compare the author with the roster. Here it is enough to refuse what no roster would allow.
        event.check_recorder(&by.0, true)?;
        let incarnation = self.incarnation(team).await?;
        let text = serde_json::to_vec(&event).map_err(|error| {
            NatsError::Malformed(error.to_string()).while_doing("record an event")
        })?;
        let id = Some(uuid::Uuid::new_v4().to_string());
        let subjects = self.subjects(team);
        let subject = match event {
            Event::Worked { .. } => subjects.work_by(&by.0),
            _ => subjects.record(&by.0),
        };
        let pending = PendingWrite { id, ..PendingWrite::new(subject, &text) }
            .with_header(INCARNATION, incarnation);
        self.connection.write(pending, "record an event").await.map(drop)
    }

    async fn history(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters(&subjects);
        self.read_records(&subjects, filters, Arc::clone(&self.refused)).await
    }

    async fn history_without_work(&self, team: &TeamName) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters_without_work(&subjects);
        self.read_records(&subjects, filters, Arc::clone(&self.refused)).await
    }

    async fn watch(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters(&subjects);
        self.follow(&subjects, filters).await
    }

    fn refused_events(&self) -> Vec<(RefusedEvent, usize)> {
        self.refused.counts()
    }

    async fn watch_without_work(&self, team: &TeamName) -> Result<Watch, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_filters_without_work(&subjects);
        self.follow(&subjects, filters).await
    }
}

impl NatsStore {
    async fn follow(
        &self,
        subjects: &Subjects,
        filters: Vec<(Stream, String)>,
    ) -> Result<Watch, StoreError> {
        self.incarnation(&subjects.team).await?;
        let sources = filters.into_iter();
        let sources =
            sources.map(|(stream, filter)| WatchedFilter::new(subjects, stream, filter)).collect();
        let (generations, mailboxes) = (Arc::clone(&self.generations), Arc::clone(&self.mailboxes));
        let refused = Arc::clone(&self.refused);
        let connection = Arc::clone(&self.connection);
        watch::follow(connection, subjects, sources, generations, mailboxes, refused).await
    }
}
