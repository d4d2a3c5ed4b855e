//! A roster that nobody will finish writing.

use brigade_wire::Damage;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use super::dir::{PRIVATE, Sync};
use super::document::{self, Which};
use super::own::Own;
use super::{FileStore, Native};
use brigade_core::store::{Document, StoreError};

impl FileStore {
    /// Puts a whole roster into the place of one that is torn for good; whether there may be one now.
    ///
    /// Claude Code writes `config.json` in place, and nobody on the team can do anything with half of one.
    /// Of two that write at once the longer text may stand behind the shorter: then what came last is
    /// whole, and is kept. Killed while at it, one leaves an empty file or half of one: then it is put
    /// back as it was last seen. That only in a team of our making: of any other we cannot know that
    /// what we saw last is what its lead would put there.
    pub(super) async fn mend_roster(
        &self,
        team: &TeamName,
        native: &Native,
        which: Which,
        torn: &Document,
    ) -> Result<bool, StoreError> {
        let own = self.own(team)?;
        let Some(whole) =
            written_last(&torn.bytes).map_or_else(|| last_seen(&own), |it| Ok(Some(it)))?
        else {
            return Ok(false);
        };
        // Named by what is in it: several who find it keep one copy.
        let copy = format!("config-{:016x}.json", torn.revision.0);
        let aside = own.dir.own_child("aside")?;
        if !torn.bytes.is_empty() {
            aside.write_temp(&copy, &torn.bytes, Some(PRIVATE), Sync::Yes)?;
        }
        let replaced = self.wait(|patience| {
            let seen = own.seen()?;
            let change = (whole.as_slice(), torn.revision);
            document::try_replace(&native.team, which, change, seen.as_ref(), patience, self.sync())
        });
        match replaced.await {
            Ok(()) => tracing::warn!(%team, "a torn config.json was made whole"),
            // It is another by now: somebody else has mended it, or it was finished after all.
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
        self.settle(Some(&native.team))?;
        Ok(true)
    }
}

/// What the last writer wrote, if only the end of an earlier text stands behind it.
fn written_last(torn: &[u8]) -> Option<Vec<u8>> {
    let Err(Damage::Tail { end }) = Team::read(torn) else { return None };
    let whole = torn.get(..end)?;
    Team::read(whole).ok().map(|_| whole.to_owned())
}

/// The roster as it was last seen, if the team is of our making.
fn last_seen(own: &Own) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(last) = own.last_roster()? else { return Ok(None) };
    let made = Team::read(&last).ok().and_then(|team| team.created_at());
    Ok(if made.is_some() && made == own.created()? { Some(last) } else { None })
}
