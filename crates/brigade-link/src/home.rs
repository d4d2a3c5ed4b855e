//! Where a member lives, as the far store keeps it.

use brigade_wire::name::MemberName;
use serde::{Deserialize, Serialize};

use super::{Ends, LinkError};
use brigade_core::event::Event;
use brigade_core::store::Shelf;

/// On which host's files a member lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Home {
    /// What the host is called.
    pub host: String,
    /// When the member joined, as its entry says: a later one of the same name is another. The note is
    /// written behind the joining and outlives the leaving, so that a late write here does not bring
    /// back who has left.
    pub joined_at: Option<u64>,
}

impl Ends {
    /// Where a member lives, if that is said.
    pub(super) async fn home(&self, of: &MemberName) -> Result<Option<Home>, LinkError> {
        let note = self.far(self.far.kept(&self.team, of, Shelf::Home)).await?;
        // A note nobody can read says nothing.
        Ok(note.and_then(|note| serde_json::from_slice(&note).ok()))
    }

    /// Whether the last that the far journal tells of a member is that it left.
    pub(super) async fn has_left(&self, member: &MemberName) -> Result<bool, LinkError> {
        let history = self.far(self.far.proceedings(&self.team)).await?;
        let mut left = false;
        for record in history {
            match record.event {
                Event::Member { name, .. } if name == member.as_str() => left = false,
                Event::MemberLeft { name } if name == member.as_str() => left = true,
                Event::TeamCreated { .. } => left = false,
                _ => {}
            }
        }
        Ok(left)
    }

    /// Whether somebody plays a member in the far store itself.
    pub(super) async fn is_played(&self, member: &MemberName) -> Result<bool, LinkError> {
        let pulse = self.far(self.far.kept(&self.team, member, Shelf::Pulse)).await?;
        Ok(pulse.is_some())
    }

    /// Says that a member lives here.
    pub(super) async fn settle(
        &self,
        member: &MemberName,
        joined_at: Option<u64>,
    ) -> Result<(), LinkError> {
        let home = Home { host: self.host.clone(), joined_at };
        let note = serde_json::to_vec(&home).unwrap_or_default();
        self.far(self.far.keep(&self.team, member, Shelf::Home, Some(&note))).await
    }
}
