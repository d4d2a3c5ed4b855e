//! A read-only snapshot of teams, files and processes, taken once for all checks.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use brigade_core::event::Record;
use brigade_core::pulse::{Process, Pulse};
use brigade_files::claude_dir_key;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;
use rustix::process::{Pid, geteuid, test_kill_process};

use super::nats::{self, NatsFinding};
use crate::context::Context;
use crate::error::CliError;
use brigade_host::spec::MemberSpec;
use brigade_host::{Host, process_lock};

/// Maximum size of a file to read, as in the store.
const MAX_FILE: u64 = 256 << 20;

/// Marks the folder name of a team that is being deleted.
pub(crate) const DELETED: &str = ".deleted-";

/// The data that the checks read.
pub(crate) struct DoctorSnapshot {
    pub(crate) claude_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// Brigade's own folder for the teams of this Claude Code folder.
    pub(crate) own: PathBuf,
    pub(crate) host: Host,
    pub(crate) uid: u32,
    /// Every folder in Claude Code's `teams` folder.
    pub(crate) teams: Vec<TeamFolder>,
    /// Problems with the NATS server; `None` if the teams are stored in files.
    pub(crate) nats_findings: Option<Vec<NatsFinding>>,
    /// The teams that are up on this host.
    pub(crate) hosted: Vec<HostedTeam>,
    pub(crate) supervisor: Option<Process>,
}

/// A team's folder, and its board.
pub(crate) struct TeamFolder {
    /// The folder's name.
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) board_dir: PathBuf,
    /// The folder's name as a team name, if it is a valid one.
    pub(crate) team: Option<TeamName>,
    /// Seconds since an entry was added or removed.
    pub(crate) age: i64,
    pub(crate) config: Option<FileContent>,
    /// All other entries, except `config.json` and `inboxes`.
    pub(crate) entries: Vec<Entry>,
    pub(crate) inboxes: Vec<Entry>,
    pub(crate) board: Vec<Entry>,
    /// The tasks on the board, sorted by id.
    pub(crate) tasks: Vec<(TaskId, FileContent)>,
    /// Whether brigade created it.
    pub(crate) is_ours: bool,
    /// Brigade's own folder for the team.
    pub(crate) own: PathBuf,
}

/// A directory entry.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) meta: Metadata,
    /// Seconds since it was changed; negative if its timestamp is in the future.
    pub(crate) age: i64,
}

/// A file and its content.
pub(crate) struct FileContent {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) age: i64,
}

/// A team that is up on this host.
pub(crate) struct HostedTeam {
    pub(crate) team: TeamName,
    pub(crate) members: Vec<HostedMember>,
}

/// A member that should run on this host.
pub(crate) struct HostedMember {
    pub(crate) name: MemberName,
    /// `None` if the file cannot be read.
    pub(crate) spec: Option<MemberSpec>,
    /// The process that runs it.
    pub(crate) process: Option<Process>,
    pub(crate) trouble: Option<String>,
}

impl DoctorSnapshot {
    /// Reads everything.
    pub(crate) async fn read(context: &Context) -> Result<Self, CliError> {
        let (claude_dir, state_dir) = context.folders();
        let own = state_dir.join("files").join(claude_dir_key(claude_dir));
        let host = context.host()?;
        let teams_dir = claude_dir.join("teams");
        // A folder that is being deleted is no longer a team.
        let is_team = |entry: &Entry| entry.meta.is_dir() && !entry.name.contains(DELETED);
        let teams = entries(&teams_dir).into_iter().filter(is_team);
        let (teams, nats_findings) = match context.home().engine() {
            None => (teams.map(|entry| TeamFolder::read(claude_dir, &own, entry)).collect(), None),
            Some(engine) => {
                let nats = nats::read(context, engine).await?;
                (nats.teams, Some(nats.findings))
            }
        };
        let mut hosted = Vec::new();
        for team in host.registry.teams()? {
            let members = host.registry.members(&team)?.into_iter();
            let members = members.map(|name| HostedMember::read(&host, &team, name)).collect();
            hosted.push(HostedTeam { members, team });
        }
        let supervisor = process_lock::holder(&host.registry.supervisor_lock()).ok().flatten();
        Ok(Self {
            claude_dir: claude_dir.to_owned(),
            state_dir: state_dir.to_owned(),
            own,
            host,
            uid: geteuid().as_raw(),
            teams,
            nats_findings,
            hosted,
            supervisor,
        })
    }

    /// Finds a member that should run on this host.
    pub(crate) fn hosted(&self, team: &str, name: &str) -> Option<&HostedMember> {
        let team = self.hosted.iter().find(|hosted| hosted.team.as_str() == team)?;
        team.members.iter().find(|member| member.name.as_str() == name)
    }

