//! The members that should run on this host, stored on disk.
//!
//! ```text
//! <state>/commands       the agents of the form `acp:COMMAND` that a person started on this host, one per line
//! <state>/host/<key of the store: 16 hex digits>/
//!   supervisor           locked by the supervisor
//!   supervisor.log
//!   credentials.json     the credentials with which the supervisor was started, if the store is on NATS servers
//!   <team>/team.json     the spec of the team; the team is up while this file exists
//!   <team>/origin.json   the team file that started the team
//!   <team>/up            locked by the process that brings the team up or down
//!   <team>/deleting      exists while `brigade down` stops the members before it deletes the team
//!   <team>/take-over.pending
//!                        exists while `brigade resume` takes over the team
//!   <team>/<member>.stopped.json
//!                        the settings of a member that was stopped, and when
//!   <team>/<member>/     spec.json, folder.json, seat (locked by the process that runs the member), joined, trouble,
//!                        problem, restart, log, key, control (the member's socket), paused,
//!                        turn-rules.json, takeover (a lock); while the member is being stopped, spec.json is named stopping.json
//! <state>/claude-led/<key of the store>/
//!                        the same for members that Claude Code started, and lead.json of each member: the sessions
//!                        of its lead; <team>/gone.json: members that `brigade resume` does not start; the supervisor
//!                        does not read this folder
//! ```

mod claude_member;
mod folder;
mod paused;
mod problem;
mod stopped;
mod turn_rules;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use brigade_agents::driver;
use brigade_core::pulse::Process;
use brigade_wire::name::{MemberName, TeamName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::stopped::StoppedMember;
pub use self::turn_rules::forget_turn_rules;
use crate::error::{HostError, failed, file_failed};
use crate::keys::KeyRing;
use crate::leftovers::{self, temp};
use crate::process_lock;
use crate::spec::{MemberSpec, TeamSpec};

const TEAM: &str = "team.json";
const ORIGIN: &str = "origin.json";
const SPEC: &str = "spec.json";
const STOPPING: &str = "stopping.json";
const SEAT: &str = "seat";
const JOINED: &str = "joined";
const TROUBLE: &str = "trouble";
/// Why the supervisor cannot start the member at present.
const PROBLEM: &str = "problem";
const RESTART: &str = "restart";
/// Exists while `brigade down` stops the members of a team before it deletes the team.
const DELETING: &str = "deleting";
const TAKING_OVER: &str = "take-over.pending";

/// The contents of `team.json`.
#[derive(Serialize)]
struct TeamJson<'s> {
    #[serde(flatten)]
    spec: &'s TeamSpec,
    #[serde(flatten)]
    order: &'s MemberOrder,
}

/// The names of a team's lead and members, in the order of `brigade.toml`.
#[derive(Default, Serialize, Deserialize)]
struct MemberOrder {
    #[serde(default)]
    order: Vec<MemberName>,
}

/// The team file that started a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamOrigin {
    /// The path of the team file.
    pub file: PathBuf,
    /// When the team was created, in milliseconds since 1970. Distinguishes teams of the same name.
    pub created: Option<u64>,
}

