//! What a link has to tell a local member, and the ids it gives.

use brigade_wire::name::{MemberName, SYSTEM};

use super::roster::Sides;
use super::{Link, LinkError};
use brigade_core::clock::wire_time;
use brigade_core::hash::Fnv;
use brigade_core::store::{Outgoing, Store as _};

/// An id made of these words, the same each time.
pub(super) fn id_of(words: &[&str], created: Option<u64>) -> String {
    let half = |salt: &str| {
        let hash = Fnv::default().field(salt.as_bytes());
        let hash = hash.field(&created.unwrap_or_default().to_le_bytes());
        words.iter().fold(hash, |hash, word| hash.field(word.as_bytes())).finish()
    };
    let id = (u128::from(half("high")) << 64) | u128::from(half("low"));
    uuid::Builder::from_custom_bytes(id.to_be_bytes()).into_uuid().to_string()
}

impl Link {
    /// Tells a local member something, once however often this is called: `what` names it. It comes from
    /// nobody on the team, and no member can bear the name it comes from.
    pub(super) async fn tell(
        &mut self,
        to: &MemberName,
        what: &[&str],
        text: &str,
        sides: &Sides,
    ) -> Result<(), LinkError> {
        let words: Vec<&str> = [self.ends.team.as_str(), to.as_str()]
            .into_iter()
            .chain(what.iter().copied())
            .collect();
        let message = Outgoing {
            msg_id: id_of(&words, sides.created),
            from: SYSTEM.to_owned(),
            text: text.to_owned(),
            summary: None,
            timestamp: wire_time(self.ends.clock.now()),
            color: None,
            msg_v: None,
            lead_sig: None,
            team_created: sides.created.unwrap_or_default(),
        };
        let ends = &self.ends;
        let told = match self.posts.get(to) {
            Some(post) => post.had(message.key()),
            None => {
                let history = ends.local.mailbox_history(&ends.team, to).await;
                let history = history.map_err(LinkError::Here)?;
                history.iter().any(|record| record.event.message() == Some(message.key()))
            }
        };
        if !told {
            ends.local.send(&ends.team, to, &message).await.map_err(LinkError::Here)?;
        }
        Ok(())
    }
}
