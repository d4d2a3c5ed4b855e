//! Checks of the links between teams on this host and NATS servers.

use brigade_core::text::one_line;
use brigade_files::layout::config_path;
use brigade_host::link_registry::{LinkCondition, LinkReport};

use super::Findings;
use super::fix::Fix;
use super::snapshot::DoctorSnapshot;

pub(super) fn dead(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for link in &snapshot.links {
        let (team, servers) = (&link.team, link.servers.join(","));
        let place = format!("link of team {team} with {servers}");
        let LinkReport { state, why, .. } = link;
        let why = why.as_deref().map_or_else(|| "the reason is unknown".into(), one_line);
        let again = format!("run `brigade link {team} --store {servers}`");
        let is_gone = config_path(&snapshot.claude_dir, team.as_str()).symlink_metadata().is_err();
        match state {
            LinkCondition::Starting | LinkCondition::Connected => {}
            LinkCondition::Failed | LinkCondition::Dead if is_gone => {
                let what =
                    format!("the link is {}, and the team is gone from this host", state.label());
                found.advise(place, what, format!("run `brigade link --stop {team}`"));
            }
            LinkCondition::Failed => {
                let advice =
                    format!("fix the cause, then {again}; or run `brigade link --stop {team}`");
                found.advise(place, format!("the link failed: {why}"), advice);
            }
            LinkCondition::Dead => {
                let what = "the link is not running";
                // The supervisor for the files starts links. In a NATS store the doctor would start another one.
                if snapshot.supervisor.is_none() && snapshot.nats_findings.is_none() {
                    found.fixable(place, what, Fix::StartSupervisor);
                } else {
                    found.advise(place, what, again);
                }
            }
            LinkCondition::Unreachable => {
                let advice = format!(
                    "check the server and the network; the link tries again; log: {}",
                    link.log.display()
                );
                found.advise(place, format!("the server cannot be reached: {why}"), advice);
            }
        }
    }
}