    /// Whether a team's folder has a roster.
    pub(crate) fn has_config(&self, team: &str) -> bool {
        self.teams.iter().any(|folder| folder.name == team && folder.config.is_some())
    }
}

impl TeamFolder {
    /// A team in a NATS store, which has no folder.
    pub(super) fn in_nats(
        team: TeamName,
        config: FileContent,
        tasks: Vec<(TaskId, FileContent)>,
    ) -> Self {
        let nowhere = PathBuf::new;
        Self {
            name: team.to_string(),
            dir: nowhere(),
            board_dir: nowhere(),
            team: Some(team),
            age: 0,
            config: Some(config),
            entries: Vec::new(),
            inboxes: Vec::new(),
            board: Vec::new(),
            tasks,
            is_ours: true,
            own: nowhere(),
        }
    }

    fn read(claude_dir: &Path, own: &Path, entry: Entry) -> Self {
        let Entry { name, path: dir, age, .. } = entry;
        let board_dir = claude_dir.join("tasks").join(&name);
        let own = own.join(&name);
        let mut entries = entries(&dir);
        entries.retain(|entry| entry.name != "inboxes");
        let at = entries.iter().position(|entry| entry.name == "config.json");
        let config = at.map(|at| entries.swap_remove(at)).and_then(|entry| entry.read());
        let created = fs::read_to_string(own.join("created")).ok();
        let created: Option<u64> = created.and_then(|text| text.trim().parse().ok());
        let created_in_config =
            config.as_ref().and_then(|config| Team::read(&config.bytes).ok()?.created_at());
        let board = self::entries(&board_dir);
        let numbered =
            |entry: &Entry| Some((entry.name.strip_suffix(".json")?.parse().ok()?, entry.read()?));
        let mut tasks: Vec<(TaskId, FileContent)> = board.iter().filter_map(numbered).collect();
        tasks.sort_by_key(|(id, _)| *id);
        Self {
            team: name.parse().ok(),
            inboxes: self::entries(&dir.join("inboxes")),
            board,
            tasks,
            is_ours: created.is_some() && created_in_config.is_none_or(|at| Some(at) == created),
            name,
            dir,
            board_dir,
            age,
            config,
            entries,
            own,
        }
    }

    /// Every entry in its folders.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.inboxes).chain(&self.board)
    }

    /// The roster, if it is readable.
    pub(crate) fn roster(&self) -> Option<Team<'_>> {
        Team::read(&self.config.as_ref()?.bytes).ok()
    }

    /// The inboxes, each with the member name in its file name.
    pub(crate) fn mail(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.inboxes.iter().filter_map(|entry| Some((entry.name.strip_suffix(".json")?, entry)))
    }

    /// Reads the records of a journal file whose line contains one of these substrings.
    pub(crate) fn journal(&self, file: &str, substrings: &[&str]) -> Vec<Record> {
        let text = fs::read_to_string(self.own.join(file)).unwrap_or_default();
        let lines = text.lines().filter(|line| substrings.iter().any(|part| line.contains(part)));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last heartbeat of the process that runs or ran a member.
    pub(crate) fn pulse(&self, name: &str) -> Option<Pulse> {
        let path = self.own.join("pulse").join(format!("{name}.json"));
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl Entry {
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

impl HostedMember {
    fn read(host: &Host, team: &TeamName, name: MemberName) -> Self {
        Self {
            spec: host.registry.member(team, &name).ok().flatten(),
            process: process_lock::holder(&host.registry.seat(team, &name)).ok().flatten(),
            trouble: host.registry.trouble(team, &name),
            name,
        }
    }
}

/// The entries of a folder, sorted by name; empty if it cannot be read.
pub(crate) fn entries(dir: &Path) -> Vec<Entry> {
    let Ok(dir_entries) = fs::read_dir(dir) else { return Vec::new() };
    let now = seconds(SystemTime::now());
    let read_entry = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some(Entry { name, path: entry.path(), age: now.saturating_sub(meta.mtime()), meta })
    };
    let mut entries: Vec<Entry> = dir_entries.filter_map(|entry| read_entry(entry.ok()?)).collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

/// Seconds since a file was changed, if it exists.
pub(crate) fn age(path: &Path) -> Option<i64> {
    Some(seconds(SystemTime::now()).saturating_sub(path.symlink_metadata().ok()?.mtime()))
}

fn seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Whether a process with this id exists.
pub(crate) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    matches!(pid.map(test_kill_process), Some(Ok(()) | Err(rustix::io::Errno::PERM)))
}