/// The folder that records which members should run on this host.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// Creates a registry in `dir`, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the registry of the members that Claude Code started on this host in the teams of the same store.
    #[must_use]
    pub fn claude_led(&self) -> Self {
        Self::new(self.state_dir().join("claude-led").join(self.key()))
    }

    /// Returns the registry's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a key that is unique for this registry.
    pub fn key(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the path of the supervisor's lock file. Creates the folder for the file.
    pub fn supervisor(&self) -> Result<PathBuf, HostError> {
        create_dir(&self.dir)?;
        Ok(self.supervisor_lock())
    }

    /// Returns the path of the supervisor's lock file. The registry's folder might not exist yet.
    pub fn supervisor_lock(&self) -> PathBuf {
        self.dir.join("supervisor")
    }

    /// Returns the path of the supervisor's log file.
    pub fn supervisor_log(&self) -> PathBuf {
        self.dir.join("supervisor.log")
    }

    /// Returns the path of the file that names the credentials with which the supervisor was started.
    pub(crate) fn credentials(&self) -> PathBuf {
        self.dir.join("credentials.json")
    }

    /// Removes the registry's folder if no team is up. Only the supervisor may call this, while it holds its lock.
    pub fn remove_if_empty(&self) -> Result<(), HostError> {
        if self.teams()?.is_empty() {
            leftovers::sweep(&self.dir);
            remove(&self.supervisor_log())?;
            remove(&self.credentials())?;
            remove(&self.supervisor_lock())?;
            // If another process is bringing a team up, the folder is not empty, and this call does not remove it.
            let _not_empty = fs::remove_dir(&self.dir);
        }
        Ok(())
    }

    /// Returns whether the registry contains folders, also of teams that are being removed.
    pub(crate) fn has_folders(&self) -> bool {
        let Ok(mut entries) = fs::read_dir(&self.dir) else { return false };
        entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir()))
    }

    /// Returns the teams of this registry that are up.
    pub fn teams(&self) -> Result<Vec<TeamName>, HostError> {
        Ok(children(&self.dir, TEAM)?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Returns the teams that are up on this host but belong to another store: other NATS servers, or another
    /// Claude Code folder.
    pub fn elsewhere(&self) -> Vec<TeamName> {
        let siblings = self.dir.parent().and_then(|parent| fs::read_dir(parent).ok());
        let siblings = siblings.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let others = siblings.filter(|dir| *dir != self.dir).map(Self::new);
        others.flat_map(|other| other.teams().unwrap_or_default()).collect()
    }

    pub(crate) fn team_dir(&self, team: &TeamName) -> PathBuf {
        self.dir.join(team.as_str())
    }

    /// Returns the path of the lock file for bringing the team up or down. Creates the team's folder.
    pub fn up(&self, team: &TeamName) -> Result<PathBuf, HostError> {
        create_dir(&self.team_dir(team))?;
        Ok(self.team_dir(team).join("up"))
    }

    /// Returns the spec of a team, or `None` if the team is not up. The specs of the members are separate files.
    pub fn team(&self, team: &TeamName) -> Result<Option<TeamSpec>, HostError> {
        read(&self.team_dir(team).join(TEAM))
    }

    /// Stores the spec of a team, which marks the team as up. Of the members, stores only the order of their names.
    pub fn put_team(&self, spec: &TeamSpec) -> Result<(), HostError> {
        create_dir(&self.team_dir(&spec.team))?;
        // An earlier `brigade down` may have been killed.
        remove(&self.team_dir(&spec.team).join(DELETING))?;
        let order = spec.lead.iter().chain(&spec.members).map(|member| member.name.clone());
        let order = MemberOrder { order: order.collect() };
        let spec = TeamSpec { members: Vec::new(), ..spec.clone() };
        write(&self.team_dir(&spec.team).join(TEAM), &TeamJson { spec: &spec, order: &order })
    }

    /// Returns the file that started the team. `None` if no file did, or if an earlier version of brigade did.
    pub fn origin(&self, team: &TeamName) -> Result<Option<TeamOrigin>, HostError> {
        read(&self.team_dir(team).join(ORIGIN))
    }

    /// Records the file that started the team.
    pub fn put_origin(&self, team: &TeamName, origin: &TeamOrigin) -> Result<(), HostError> {
        create_dir(&self.team_dir(team))?;
        write(&self.team_dir(team).join(ORIGIN), origin)
    }

    /// Removes a team and its members.
    pub fn remove_team(&self, team: &TeamName) -> Result<(), HostError> {
        let dir = self.team_dir(team);
        leftovers::remove_dir(&dir).map_err(|source| file_failed("remove", &dir, source))
    }

    /// Records that the team is deleted as soon as its members have stopped. They need not leave the team.
    pub(crate) fn mark_deletion(&self, team: &TeamName) -> Result<(), HostError> {
        create_file(&self.team_dir(team).join(DELETING))
    }

    /// Returns whether the team is deleted as soon as its members have stopped.
    pub fn is_being_deleted(&self, team: &TeamName) -> bool {
        self.team_dir(team).join(DELETING).exists()
    }

    /// Returns the team's members that should run on this host: the lead, the other members in the order of
    /// `brigade.toml`, and then members that were added later, sorted by name.
    pub fn members(&self, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
        let names = children(&self.team_dir(team), SPEC)?;
        let mut names: Vec<MemberName> =
            names.iter().filter_map(|name| name.parse().ok()).collect();
        let order = read::<MemberOrder>(&self.team_dir(team).join(TEAM))?.unwrap_or_default().order;
        // Sorting is stable, so names that are not in the list stay sorted by name.
        names
            .sort_by_key(|name| order.iter().position(|other| other == name).unwrap_or(usize::MAX));
        Ok(names)
    }

    /// Returns the members that should not run any more, but that were not removed yet.
    pub fn withdrawn_members(&self, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
        let mut names = children(&self.team_dir(team), STOPPING)?;
        // An earlier version of brigade removed the spec of such a member.
        names.extend(children(&self.team_dir(team), SEAT)?);
        names.sort();
        names.dedup();
        let names = names.iter().filter_map(|name| name.parse().ok());
        Ok(names.filter(|name| !self.member_dir(team, name).join(SPEC).exists()).collect())
    }

    /// Returns the spec of a member that should run, or that is being stopped.
    pub fn member_or_stopping(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<MemberSpec>, HostError> {
        match self.member(team, name)? {
            None => read(&self.member_dir(team, name).join(STOPPING)),
            spec => Ok(spec),
        }
    }

    /// Returns the spec of a member.
    pub fn member(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<MemberSpec>, HostError> {
        read(&self.member_dir(team, name).join(SPEC))
    }

    /// Returns whether the member should run on this host. `stop` and `down` withdraw a member before they end its process.
    /// At a reboot, all processes end while their members are still expected. A spec that cannot be read still counts.
    pub fn expects(&self, team: &TeamName, name: &MemberName) -> bool {
        self.member_dir(team, name).join(SPEC).exists()
    }

    /// Adds a member. Returns false if the team already has a member of this name on this host. If several
    /// processes add the same name at once, only one of them succeeds.
    pub fn add_member(&self, team: &TeamName, spec: &MemberSpec) -> Result<bool, HostError> {
        if driver::is_command(&spec.agent) {
            self.remember_command(&spec.agent, &spec.cwd)?;
        }
        let dir = self.member_dir(team, &spec.name);
        create_dir(&dir)?;
        let path = dir.join(SPEC);
        if !path.exists() {
            // A process died while it removed an earlier member of this name.
            for file in [STOPPING, JOINED, TROUBLE, PROBLEM, RESTART] {
                remove(&dir.join(file))?;
            }
            // First the folder, then the spec: a member with a spec is complete, also after a kill.
            self.record_folder(team, spec)?;
        }
        let temp = temp(&path);
        write_file(&temp, spec)?;
        let linked = fs::hard_link(&temp, &path);
        remove(&temp)?;
        let is_new = match linked {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(source) => return Err(file_failed("write", &path, source)),
        };
        self.forget_stopped(team, &spec.name)?;
        Ok(is_new)
    }

    /// Returns whether a person has started this agent, `acp:COMMAND`, in this folder of this host before.
    pub fn knows_command(&self, agent: &str, cwd: &Path) -> Result<bool, HostError> {
        let started = started_command(agent, cwd);
        let path = self.commands();
        match fs::read_to_string(&path) {
            Ok(known) => Ok(known.lines().any(|line| line == started)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(file_failed("read", &path, source)),
        }
    }

    fn remember_command(&self, agent: &str, cwd: &Path) -> Result<(), HostError> {
        if self.knows_command(agent, cwd)? {
            return Ok(());
        }
        create_dir(&self.dir)?;
        let path = self.commands();
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options.append(true).create(true).mode(0o600).open(&path)?;
            file.write_all(format!("{}\n", started_command(agent, cwd)).as_bytes())
        };
        write().map_err(|source| file_failed("write", &path, source))
    }

    fn commands(&self) -> PathBuf {
        self.state_dir().join("commands")
    }

    /// Returns brigade's state folder.
    pub(crate) fn state_dir(&self) -> &Path {
        // The registry is two levels below the state folder.
        self.dir.ancestors().nth(2).unwrap_or(&self.dir)
    }

    /// Marks a member as being stopped, so that it is not started again. Does not stop the member's process.
    pub fn withdraw_member(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        let dir = self.member_dir(team, name);
        removed(&dir.join(SPEC), fs::rename(dir.join(SPEC), dir.join(STOPPING)))
    }

    /// Removes a member and its folder.
    pub fn remove_member(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        let dir = self.member_dir(team, name);
        leftovers::remove_dir(&dir).map_err(|source| file_failed("remove", &dir, source))
    }

    /// Removes what a killed process left of members that it had removed.
    pub(crate) fn sweep_members(&self, team: &TeamName) {
        leftovers::sweep(&self.team_dir(team));
    }

    /// Returns the folder of a member.
    pub fn member_dir(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.team_dir(team).join(name.as_str())
    }

    /// Returns the path of the lock file that the process running the member holds.
    pub fn seat(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.member_dir(team, name).join(SEAT)
    }

    /// Returns the process that holds the member's lock, or `None` if there is no such process.
    pub(crate) fn member_process(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<Process>, HostError> {
        let holder = process_lock::holder(&self.seat(team, name));
        holder.map_err(|source| failed("find the member's process", source))
    }

    /// Returns the path of the log file of a member that has no terminal.
    pub fn log(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.member_dir(team, name).join("log")
    }

    /// Returns the keys with which members of the team verify their lead.
    pub fn keys(&self, team: &TeamName) -> KeyRing {
        KeyRing::new(self.team_dir(team))
    }

    /// Returns whether the supervisor has ever added the member to the roster. A member that has joined but is not
    /// on the roster has left the team.
    pub fn has_joined(&self, team: &TeamName, name: &MemberName) -> bool {
        self.member_dir(team, name).join(JOINED).exists()
    }

    /// Records that the member was added to the roster.
    pub fn set_joined(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        leftovers::sweep(&self.member_dir(team, name));
        create_file(&self.member_dir(team, name).join(JOINED))
    }

    /// Returns why the supervisor marked the member as failed, or `None` if the member is not marked.
    pub fn failure(&self, team: &TeamName, name: &MemberName) -> Option<String> {
        fs::read_to_string(self.member_dir(team, name).join(TROUBLE)).ok()
    }

    /// Marks the member as failed with a reason. `None` clears the failure, so that the member is started again.
    pub fn set_failure(
        &self,
        team: &TeamName,
        name: &MemberName,
        why: Option<&str>,
    ) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(TROUBLE);
        match why {
            Some(why) => {
                fs::write(&path, why).map_err(|source| file_failed("write", &path, source))
            }
            None => remove(&path),
        }
    }

    /// Asks the supervisor to end the member's process, if it is running, and to start the member again. Clears the
    /// member's failure.
    pub fn request_restart(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        create_file(&self.member_dir(team, name).join(RESTART))?;
        self.set_failure(team, name, None)
    }

    /// Returns whether a restart of the member was requested and has not begun.
    pub fn is_restart_requested(&self, team: &TeamName, name: &MemberName) -> bool {
        self.member_dir(team, name).join(RESTART).exists()
    }

    /// Records that the requested restart of the member has begun.
    pub fn clear_restart(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        remove(&self.member_dir(team, name).join(RESTART))
    }

    /// Records that `brigade resume` begins to take over the team `source` under the name `team`. The record remains if the
    /// process dies before it has added all members.
    pub fn begin_take_over(&self, team: &TeamName, source: &TeamName) -> Result<(), HostError> {
        create_dir(&self.team_dir(team))?;
        write(&self.team_dir(team).join(TAKING_OVER), source)
    }

    /// Returns the team that `brigade resume` began to take over under this name, if it has not finished.
    pub fn taking_over(&self, team: &TeamName) -> Option<TeamName> {
        let path = self.team_dir(team).join(TAKING_OVER);
        // An earlier version of brigade wrote an empty file, and kept the name of the team.
        path.exists().then(|| read(&path).ok().flatten().unwrap_or_else(|| team.clone()))
    }

    /// Records that the take-over of the team is complete, or that there is nothing to take over.
    pub fn end_take_over(&self, team: &TeamName) -> Result<(), HostError> {
        remove(&self.team_dir(team).join(TAKING_OVER))?;
        // The folder is empty if there was nothing to take over.
        let _not_empty = fs::remove_dir(self.team_dir(team));
        Ok(())
    }
}

/// Returns the names of the subdirectories of `dir` that contain `file`, sorted.
fn children(dir: &Path, file: &str) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(file_failed("read", dir, source)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| dir.join(name).join(file).is_file()).collect();
    names.sort();
    Ok(names)
}

/// Returns the line that stands for a command in a folder. The folder matters, because a command may be a relative path.
fn started_command(agent: &str, cwd: &Path) -> String {
    serde_json::json!([agent, cwd]).to_string()
}

/// Creates a folder if necessary, and removes what killed processes left in it.
pub(crate) fn create_dir(dir: &Path) -> Result<(), HostError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|source| file_failed("create the folder", dir, source))?;
    leftovers::sweep(dir);
    Ok(())
}

