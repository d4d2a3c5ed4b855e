//! Writes the changes that other programs made to native files to the journals.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brigade_wire::name::{MemberName, TaskId, TeamName};

use crate::dir::{Dir, FileContents, FileStamp, identity};
use crate::layout::{
    CONFIG, INBOXES, LAST_ROSTER, MAIL, TASKS, TEAM_JOURNAL, WORK, member_journal, member_name,
    parse_temp_name, task_file, task_id,
};
use crate::lock::LockWaiter;
use crate::mailbox::{MailboxContext, MailboxWork};
use crate::team_state::TeamStateDir;
use crate::{FileStore, check_team, lock_mutex};
use brigade_core::store::StoreError;

/// Interval between two checks of all tasks. Between them, tasks are checked only if the kernel reports a change, or if the
/// list of the files in the folder has changed.
const TASKS_INTERVAL: Duration = Duration::from_secs(30);
/// A file that was changed this recently may change again without another time of its last change.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// The files of a mailbox, as they were when it was scanned.
type MailboxStamps = [Option<FileStamp>; 3];

/// The team's `config.json` and the roster as last seen, as they were when they were compared.
type RosterStamps = [Option<FileStamp>; 2];

/// The native files of a team, and what is known about them.
#[derive(Debug)]
pub(super) struct NativeScan {
    pub(super) store: FileStore,
    pub(super) team: TeamName,
    pub(super) team_state: Arc<TeamStateDir>,
    /// The mailboxes without changes since their last scan.
    scanned_mailboxes: HashMap<MemberName, MailboxStamps>,
    /// The roster and the roster as last seen, if neither has changed since the last scan.
    scanned_roster: Option<RosterStamps>,
    /// The tasks without changes since their last scan.
    scanned_tasks: HashMap<TaskId, Option<FileStamp>>,
    /// The folder of the tasks at the last check of all tasks, and the time of that check.
    scanned_board: Option<(FolderStamp, Instant)>,
}

/// Identifies a folder and the list of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FolderStamp {
    path: PathBuf,
    id: Option<(u64, u64)>,
    changed: Option<SystemTime>,
}

impl NativeScan {
    pub(super) fn new(store: FileStore, team: TeamName, team_state: Arc<TeamStateDir>) -> Self {
        Self {
            store,
            team,
            team_state,
            scanned_mailboxes: HashMap::new(),
            scanned_roster: None,
            scanned_tasks: HashMap::new(),
            scanned_board: None,
        }
    }

