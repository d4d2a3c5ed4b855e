//! Files: whole or torn, too big, left behind, open to others, in the wrong place.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use brigade_core::event::Event;
use brigade_wire::Damage;
use brigade_wire::inbox::Inbox;
use brigade_wire::name::{MemberName, TaskId, team_dir};
use brigade_wire::task::Task;
use brigade_wire::team::Team;

use super::fix::Deed;
use super::locks::ago;
use super::snapshot::{DELETED, House, Paper, TeamFolder, age, entries, is_alive};
use super::{Cure, Found};

/// A program may be writing a file that was changed this many seconds ago.
const FRESH: i64 = 2;
/// How long that may take.
const WRITING: Duration = Duration::from_millis(60);
/// From here on an inbox is too big, in bytes.
const BIG: u64 = 800_000;
/// After this many seconds nobody is about to go on with what it left.
const ABANDONED: i64 = 3600;
/// So many seconds no brigade process takes over a write. Where it cannot be seen, as from inside a
/// container, it looks as if it were gone.
const MOMENT: i64 = 10;
/// A team that is being made has a roster after this many seconds.
const BEING_MADE: i64 = 60;

/// Why a file cannot be read, if it cannot and nobody is writing it.
fn damage(paper: &Paper, check: fn(&[u8]) -> Result<(), Damage>) -> Option<String> {
    let damage = check(&paper.bytes).err()?;
    if paper.age > FRESH {
        return Some(damage.to_string());
    }
    std::thread::sleep(WRITING);
    check(&fs::read(&paper.path).ok()?).err().map(|damage| damage.to_string())
}

pub(super) fn torn(house: &House, found: &mut Found) {
    for folder in &house.teams {
        if let Some(config) = &folder.config
            && let Some(why) = damage(config, |bytes| Team::read(bytes).map(drop))
        {
            found.tell(config.path.as_path(), torn_words(&why), roster_cure(folder));
        }
        for (of, entry) in folder.mail() {
            let Some(paper) = entry.read() else { continue };
            let Some(why) = damage(&paper, |bytes| Inbox::read(bytes).map(drop)) else { continue };
            let cure = match (&folder.team, of.parse::<MemberName>()) {
                (Some(team), Ok(member)) => {
                    let (team, path) = (team.clone(), entry.path.clone());
                    Cure::Deed(Deed::Look { team, member, path })
                }
                _ => by_hand(),
            };
            found.tell(entry.path.as_path(), torn_words(&why), cure);
        }
        for (id, paper) in &folder.tasks {
            if let Some(why) = damage(paper, |bytes| Task::read(bytes).map(drop)) {
                found.tell(paper.path.as_path(), torn_words(&why), task_cure(folder, *id));
            }
        }
    }
    for hosted in &house.hosted {
        for member in hosted.members.iter().filter(|member| member.spec.is_none()) {
            let dir = house.host.registry.member_dir(&hosted.team, &member.name);
            let what = "what the member is to be cannot be read";
            let advice = format!("`brigade stop {}`, then start it again", member.name);
            found.advise(dir.join("spec.json").as_path(), what, advice);
        }
    }
}

fn torn_words(why: &str) -> String {
    format!("it is not whole: {why}")
}

fn by_hand() -> Cure {
    Cure::Advice("mend it by hand; nobody has a copy".to_owned())
}

/// The roster as brigade saw it last.
fn roster_cure(folder: &TeamFolder) -> Cure {
    let seen = fs::read(folder.own.join("roster.json")).ok();
    let seen = seen.filter(|seen| Team::read(seen).is_ok_and(|team| team.lead().is_some()));
    match (&folder.team, seen) {
        (Some(team), Some(bytes)) => Cure::Deed(Deed::RestoreRoster { team: team.clone(), bytes }),
        _ => by_hand(),
    }
}

/// The task as brigade saw it last.
fn task_cure(folder: &TeamFolder, id: TaskId) -> Cure {
    let mut last = None;
    for record in folder.journal("team.jsonl", &["\"task\"", "\"task_deleted\""]) {
        match record.event {
            Event::Task { id: its, task } if its == id.get() => last = Some(task),
            Event::TaskDeleted { id: its } if its == id.get() => last = None,
            _ => {}
        }
    }
    // What was torn when it was seen stands in the journal as a string.
    let last = last.filter(|task| Task::read(task.get().as_bytes()).is_ok());
    match (&folder.team, last) {
        (Some(team), Some(task)) => {
            let bytes = task.get().as_bytes().to_vec();
            Cure::Deed(Deed::RestoreTask { team: team.clone(), id, bytes })
        }
        _ => by_hand(),
    }
}

