//! A read-only snapshot of teams, files and processes, taken once for all checks.

use std::path::PathBuf;

use brigade_core::pulse::Process;
use brigade_files::layout::{DELETED, TEAMS, team_states_dir};
use brigade_wire::name::{MemberName, TeamName};
use rustix::process::geteuid;

use super::nats::{self, NatsFinding};
use super::team_folder::{FolderEntry, TeamFolder, root_entries};
use crate::cli::GlobalArgs;
use crate::context::{CliContext, dirs, host_alone, named_team};
use crate::error::CliError;
use brigade_host::link_registry::{self, LinkReport};
use brigade_host::location::Location;
use brigade_host::login::MemberLogin;
use brigade_host::spec::MemberSpec;
use brigade_host::{Host, process, process_lock};

/// The data that the checks read.
pub(crate) struct DoctorSnapshot {
    pub(crate) claude_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// Brigade's own folder for the teams of this Claude Code folder.
    pub(crate) team_states_dir: PathBuf,
    pub(crate) host: Host,
    pub(crate) uid: u32,
    /// Every folder in Claude Code's `teams` folder, or every team on the NATS server.
    pub(crate) teams: Vec<TeamFolder>,
    /// Problems with the NATS server; `None` if the teams are stored in files.
    pub(crate) nats_findings: Option<Vec<NatsFinding>>,
    /// The checks on the NATS server that were skipped, each with the reason.
    pub(crate) notes: Vec<String>,
    /// Whether the teams are unknown, because the NATS server cannot be used.
    pub(crate) is_store_away: bool,
    /// The teams that are up on this host.
    pub(crate) hosted: Vec<TeamOnHost>,
    pub(crate) supervisor: Option<Process>,
    /// The links of this host.
    pub(crate) links: Vec<LinkReport>,
    /// Whether the members' agents are logged in; empty if they were not asked.
    pub(crate) logins: Vec<MemberLogin>,
    /// The only team to check; `None` for all teams.
    scope: Option<TeamName>,
}

/// A team that is up on this host.
pub(crate) struct TeamOnHost {
    pub(crate) team: TeamName,
    pub(crate) members: Vec<HostedMember>,
}

/// A member that should run on this host.
pub(crate) struct HostedMember {
    pub(crate) name: MemberName,
    /// The member's specification; `None` if its file cannot be read.
    pub(crate) spec: Option<MemberSpec>,
    /// The process that runs the member.
    pub(crate) process: Option<Process>,
    /// Why the supervisor no longer restarts the member, if it was marked failed.
    pub(crate) failure: Option<String>,
}

impl DoctorSnapshot {
    /// Reads the teams, the files and the processes. `scope` limits the snapshot to one team.
    pub(crate) async fn read(
        context: &CliContext,
        scope: Option<&TeamName>,
    ) -> Result<Self, CliError> {
        let covers = |name: &str| scope.is_none_or(|team| team.as_str() == name);
        let (claude_dir, state_dir) = context.folders();
        let team_states_dir = team_states_dir(state_dir, claude_dir);
        let host = context.host()?;
        let teams_dir = claude_dir.join(TEAMS);
        // A folder that is being deleted is no longer a team.
        let is_team = |entry: &FolderEntry| entry.meta.is_dir() && !entry.name.contains(DELETED);
        let teams = root_entries(&teams_dir).into_iter().filter(is_team);
        let teams = teams.filter(|entry| covers(&entry.name));
        let (teams, nats_findings, notes) = match context.location().nats() {
            None => (
                teams
                    .map(|entry| TeamFolder::read(claude_dir, state_dir, &team_states_dir, entry))
                    .collect(),
                None,
                Vec::new(),
            ),
            Some(servers) => {
                let mut nats = nats::read(context, servers).await?;
                nats.teams.retain(|folder| covers(&folder.name));
                (nats.teams, Some(nats.findings), nats.notes)
            }
        };
        let hosted = hosted(&host, scope)?;
        let supervisor = process_lock::holder(&host.registry.supervisor_lock()).ok().flatten();
        let links = link_registry::list(&context.files_host()?.registry)?;
        let links = links.into_iter().filter(|link| covers(link.team.as_str())).collect();
        Ok(Self {
            claude_dir: claude_dir.to_owned(),
            state_dir: state_dir.to_owned(),
            team_states_dir,
            host,
            uid: geteuid().as_raw(),
            teams,
            nats_findings,
            notes,
            is_store_away: false,
            hosted,
            supervisor,
            links,
            logins: Vec::new(),
            scope: scope.cloned(),
        })
    }