fn create_file(path: &Path) -> Result<(), HostError> {
    File::create(path).map(drop).map_err(|source| file_failed("write", path, source))
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, HostError> {
    match fs::read(path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes).map(Some);
            read.map_err(|source| file_failed("read", path, source.into()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_failed("read", path, source)),
    }
}

pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    let temp = temp(path);
    write_file(&temp, value)?;
    fs::rename(&temp, path).map_err(|source| file_failed("write", path, source))
}

fn write_file(path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)
    };
    write().map_err(|source| file_failed("write", path, source))
}

pub(crate) fn remove(path: &Path) -> Result<(), HostError> {
    removed(path, fs::remove_file(path))
}

/// Checks the result of removing a path. A path that did not exist is not an error.
fn removed(path: &Path, result: io::Result<()>) -> Result<(), HostError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file_failed("remove", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A roster names the folder of a member. `./agent` in another folder is another program.
    #[test]
    fn a_command_is_known_only_in_the_folder_in_which_it_was_started() {
        let state = tempfile::tempdir().unwrap();
        let registry = Registry::new(state.path().join("host/key"));
        let (team, agent) = ("demo".parse().unwrap(), "acp:./agent");
        let spec = MemberSpec::new("bob".parse().unwrap(), agent.to_owned(), "/project".into());
        registry.add_member(&team, &spec).unwrap();
        let check = |agent: &str, cwd: &str, expected: bool| {
            assert_eq!(registry.knows_command(agent, Path::new(cwd)).unwrap(), expected);
        };
        check(agent, "/project", true);
        check(agent, "/tmp", false);
        check("acp:./other", "/project", false);
    }

    /// A process died while it removed a member. A new member of this name has not joined yet.
    #[test]
    fn a_new_member_does_not_inherit_the_files_of_a_half_removed_one() {
        let state = tempfile::tempdir().unwrap();
        let registry = Registry::new(state.path().join("host/key"));
        let (team, name) = ("demo".parse().unwrap(), "bob".parse().unwrap());
        let spec = MemberSpec::new("bob".parse().unwrap(), "codex".to_owned(), "/project".into());
        assert!(registry.add_member(&team, &spec).unwrap());
        registry.set_joined(&team, &name).unwrap();
        registry.set_failure(&team, &name, Some("it failed")).unwrap();
        registry.withdraw_member(&team, &name).unwrap();
        registry.withdraw_member(&team, &name).unwrap();
        assert!(registry.member(&team, &name).unwrap().is_none());
        assert!(registry.member_or_stopping(&team, &name).unwrap().is_some());
        assert_eq!(registry.withdrawn_members(&team).unwrap(), std::slice::from_ref(&name));
        assert!(registry.add_member(&team, &spec).unwrap());
        assert!(!registry.has_joined(&team, &name));
        assert_eq!(registry.failure(&team, &name), None);
        assert!(registry.withdrawn_members(&team).unwrap().is_empty());
    }
}
