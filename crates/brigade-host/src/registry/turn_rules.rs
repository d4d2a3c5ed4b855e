//! Rules that a person added for the current turn of a member.
//!
//! The member's process removes them when a turn starts and when it ends, and when it starts the agent. So they never answer a
//! request of another turn.

use std::path::Path;

use brigade_agents::driver::AgentEvent;
use brigade_agents::teammate::TeammateEvent;
use brigade_core::policy::Rule;
use brigade_wire::name::{MemberName, TeamName};

use super::{Registry, read, remove, write};
use crate::error::HostError;

const TURN_RULES: &str = "turn-rules.json";

impl Registry {
    /// Returns the rules for the current turn of a member.
    pub(crate) fn turn_rules(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Vec<Rule>, HostError> {
        Ok(read(&self.member_dir(team, name).join(TURN_RULES))?.unwrap_or_default())
    }

    /// Replaces the rules for the current turn of a member.
    pub(crate) fn set_turn_rules(
        &self,
        team: &TeamName,
        name: &MemberName,
        rules: &[Rule],
    ) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(TURN_RULES);
        if rules.is_empty() { remove(&path) } else { write(&path, &rules) }
    }
}

/// Removes the rules of a turn that is over. Takes the member's folder in the registry, and an event of the member.
pub fn forget_turn_rules(folder: &Path, event: &TeammateEvent) {
    let is_boundary = match event {
        TeammateEvent::Started => true,
        TeammateEvent::Did(event) => {
            matches!(event, AgentEvent::TurnStarted | AgentEvent::TurnEnded(_))
        }
        _ => false,
    };
    if is_boundary && let Err(error) = remove(&folder.join(TURN_RULES)) {
        tracing::error!(%error, "cannot remove the rules of a turn that is over");
    }
}
