//! Watches the events of one member.
//!
//! In a large team, most events concern other members. So this watch waits only for changes of the member's own files: its
//! journal, its inbox, and the file `departures`, which brigade writes when a member leaves. The messages that the member sent
//! are in the journals of other members. The watch reads those journals only on request.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use rustix::fs::{FlockOperation, OFlags};
use tokio::sync::mpsc::UnboundedSender;

use super::changes::{ChangeWaiter, ChangeWatcher, Changes, Waited};
use super::scan::{NativeScan, is_settled};
use super::{SharedFollower, WatchScope, read_new, shared_follower, spawn_thread};
use crate::dir::{FileStamp, identity};
use crate::journal::{self, Journal};
use crate::layout::{DEPARTURES, INBOXES, SCANNER, TEAM_JOURNAL, TEAMS, member_journal};
use crate::{FileStore, FileStoreOptions, lock_mutex};
use brigade_core::event::{Event, Record};
use brigade_core::store::{StoreError, Watch};

/// Interval between two checks of the member's files without a reported change.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How long to wait for further departures. When a team ends, many members leave at once.
const ROSTER_DELAY: Duration = Duration::from_millis(30);

/// A member that has left may have scanned the team's files. How long to try to take its place, and how often. Its process ends a
/// moment after it has left.
const TAKE_OVER_LIMIT: Duration = Duration::from_secs(5);
const TAKE_OVER_INTERVAL: Duration = Duration::from_millis(500);

/// Follows the files of a member, and sends new records to the member's watch.
struct MemberFollower {
    scan: NativeScan,
    member: MemberName,
    changes: ChangeWatcher,
    /// The watched files, with their device and inode when the watch was set.
    watched: HashMap<PathBuf, (u64, u64)>,
    /// The member's journal and the team's journal, and the offset up to which each was read.
    own: (Journal, u64),
    team: (Journal, u64),
    /// The lengths of the other members' journals up to which they were read.
    others: HashMap<String, u64>,
    /// The `config.json` at the last check of the roster, unless it may since have changed without another stamp.
    checked_config: Option<FileStamp>,
    /// When to check the roster, after a member has left.
    roster_due: Option<Instant>,
    /// Until when to try to scan all files of the team, after a member has left.
    take_over_until: Option<Instant>,
    /// If this process scans all files of the team: the lock, and the follower that scans.
    scanner: Option<(OwnedFd, Arc<SharedFollower>)>,
    events: UnboundedSender<Arc<Record>>,
}

/// Starts watching the events of a member.
pub(crate) fn start(
    store: &FileStore,
    team: &TeamName,
    member: &MemberName,
) -> Result<Watch, StoreError> {
    let io_error = |source| StoreError::Io {
        doing: "watch",
        path: store.team_states_path.join(team.as_str()),
        source,
    };
    let (changes, waiter) = ChangeWatcher::new().map_err(io_error)?;
    let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
    let team_state = store.team_state(team)?;
    let own = Journal::open(&team_state.mail, &member_journal(member))?;
    // The file must exist, so that it can be watched.
    drop(team_state.dir.private_file(DEPARTURES, OFlags::empty())?);
    let team_journal = Journal::open(&team_state.dir, TEAM_JOURNAL)?;
    let own_store =
        FileStore::new(FileStoreOptions::clone(&store.options), Arc::clone(&store.clock));
    let mut follower = MemberFollower {
        scan: NativeScan::new(own_store, team.clone(), team_state),
        member: member.clone(),
        changes,
        watched: HashMap::new(),
        own: (own, 0),
        team: (team_journal, 0),
        others: HashMap::new(),
        checked_config: None,
        roster_due: None,
        take_over_until: None,
        scanner: None,
        events,
    };
    follower.watch_files();
    follower.scan.try_inbox(member);
    follower.skip_to_end()?;
    follower.try_to_scan_team();
    let follower = Arc::new(Mutex::new(follower));
    let weak = Arc::downgrade(&follower);
    spawn_thread(store, team, move || run(&weak, &waiter))?;
    let refresh = Arc::clone(&follower);
    Ok(Watch::new(receiver, follower).with_refresh(move || lock_mutex(&refresh).refresh()))
}

