//! Reads a team's folders from disk without changing anything.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use brigade_core::event::{Record, UncheckedRecord};
use brigade_core::pulse::Pulse;
use brigade_core::store::NoteKind;
use brigade_files::layout::{self, CONFIG, CREATED, CREATING, INBOXES, MAX_FILE, TASKS};
use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::team::Team;
use rustix::process::{Pid, geteuid, test_kill_process};

use super::anchored::FileIdentity;

/// A team's folder and its task board.
#[derive(Default)]
pub(crate) struct TeamFolder {
    /// The folder's name.
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) board_dir: PathBuf,
    /// The folder's name as a team name, if the name is valid.
    pub(crate) team: Option<TeamName>,
    /// Seconds since a file was added to the folder or removed from it.
    pub(crate) age: i64,
    pub(crate) config: Option<FileContent>,
    /// All entries of the folder except `config.json` and `inboxes`.
    pub(crate) entries: Vec<FolderEntry>,
    pub(crate) inboxes: Vec<FolderEntry>,
    pub(crate) board: Vec<FolderEntry>,
    /// The tasks on the board, sorted by id.
    pub(crate) tasks: Vec<(TaskId, FileContent)>,
    /// Whether brigade created the team.
    pub(crate) is_ours: bool,
    /// Brigade's own folder for the team.
    pub(crate) state_dir: PathBuf,
    /// The roster as brigade last read it, if it is a roster of this team.
    pub(crate) last_roster: Option<Vec<u8>>,
    /// The folder of inboxes, or what is in its place.
    pub(crate) inboxes_dir: Option<FolderEntry>,
}

/// A directory entry.
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) meta: Metadata,
    /// Seconds since the entry was changed; negative if its timestamp is in the future.
    pub(crate) age: i64,
}

/// A file and its content.
pub(crate) struct FileContent {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) age: i64,
}

impl TeamFolder {
    /// Creates the value for a team that is in a NATS store and therefore has no folder.
    pub(super) fn in_nats(
        team: TeamName,
        config: FileContent,
        tasks: Vec<(TaskId, FileContent)>,
    ) -> Self {
        let (name, team, config) = (team.to_string(), Some(team), Some(config));
        Self { name, team, config, tasks, is_ours: true, ..Self::default() }
    }

    pub(super) fn read(
        claude_dir: &Path,
        state_dir: &Path,
        team_states_dir: &Path,
        entry: FolderEntry,
    ) -> Self {
        let FolderEntry { name, path: dir, age, .. } = entry;
        let team: Option<TeamName> = name.parse().ok();
        let last_roster = team.as_ref().and_then(|team| {
            brigade_files::last_seen_roster(claude_dir, state_dir, team).ok().flatten()
        });
        let board_dir = claude_dir.join(TASKS).join(&name);
        let state_dir = team_states_dir.join(&name);
        let mut entries = entries(&dir);
        let at = entries.iter().position(|entry| entry.name == INBOXES);
        let inboxes_dir = at.map(|at| entries.swap_remove(at));
        let at = entries.iter().position(|entry| entry.name == CONFIG);
        let config = at.map(|at| entries.swap_remove(at)).and_then(|entry| entry.read());
        let created_at = |bytes: &[u8]| Team::read(bytes).ok()?.created_at();
        let readable = config.as_ref().filter(|config| Team::read(&config.bytes).is_ok());
        // If the roster cannot be read, the last roster of this team shows when the team was created.
        let roster = readable.map(|config| config.bytes.as_slice()).or(last_roster.as_deref());
        let created_in_config = roster.and_then(created_at);
        let mark = |file| {
            let text = fs::read_to_string(state_dir.join(file)).ok();
            text.and_then(|text| text.lines().next()?.trim().parse::<u64>().ok())
        };
        let started = mark(CREATING).filter(|created| Some(*created) == created_in_config);
        let created = started.or_else(|| mark(CREATED));
        let board = self::entries(&board_dir);
        let numbered = |entry: &FolderEntry| Some((layout::task_id(&entry.name)?, entry.read()?));
        let mut tasks: Vec<(TaskId, FileContent)> = board.iter().filter_map(numbered).collect();
        tasks.sort_by_key(|(id, _)| *id);
        Self {
            team,
            inboxes: self::entries(&dir.join(INBOXES)),
            board,
            tasks,
            is_ours: created.is_some() && created_in_config == created,
            last_roster,
            inboxes_dir,
            name,
            dir,
            board_dir,
            age,
            config,
            entries,
            state_dir,
        }
    }