pub(super) fn big(house: &House, found: &mut Found) {
    for folder in &house.teams {
        for (of, entry) in folder.mail().filter(|(_, entry)| entry.meta.len() > BIG) {
            let Some(paper) = entry.read() else { continue };
            let unread = Inbox::read(&paper.bytes);
            let unread = unread.map(|inbox| inbox.messages().filter(|m| !m.read()).count());
            let (size, unread) = (entry.meta.len() / 1000, unread.unwrap_or_default());
            let what = format!("an inbox of {size} kB, {unread} of its messages unread");
            let (team, me) = (&folder.name, of);
            let advice = format!(
                "have it read: `brigade --team {team} --as {me} inbox --mark-read`; the next message \
                 that brigade puts there leaves out what was read"
            );
            found.advise(entry.path.as_path(), what, advice);
        }
    }
}

pub(super) fn split(house: &House, found: &mut Found) {
    let boards = entries(&house.claude_dir.join("tasks")).into_iter().map(|entry| entry.name);
    let mut names: Vec<String> = boards.collect();
    names.extend(house.teams.iter().map(|folder| folder.name.clone()));
    names.sort();
    names.dedup();
    for name in names {
        let roster = team_dir(&name);
        if roster != name && !house.has_config(&name) && house.has_config(&roster) {
            let place = house.claude_dir.join("teams").join(&roster);
            let what = format!("a team whose mail and tasks are in the folder {name:?}");
            let advice = "end it, and make it again with a name of a-z, 0-9 and '-'";
            found.advise(place.as_path(), what, advice);
        }
    }
}

pub(super) fn no_config(house: &House, found: &mut Found) {
    for folder in &house.teams {
        let config = folder.dir.join("config.json");
        if config.symlink_metadata().is_ok() || folder.age < BEING_MADE {
            continue;
        }
        // A session of Claude Code has its folder before it has a team.
        let empty = folder.entries.is_empty() && folder.inboxes.is_empty();
        if house.has_config(&team_dir(&folder.name))
            || (empty && folder.name.starts_with("session-"))
        {
            continue;
        }
        let what = "a team's folder without a config.json";
        if empty {
            found.fixable(folder.dir.as_path(), what, Deed::RemoveEmpty(folder.dir.clone()));
        } else {
            let advice = "look whether somebody needs what is in it, then move it away";
            found.advise(folder.dir.as_path(), what, advice);
        }
    }
}

pub(super) fn left_over(house: &House, found: &mut Found) {
    for folder in &house.teams {
        for entry in folder.all() {
            let path = entry.path.clone();
            if let Some(file) = abandoned(&entry.name).filter(|_| entry.age > MOMENT) {
                let what = "a temporary file of a brigade process that is gone";
                let inbox = file.trim_end_matches(".lock").strip_suffix(".json");
                let member = inbox.and_then(|of| of.parse::<MemberName>().ok());
                // Of an inbox's our state may speak: whether it is there says what was delivered.
                let deed = match (&folder.team, member) {
                    (Some(team), Some(member)) if path.starts_with(folder.dir.join("inboxes")) => {
                        Deed::Look { team: team.clone(), member, path: path.clone() }
                    }
                    _ => Deed::MoveAside(path.clone()),
                };
                found.fixable(path.as_path(), what, deed);
            } else if entry.age > ABANDONED && is_native_temp(&entry.name) {
                let what = format!("a temporary file of Claude Code's, {} old", ago(entry.age));
                found.fixable(path.as_path(), what, Deed::MoveAside(path.clone()));
            }
        }
    }
    for parent in ["teams", "tasks"] {
        for entry in entries(&house.claude_dir.join(parent)) {
            if entry.name.contains(DELETED) && entry.age > ABANDONED {
                let what = "a team that was deleted, and is still there in part";
                found.fixable(entry.path.as_path(), what, Deed::MoveAside(entry.path.clone()));
            }
        }
    }
    let mut walk = |path: &Path, _: &fs::Metadata| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_old = age(path).is_some_and(|age| age > MOMENT);
        if is_old && (abandoned(name).is_some() || is_spec_temp(name)) {
            let what = "a temporary file of a brigade process that is gone";
            found.fixable(path, what, Deed::MoveAside(path.to_owned()));
        }
    };
    walk_own(&house.own, &mut walk);
    walk_own(house.host.registry.dir(), &mut walk);
}

