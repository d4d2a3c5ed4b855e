//! Checks for files that are damaged, too big, left over, readable by other users, or in the wrong place.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use brigade_core::event::Event;
use brigade_core::text;
use brigade_files::layout::{
    CONFIG, CREATED, CREATING, DELETED, FILES, INBOXES, TASKS, TEAM_JOURNAL, TEAMS, member_name,
    parse_temp_name, task_id,
};
use brigade_wire::Damage;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TaskId, TeamName, team_dir};
use brigade_wire::task::Task;
use brigade_wire::team::Team;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::anchored::FileIdentity;
use super::fix::Fix;
use super::snapshot::DoctorSnapshot;
use super::team_folder::{FileContent, TeamFolder, age, entries, is_alive, root_entries};
use super::wording::MOVE_AWAY;
use super::{Cure, Findings};
use crate::output::duration;

/// A program may still be writing a file that was changed at most this many seconds ago.
const RECENT: i64 = 2;
/// How long to wait before reading a recently changed file a second time.
const WRITE_TIME: Duration = Duration::from_millis(60);
/// Size in bytes above which an inbox is too big.
const BIG_INBOX: u64 = 800_000;
/// No program will finish an operation that was interrupted at least this many seconds ago.
const ABANDONED: i64 = 3600;
/// A write by brigade takes less than this many seconds, so an older temporary file is a leftover. Checking the
/// process is not enough: a process in another container looks as if it were gone.
const MAX_WRITE_AGE: i64 = 10;
/// A program that creates a team's folder writes the roster within this many seconds.
const CREATION_TIME: i64 = 60;

/// Returns why a file cannot be parsed; `None` if the file is valid or a program is still writing it.
fn damage(file: &FileContent, check: fn(&[u8]) -> Result<(), Damage>) -> Option<String> {
    let damage = check(&file.bytes).err()?;
    if file.age > RECENT {
        return Some(damage.to_string());
    }
    std::thread::sleep(WRITE_TIME);
    check(&fs::read(&file.path).ok()?).err().map(|damage| damage.to_string())
}

pub(super) fn torn(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        if let Some(config) = &folder.config
            && let Some(why) = damage(config, |bytes| Team::read(bytes).map(drop))
        {
            found.add(config.path.as_path(), damage_text(&why), roster_cure(folder));
        }
        for (owner, entry) in folder.member_inboxes() {
            let Some(file) = entry.read() else { continue };
            let Some(why) = damage(&file, |bytes| Inbox::read(bytes).map(drop)) else { continue };
            let cure = match (&folder.team, owner.parse::<MemberName>()) {
                (Some(team), Ok(member)) => {
                    let (team, path) = (team.clone(), entry.path.clone());
                    Cure::Automatic(Fix::RepairMailbox { team, member, path })
                }
                _ => manual_repair(),
            };
            found.add(entry.path.as_path(), damage_text(&why), cure);
        }
        for (id, file) in &folder.tasks {
            if let Some(why) = damage(file, |bytes| Task::read(bytes).map(drop)) {
                found.add(file.path.as_path(), damage_text(&why), task_cure(folder, *id));
            }
        }
    }
    for hosted in &snapshot.hosted {
        for member in hosted.members.iter().filter(|member| member.spec.is_none()) {
            let dir = snapshot.host.registry.member_dir(&hosted.team, &member.name);
            let what = "the member's specification cannot be read";
            let advice = format!("run `brigade stop {}`, then start it again", member.name);
            found.advise(dir.join("spec.json").as_path(), what, advice);
        }
    }
}

fn damage_text(why: &str) -> String {
    format!("it is damaged: {why}")
}

fn manual_repair() -> Cure {
    Cure::Manual("repair it by hand; brigade has no copy of it".to_owned())
}

/// Returns the cure for a damaged roster: restore the last roster that brigade read, if it is a roster of this team.
fn roster_cure(folder: &TeamFolder) -> Cure {
    let seen = folder.last_roster.clone();
    let seen = seen.filter(|seen| Team::read(seen).is_ok_and(|team| team.lead().is_some()));
    match (&folder.team, seen) {
        (Some(team), Some(bytes)) => {
            Cure::Automatic(Fix::RestoreRoster { team: team.clone(), bytes })
        }
        _ => manual_repair(),
    }
}

