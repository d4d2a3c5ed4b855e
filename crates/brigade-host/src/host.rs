//! This host: where it keeps what it runs, and what it may do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_link::is_mirror;
use brigade_wire::name::{MemberName, TeamName};

use crate::error::{HostError, Trouble, failed};
use crate::installed::Programs;
use crate::process_lock;
use crate::registry::Registry;
use crate::spec::MemberSpec;
use crate::start::{self, SelfCommand};
use crate::tmux::Tmux;
use crate::worktree::Worktree;

/// How long the supervising process has to take its place.
const TAKES_PLACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What runs on this host.
#[derive(Clone, Debug)]
pub struct Host {
    pub registry: Registry,
    pub self_command: SelfCommand,
    /// Where programs are looked for.
    pub programs: Arc<Programs>,
    /// The name of this host.
    pub name: String,
    /// Where members' worktrees stand.
    pub worktrees: PathBuf,
    /// Whether its teams live in an engine, where they may have members on other hosts.
    pub is_shared: bool,
    /// Whether whoever runs this may act in the lead's seat: an engine goes by the credentials.
    pub may_lead: bool,
}

impl Host {
    pub fn tmux(&self) -> Tmux {
        Tmux::new(&self.registry.key())
    }

    /// The worktree of a member that is to have one.
    pub fn worktree(&self, team: &TeamName, spec: &MemberSpec) -> Option<Worktree> {
        spec.worktree.then(|| Worktree::of(&self.worktrees, &spec.cwd, team, &spec.name))
    }

    /// Whether the lead's seat is brigade's on this host.
    pub async fn leads(&self, lead: &Seat) -> Result<bool, HostError> {
        Ok(self.may_lead && lead.store.is_ours(&lead.team).await?)
    }

    /// The seat from which something is done for a member: the lead's, where brigade holds it. In a team
    /// of Claude Code's, or where another host leads, the member does it itself.
    pub async fn acting(&self, lead: &Seat, name: &MemberName) -> Result<Seat, HostError> {
        if self.leads(lead).await? {
            return Ok(lead.clone());
        }
        Ok(lead.of(name.clone()))
    }

    /// The supervising process, if there is one.
    pub fn supervisor(&self) -> Result<Option<Process>, HostError> {
        let holder = process_lock::holder(&self.registry.supervisor_place());
        holder.map_err(|source| failed("look for the supervising process", source))
    }

    /// Sees to it that there is a supervising process.
    pub async fn supervised(&self) -> Result<(), HostError> {
        if self.supervisor()?.is_some() {
            return Ok(());
        }
        self.registry.supervisor()?;
        let started = start::supervisor(&self.self_command, &self.registry);
        let mut child =
            started.map_err(|source| failed("start the supervising process", source))?;
        let began = tokio::time::Instant::now();
        while self.supervisor()?.is_none() {
            if began.elapsed() > TAKES_PLACE {
                let log = self.registry.supervisor_log();
                let error = HostError::failed(Trouble::NoSupervisor);
                return Err(error.hint(format!("it may say why in {}", log.display())));
            }
            // One that finds another in its place ends by itself.
            let _ended = child.try_wait();
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

/// Whether the lead lives on another host, with which a link joins this one.
pub async fn is_led_from_afar(seat: &Seat) -> Result<bool, HostError> {
    let Some(config) = seat.store.team(&seat.team).await? else { return Ok(false) };
    Ok(is_mirror(&seat.read(&config)?))
}
