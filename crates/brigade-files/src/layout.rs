//! The names of files and folders on disk. `brigade doctor` and other code use these names to read
//! files without a [`Store`], because a store would also repair the files and record changes.
//!
//! [`Store`]: brigade_core::store::Store
//!
//! ```text
//! ~/.claude/                        Claude Code's folder
//!   teams/TEAM/config.json            the roster
//!   teams/TEAM/inboxes/MEMBER.json    an inbox
//!   tasks/TEAM/ID.json                a task
//!   tasks/TEAM/.highwatermark         the highest task number ever used
//!   tasks/SESSION/.session-list       the list with which a session works instead
//! $XDG_STATE_HOME/brigade/          brigade's own folder
//!   files/KEY/TEAM/                   a team; KEY identifies the Claude Code folder
//!     team.jsonl                        the team's journal
//!     mail/MEMBER.jsonl                 the journal of a mailbox
//!     mail/MEMBER.state                 how much of that journal is in the inbox
//!     work/MEMBER.jsonl                 the journal of a member's work
//!     index.db                          the positions of records in the journals; SQLite also keeps index.db-journal
//!     search.db                         the words of the texts in the journals; SQLite also keeps search.db-journal
//!     deleted.json                      which records were deleted from the journals; locked by retention.lock
//!     roster.json, board.seen           the roster and the board as last seen
//!     folder                            the team folder in which the roster was last seen
//!     intent                            the change that a process is about to make, and its author
//!     scanner                           locked by the process that scans all native files of the team
//!     departures                        written when a member has left, or the team was deleted or created
//!     created, shared                   when brigade created the team; whether others write to it
//!     creating, deleting                exist while brigade creates or deletes the team
//!     decided/QUESTION                  a final answer
//!     kept, pulse, revival, home        folders of notes, with one MEMBER.json per member
//!     aside/                            copies of damaged files
//! ```
//!
//! A file `NAME` is locked while the folder `NAME.lock` exists. To replace `NAME`, brigade writes
//! `NAME.tmp.brigade-PROCESS-NUMBER` and then renames that file.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use brigade_core::store::NoteKind;
use brigade_wire::name::TaskId;

use super::claude_dir_key;

/// The folder of teams in Claude Code's folder.
pub const TEAMS: &str = "teams";
/// The folder of boards in Claude Code's folder.
pub const TASKS: &str = "tasks";
/// The roster of a team.
pub const CONFIG: &str = "config.json";
/// The folder of inboxes in a team's folder.
pub const INBOXES: &str = "inboxes";
/// A team's folder is renamed before it is deleted. The new name is the team's name, this text, and a unique id.
pub const DELETED: &str = ".deleted-";
/// The file in which Claude Code stores the highest task number ever used.
pub(crate) const HIGH_WATER: &str = ".highwatermark";
/// The file that names the list with which a session works, if that is not the list of its own folder.
pub(crate) const SESSION_LIST: &str = ".session-list";
/// An empty file. Before a process creates a task, it takes the lock of this file, as Claude Code does.
pub(crate) const CREATE_LOCK: &str = ".lock";

