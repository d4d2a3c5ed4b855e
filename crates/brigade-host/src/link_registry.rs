//! The links of this host, stored on disk. Each connects a team in Claude Code's files with the same team on NATS servers.
//!
//! A link in the background has its own process, which the supervisor for the files starts and starts again. Like a
//! member, it is described on disk, and its process holds a lock:
//!
//! ```text
//! <state>/link/<key of the NATS store>/
//!   <team>.spec          the settings of a link in the background; the link should run while this file exists
//!   <team>.lock          locked by the process that links the team
//!   <team>.status        what that process last reported
//!   <team>.failed        why the link is not started again
//!   <team>.log           the output of a link in the background
//!   <team>.json          the state with which the next link continues
//! ```
//!
//! Team names contain no period, so the names of these files are unique.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brigade_core::clock::Timestamp;
use brigade_core::pulse::Process;
use brigade_wire::name::TeamName;
use serde::{Deserialize, Serialize};

use crate::error::{HostError, failed, file_failed};
use crate::location::{Location, NatsServers};
use crate::process_lock;
use crate::registry::{self, Registry};

/// The settings of a link in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkSpec {
    pub(crate) team: TeamName,
    /// The key of the file store. The supervisor of that store runs the link.
    pub(crate) files: String,
    pub(crate) servers: Vec<String>,
    pub(crate) creds: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) client: Option<(PathBuf, PathBuf)>,
    /// The name of this host.
    pub(crate) host: String,
}

impl LinkSpec {
    pub(crate) fn location(&self) -> Location {
        Location::Nats(NatsServers {
            servers: self.servers.clone(),
            creds: self.creds.clone(),
            ca: self.ca.clone(),
            client: self.client.clone(),
        })
    }
}

/// The last report of a link's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkStatus {
    /// The key of the file store.
    pub(crate) files: String,
    pub(crate) servers: Vec<String>,
    pub(crate) host: String,
    pub(crate) state: LinkCondition,
    pub(crate) since: Timestamp,
    pub(crate) why: Option<String>,
    pub(crate) local: Vec<String>,
    pub(crate) remote: Vec<String>,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkCondition {
    /// The link has not finished its first synchronization.
    Starting,
    /// The files and the NATS store are synchronized.
    Connected,
    /// The NATS server cannot be reached. The link tries again.
    Unreachable,
    /// The link failed and is not started again.
    Failed,
    /// The link should run, but its process does not.
    Dead,
}

impl LinkCondition {
    /// Returns the text that people see.
    pub fn label(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::Unreachable => "server unreachable",
            Self::Failed => "failed",
            Self::Dead => "not running",
        }
    }
}

/// A link and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// The team.
    pub team: TeamName,
    /// The addresses of the NATS servers.
    pub servers: Vec<String>,
    /// The name that this host has in the team.
    pub host: String,
    /// The state.
    pub state: LinkCondition,
    /// When the state began, if known.
    pub since: Option<Timestamp>,
    /// Why the link is not connected.
    pub why: Option<String>,
    /// The members on this host.
    pub local: Vec<String>,
    /// The members on other hosts.
    pub remote: Vec<String>,
    /// The process that links the team.
    pub pid: Option<u32>,
    /// Whether the supervisor runs the link. False for `brigade link --foreground`.
    pub background: bool,
    /// The log of a link in the background.
    pub log: PathBuf,
}

/// The files of one link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkFiles {
    dir: PathBuf,
    pub(crate) team: TeamName,
}

impl LinkFiles {
    /// Returns the files of a link between the files that `registry` belongs to and a NATS store with this key.
    pub(crate) fn new(registry: &Registry, key: &str, team: &TeamName) -> Self {
        Self { dir: links_dir(registry).join(key), team: team.clone() }
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.dir.join(format!("{}.{extension}", self.team))
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.path("lock")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path("log")
    }

    pub(crate) fn saved_state(&self) -> PathBuf {
        self.path("json")
    }

    /// Creates the folder of the files.
    pub(crate) fn create_dir(&self) -> Result<(), HostError> {
        registry::create_dir(&self.dir)
    }

    pub(crate) fn spec(&self) -> Result<Option<LinkSpec>, HostError> {
        registry::read(&self.path("spec"))
    }

    /// Returns whether a link should run in the background. A spec that cannot be read still counts.
    pub(crate) fn is_expected(&self) -> bool {
        self.path("spec").exists()
    }

    pub(crate) fn put_spec(&self, spec: &LinkSpec) -> Result<(), HostError> {
        self.create_dir()?;
        registry::write(&self.path("spec"), spec)
    }

    /// Records that no link should run in the background.
    pub(crate) fn withdraw(&self) -> Result<(), HostError> {
        registry::remove(&self.path("spec"))
    }