/// Returns the cure for a damaged task file: restore the last version of the task that brigade read, if it is a task
/// of this team.
fn task_cure(folder: &TeamFolder, id: TaskId) -> Cure {
    let mut last = None;
    let events = ["\"task\"", "\"task_deleted\"", "\"team_created\"", "\"team_deleted\""];
    for record in folder.journal(TEAM_JOURNAL, &events) {
        match record.into_inner().event {
            Event::Task { id: other, task } if other == id.get() => last = Some(task),
            Event::TaskDeleted { id: other } if other == id.get() => last = None,
            // The task belonged to an earlier team of the same name.
            Event::TeamCreated { .. } | Event::TeamDeleted {} => last = None,
            _ => {}
        }
    }
    // Brigade may not have read the files of the present team yet.
    let last = last.filter(|_| folder.last_roster.is_some());
    // If a task was damaged when brigade read it, the journal contains a string instead of the task.
    let last = last.filter(|task| Task::read(task.get().as_bytes()).is_ok());
    match (&folder.team, last) {
        (Some(team), Some(task)) => {
            let bytes = task.get().as_bytes().to_vec();
            Cure::Automatic(Fix::RestoreTask { team: team.clone(), id, bytes })
        }
        _ => manual_repair(),
    }
}

pub(super) fn big(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        for (owner, entry) in
            folder.member_inboxes().filter(|(_, entry)| entry.meta.len() > BIG_INBOX)
        {
            let Some(file) = entry.read() else { continue };
            let unread = Inbox::read(&file.bytes);
            let unread = unread.map(|inbox| inbox.messages().filter(|m| !m.read()).count());
            let (size, unread) = (entry.meta.len() / 1000, unread.unwrap_or_default());
            let what = format!("an inbox of {size} kB with {unread} unread messages");
            let team = &folder.name;
            let advice = format!(
                "mark its messages read: `brigade --team {team} --as {owner} inbox --mark-read`; brigade removes read \
                 messages when it delivers the next one"
            );
            found.advise(entry.path.as_path(), what, advice);
        }
    }
}

pub(super) fn split(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let boards = root_entries(&snapshot.claude_dir.join(TASKS)).into_iter();
    let boards = boards.map(|entry| entry.name).filter(|name| snapshot.covers(name));
    let mut names: Vec<String> = boards.collect();
    names.extend(snapshot.teams.iter().map(|folder| folder.name.clone()));
    names.sort();
    names.dedup();
    for name in names {
        let roster = team_dir(&name);
        if roster != name && !snapshot.has_config(&name) && snapshot.has_config(&roster) {
            let place = snapshot.claude_dir.join(TEAMS).join(&roster);
            let what = format!("a team whose mail and tasks are in another folder, {name:?}");
            let advice = "stop it, and create it again with a name of a-z, 0-9 and '-'";
            found.advise(place.as_path(), what, advice);
        }
    }
}

pub(super) fn no_config(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        let config = folder.dir.join(CONFIG);
        if config.symlink_metadata().is_ok() || folder.age < CREATION_TIME {
            continue;
        }
        // A Claude Code session creates its folder before its team.
        let empty = folder.entries.is_empty() && folder.inboxes.is_empty();
        if snapshot.has_config(&team_dir(&folder.name))
            || (empty && folder.name.starts_with("session-"))
        {
            continue;
        }
        let what = "a team folder without a config.json";
        if empty {
            found.fixable(folder.dir.as_path(), what, Fix::RemoveEmptyFolder(folder.dir.clone()));
        } else {
            found.advise(folder.dir.as_path(), what, MOVE_AWAY);
        }
    }
}