/// The folder, inside brigade's own folder, for data about the teams in all Claude Code folders.
pub const FILES: &str = "files";
/// The journal of a team.
pub const TEAM_JOURNAL: &str = "team.jsonl";
/// The folder of mailbox journals.
pub const MAIL: &str = "mail";
/// The folder of journals that record members' work.
pub(crate) const WORK: &str = "work";
/// The file with the roster as last seen.
pub const LAST_ROSTER: &str = "roster.json";
/// The file that identifies the team folder in which the roster was last seen.
pub(crate) const LAST_FOLDER: &str = "folder";
/// The file that names the change that a brigade process is about to make, and its author.
pub(crate) const INTENT: &str = "intent";
/// The file with the time when brigade created the team, in milliseconds.
pub const CREATED: &str = "created";
/// Like [`CREATED`], written before the team and removed after it. It remains if the process dies in between. If the
/// board has tasks of an earlier team, their numbers follow, one per line.
pub const CREATING: &str = "creating";
/// Exists while a process deletes the team: the unique id in the names of the renamed folders. It remains if the
/// process dies.
pub(crate) const DELETING: &str = "deleting";
/// An empty file that exists if another program has written the roster.
pub(crate) const SHARED: &str = "shared";
/// For each kind of lock, this file first records the last lock that a brigade process created.
/// Then follow eight bytes for each task number: the task's last seen revision, or zero.
pub(crate) const BOARD_SEEN: &str = "board.seen";
/// Locked by the process that scans all native files of the team.
pub(crate) const SCANNER: &str = "scanner";
/// Written when a member has left, or the team was deleted or created. Members watch it.
pub(crate) const DEPARTURES: &str = "departures";
/// The index of the journals. SQLite keeps another file with a name that begins with this name.
pub(crate) const INDEX: &str = "index.db";
/// The index of the texts in the journals. SQLite keeps another file with a name that begins with this name.
pub(crate) const SEARCH_INDEX: &str = "search.db";
/// The ranges of the journals whose records were deleted, because they were old.
pub(crate) const DELETED_RECORDS: &str = "deleted.json";
/// Locked by the process that deletes old records.
pub(crate) const RETENTION_LOCK: &str = "retention.lock";
/// The folder of final answers: the first answer to a question wins.
pub const DECIDED: &str = "decided";
/// The folder of copies of damaged files.
pub(crate) const DAMAGED_COPIES: &str = "aside";

/// Maximum size in bytes of a file that is read into memory.
pub const MAX_FILE: u64 = 256 << 20;
/// Seconds after which Claude Code considers a lock abandoned.
pub const LOCK_STALE_SECS: u32 = 10;

const TEMP_MARK: &str = ".tmp.brigade-";

/// Returns the folder where brigade stores its own data about the teams in a Claude Code folder.
pub fn team_states_dir(state_dir: &Path, claude_dir: &Path) -> PathBuf {
    state_dir.join(FILES).join(claude_dir_key(claude_dir))
}

/// Returns the path of a team's roster.
pub fn config_path(claude_dir: &Path, team: &str) -> PathBuf {
    claude_dir.join(TEAMS).join(team).join(CONFIG)
}

/// Returns the file name of a task.
pub fn task_file(id: TaskId) -> String {
    format!("{id}.json")
}

/// Parses the task number from the file name of a task.
pub fn task_id(name: &str) -> Option<TaskId> {
    name.strip_suffix(".json")?.parse().ok()
}

/// Returns the file name of a member's inbox or note.
pub fn member_file(member: impl Display) -> String {
    format!("{member}.json")
}

/// Parses the member's name from the file name of an inbox or note.
pub fn member_name(file: &str) -> Option<&str> {
    file.strip_suffix(".json")
}

/// Returns the file name of a member's journal.
pub fn member_journal(member: impl Display) -> String {
    format!("{member}.jsonl")
}

/// Returns the name of the folder for notes of this kind, inside a team's folder.
pub fn note_dir(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Memory => "kept",
        NoteKind::Pulse => "pulse",
        NoteKind::Revival => "revival",
        NoteKind::Home => "home",
    }
}

/// Returns the name of a file's lock.
pub(crate) fn lock_name(file: &str) -> String {
    format!("{file}.lock")
}

/// Returns whether this is the name of a lock in Claude Code's folder.
pub fn is_lock(name: &str) -> bool {
    let file = name.strip_suffix(".lock");
    file.is_some_and(|file| file.ends_with(".json") || file == CREATE_LOCK)
}

/// Returns the name of a temporary file for `file`. It does not end in `.json`, so that Claude Code
/// does not read it as a document. It contains the process id of its creator, so that the file can
/// be removed after that process died.
pub fn temp_name(file: &str, process: u32, number: u32) -> String {
    format!("{file}{TEMP_MARK}{process}-{number}")
}

/// Parses a name made by [`temp_name`]. Returns the arguments that were passed to `temp_name`.
pub fn parse_temp_name(name: &str) -> Option<(&str, u32, u32)> {
    let (file, creator) = name.rsplit_once(TEMP_MARK)?;
    let (process, number) = creator.split_once('-')?;
    Some((file, process.parse().ok()?, number.parse().ok()?))
}
