//! Implements [`MailStore`]: mailboxes.

use std::sync::Arc;

use async_trait::async_trait;
use brigade_core::event::{MessageKey, Record};
use brigade_core::store::{Mail, MailStore, Mark, Outgoing, Receipt, StoreError};
use brigade_wire::name::{MemberName, TeamName};
use futures_util::{StreamExt, stream};

use super::NatsStore;
use crate::journal::RecordDecoder;

/// How many messages to send at once.
const MAX_IN_FLIGHT: usize = 64;

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

    /// Sends all messages at once, so that the last one waits for only one round trip.
    async fn send_all(
        &self,
        team: &TeamName,
        messages: &[(MemberName, Outgoing)],
    ) -> Vec<Result<Receipt, StoreError>> {
        // Each send needs the incarnation. Read it once, before all of them ask for it.
        if let Err(error) = self.incarnation(team).await {
            return vec![Err(error)];
        }
        let mut sends = Vec::new();
        for (to, message) in messages {
            sends.push(self.send(team, to, message));
        }
        stream::iter(sends).buffered(MAX_IN_FLIGHT).collect().await
    }

    async fn inbox(&self, team: &TeamName, member: &MemberName) -> Result<Vec<Mail>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        let mailbox = self.mailboxes.get_or_create(team, member);
        let mut cached = mailbox.lock().await;
        // Read the generation before the inbox: the watch adds every message that arrives after this point.
        let generation = self.generations.now(team, member);
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
        let subjects = self.located(team).await?;
        // Members have also recorded events about this mailbox.
        let filters = self.visible_mailbox_filters(&subjects, member);
        let messages = self.read_messages(&subjects, filters).await?;
        let roster = self.roster(team).await?;
        // Do not count refused events here. The author of an old event may have left since.
        let mut decoder = RecordDecoder::with_roster(team, roster, Arc::default());
        let records = messages.iter().flat_map(|stored| decoder.decode(stored));
        let about = |record: &Record| record.event.mailbox() == Some(member.as_str());
        Ok(records.filter(about).collect())
    }
}
