//! Implements [`MailStore`]: mailboxes.

use std::sync::Arc;

use async_trait::async_trait;
use brigade_core::event::{MessageKey, Record};
use brigade_core::store::{Mail, MailStore, Mark, Outgoing, Receipt, StoreError};
use brigade_wire::name::{MemberName, TeamName};

use super::NatsStore;
use crate::layout::Stream;

#[async_trait]
impl MailStore for NatsStore {
    async fn send(
        &self,
        team: &TeamName,
        to: &MemberName,
        message: &Outgoing,
    ) -> Result<Receipt, StoreError> {
        let incarnation = self.incarnation(team).await?;
        self.connection.post(&self.subjects(team), to, message, &incarnation).await?;
        Ok(Receipt { msg_id: message.msg_id.clone(), pending: None })
    }

    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        let mailbox = self.mailboxes.get_or_create(team, member);
        let mut cached = mailbox.lock().await;
        // Read the generation before the inbox: the watch adds every message that arrives after this point.
        let generation = self.generations.now(team);
        self.connection
            .inbox(&self.subjects(team), member, &incarnation, &mut cached, generation)
            .await
    }

    async fn mark(
        &self,
        team: &TeamName,
        member: &MemberName,
        keys: &[MessageKey],
        mark: Mark,
    ) -> Result<(), StoreError> {
        let incarnation = self.incarnation(team).await?;
        let mailbox = self.mailboxes.get_or_create(team, member);
        let mut cached = mailbox.lock().await;
        self.connection
            .mark(&self.subjects(team), member, keys, mark, &incarnation, &mut cached)
            .await
    }

    async fn mailbox_history(
        &self,
        team: &TeamName,
        member: &MemberName,
    ) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(team);
        let filters = self.visible_mailbox_filters(&subjects, member);
        let records = self.read_records(&subjects, filters, Arc::default()).await?;
        // Members have also recorded events about this mailbox. Include those events.
        // Do not count refused events here: without the roster, the lead's answers would be counted too.
        let filters = vec![(Stream::Mail, subjects.records())];
        let noted = self.read_records(&subjects, filters, Arc::default()).await?;
        let about = |record: &Record| record.event.mailbox() == Some(member.as_str());
        let mut all: Vec<Record> =
            records.into_iter().chain(noted.into_iter().filter(about)).collect();
        all.sort_by_key(|record| record.at);
        Ok(all)
    }
}
