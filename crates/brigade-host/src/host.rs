//! This host: the folders it uses, the programs it can start, and its rights in the store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::pulse::Process;
use brigade_core::seat::Seat;
use brigade_link::is_mirror;
use brigade_wire::name::{MemberName, TeamName};

use crate::credentials_record::CredentialsRecord;
use crate::error::{HostError, Trouble, failed};
use crate::installed::Programs;
use crate::link_registry;
use crate::process_lock;
use crate::registry::Registry;
use crate::spec::MemberSpec;
use crate::start::{self, SelfCommand};
use crate::tmux::Tmux;
use crate::worktree::Worktree;

/// How long a new supervisor may take to acquire its lock.
const SUPERVISOR_START: Duration = Duration::from_secs(5);
/// How long to wait for the supervisor to notice that it has nothing left to do.
const SUPERVISOR_EXIT: Duration = Duration::from_secs(10);
/// How often to check whether a supervisor has started or ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The folders, programs and rights with which this host runs the teams of one store.
#[derive(Clone, Debug)]
pub struct Host {
    /// The members that should run on this host.
    pub registry: Registry,
    /// The command line with which brigade starts itself as another process.
    pub self_command: SelfCommand,
    /// The search path and the variables that locate programs.
    pub programs: Arc<Programs>,
    /// The name of this host.
    pub name: String,
    /// The folder that contains the members' worktrees.
    pub worktrees: PathBuf,
    /// Whether teams are stored on a NATS server, so that they may have members on other hosts.
    pub is_shared: bool,
    /// Whether the caller may act as the lead. With a NATS store the credentials decide.
    pub may_lead: bool,
    /// The credentials file for the NATS server.
    pub credentials: Option<PathBuf>,
    /// Whether Claude Code started the members in the registry.
    pub is_claude_led: bool,
    /// Claude Code's folder.
    pub claude_dir: PathBuf,
}

impl Host {
    /// Returns this host for the members that Claude Code started, instead of those that brigade started.
    #[must_use]
    pub fn claude_led(&self) -> Self {
        Self { registry: self.registry.claude_led(), is_claude_led: true, ..self.clone() }
    }

    /// Returns this host for the member's starter: brigade, or Claude Code if only Claude Code started a member of this name.
    pub fn of_member(&self, team: &TeamName, name: &MemberName) -> Result<Self, HostError> {
        let claude_led = self.claude_led();
        let is_here = self.registry.member_or_stopping(team, name)?.is_some()
            || self.member_process(team, name)?.is_some();
        let is_there = !is_here && claude_led.registry.member_or_stopping(team, name)?.is_some();
        Ok(if is_there { claude_led } else { self.clone() })
    }

    /// Returns the tmux server for members on this host.
    pub fn tmux(&self) -> Tmux {
        Tmux::new(&self.registry)
    }

    /// Returns the tmux server that has the windows of a team's members.
    pub fn tmux_of_team(&self, team: &TeamName) -> Tmux {
        let members = self.registry.members(team).unwrap_or_default();
        let mut processes = members
            .iter()
            .filter_map(|name| self.member_process(team, name).ok().flatten())
            .map(|process| self.tmux().server_of(Some(&process)));
        let new = self.tmux();
        processes.find(|tmux| tmux.socket != new.socket).unwrap_or(new)
    }

    /// Returns the worktree of a member, or `None` if the member's spec asks for no worktree.
    pub fn worktree(&self, team: &TeamName, spec: &MemberSpec) -> Option<Worktree> {
        spec.worktree.then(|| Worktree::new(&self.worktrees, &spec.cwd, team, &spec.name))
    }

    /// Returns whether brigade may act as the lead of the team on this host.
    pub async fn leads(&self, lead: &Seat) -> Result<bool, HostError> {
        Ok(self.may_lead && lead.store.is_ours(&lead.team).await?)
    }

    /// Returns the seat to use for changing a member: the lead's seat if brigade may act as the lead, the
    /// member's own seat otherwise.
    pub async fn acting_seat(&self, lead: &Seat, name: &MemberName) -> Result<Seat, HostError> {
        if self.leads(lead).await? {
            return Ok(lead.clone());
        }
        Ok(lead.for_member(name.clone()))
    }

    /// Returns the spec of a member of this host. Fails if the member does not run on this host.
    pub fn local_member(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<MemberSpec, HostError> {
        let spec = self.of_member(team, name)?.registry.member(team, name)?;
        spec.ok_or_else(|| {
            let (name, team) = (name.to_string(), team.to_string());
            HostError::failed(Trouble::NotHere { name, team })
        })
    }

    /// Returns the process that runs the member on this host, or `None` if there is no such process.
    pub fn member_process(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<Process>, HostError> {
        self.registry.member_process(team, name)
    }

    /// Returns the supervisor's process, or `None` if the supervisor is not running.
    pub fn supervisor(&self) -> Result<Option<Process>, HostError> {
        let holder = process_lock::holder(&self.registry.supervisor_lock());
        holder.map_err(|source| failed("check for the supervisor", source))
    }

    /// Starts the supervisor if it is not running, and waits until it has acquired its lock.
    pub async fn ensure_supervisor(&self) -> Result<(), HostError> {
        if self.supervisor()?.is_some() {
            return Ok(());
        }
        self.registry.supervisor()?;
        CredentialsRecord::write(&self.registry, self.credentials.as_deref())?;
        let started = start::supervisor(&self.self_command, &self.registry);
        let mut child = started.map_err(|source| failed("start the supervisor", source))?;
        let began = tokio::time::Instant::now();
        while self.supervisor()?.is_none() {
            if began.elapsed() > SUPERVISOR_START {
                let log = self.registry.supervisor_log();
                let error = HostError::failed(Trouble::NoSupervisor);
                return Err(error
                    .hint(format!("the supervisor's log may give the reason: {}", log.display())));
            }
            // Reap the child: it exits immediately if another supervisor is already running.
            let _exit = child.try_wait();
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the supervisor has ended, if it has nothing left to do. It ends by itself.
    pub(crate) async fn until_supervisor_ends(&self) -> Result<(), HostError> {
        let began = tokio::time::Instant::now();
        while self.registry.teams()?.is_empty()
            && !link_registry::has_links(&self.registry)
            && self.supervisor()?.is_some()
            && began.elapsed() < SUPERVISOR_EXIT
        {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Returns whether the lead runs on another host that `brigade link` connects to this one.
pub async fn is_led_remotely(seat: &Seat) -> Result<bool, HostError> {
    let Some(config) = seat.find_config().await? else { return Ok(false) };
    Ok(is_mirror(&seat.read(&config)?))
}