    pub(crate) fn status(&self) -> Result<Option<LinkStatus>, HostError> {
        registry::read(&self.path("status"))
    }

    pub(crate) fn put_status(&self, status: &LinkStatus) -> Result<(), HostError> {
        registry::write(&self.path("status"), status)
    }

    pub(crate) fn remove_status(&self) -> Result<(), HostError> {
        registry::remove(&self.path("status"))
    }

    /// Returns why the link is not started again.
    pub(crate) fn failure(&self) -> Option<String> {
        fs::read_to_string(self.path("failed")).ok()
    }

    pub(crate) fn set_failure(&self, why: Option<&str>) -> Result<(), HostError> {
        let path = self.path("failed");
        match why {
            Some(why) => {
                fs::write(&path, why).map_err(|source| file_failed("write", &path, source))
            }
            None => registry::remove(&path),
        }
    }

    /// Removes everything but the lock and the saved state.
    pub(crate) fn remove(&self) -> Result<(), HostError> {
        self.withdraw()?;
        self.remove_status()?;
        self.set_failure(None)?;
        registry::remove(&self.log())
    }

    /// Returns the process that links the team, in the background or in the foreground.
    pub(crate) fn process(&self) -> Result<Option<Process>, HostError> {
        let holder = process_lock::holder(&self.lock());
        holder.map_err(|source| failed("find the process of the link", source))
    }

    /// Returns the state of the link. `None` if no link of the file store with this key runs or should run.
    pub(crate) fn report(&self, files: &str) -> Result<Option<LinkReport>, HostError> {
        let (spec, process) = (self.spec()?, self.process()?);
        let status = if process.is_some() { self.status()? } else { None };
        let owner = spec.as_ref().map(|spec| &spec.files);
        let owner = owner.or(status.as_ref().map(|status| &status.files));
        if owner.is_none_or(|owner| owner != files) {
            return Ok(None);
        }
        let failure = self.failure().filter(|_| process.is_none());
        let state = match (&status, &failure, &process) {
            (_, Some(_), _) => LinkCondition::Failed,
            (Some(status), _, _) => status.state,
            (None, _, Some(_)) => LinkCondition::Starting,
            (None, _, None) => LinkCondition::Dead,
        };
        let servers = spec.as_ref().map(|spec| spec.servers.clone());
        let servers = servers.or_else(|| Some(status.as_ref()?.servers.clone()));
        let host = spec.as_ref().map(|spec| spec.host.clone());
        let host = host.or_else(|| Some(status.as_ref()?.host.clone()));
        let (since, why, local, remote) = match status {
            Some(status) => (Some(status.since), status.why, status.local, status.remote),
            None => (None, None, Vec::new(), Vec::new()),
        };
        Ok(Some(LinkReport {
            team: self.team.clone(),
            servers: servers.unwrap_or_default(),
            host: host.unwrap_or_default(),
            state,
            since,
            why: failure.map(|why| why.trim().to_owned()).or(why),
            local,
            remote,
            pid: process.map(|process| process.pid),
            background: spec.is_some(),
            log: self.log(),
        }))
    }
}

/// Returns the folder of the links of this host. It may not exist.
pub(crate) fn links_dir(registry: &Registry) -> PathBuf {
    registry.state_dir().join("link")
}

/// Returns the files of all links of this host, of every file store.
pub(crate) fn all_files(registry: &Registry) -> Result<Vec<LinkFiles>, HostError> {
    let mut found: Vec<LinkFiles> = Vec::new();
    for dir in entries(&links_dir(registry))? {
        if !dir.is_dir() {
            continue;
        }
        for path in entries(&dir)? {
            let extension = path.extension().and_then(|extension| extension.to_str());
            let team = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let (Some("spec" | "status"), Some(team)) = (extension, team) else { continue };
            let files = LinkFiles { dir: dir.clone(), team };
            if !found.contains(&files) {
                found.push(files);
            }
        }
    }
    found.sort_by(|one, other| (&one.team, &one.dir).cmp(&(&other.team, &other.dir)));
    Ok(found)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, HostError> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(file_failed("read", dir, source)),
    }
}

/// Returns the links of the file store to which this registry belongs, sorted by team.
pub fn list(registry: &Registry) -> Result<Vec<LinkReport>, HostError> {
    let key = registry.key();
    let reports = all_files(registry)?.into_iter().map(|files| files.report(&key));
    reports.filter_map(Result::transpose).collect()
}

/// Returns whether the supervisor with this registry has to keep a link running.
pub(crate) fn has_links(registry: &Registry) -> bool {
    let key = registry.key();
    let is_kept = |files: &LinkFiles| {
        let spec = files.spec().ok().flatten();
        spec.is_some_and(|spec| spec.files == key) && files.failure().is_none()
    };
    all_files(registry).unwrap_or_default().iter().any(is_kept)
}
