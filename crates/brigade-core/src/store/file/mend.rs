//! A roster that nobody will finish writing.

use brigade_wire::Damage;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use super::dir::{Fsync, PRIVATE};
use super::document::{self, DocumentId};
use super::own::TeamStateDir;
use super::{FileStore, NativeDirs};
use crate::store::{Document, StoreError};

impl FileStore {
    /// Puts a whole roster into the place of one that is torn for good; whether there may be one now.
    ///
    /// Claude Code writes `config.json` in place, and nobody on the team can do anything with half of one.
    /// Of two that write at once the longer text may stand behind the shorter: then what came last is
    /// whole, and is kept. Killed while at it, one leaves an empty file or half of one: then it is put
    /// back as it was last seen. That only in a team of our making: of any other we cannot know that
    /// what we saw last is what its lead would put there.
    pub(super) async fn repair_roster(
        &self,
        team: &TeamName,
        native: &NativeDirs,
        document_id: DocumentId,
        torn: &Document,
    ) -> Result<bool, StoreError> {
        let team_state = self.team_state(team)?;
        let Some(repaired) = last_complete_text(&torn.bytes)
            .map_or_else(|| last_seen(&team_state), |text| Ok(Some(text)))?
        else {
            return Ok(false);
        };
        // Named by what is in it: several who find it keep one copy.
        let copy = format!("config-{:016x}.json", torn.revision.0);
        let damaged_copies = team_state.dir.private_child("aside")?;
        if !torn.bytes.is_empty() {
            damaged_copies.write_temp(&copy, &torn.bytes, Some(PRIVATE), Fsync::Yes)?;
        }
        let replaced = self.retry(|waiter| {
            let seen = team_state.lock_seen()?;
            let change = (repaired.as_slice(), torn.revision);
            document::try_replace(
                &native.team,
                document_id,
                change,
                seen.as_ref(),
                waiter,
                self.sync(),
            )
        });
        match replaced.await {
            Ok(()) => tracing::warn!(%team, "a torn config.json was made whole"),
            // It is another by now: somebody else has mended it, or it was finished after all.
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
        self.sync_if_power_safe(Some(&native.team))?;
        Ok(true)
    }
}

/// What the last writer wrote, if only the end of an earlier text stands behind it.
fn last_complete_text(torn: &[u8]) -> Option<Vec<u8>> {
    let Err(Damage::Tail { end }) = Team::read(torn) else { return None };
    let repaired = torn.get(..end)?;
    Team::read(repaired).ok().map(|_| repaired.to_owned())
}

/// The roster as it was last seen, if the team is of our making.
fn last_seen(team_state: &TeamStateDir) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(last) = team_state.last_roster()? else { return Ok(None) };
    let created = Team::read(&last).ok().and_then(|team| team.created_at());
    Ok(if created.is_some() && created == team_state.created()? { Some(last) } else { None })
}
