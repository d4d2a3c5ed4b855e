//! A roster that nobody will finish writing.

use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use super::dir::{PRIVATE, Sync};
use super::document::{self, Which};
use super::{FileStore, Native};
use crate::store::{Document, StoreError};

impl FileStore {
    /// Puts the roster as it was last seen into the place of one that is torn for good; whether there may
    /// be a whole one now.
    ///
    /// Claude Code writes `config.json` in place. Killed while at it, it leaves an empty file or half of
    /// one, and nobody on the team can do anything any more. Only in a team of our making: of any other we
    /// cannot know that what we saw last is what its lead would put there.
    pub(super) async fn mend_roster(
        &self,
        team: &TeamName,
        native: &Native,
        which: Which,
        torn: &Document,
    ) -> Result<bool, StoreError> {
        let own = self.own(team)?;
        let Some(last) = own.last_roster()? else { return Ok(false) };
        let made = Team::read(&last).ok().and_then(|team| team.created_at());
        if made.is_none() || made != own.created()? {
            return Ok(false);
        }
        // Named by what is in it: several who find it keep one copy.
        let copy = format!("config-{:016x}.json", torn.revision.0);
        let aside = own.dir.own_child("aside")?;
        if !torn.bytes.is_empty() {
            aside.write_temp(&copy, &torn.bytes, Some(PRIVATE), Sync::Yes)?;
        }
        let replaced = self.wait(|patience| {
            let seen = own.seen()?;
            let change = (last.as_slice(), torn.revision);
            document::try_replace(&native.team, which, change, seen.as_ref(), patience, self.sync())
        });
        match replaced.await {
            Ok(()) => tracing::warn!(%team, "a torn config.json was put back as it was last seen"),
            // It is another by now: somebody else has mended it, or it was finished after all.
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
        self.settle(Some(&native.team))?;
        Ok(true)
    }
}
