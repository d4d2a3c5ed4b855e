//! Removes the inbox of a name that is not on the roster.

use std::io;

use brigade_wire::name::{MemberName, TeamName, inbox_stem};
use brigade_wire::team::Team;

use super::document::{self, ROSTER};
use super::layout::{BOARD_SEEN, CONFIG, member_file};
use super::lock::{LockAttempt, LockWaiter, TryOutcome};
use super::mailbox::MailboxContext;
use super::{FileStore, lock_mutex};
use brigade_core::store::{StoreError, WriteObstacle};

impl FileStore {
    /// Removes the inbox of `member`, after `keep` has stored a copy of its contents. Returns false, and removes
    /// nothing, if the member is on the roster, if the roster cannot be read, or if there is no inbox.
    ///
    /// Holds the locks of the roster and of the inbox meanwhile, so that no member can join and no message can arrive
    /// between the check and the removal.
    pub async fn remove_inbox_of_nobody(
        &self,
        team: &TeamName,
        member: &MemberName,
        keep: &(dyn Fn(&[u8]) -> io::Result<()> + Sync),
    ) -> Result<bool, StoreError> {
        let native = self.native_dirs(team)?;
        let team_state = self.team_state(team)?;
        let mailbox = self.mailbox(team, member)?;
        let inboxes = native.inboxes()?;
        let keep = |bytes: &[u8]| {
            let failed = |source| StoreError::Io {
                doing: "back up",
                path: inboxes.path(&member_file(member)),
                source,
            };
            keep(bytes).map_err(failed)
        };
        let mut inbox_waiter = LockWaiter::default();
        self.retry(|waiter| {
            let Some(seen) = team_state.lock_seen()? else {
                let path = team_state.dir.path(BOARD_SEEN);
                return Ok(TryOutcome::Wait(WriteObstacle::Busy { path }));
            };
            let _roster = match document::try_lock(&native.team, ROSTER, Some(&seen), waiter)? {
                LockAttempt::Acquired(lock) => lock,
                LockAttempt::Blocked(obstacle) => return Ok(TryOutcome::Wait(obstacle)),
            };
            let config = native.team.read(CONFIG)?.map(|contents| contents.bytes);
            let is_nobody = config.is_some_and(|config| {
                Team::read(&config).is_ok_and(|team| !has_inbox(&team, member))
            });
            if !is_nobody {
                return Ok(TryOutcome::Done(false));
            }
            let context = MailboxContext {
                inboxes,
                clock: self.clock.as_ref(),
                team_created: &|| self.team_created(team),
            };
            lock_mutex(&mailbox).try_set_aside(&context, &mut inbox_waiter, &keep)
        })
        .await
    }
}

/// Returns whether a member on the roster uses the inbox of this name.
fn has_inbox(team: &Team<'_>, member: &MemberName) -> bool {
    let mut stems = team.members().filter_map(|other| Some(inbox_stem(&other.name()?)));
    stems.any(|stem| stem.eq_ignore_ascii_case(member.as_str()))
}
