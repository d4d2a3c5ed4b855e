//! Everything there is, read once. Nothing here changes anything.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use brigade_core::event::Record;
use brigade_core::pulse::{Process, Pulse};
use brigade_files::folder_key;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::team::Team;
use rustix::process::{Pid, geteuid, test_kill_process};

use super::nats::{self, Ill};
use crate::context::Context;
use crate::error::CliError;
use brigade_host::spec::MemberSpec;
use brigade_host::{Host, process_lock};

/// What is read of one file at most, as in the store.
const MAX_FILE: u64 = 256 << 20;

/// What stands in the name of a team's folder that is being deleted.
pub(crate) const DELETED: &str = ".deleted-";

/// Everything there is.
pub(crate) struct House {
    pub(crate) claude_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// Our own folder for the teams of this Claude Code folder.
    pub(crate) own: PathBuf,
    pub(crate) host: Host,
    pub(crate) uid: u32,
    /// Every folder of Claude Code's that is, or was, a team's.
    pub(crate) teams: Vec<TeamFolder>,
    /// What is wrong with the engine, if teams live in one.
    pub(crate) ills: Option<Vec<Ill>>,
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
    /// Its name as a team's, if it can be one.
    pub(crate) team: Option<TeamName>,
    /// How long ago something was added to it or taken out, in seconds.
    pub(crate) age: i64,
    pub(crate) config: Option<Paper>,
    /// What else is there, config and inboxes apart.
    pub(crate) entries: Vec<Entry>,
    pub(crate) inboxes: Vec<Entry>,
    pub(crate) board: Vec<Entry>,
    /// The tasks among them, by number.
    pub(crate) tasks: Vec<(TaskId, Paper)>,
    /// Whether brigade created it.
    pub(crate) is_ours: bool,
    /// Our own folder for it.
    pub(crate) own: PathBuf,
}

/// A name in a folder.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) meta: Metadata,
    /// How long ago it was changed, in seconds; less than nothing if that is yet to come.
    pub(crate) age: i64,
}

/// A file with what it says.
pub(crate) struct Paper {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) age: i64,
}

/// A team that is up on this host.
pub(crate) struct HostedTeam {
    pub(crate) team: TeamName,
    pub(crate) members: Vec<HostedMember>,
}

/// A member that is to run on this host.
pub(crate) struct HostedMember {
    pub(crate) name: MemberName,
    /// What it is to be; none if that cannot be read.
    pub(crate) spec: Option<MemberSpec>,
    pub(crate) plays: Option<Process>,
    pub(crate) trouble: Option<String>,
}

impl House {
    /// Looks at everything.
    pub(crate) async fn look(context: &Context) -> Result<Self, CliError> {
        let (claude_dir, state_dir) = context.folders();
        let own = state_dir.join("files").join(folder_key(claude_dir));
        let host = context.host()?;
        let teams_dir = claude_dir.join("teams");
        // What is on its way out is no team any more.
        let is_team = |entry: &Entry| entry.meta.is_dir() && !entry.name.contains(DELETED);
        let teams = entries(&teams_dir).into_iter().filter(is_team);
        let (teams, ills) = match context.home().engine() {
            None => (teams.map(|entry| TeamFolder::look(claude_dir, &own, entry)).collect(), None),
            Some(engine) => {
                let sight = nats::look(context, engine).await?;
                (sight.teams, Some(sight.ills))
            }
        };
        let mut hosted = Vec::new();
        for team in host.registry.teams()? {
            let members = host.registry.members(&team)?.into_iter();
            let members = members.map(|name| HostedMember::look(&host, &team, name)).collect();
            hosted.push(HostedTeam { members, team });
        }
        let supervisor = process_lock::holder(&host.registry.supervisor_place()).ok().flatten();
        Ok(Self {
            claude_dir: claude_dir.to_owned(),
            state_dir: state_dir.to_owned(),
            own,
            host,
            uid: geteuid().as_raw(),
            teams,
            ills,
            hosted,
            supervisor,
        })
    }

    /// A member that is to run on this host.
    pub(crate) fn hosted(&self, team: &str, name: &str) -> Option<&HostedMember> {
        let team = self.hosted.iter().find(|hosted| hosted.team.as_str() == team)?;
        team.members.iter().find(|member| member.name.as_str() == name)
    }

