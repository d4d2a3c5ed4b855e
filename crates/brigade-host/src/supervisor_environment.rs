//! Compares the environment of a command with that of the running supervisor, whose variables new members inherit.

use std::collections::BTreeSet;
use std::ffi::OsString;

use brigade_agents::driver::{self, AGENTS, Agent};

use crate::environment;
use crate::error::HostError;
use crate::host::Host;
use crate::process;

/// Returns the names of the variables that the vendors of these agents read and that have another value in the running
/// supervisor. `ours` are the caller's variables. Returns nothing if no supervisor is running, because the next one
/// inherits the caller's variables, or if the system does not show the supervisor's variables.
pub fn differences<'a>(
    host: &Host,
    agents: impl IntoIterator<Item = &'a str>,
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<String>, HostError> {
    let Some(supervisor) = host.supervisor()? else { return Ok(Vec::new()) };
    let Some(theirs) = process::environment(&supervisor) else { return Ok(Vec::new()) };
    let agents: Vec<Agent> = agents.into_iter().flat_map(possible_agents).collect();
    let vendor = |(name, value): &(OsString, OsString)| {
        let reads = |name: &str| agents.iter().any(|agent| environment::is_vendors(agent, name));
        !value.is_empty() && name.to_str().is_some_and(reads)
    };
    let ours: BTreeSet<_> = ours.into_iter().filter(vendor).collect();
    let theirs: BTreeSet<_> = theirs.into_iter().filter(vendor).collect();
    let different = ours.symmetric_difference(&theirs);
    let names: BTreeSet<String> =
        different.filter_map(|(name, _)| Some(name.to_str()?.to_owned())).collect();
    Ok(names.into_iter().collect())
}

/// Returns the agents that a name may stand for. An agent that is not in the table may be one of any vendor.
fn possible_agents(name: &str) -> Vec<Agent> {
    match driver::agent(name) {
        Some(choice) if !choice.agent.variables.is_empty() => vec![choice.agent],
        _ => AGENTS.to_vec(),
    }
}