pub(super) fn left_over(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        for entry in folder.all() {
            let path = entry.path.clone();
            if let Some(file) = abandoned(&entry.name).filter(|_| entry.age > MAX_WRITE_AGE) {
                let what = "a temporary file of a brigade process that is gone";
                let inbox = member_name(file.trim_end_matches(".lock"));
                let member = inbox.and_then(|member| member.parse::<MemberName>().ok());
                // Only the store may remove a temporary file of an inbox, because the store uses the file to
                // find out which messages were delivered.
                let fix = match (&folder.team, member) {
                    // A lock that a process was removing.
                    _ if entry.meta.is_dir() => Fix::RemoveEmptyFolder(path.clone()),
                    (Some(team), Some(member)) if path.starts_with(folder.dir.join(INBOXES)) => {
                        Fix::RepairMailbox { team: team.clone(), member, path: path.clone() }
                    }
                    _ => Fix::MoveAside(path.clone(), entry.identity()),
                };
                found.fixable(path.as_path(), what, fix);
            } else if entry.age > ABANDONED && is_native_temp(&entry.name) {
                let what = format!("a temporary file of Claude Code, {} old", duration(entry.age));
                let fix = Fix::MoveAside(path.clone(), entry.identity());
                found.fixable(path.as_path(), what, fix);
            }
        }
    }
    for parent in [TEAMS, TASKS] {
        for entry in root_entries(&snapshot.claude_dir.join(parent)) {
            let team = entry.name.split(DELETED).next().unwrap_or_default();
            if entry.name.contains(DELETED) && entry.age > ABANDONED && snapshot.covers(team) {
                let what = "the remains of a deleted team";
                let fix = Fix::MoveAside(entry.path.clone(), entry.identity());
                found.fixable(entry.path.as_path(), what, fix);
            }
        }
    }
    let mut find_temp = |path: &Path, meta: &fs::Metadata| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_old = age(path).is_some_and(|age| age > MAX_WRITE_AGE);
        if is_old && (abandoned(name).is_some() || is_spec_temp(name)) {
            let what = "a temporary file of a brigade process that is gone";
            found.fixable(path, what, Fix::MoveAside(path.to_owned(), FileIdentity::new(meta)));
        }
    };
    let all = (snapshot.team_states_dir.clone(), snapshot.host.registry.dir().to_owned());
    let (files, host) = snapshot.own_dirs_of_team().unwrap_or(all);
    walk(&files, &mut find_temp);
    walk(&host, &mut find_temp);
}

/// If `name` is one of brigade's temporary files and the process that created it is gone, returns the name of the
/// file that the process was writing.
fn abandoned(name: &str) -> Option<&str> {
    let (file, creator, _) = parse_temp_name(name)?;
    (!is_alive(creator)).then_some(file)
}

/// Returns whether `name` is a temporary file of the host registry whose creating process is gone.
fn is_spec_temp(name: &str) -> bool {
    let pid = name.strip_suffix(".tmp").and_then(|name| name.rsplit_once('.'));
    pid.and_then(|(_, pid)| pid.parse().ok()).is_some_and(|pid: u32| !is_alive(pid))
}

fn is_native_temp(name: &str) -> bool {
    let rest = name.rsplit_once(".json.tmp.").map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Visits one of brigade's folders and everything below it, without following links.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let Ok(meta) = dir.symlink_metadata() else { return };
    visit(dir, &meta);
    if meta.is_dir() {
        for entry in entries(dir) {
            walk(&entry.path, visit);
        }
    }
}

pub(super) fn open_to_others(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let mut open = |path: &Path, meta: &fs::Metadata| {
        let (mode, wanted) = (meta.mode() & 0o777, if meta.is_dir() { 0o700 } else { 0o600 });
        if !meta.is_symlink() && meta.uid() == snapshot.uid && mode & 0o077 != 0 {
            let what = format!("other users can read it (its mode is {mode:o}, not {wanted:o})");
            found.fixable(path, what, Fix::SetMode(path.to_owned(), mode, wanted));
        }
    };
    let (files, hosts) = match snapshot.own_dirs_of_team() {
        Some((files, host)) => (files, host),
        None => {
            if let Ok(meta) = snapshot.state_dir.symlink_metadata() {
                open(&snapshot.state_dir, &meta);
            }
            (snapshot.state_dir.join(FILES), snapshot.state_dir.join("host"))
        }
    };
    walk(&files, &mut open);
    // Of the files in the host registry, only the keys are secret.
    walk(&hosts, &mut |path, meta| {
        if meta.is_dir() || path.ends_with("key") {
            open(path, meta);
        }
    });
}

