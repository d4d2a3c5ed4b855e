//! Repairs a roster that is torn because its writer died or because two programs wrote it at once.

use brigade_wire::Damage;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use super::dir::{Fsync, PRIVATE};
use super::document::{self, DocumentId};
use super::last_seen::is_same_team;
use super::layout::DAMAGED_COPIES;
use super::team_state::TeamStateDir;
use super::{FileStore, NativeDirs};
use brigade_core::store::{Document, StoreError};

impl FileStore {
    /// Replaces a roster that stays torn. Returns whether the caller should read the roster again.
    ///
    /// Claude Code writes `config.json` in place, and no member can use a half-written roster. If
    /// two processes write at once, the end of the longer text may follow the shorter text. In that
    /// case, the shorter text was written last and is complete, so the shorter text is kept. A
    /// process that is killed while writing leaves an empty or truncated file. In that case, the
    /// last seen roster is restored, but only if it belongs to this team and brigade created the
    /// team. For other teams, the last seen roster may differ from what the lead would write.
    pub(super) async fn repair_roster(
        &self,
        team: &TeamName,
        native: &NativeDirs,
        document_id: DocumentId,
        torn: &Document,
    ) -> Result<bool, StoreError> {
        let team_state = self.team_state(team)?;
        let Some(repaired) = last_complete_text(&torn.bytes)
            .map_or_else(|| last_seen(&team_state, native, torn), |text| Ok(Some(text)))?
        else {
            return Ok(false);
        };
        // The copy's name is a hash of its contents, so several processes that find the same torn
        // file make only one copy.
        let copy = format!("config-{:016x}.json", torn.revision.0);
        let damaged_copies = team_state.dir.private_child(DAMAGED_COPIES)?;
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
            Ok(()) => tracing::warn!(%team, "repaired a torn config.json"),
            // The file has changed: another process repaired it, or its writer finished.
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
        self.sync_if_power_safe(Some(&native.team))?;
        Ok(true)
    }
}

/// Returns the text that was written last. Returns `None` unless that text is complete and is
/// followed by the end of a longer, earlier text.
fn last_complete_text(torn: &[u8]) -> Option<Vec<u8>> {
    let Err(Damage::Tail { end }) = Team::read(torn) else { return None };
    let repaired = torn.get(..end)?;
    Team::read(repaired).ok().map(|_| repaired.to_owned())
}

/// Returns the last seen roster, if it belongs to this team and brigade created the team.
fn last_seen(
    team_state: &TeamStateDir,
    native: &NativeDirs,
    torn: &Document,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(last) = team_state.last_roster()? else { return Ok(None) };
    if !is_same_team(&team_state.dir, &native.team, &torn.bytes, &last)? {
        return Ok(None);
    }
    let created = Team::read(&last).ok().and_then(|team| team.created_at());
    let is_ours = created.map_or(Ok(false), |created| team_state.is_created_by_us(created))?;
    Ok(is_ours.then_some(last))
}