/// Runs the follower until the watch is dropped.
fn run(follower: &Weak<Mutex<MemberFollower>>, waiter: &ChangeWaiter) {
    let mut last_check = Instant::now();
    let (mut roster_due, mut takes_over): (Option<Instant>, bool) = (None, false);
    loop {
        let mut limit = CHECK_INTERVAL.saturating_sub(last_check.elapsed());
        if let Some(due) = roster_due {
            limit = limit.min(due.saturating_duration_since(Instant::now()));
        }
        if takes_over {
            limit = limit.min(TAKE_OVER_INTERVAL);
        }
        if waiter.wait(limit) == Waited::Ended {
            return;
        }
        let Some(follower) = follower.upgrade() else { return };
        let mut follower = lock_mutex(&follower);
        let mut changes = follower.changes.take();
        if last_check.elapsed() >= CHECK_INTERVAL {
            changes.is_incomplete = true;
            last_check = Instant::now();
        }
        if let Err(error) = follower.look(&changes) {
            tracing::warn!(team = %follower.scan.team, %error, "error while watching the member");
        }
        roster_due = follower.roster_due;
        takes_over = follower.take_over_until.is_some();
    }
}

impl MemberFollower {
    /// Publishes the events that these changes caused.
    fn look(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.reopen_journals()?;
        // Watch a file that has replaced another before reading it, so that the next change is not missed.
        self.watch_files();
        let has_changed = |path: &PathBuf| changes.is_incomplete || changes.paths.contains(path);
        if has_changed(&self.inbox_path()) {
            self.scan.try_inbox(&self.member);
        }
        let records = read_new(std::iter::once(&mut self.own))?;
        self.publish(records);
        if changes.paths.contains(&self.departures_path()) {
            self.roster_due.get_or_insert_with(|| Instant::now() + ROSTER_DELAY);
            self.take_over_until = Some(Instant::now() + TAKE_OVER_LIMIT);
        }
        if changes.is_incomplete || self.roster_due.is_some_and(|due| due <= Instant::now()) {
            self.roster_due = None;
            self.check_roster()?;
        }
        if changes.is_incomplete || self.take_over_until.is_some() {
            self.try_to_scan_team();
        }
        let is_over = self.take_over_until.is_some_and(|until| until <= Instant::now());
        if self.scanner.is_some() || is_over {
            self.take_over_until = None;
        }
        Ok(())
    }

    /// Publishes the events that this member caused, which are in the journals of other members and of the team.
    fn refresh(&mut self) {
        let read = self.read_others();
        match read {
            Ok(records) => self.publish(records),
            Err(error) => {
                tracing::warn!(team = %self.scan.team, %error, "cannot read the journals");
            }
        }
    }

    fn read_others(&mut self) -> Result<Vec<Record>, StoreError> {
        self.reopen_journals()?;
        let mut records = read_new([&mut self.own, &mut self.team].into_iter())?;
        let mail = Arc::clone(&self.scan.team_state.mail);
        for (name, size) in self.other_journals()? {
            let upto = self.others.entry(name.clone()).or_default();
            if size > *upto {
                let tail = Journal::open(&mail, &name)?.read_from(*upto)?;
                *upto = tail.end.offset;
                records.extend(tail.records);
            }
        }
        Ok(records)
    }

    /// Returns the name and the size of each other member's journal.
    fn other_journals(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let mail = &self.scan.team_state.mail;
        let own = member_journal(&self.member);
        let mut found = Vec::new();
        for name in journal::names(mail)?.into_iter().filter(|name| *name != own) {
            if let Some(stamp) = mail.stamp(&name)? {
                found.push((name, stamp.size));
            }
        }
        Ok(found)
    }

