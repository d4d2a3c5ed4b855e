//! The members of this host, as its registry and its processes show them. Needs no store, so it works while the NATS
//! server is unreachable.

use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;

use crate::Host;
use crate::error::HostError;

/// A team that is up on this host.
#[derive(Debug, Serialize)]
pub struct LocalTeam {
    /// The team's name.
    pub team: TeamName,
    /// The supervisor's process id. Without a supervisor, members keep running but are not restarted.
    pub supervisor: Option<u32>,
    /// The members that should run on this host.
    pub members: Vec<LocalMember>,
}

/// A member that should run on this host.
#[derive(Debug, Serialize)]
pub struct LocalMember {
    /// The member's name.
    pub name: MemberName,
    /// The member's agent.
    pub agent: String,
    /// The id of the member's process; `None` if it is not running.
    pub pid: Option<u32>,
    /// Why the member is not running, if known.
    pub problem: Option<String>,
}

/// Returns the teams that are up on this host; only this team, if one is named.
pub fn teams(host: &Host, named: Option<&TeamName>) -> Result<Vec<LocalTeam>, HostError> {
    let supervisor = host.supervisor()?.map(|process| process.pid);
    let mut teams = Vec::new();
    for team in host.registry.teams()? {
        if named.is_some_and(|named| *named != team) {
            continue;
        }
        let mut members = Vec::new();
        for name in host.registry.members(&team)? {
            let Some(spec) = host.registry.member(&team, &name)? else { continue };
            let pid = host.member_process(&team, &name)?.map(|process| process.pid);
            let problem = host
                .registry
                .failure(&team, &name)
                .or_else(|| host.registry.problem(&team, &name))
                .filter(|_| pid.is_none());
            members.push(LocalMember { name, agent: spec.agent, pid, problem });
        }
        teams.push(LocalTeam { team, supervisor, members });
    }
    Ok(teams)
}
