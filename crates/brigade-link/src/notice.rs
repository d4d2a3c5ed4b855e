//! Notices that a link sends to local members, and message ids that a link creates.

use brigade_wire::name::{MemberName, SYSTEM};

use super::roster::MemberSides;
use super::{Link, LinkError};
use brigade_core::clock::wire_time;
use brigade_core::hash::derived_uuid;
use brigade_core::store::{MailQuery, MailStore, Outgoing};

/// Derives a message id from these parts. The same parts always result in the same id.
pub(super) fn message_id(parts: &[&str], created: Option<u64>) -> String {
    let created = created.unwrap_or_default().to_le_bytes();
    let parts = parts.iter().map(|part| part.as_bytes());
    let fields: Vec<&[u8]> = [created.as_slice()].into_iter().chain(parts).collect();
    derived_uuid(&fields).to_string()
}

impl Link {
    /// Sends a notice to a local member, unless a notice with the same `subject` was sent before.
    /// The sender is a system name that no member can have.
    pub(super) async fn notify(
        &mut self,
        to: &MemberName,
        subject: &[&str],
        text: &str,
        sides: &MemberSides,
    ) -> Result<(), LinkError> {
        let parts: Vec<&str> = [self.config.team.as_str(), to.as_str()]
            .into_iter()
            .chain(subject.iter().copied())
            .collect();
        let message = Outgoing {
            msg_id: message_id(&parts, sides.created),
            from: SYSTEM.to_owned(),
            text: text.to_owned(),
            summary: None,
            timestamp: wire_time(self.config.clock.now()),
            color: None,
            msg_v: None,
            lead_sig: None,
            team_created: sides.created.unwrap_or_default(),
        };
        let config = &self.config;
        let is_sent = match self.mailboxes.get(to) {
            Some(mailbox) => mailbox.had(message.key()),
            None => {
                let keys = [message.key()];
                let query = MailQuery::Messages(&keys);
                let found = config.local.find_mail(&config.team, to, query).await;
                found
                    .map_err(LinkError::Local)?
                    .iter()
                    .any(|record| message.is_added_by(&record.event))
            }
        };
        if !is_sent {
            config.local.send(&config.team, to, &message).await.map_err(LinkError::Local)?;
        }
        Ok(())
    }
}