    /// Scans these files.
    pub(super) fn changed_files(&mut self, changed: &HashSet<PathBuf>) -> Result<(), StoreError> {
        let mut roster = false;
        let mut tasks = BTreeSet::new();
        for path in changed {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match path.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
                Some(INBOXES) => {
                    if let Some(Ok(member)) = member_name(name).map(str::parse) {
                        self.try_inbox(&member);
                    }
                }
                Some(MAIL | WORK) => {}
                _ if name == CONFIG => roster = true,
                _ if name == TEAM_JOURNAL => {}
                _ => tasks.extend(task_id(name)),
            }
        }
        if roster {
            self.roster()?;
        }
        for id in tasks {
            self.task(id)?;
        }
        Ok(())
    }

    /// Scans all files that may have changed since they were scanned last.
    pub(super) fn all_files(&mut self) -> Result<(), StoreError> {
        // The creation of the team comes before its first message.
        self.roster_if_changed()?;
        if let Ok(native) = self.store.native_dirs(&self.team)
            && let Some(inboxes) = &native.inboxes
        {
            let names = inboxes.names()?;
            for name in &names {
                if let Some(Ok(member)) = member_name(name).map(str::parse) {
                    self.try_inbox_if_changed(inboxes, &member)?;
                }
            }
            // The scan has completed the writes of processes that were killed. Remove their temporary files.
            for (file, _, _) in names.iter().filter_map(|name| parse_temp_name(name)) {
                if let Some(Ok(member)) =
                    member_name(file.trim_end_matches(".lock")).map(str::parse)
                    && let Some(mailbox) = self.store.readable_mailbox(&self.team, &member)?
                {
                    lock_mutex(&mailbox).sweep(inboxes)?;
                }
            }
        }
        self.all_tasks()
    }

    fn try_inbox_if_changed(
        &mut self,
        inboxes: &Dir,
        member: &MemberName,
    ) -> Result<(), StoreError> {
        // A killed process may have written a message to the journal only.
        let stamps = [
            inboxes.stamp(&format!("{member}.json"))?,
            self.team_state.mail.stamp(&member_journal(member))?,
            self.team_state.mail.stamp(&format!("{member}.state"))?,
        ];
        if self.scanned_mailboxes.get(member) == Some(&stamps) {
            return Ok(());
        }
        self.try_inbox(member);
        if stamps.iter().all(|stamp| is_settled(stamp.as_ref())) {
            self.scanned_mailboxes.insert(member.clone(), stamps);
        }
        Ok(())
    }

    fn all_tasks(&mut self) -> Result<(), StoreError> {
        let board = match self.store.board(&self.team) {
            Ok(board) => Some(board),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let dir = board.as_ref().and_then(|board| board.dir());
        let folder = dir.map(FolderStamp::of_dir);
        if let (Some(now), Some((earlier, at))) = (&folder, &self.scanned_board)
            && now == earlier
            && at.elapsed() < TASKS_INTERVAL
        {
            return Ok(());
        }
        let mut stamps = HashMap::new();
        if let Some(dir) = dir {
            for name in dir.names()? {
                if let Some(id) = task_id(&name) {
                    stamps.insert(id, dir.stamp(&name)?);
                }
            }
        }
        let seen = self.team_state.seen_tasks()?.into_iter().filter_map(TaskId::new);
        for id in seen.chain(stamps.keys().copied()).collect::<BTreeSet<_>>() {
            let stamp = stamps.get(&id).copied().flatten();
            if stamp.is_some() && self.scanned_tasks.get(&id) == Some(&stamp) {
                continue;
            }
            self.task(id)?;
            if is_settled(stamp.as_ref()) {
                self.scanned_tasks.insert(id, stamp);
            }
        }
        self.scanned_tasks.retain(|id, _| stamps.contains_key(id));
        self.scanned_board =
            folder.filter(FolderStamp::is_settled).map(|now| (now, Instant::now()));
        Ok(())
    }

    /// Scans one inbox. Logs an error instead of returning it, so that one unreadable inbox does
    /// not prevent scanning the others.
    pub(super) fn try_inbox(&self, member: &MemberName) {
        if let Err(error) = self.inbox(member) {
            tracing::warn!(team = %self.team, %member, %error, "cannot read the inbox");
        }
    }

    fn inbox(&self, member: &MemberName) -> Result<(), StoreError> {
        let Ok(native) = self.store.native_dirs(&self.team) else { return Ok(()) };
        let mailbox = self.store.mailbox(&self.team, member)?;
        let context = MailboxContext {
            inboxes: native.inboxes()?,
            clock: self.store.clock.as_ref(),
            team_created: &|| self.store.team_created(&self.team),
        };
        // Try only once: if another process holds the lock, the write of that process triggers
        // another scan.
        let mailbox = lock_mutex(&mailbox);
        let done = mailbox.attempt(&context, MailboxWork::Refresh, &mut LockWaiter::default());
        mailbox.update_index();
        done.map(drop)
    }

    fn roster_if_changed(&mut self) -> Result<(), StoreError> {
        let stamps = [self.config_stamp()?, self.team_state.dir.stamp(LAST_ROSTER)?];
        if self.scanned_roster != Some(stamps) {
            self.roster()?;
            let is_settled = stamps.iter().all(|stamp| is_settled(stamp.as_ref()));
            self.scanned_roster = is_settled.then_some(stamps);
        }
        Ok(())
    }

    /// Returns the stamp of the team's `config.json`; `None` if the team does not exist.
    pub(super) fn config_stamp(&self) -> Result<Option<FileStamp>, StoreError> {
        match self.store.team_dir(&self.team) {
            Ok(dir) => dir.stamp(CONFIG),
            Err(StoreError::NoTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn roster(&self) -> Result<(), StoreError> {
        // Lock the seen state before reading the file. A process that changes the roster holds that
        // lock until the change is recorded, so no other process is about to record a difference
        // that is found here.
        let Some(seen) = self.team_state.lock_seen()? else { return Ok(()) };
        let (dir, config) = match self.store.team_dir(&self.team) {
            Ok(dir) => {
                let config = dir.read(CONFIG)?;
                (Some(dir), config)
            }
            Err(StoreError::NoTeam { .. }) => (None, None),
            Err(error) => return Err(error),
        };
        let bytes = config.as_ref().map(|config| config.bytes.as_slice());
        if bytes.is_some_and(|bytes| check_team(bytes).is_err()) {
            // The file is being written in place. The end of that write triggers another scan.
            return Ok(());
        }
        seen.record_roster(self.store.clock.as_ref(), None, dir.as_ref().zip(bytes))
    }

    /// Reads the roster's file. Returns `None` if the team does not exist.
    pub(super) fn read_config(&self) -> Result<Option<FileContents>, StoreError> {
        match self.store.team_dir(&self.team) {
            Ok(dir) => dir.read(CONFIG),
            Err(StoreError::NoTeam { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn task(&self, id: TaskId) -> Result<(), StoreError> {
        let Some(seen) = self.team_state.lock_seen()? else { return Ok(()) };
        let task = match self.store.board(&self.team) {
            Ok(board) => board.dir().map(|dir| dir.read(&task_file(id))).transpose()?.flatten(),
            Err(StoreError::NoTeam { .. }) => None,
            Err(error) => return Err(error),
        };
        let bytes = task.as_ref().map(|task| task.bytes.as_slice());
        if bytes.is_some_and(|bytes| brigade_wire::task::Task::read(bytes).is_err()) {
            return Ok(());
        }
        let clock = self.store.clock.as_ref();
        if bytes.is_none() && self.read_config()?.is_none() {
            // The task disappeared with its team. Record the deletion of the team first, so that readers of the
            // journal can tell this from the deletion of a single task.
            seen.record_roster(clock, None, None)?;
        }
        seen.record_task(clock, None, id.get(), bytes)
    }

    /// Returns the folder of the team's tasks.
    pub(super) fn board_path(&self) -> PathBuf {
        // If the list cannot be found out now, the next full scan tries again.
        let list = self.store.task_list(&self.team).unwrap_or_else(|_| self.team.clone());
        self.store.options.claude_dir.join(TASKS).join(list.as_str())
    }
}

impl FolderStamp {
    fn of_dir(dir: &Dir) -> Self {
        let path = dir.dir_path().to_owned();
        let changed = std::fs::metadata(&path).and_then(|folder| folder.modified()).ok();
        Self { id: identity(&path), path, changed }
    }

    fn is_settled(&self) -> bool {
        self.changed.is_some_and(|at| at.elapsed().is_ok_and(|age| age > SETTLED_AFTER))
    }
}

/// Returns whether the last change of a file is long enough ago that a further change gets another time.
pub(super) fn is_settled(stamp: Option<&FileStamp>) -> bool {
    let Some(stamp) = stamp else { return true };
    let Ok(nanos) = u64::try_from(stamp.modified) else { return true };
    let modified = UNIX_EPOCH + Duration::from_nanos(nanos);
    modified.elapsed().is_ok_and(|age| age > SETTLED_AFTER)
}