pub(super) fn foreign(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let folders: Vec<PathBuf> =
        [TEAMS, TASKS].map(|parent| snapshot.claude_dir.join(parent)).into();
    let tops = folders.iter().flat_map(|dir| root_entries(dir));
    let tops: Vec<_> = tops.filter(|entry| snapshot.covers(&entry.name)).collect();
    let inside = snapshot.teams.iter().flat_map(|folder| folder.all().chain(&folder.inboxes_dir));
    for entry in tops.iter().chain(inside) {
        if entry.meta.is_symlink() {
            let advice = "replace the link with the real file";
            found.advise(entry.path.as_path(), "a symbolic link", advice);
        } else if entry.meta.uid() != snapshot.uid {
            let what = format!("it belongs to another user, {}", entry.meta.uid());
            let advice = "change its owner with `chown`, or run brigade as its owner";
            found.advise(entry.path.as_path(), what, advice);
        }
    }
    for folder in &snapshot.teams {
        let config = folder.dir.join(CONFIG);
        if let Ok(meta) = config.symlink_metadata()
            && folder.config.is_none()
            && (meta.is_symlink() || meta.uid() != snapshot.uid)
        {
            let what = "a roster that is a link or belongs to another user";
            found.advise(config.as_path(), what, "replace it with a regular file that you own");
        }
    }
}

pub(super) fn unreadable(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let tops = [TEAMS, TASKS].map(|parent| snapshot.claude_dir.join(parent));
    let is_top = |dir: &PathBuf| tops.contains(dir);
    let team_dirs = snapshot.teams.iter().flat_map(|folder| {
        [folder.dir.clone(), folder.dir.join(INBOXES), folder.board_dir.clone()]
    });
    for dir in tops.iter().cloned().chain(team_dirs) {
        // The check of foreign files reports links.
        if dir.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) && !is_top(&dir) {
            continue;
        }
        let Err(error) = fs::read_dir(&dir) else { continue };
        let advice = match error.kind() {
            io::ErrorKind::NotFound => continue,
            io::ErrorKind::PermissionDenied => format!("`chmod u+rwx {}`", dir.display()),
            _ => "move it out of the way".to_owned(),
        };
        found.advise(dir.as_path(), format!("it cannot be read: {error}"), advice);
    }
}

pub(super) fn read_only(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let claude = &snapshot.claude_dir;
    for dir in [claude.join(TEAMS), claude.join(TASKS), snapshot.state_dir.clone()] {
        // Check the nearest folder that exists: the others would be created in it.
        let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(&dir);
        let (what, advice) = match access(existing, Access::WRITE_OK) {
            Err(Errno::ROFS) => (
                "its file system is mounted read-only",
                "mount the file system with write access, or name other folders",
            ),
            Err(Errno::ACCESS | Errno::PERM) => {
                ("you have no permission to write to it", "make its owner and mode right")
            }
            _ => continue,
        };
        found.advise(existing, what, advice);
    }
}

pub(super) fn board_without_team(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for entry in root_entries(&snapshot.claude_dir.join(TASKS)) {
        let has_team = snapshot.claude_dir.join(TEAMS).join(&entry.name).symlink_metadata().is_ok();
        // Claude Code keeps the boards of sessions that have no team. Report only boards of teams that brigade knows.
        let state = snapshot.team_states_dir.join(&entry.name);
        let is_ours = state.join(CREATED).is_file() || state.join(CREATING).is_file();
        if !entry.meta.is_dir()
            || has_team
            || !is_ours
            || entry.age < CREATION_TIME
            || !snapshot.covers(&entry.name)
            || entry.name.parse::<TeamName>().is_err()
        {
            continue;
        }
        let tasks =
            entries(&entry.path).iter().filter(|file| task_id(&file.name).is_some()).count();
        let tasks = text::count(tasks, "task");
        let what = format!("a board with {tasks}, but its team {} does not exist", entry.name);
        let fix = Fix::MoveAside(entry.path.clone(), entry.identity());
        found.fixable(entry.path.as_path(), what, fix);
    }
}