/// The file that a temporary one of ours was for, if who made it is gone.
fn abandoned(name: &str) -> Option<&str> {
    let (file, maker) = name.rsplit_once(".tmp.brigade-")?;
    let pid: u32 = maker.split_once('-')?.0.parse().ok()?;
    (!is_alive(pid)).then_some(file)
}

/// Whether it is a temporary file of what runs on this host, and who made it is gone.
fn is_spec_temp(name: &str) -> bool {
    let pid = name.strip_suffix(".tmp").and_then(|name| name.rsplit_once('.'));
    pid.and_then(|(_, pid)| pid.parse().ok()).is_some_and(|pid: u32| !is_alive(pid))
}

fn is_native_temp(name: &str) -> bool {
    let rest = name.rsplit_once(".json.tmp.").map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Everything below a folder of ours, the folder itself first. No link is followed.
fn walk_own(dir: &Path, tell: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let Ok(meta) = dir.symlink_metadata() else { return };
    tell(dir, &meta);
    if meta.is_dir() {
        for entry in entries(dir) {
            walk_own(&entry.path, tell);
        }
    }
}

pub(super) fn open_to_others(house: &House, found: &mut Found) {
    let mut open = |path: &Path, meta: &fs::Metadata| {
        let (mode, wanted) = (meta.mode() & 0o777, if meta.is_dir() { 0o700 } else { 0o600 });
        if !meta.is_symlink() && meta.uid() == house.uid && mode & 0o077 != 0 {
            let what = format!("others may look at it (its mode is {mode:o}, not {wanted:o})");
            found.fixable(path, what, Deed::SetMode(path.to_owned(), wanted));
        }
    };
    if let Ok(meta) = house.state_dir.symlink_metadata() {
        open(&house.state_dir, &meta);
    }
    walk_own(&house.state_dir.join("files"), &mut open);
    // Of what runs on this host only the keys are secret in themselves.
    walk_own(&house.state_dir.join("host"), &mut |path, meta| {
        if meta.is_dir() || path.ends_with("key") {
            open(path, meta);
        }
    });
}

pub(super) fn foreign(house: &House, found: &mut Found) {
    let folders: Vec<PathBuf> =
        ["teams", "tasks"].map(|parent| house.claude_dir.join(parent)).into();
    let tops: Vec<_> = folders.iter().flat_map(|dir| entries(dir)).collect();
    for entry in tops.iter().chain(house.teams.iter().flat_map(TeamFolder::all)) {
        if entry.meta.is_symlink() {
            let advice = "put the real file there in place of the link";
            found.advise(entry.path.as_path(), "a symbolic link", advice);
        } else if entry.meta.uid() != house.uid {
            let what = format!("it belongs to another user, {}", entry.meta.uid());
            let advice = "give it to you with `chown`, or run brigade as its owner";
            found.advise(entry.path.as_path(), what, advice);
        }
    }
    for folder in &house.teams {
        let config = folder.dir.join("config.json");
        if let Ok(meta) = config.symlink_metadata()
            && folder.config.is_none()
            && (meta.is_symlink() || meta.uid() != house.uid)
        {
            let what = "a roster that is a link, or another user's";
            found.advise(config.as_path(), what, "put the real file there, owned by you");
        }
    }
}

pub(super) fn unreadable(house: &House, found: &mut Found) {
    let tops = ["teams", "tasks"].map(|parent| house.claude_dir.join(parent)).into_iter();
    let of_teams = house.teams.iter().flat_map(|folder| {
        [folder.dir.clone(), folder.dir.join("inboxes"), folder.board_dir.clone()]
    });
    for dir in tops.chain(of_teams) {
        let Err(error) = fs::read_dir(&dir) else { continue };
        let advice = match error.kind() {
            io::ErrorKind::NotFound => continue,
            io::ErrorKind::PermissionDenied => format!("`chmod u+rwx {}`", dir.display()),
            _ => "move it out of the way".to_owned(),
        };
        found.advise(dir.as_path(), format!("it cannot be looked into: {error}"), advice);
    }
}