    /// Returns every entry in the team's folders, except `config.json`.
    pub(crate) fn all(&self) -> impl Iterator<Item = &FolderEntry> {
        self.entries.iter().chain(&self.inboxes).chain(&self.board)
    }

    /// Returns the roster, if it is readable.
    pub(crate) fn roster(&self) -> Option<Team<'_>> {
        Team::read(&self.config.as_ref()?.bytes).ok()
    }

    /// Returns the inboxes, each with the member name from its file name.
    pub(crate) fn member_inboxes(&self) -> impl Iterator<Item = (&str, &FolderEntry)> {
        self.inboxes.iter().filter_map(|entry| Some((layout::member_name(&entry.name)?, entry)))
    }

    /// Reads a journal file. Returns the records whose lines contain one of these substrings.
    pub(crate) fn journal(&self, file: impl AsRef<Path>, substrings: &[&str]) -> Vec<Record> {
        let text = fs::read_to_string(self.state_dir.join(file)).unwrap_or_default();
        let lines = text.lines().filter(|line| substrings.iter().any(|part| line.contains(part)));
        let records = lines.filter_map(|line| serde_json::from_str::<UncheckedRecord>(line).ok());
        records.map(UncheckedRecord::from_local_file).collect()
    }

    /// Returns the last heartbeat of the process that runs or ran a member.
    pub(crate) fn pulse(&self, name: &str) -> Option<Pulse> {
        let path =
            self.state_dir.join(layout::note_dir(NoteKind::Pulse)).join(layout::member_file(name));
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl FolderEntry {
    /// Returns what distinguishes this file from a later one with the same path.
    pub(crate) fn identity(&self) -> FileIdentity {
        FileIdentity::new(&self.meta)
    }

    /// Reads the file. Returns `None` if it is not a regular file, belongs to another user or is too large.
    pub(crate) fn read(&self) -> Option<FileContent> {
        if !self.meta.is_file()
            || self.meta.uid() != geteuid().as_raw()
            || self.meta.len() > MAX_FILE
        {
            return None;
        }
        let bytes = fs::read(&self.path).ok()?;
        Some(FileContent { path: self.path.clone(), bytes, age: self.age })
    }
}

/// Returns the entries of a folder, sorted by name; an empty list if the folder cannot be read or is a symbolic link.
pub(crate) fn entries(dir: &Path) -> Vec<FolderEntry> {
    match dir.symlink_metadata() {
        Ok(meta) if meta.is_dir() => root_entries(dir),
        _ => Vec::new(),
    }
}

/// Returns the entries of a folder that the user chose. The folder may be a symbolic link.
pub(crate) fn root_entries(dir: &Path) -> Vec<FolderEntry> {
    let Ok(dir_entries) = fs::read_dir(dir) else { return Vec::new() };
    let now = seconds(SystemTime::now());
    let read_entry = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some(FolderEntry { name, path: entry.path(), age: now.saturating_sub(meta.mtime()), meta })
    };
    let mut entries: Vec<FolderEntry> =
        dir_entries.filter_map(|entry| read_entry(entry.ok()?)).collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

/// Returns the number of seconds since a file was changed, if the file exists.
pub(crate) fn age(path: &Path) -> Option<i64> {
    Some(seconds(SystemTime::now()).saturating_sub(path.symlink_metadata().ok()?.mtime()))
}

fn seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Returns whether a process with this id exists.
pub(crate) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    matches!(pid.map(test_kill_process), Some(Ok(()) | Err(rustix::io::Errno::PERM)))
}