    /// If the member is no longer on the roster, or the team is gone, publishes the event.
    fn check_roster(&mut self) -> Result<(), StoreError> {
        let stamp = self.scan.config_stamp()?;
        if stamp.is_some() && stamp == self.checked_config {
            return Ok(());
        }
        self.checked_config = stamp.filter(|stamp| is_settled(Some(stamp)));
        let config = self.scan.read_config()?;
        let is_listed = config.is_some_and(|config| match Team::read(&config.bytes) {
            Ok(team) => team.member(self.member.as_str()).is_some(),
            // The file is being written in place. The process that scans the team's files records the end of that write.
            Err(_) => true,
        });
        if !is_listed {
            self.scan.roster()?;
            let records = read_new(std::iter::once(&mut self.team))?;
            self.publish(records);
        }
        Ok(())
    }

    fn publish(&mut self, mut records: Vec<Record>) {
        records.retain(|record| self.concerns_member(record));
        records.sort_by_key(|record| record.at);
        for record in records {
            let _watch_ended = self.events.send(Arc::new(record));
        }
    }

    fn concerns_member(&self, record: &Record) -> bool {
        let me = self.member.as_str();
        record.by.as_deref() == Some(me)
            || record.event.mailbox() == Some(me)
            || match &record.event {
                Event::MemberLeft { name } => name == me,
                Event::TeamCreated { .. } | Event::TeamDeleted {} => true,
                _ => false,
            }
    }

    /// Watches the member's files that exist, unless they are watched already.
    fn watch_files(&mut self) {
        let mail = self.scan.team_state.mail.path(&member_journal(&self.member));
        for path in [mail, self.inbox_path(), self.departures_path()] {
            let now = identity(&path);
            if now != self.watched.get(&path).copied() {
                self.watched.remove(&path);
                if let Some(now) = now
                    && self.changes.watch_file(&path)
                {
                    self.watched.insert(path, now);
                }
            }
        }
    }

    /// Opens the journals again if the folder of the team was deleted and created again.
    fn reopen_journals(&mut self) -> Result<(), StoreError> {
        if self.own.0.exists() && self.team.0.exists() {
            return Ok(());
        }
        let found = self.scan.store.existing_team_state(&self.scan.team)?;
        let Some(team_state) = found else { return Ok(()) };
        drop(team_state.dir.private_file(DEPARTURES, OFlags::empty())?);
        self.own = (Journal::open(&team_state.mail, &member_journal(&self.member))?, 0);
        self.team = (Journal::open(&team_state.dir, TEAM_JOURNAL)?, 0);
        self.others.clear();
        self.scan.team_state = team_state;
        Ok(())
    }

    fn skip_to_end(&mut self) -> Result<(), StoreError> {
        for (journal, upto) in [&mut self.own, &mut self.team] {
            *upto = journal.len()?;
        }
        self.others = self.other_journals()?.into_iter().collect();
        Ok(())
    }

    /// If no process scans all files of the team, lets this process scan them. So the changes of other programs are recorded
    /// soon, and only once.
    fn try_to_scan_team(&mut self) {
        if self.scanner.is_none()
            && let Some(lock) = lock_scanner(&self.scan)
        {
            match start_scanner(&self.scan.store, &self.scan.team) {
                Ok(scanner) => self.scanner = Some((lock, scanner)),
                Err(error) => {
                    tracing::warn!(team = %self.scan.team, %error, "cannot scan the team's files");
                }
            }
        }
    }

    fn inbox_path(&self) -> PathBuf {
        let team = self.scan.store.options.claude_dir.join(TEAMS).join(self.scan.team.as_str());
        team.join(INBOXES).join(format!("{}.json", self.member))
    }

    fn departures_path(&self) -> PathBuf {
        self.scan.team_state.dir.path(DEPARTURES)
    }
}

/// Starts a follower that scans all files of the team, and scans them for the first time.
fn start_scanner(store: &FileStore, team: &TeamName) -> Result<Arc<SharedFollower>, StoreError> {
    let shared = shared_follower(store, team, WatchScope::WithoutWork)?;
    lock_mutex(&shared.follower).catch_up()?;
    Ok(shared)
}

/// Takes the lock of the process that scans all files of a team. Returns `None` if another process holds it.
pub(super) fn lock_scanner(scan: &NativeScan) -> Option<OwnedFd> {
    let lock = scan.team_state.dir.private_file(SCANNER, OFlags::empty()).ok()?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(lock)
}
