//! The members that run on this host: what they are to be, who plays them, and how they are.
//!
//! - `spec`: what a team and its members are to be;
//! - `folder`: where that is written down;
//! - `seat`: who plays a member; one process at a time, known by a lock that dies with it;
//! - `supervisor`: the process that starts what is to be there and is not;
//! - `restarts`: when it does so; `start`: how; `lead`: what it does in the lead's seat;
//! - `bring`, `hire`, `wait`, `end`: bringing a team up, one more member, waiting, ending;
//! - `needs`: what of this machine they cannot do without;
//! - `worktree`: a member's own folder of the repository;
//! - `claude`: the real Claude Code as a member; `keys`: how it knows its lead; `record`: what it
//!   remembers; `beats`: how it is;
//! - `state`: how everything is, for people to see.

mod beats;
pub(crate) mod bring;
pub(crate) mod claude;
pub(crate) mod end;
pub(crate) mod folder;
pub(crate) mod hire;
pub(crate) mod keys;
mod lead;
pub(crate) mod needs;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod restarts;
pub(crate) mod seat;
pub(crate) mod spec;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod supervisor;
pub(crate) mod tmux;
pub(crate) mod wait;
pub(crate) mod worktree;

use std::path::PathBuf;
use std::time::Duration;

use brigade_core::link::is_mirror;
use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use rustix::process::{Pid, Signal, kill_process};

use self::folder::Folder;
use self::spec::MemberSpec;
use self::start::Again;
use self::tmux::Tmux;
use self::worktree::Worktree;
use crate::error::{CliError, Trouble};

/// How long the supervising process has to take its place.
const TAKES_PLACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What runs on this host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) folder: Folder,
    pub(crate) again: Again,
    /// Where members' worktrees stand.
    pub(crate) worktrees: PathBuf,
    /// Whether its teams live in an engine, where they may have members on other hosts.
    pub(crate) is_shared: bool,
    /// Whether whoever runs this may act in the lead's seat: an engine goes by the credentials.
    pub(crate) may_lead: bool,
}

impl Host {
    pub(crate) fn tmux(&self) -> Tmux {
        Tmux::new(&self.folder.key())
    }

    /// The worktree of a member that is to have one.
    pub(crate) fn worktree(&self, team: &TeamName, spec: &MemberSpec) -> Option<Worktree> {
        spec.worktree.then(|| Worktree::of(&self.worktrees, &spec.cwd, team, &spec.name))
    }

    /// Whether the lead's seat is brigade's on this host.
    pub(crate) async fn leads(&self, lead: &Seat) -> Result<bool, CliError> {
        Ok(self.may_lead && lead.store.is_ours(&lead.team).await?)
    }

    /// The seat from which something is done for a member: the lead's, where brigade holds it. In a team
    /// of Claude Code's, or where another host leads, the member does it itself.
    pub(crate) async fn acting(&self, lead: &Seat, name: &MemberName) -> Result<Seat, CliError> {
        if self.leads(lead).await? {
            return Ok(lead.clone());
        }
        Ok(lead.of(name.clone()))
    }

    /// The supervising process, if there is one.
    pub(crate) fn supervisor(&self) -> Result<Option<Process>, CliError> {
        let holder = seat::holder(&self.folder.supervisor_place());
        holder.map_err(|source| failed("look for the supervising process", source))
    }

    /// Sees to it that there is a supervising process.
    pub(crate) async fn supervised(&self) -> Result<(), CliError> {
        if self.supervisor()?.is_some() {
            return Ok(());
        }
        self.folder.supervisor()?;
        let started = start::supervisor(&self.again, &self.folder);
        let mut child =
            started.map_err(|source| failed("start the supervising process", source))?;
        let began = tokio::time::Instant::now();
        while self.supervisor()?.is_none() {
            if began.elapsed() > TAKES_PLACE {
                let log = self.folder.supervisor_log();
                let error = CliError::failed(Trouble::NoSupervisor);
                return Err(error.hint(format!("it may say why in {}", log.display())));
            }
            // One that finds another in its place ends by itself.
            let _ended = child.try_wait();
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

/// Tells a process of ours to end, if it is still that process.
pub(crate) fn tell(process: &Process, signal: Signal) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| process::is_there(process)) {
        let _gone = kill_process(pid, signal);
    }
}

pub(crate) fn failed(doing: &str, source: std::io::Error) -> CliError {
    CliError::failed(Trouble::Io { doing: doing.to_owned(), source })
}

/// Whether the lead lives on another host, with which a link joins this one.
pub(crate) async fn is_led_from_afar(seat: &Seat) -> Result<bool, CliError> {
    let Some(config) = seat.store.team(&seat.team).await? else { return Ok(false) };
    let team = Team::read(&config.bytes).map_err(CliError::failed)?;
    Ok(is_mirror(&team))
}
