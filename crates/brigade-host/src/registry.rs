//! Where it is written down which members run on this host.
//!
//! ```text
//! <state>/host/<16 hex of the claude folder>/
//!   supervisor           held by the supervising process
//!   supervisor.log
//!   <team>/team.json     what the team is to be; while it is there, the team is up
//!   <team>/up            held by whoever brings the team up or down
//!   <team>/<member>/     spec.json, seat (held by who plays it), joined, trouble, log, key
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{HostError, Trouble};
use crate::keys::KeyRing;
use crate::spec::{MemberSpec, TeamSpec};

const TEAM: &str = "team.json";
const SPEC: &str = "spec.json";
const JOINED: &str = "joined";
const TROUBLE: &str = "trouble";

/// The folder of what runs on this host.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The folder, which need not be there yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A word for it that no other folder has.
    pub fn key(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Held by the supervising process; the folder is made if need be.
    pub fn supervisor(&self) -> Result<PathBuf, HostError> {
        make(&self.dir)?;
        Ok(self.supervisor_place())
    }

    /// The same, there or not.
    pub fn supervisor_place(&self) -> PathBuf {
        self.dir.join("supervisor")
    }

    /// Where the supervising process writes what it has to say.
    pub fn supervisor_log(&self) -> PathBuf {
        self.dir.join("supervisor.log")
    }

    /// Nothing stays where nothing runs. Only for the supervising process, in its place.
    pub fn remove_if_empty(&self) -> Result<(), HostError> {
        if self.teams()?.is_empty() {
            remove(&self.supervisor_log())?;
            remove(&self.supervisor_place())?;
            // Somebody may just be bringing a team up; then it stays.
            let _not_empty = fs::remove_dir(&self.dir);
        }
        Ok(())
    }

    /// The teams that are up.
    pub fn teams(&self) -> Result<Vec<TeamName>, HostError> {
        Ok(children(&self.dir, TEAM)?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The teams that are up on this host too, and live elsewhere: in an engine, or in another folder of Claude
    /// Code's.
    pub fn elsewhere(&self) -> Vec<TeamName> {
        let siblings = self.dir.parent().and_then(|parent| fs::read_dir(parent).ok());
        let siblings = siblings.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let others = siblings.filter(|dir| *dir != self.dir).map(Self::new);
        others.flat_map(|other| other.teams().unwrap_or_default()).collect()
    }

    fn team_dir(&self, team: &TeamName) -> PathBuf {
        self.dir.join(team.as_str())
    }

    /// Held by whoever brings the team up or down.
    pub fn up(&self, team: &TeamName) -> Result<PathBuf, HostError> {
        make(&self.team_dir(team))?;
        Ok(self.team_dir(team).join("up"))
    }

    /// What a team that is up is to be; its members stand beside it.
    pub fn team(&self, team: &TeamName) -> Result<Option<TeamSpec>, HostError> {
        read(&self.team_dir(team).join(TEAM))
    }

    pub fn put_team(&self, spec: &TeamSpec) -> Result<(), HostError> {
        make(&self.team_dir(&spec.team))?;
        write(&self.team_dir(&spec.team).join(TEAM), spec)
    }

    /// The team is down: nothing of it stays.
    pub fn remove_team(&self, team: &TeamName) -> Result<(), HostError> {
        let dir = self.team_dir(team);
        // First what says that it is up.
        remove(&dir.join(TEAM))?;
        match fs::remove_dir_all(&dir) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(failed("remove", &dir, source)),
        }
    }

    /// The members that run here, by name.
    pub fn members(&self, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
        let names = children(&self.team_dir(team), SPEC)?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// What a member is to be.
    pub fn member(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<MemberSpec>, HostError> {
        read(&self.member_dir(team, name).join(SPEC))
    }

    /// Writes down a new member; whether there was none of that name. Of several who try at once one
    /// succeeds.
    pub fn add_member(&self, team: &TeamName, spec: &MemberSpec) -> Result<bool, HostError> {
        let dir = self.member_dir(team, &spec.name);
        make(&dir)?;
        let path = dir.join(SPEC);
        let temp = temp(&path);
        write_file(&temp, spec)?;
        let linked = fs::hard_link(&temp, &path);
        remove(&temp)?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(failed("write", &path, source)),
        }
    }

    /// The member is not to be any more; who plays it may still be there.
    pub fn withdraw_member(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        remove(&self.member_dir(team, name).join(SPEC))
    }

    /// Nothing of the member stays.
    pub fn remove_member(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        self.withdraw_member(team, name)?;
        let dir = self.member_dir(team, name);
        match fs::remove_dir_all(&dir) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(failed("remove", &dir, source)),
        }
    }

    /// The folder of a member.
    pub fn member_dir(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.team_dir(team).join(name.as_str())
    }

    /// Held by who plays the member.
    pub fn seat(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.member_dir(team, name).join("seat")
    }

    /// What a member without a terminal shows.
    pub fn log(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        self.member_dir(team, name).join("log")
    }

    /// The keys by which members know their lead.
    pub fn keys(&self, team: &TeamName) -> KeyRing {
        KeyRing::new(self.team_dir(team))
    }

    /// Whether the member was put on the roster. Who was, and is not there, has left.
    pub fn has_joined(&self, team: &TeamName, name: &MemberName) -> bool {
        self.member_dir(team, name).join(JOINED).exists()
    }

    /// The member was put on the roster.
    pub fn set_joined(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(JOINED);
        File::create(&path).map(|_| ()).map_err(|source| failed("write", &path, source))
    }

    /// Why the member is not started any more.
    pub fn trouble(&self, team: &TeamName, name: &MemberName) -> Option<String> {
        fs::read_to_string(self.member_dir(team, name).join(TROUBLE)).ok()
    }

    /// Says why the member is not started any more, or that it may be again.
    pub fn set_trouble(
        &self,
        team: &TeamName,
        name: &MemberName,
        why: Option<&str>,
    ) -> Result<(), HostError> {
        let path = self.member_dir(team, name).join(TROUBLE);
        match why {
            Some(why) => fs::write(&path, why).map_err(|source| failed("write", &path, source)),
            None => remove(&path),
        }
    }
}

/// The directories in `dir` that have a file of this name.
fn children(dir: &Path, file: &str) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed("read", dir, source)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| dir.join(name).join(file).is_file()).collect();
    names.sort();
    Ok(names)
}

fn make(dir: &Path) -> Result<(), HostError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| failed("make the folder", dir, source))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, HostError> {
    match fs::read(path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes).map(Some);
            read.map_err(|source| failed("read", path, source.into()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("read", path, source)),
    }
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    let temp = temp(path);
    write_file(&temp, value)?;
    fs::rename(&temp, path).map_err(|source| failed("write", path, source))
}

fn write_file(path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)
    };
    write().map_err(|source| failed("write", path, source))
}

fn temp(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.tmp", std::process::id()))
}

fn remove(path: &Path) -> Result<(), HostError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

fn failed(doing: &str, path: &Path, source: io::Error) -> HostError {
    HostError::failed(Trouble::Io { doing: format!("{doing} {}", path.display()), source })
}