    /// Reads only this host, because the NATS server cannot be used. `error` is the error of the connection.
    pub(crate) fn without_store(global: &GlobalArgs, error: &CliError) -> Result<Self, CliError> {
        let scope = named_team(global)?;
        let (claude_dir, state_dir) = dirs(global)?;
        let host = host_alone(global)?;
        let servers = global.home.nats().map(|nats| nats.servers.join(", ")).unwrap_or_default();
        let hosted = hosted(&host, scope.as_ref())?;
        let supervisor = process_lock::holder(&host.registry.supervisor_lock()).ok().flatten();
        // Links belong to the files of this host.
        let of_files = GlobalArgs { home: Location::Files, ..global.clone() };
        let links = link_registry::list(&host_alone(&of_files)?.registry)?;
        let covers = |team: &TeamName| scope.as_ref().is_none_or(|scope| scope == team);
        let links = links.into_iter().filter(|link| covers(&link.team)).collect();
        Ok(Self {
            team_states_dir: team_states_dir(&state_dir, &claude_dir),
            claude_dir,
            state_dir,
            host,
            uid: geteuid().as_raw(),
            teams: Vec::new(),
            nats_findings: Some(vec![NatsFinding::no_connection(servers, error)]),
            notes: Vec::new(),
            is_store_away: true,
            hosted,
            supervisor,
            links,
            logins: Vec::new(),
            scope,
        })
    }

    /// Returns whether a team is to be checked.
    pub(crate) fn covers(&self, team: &str) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.as_str() == team)
    }

    /// If only one team is to be checked, returns brigade's folders for that team: in the file store, and in the host
    /// registry.
    pub(crate) fn own_dirs_of_team(&self) -> Option<(PathBuf, PathBuf)> {
        let team = self.scope.as_ref()?.as_str();
        Some((self.team_states_dir.join(team), self.host.registry.dir().join(team)))
    }

    /// Returns this member, if it should run on this host.
    pub(crate) fn hosted_member(&self, team: &str, name: &str) -> Option<&HostedMember> {
        let team = self.hosted.iter().find(|hosted| hosted.team.as_str() == team)?;
        team.members.iter().find(|member| member.name.as_str() == name)
    }

    /// Returns whether this team exists and has a roster.
    pub(crate) fn has_config(&self, team: &str) -> bool {
        self.teams.iter().any(|folder| folder.name == team && folder.config.is_some())
    }
}

/// Returns the teams that are up on this host.
fn hosted(host: &Host, scope: Option<&TeamName>) -> Result<Vec<TeamOnHost>, CliError> {
    let mut hosted = Vec::new();
    let covers = |team: &TeamName| scope.is_none_or(|scope| scope == team);
    for team in host.registry.teams()?.into_iter().filter(covers) {
        let members = host.registry.members(&team)?.into_iter();
        let members = members.map(|name| HostedMember::read(host, &team, name)).collect();
        hosted.push(TeamOnHost { members, team });
    }
    Ok(hosted)
}

/// Returns the process that runs a member. While the doctor fixes something about the member, the doctor itself holds
/// the member's lock.
fn running_process(host: &Host, team: &TeamName, name: &MemberName) -> Option<Process> {
    let holder = process_lock::holder(&host.registry.seat(team, name)).ok().flatten();
    holder.filter(|holder| *holder != process::current())
}

impl HostedMember {
    fn read(host: &Host, team: &TeamName, name: MemberName) -> Self {
        Self {
            spec: host.registry.member(team, &name).ok().flatten(),
            process: running_process(host, team, &name),
            failure: host.registry.failure(team, &name),
            name,
        }
    }
}
