//! The host of each member, as stored in the shared store.

use brigade_wire::name::MemberName;
use serde::{Deserialize, Serialize};

use super::{LinkConfig, LinkError};
use brigade_core::event::Event;
use brigade_core::store::NoteKind;

/// The host on which a member runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberHost {
    /// The name of the host.
    pub host: String,
    /// When the member joined, according to its roster entry. This time distinguishes the member from later
    /// members of the same name. The whole record is written after the member joined and is kept after the member
    /// left, so that a late write to the files on this host does not bring the member back.
    pub joined_at: Option<u64>,
}

impl LinkConfig {
    /// Returns the host of a member, if it is recorded in the shared store.
    pub(super) async fn member_host(
        &self,
        member: &MemberName,
    ) -> Result<Option<MemberHost>, LinkError> {
        let note =
            self.call_shared(self.shared.get_note(&self.team, member, NoteKind::Home)).await?;
        // A record that does not parse counts as missing.
        Ok(note.and_then(|note| serde_json::from_slice(&note).ok()))
    }

    /// Returns whether the shared journal's last roster event about the member says that the member
    /// left.
    pub(super) async fn has_left(&self, member: &MemberName) -> Result<bool, LinkError> {
        let history = self.call_shared(self.shared.team_history(&self.team)).await?;
        let mut left = false;
        for record in history {
            match &record.event {
                Event::Member { name, .. } if name == member.as_str() => left = false,
                Event::MemberLeft { name } if name == member.as_str() => left = true,
                Event::TeamCreated { .. } => left = false,
                _ => {}
            }
        }
        Ok(left)
    }

    /// Returns whether a process runs the member and uses the shared store directly, without a link.
    pub(super) async fn has_pulse(&self, member: &MemberName) -> Result<bool, LinkError> {
        let pulse =
            self.call_shared(self.shared.get_note(&self.team, member, NoteKind::Pulse)).await?;
        Ok(pulse.is_some())
    }

    /// Records that a member runs on this host.
    pub(super) async fn record_host(
        &self,
        member: &MemberName,
        joined_at: Option<u64>,
    ) -> Result<(), LinkError> {
        let home = MemberHost { host: self.host.clone(), joined_at };
        let note = serde_json::to_vec(&home).unwrap_or_default();
        self.call_shared(self.shared.put_note(&self.team, member, NoteKind::Home, Some(&note)))
            .await
    }
}