    /// Whether such a folder has a roster.
    pub(crate) fn has_config(&self, team: &str) -> bool {
        self.teams.iter().any(|folder| folder.name == team && folder.config.is_some())
    }
}

impl TeamFolder {
    /// A team that has no folder, for it lives in an engine.
    pub(super) fn in_engine(team: TeamName, config: Paper, tasks: Vec<(TaskId, Paper)>) -> Self {
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

    fn look(claude_dir: &Path, own: &Path, entry: Entry) -> Self {
        let Entry { name, path: dir, age, .. } = entry;
        let board_dir = claude_dir.join("tasks").join(&name);
        let own = own.join(&name);
        let mut entries = entries(&dir);
        entries.retain(|entry| entry.name != "inboxes");
        let at = entries.iter().position(|entry| entry.name == "config.json");
        let config = at.map(|at| entries.swap_remove(at)).and_then(|entry| entry.read());
        let created = fs::read_to_string(own.join("created")).ok();
        let created: Option<u64> = created.and_then(|text| text.trim().parse().ok());
        let its = config.as_ref().and_then(|config| Team::read(&config.bytes).ok()?.created_at());
        let board = self::entries(&board_dir);
        let numbered =
            |entry: &Entry| Some((entry.name.strip_suffix(".json")?.parse().ok()?, entry.read()?));
        let mut tasks: Vec<(TaskId, Paper)> = board.iter().filter_map(numbered).collect();
        tasks.sort_by_key(|(id, _)| *id);
        Self {
            team: name.parse().ok(),
            inboxes: self::entries(&dir.join("inboxes")),
            board,
            tasks,
            is_ours: created.is_some() && its.is_none_or(|its| Some(its) == created),
            name,
            dir,
            board_dir,
            age,
            config,
            entries,
            own,
        }
    }

    /// Every name in its folders.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.inboxes).chain(&self.board)
    }

    /// The roster, if it is whole.
    pub(crate) fn roster(&self) -> Option<Team<'_>> {
        Team::read(&self.config.as_ref()?.bytes).ok()
    }

    /// The inboxes with whose they are, as far as file names tell.
    pub(crate) fn mail(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.inboxes.iter().filter_map(|entry| Some((entry.name.strip_suffix(".json")?, entry)))
    }

    /// What our journal of roster and board has, of the lines that hold one of these words.
    pub(crate) fn journal(&self, file: &str, words: &[&str]) -> Vec<Record> {
        let text = fs::read_to_string(self.own.join(file)).unwrap_or_default();
        let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What the process that played a member said last.
    pub(crate) fn pulse(&self, name: &str) -> Option<Pulse> {
        let path = self.own.join("pulse").join(format!("{name}.json"));
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl Entry {
    /// What it says, if it is a file that may be read.
    pub(crate) fn read(&self) -> Option<Paper> {
        if !self.meta.is_file()
            || self.meta.uid() != geteuid().as_raw()
            || self.meta.len() > MAX_FILE
        {
            return None;
        }
        let bytes = fs::read(&self.path).ok()?;
        Some(Paper { path: self.path.clone(), bytes, age: self.age })
    }
}

impl HostedMember {
    fn look(host: &Host, team: &TeamName, name: MemberName) -> Self {
        Self {
            spec: host.registry.member(team, &name).ok().flatten(),
            plays: process_lock::holder(&host.registry.seat(team, &name)).ok().flatten(),
            trouble: host.registry.trouble(team, &name),
            name,
        }
    }
}

/// What is in a folder, by name; nothing if it cannot be read.
pub(crate) fn entries(dir: &Path) -> Vec<Entry> {
    let Ok(read) = fs::read_dir(dir) else { return Vec::new() };
    let now = seconds(SystemTime::now());
    let look = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some(Entry { name, path: entry.path(), age: now.saturating_sub(meta.mtime()), meta })
    };
    let mut entries: Vec<Entry> = read.filter_map(|entry| look(entry.ok()?)).collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

/// How long ago something was changed, in seconds, if it is there.
pub(crate) fn age(path: &Path) -> Option<i64> {
    Some(seconds(SystemTime::now()).saturating_sub(path.symlink_metadata().ok()?.mtime()))
}

fn seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Whether there is a process of that number.
pub(crate) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    matches!(pid.map(test_kill_process), Some(Ok(()) | Err(rustix::io::Errno::PERM)))
}
