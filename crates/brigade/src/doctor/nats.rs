//! Checks of teams in a NATS store and of the NATS server. These checks read through the store: there are no
//! files to read, and unlike the file store, the NATS store changes nothing while reading.

use std::path::Path;

use brigade_core::approvals;
use brigade_core::pulse::{self, ReportedState};
use brigade_core::seat::Seat;
use brigade_core::text;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use jiff::SignedDuration;

use super::team_folder::{FileContent, TeamFolder};
use super::wording::{ANSWER_ADVICE, LONG_WAIT, continue_advice, member_place, turn_failed};
use crate::context::CliContext;
use crate::error::CliError;
use crate::output::duration;
use brigade_host::location::NatsServers;

/// Maximum number of teams to check if the command line names no team.
const MAX_TEAMS: usize = 100;
/// If the clocks of the host and the server differ by more than this, heartbeats of members look old.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);

/// The checks of a NATS store, with the consequence of each problem.
pub(super) const CHECKS: &[(&str, &str)] = &[
    (
        "no-connection",
        "the teams on it cannot be read or changed; members on this host keep running, and reconnect when it can be used again",
    ),
    ("no-stream", "it was deleted or never created, so nothing can be written to it"),
    ("odd-stream", "its settings were changed; members might not be woken, or history may be lost"),
    ("no-leader", "nothing can be written to it until enough servers are back"),
    ("lost-replica", "if one more server fails, the team may stop"),
    ("few-replicas", "if one server fails, the stream's data may be lost"),
    ("small-payload", "the server refuses long messages"),
    ("clock-apart", "other hosts may see this host's members as dead, or dead members as alive"),
    ("unplayed-active", "it stays marked as active, and others wait for it"),
    ("failed-turn", "its last instructions were not carried out; it waits for the next message"),
    (
        "forged-event",
        "the credentials of a member were used to record what the member did not do; it was ignored",
    ),
    ("long-wait", "the member waits until its request is answered"),
];

/// A problem with the NATS store. A person has to solve it.
#[derive(Debug)]
pub(crate) struct NatsFinding {
    pub(super) check: &'static str,
    pub(super) place: String,
    pub(super) what: String,
    pub(super) advice: String,
}

impl NatsFinding {
    /// Returns the finding for a connection that failed with this error.
    pub(super) fn no_connection(servers: String, error: &CliError) -> Self {
        let cause = std::error::Error::source(&*error.source);
        let what = cause.map_or_else(|| error.to_string(), ToString::to_string);
        let advice = error.hints.join("; ");
        Self { check: "no-connection", place: servers, what, advice }
    }
}

/// The teams and problems found on the NATS server.
pub(crate) struct NatsSnapshot {
    pub(crate) teams: Vec<TeamFolder>,
    pub(crate) findings: Vec<NatsFinding>,
    /// The checks that were skipped, each with the reason.
    pub(crate) notes: Vec<String>,
}

/// Checks the NATS server and reads its teams.
pub(super) async fn read(
    context: &CliContext,
    servers: &NatsServers,
) -> Result<NatsSnapshot, CliError> {
    let mut notes = Vec::new();
    let findings = check_servers(servers, &mut notes).await?;
    let mut snapshot = NatsSnapshot { teams: Vec::new(), findings, notes };
    // If a stream or its leader is missing, reading the teams would only time out.
    if snapshot.findings.iter().any(|finding| matches!(finding.check, "no-stream" | "no-leader")) {
        let note = "the teams were not checked, because not all of them can be read";
        snapshot.notes.push(note.into());
        return Ok(snapshot);
    }
    let mut teams = match context.named_team() {
        Some(_) => vec![context.team().await?],
        None => context.store.teams().await?,
    };
    if teams.len() > MAX_TEAMS {
        let all = teams.len();
        snapshot
            .notes
            .push(format!("checked {MAX_TEAMS} of {all} teams; check another with --team TEAM"));
        teams.truncate(MAX_TEAMS);
    }
    if context.named_team().is_none() {
        let hosted = context.host()?.registry.teams()?;
        teams.extend(hosted.into_iter().filter(|team| !teams.contains(team)).collect::<Vec<_>>());
    }
    for team in teams {
        let lead = context.seat_of(team, MemberName::lead());
        let Some(config) = lead.store.team(&lead.team).await? else { continue };
        check_events(&lead, &mut snapshot.findings).await?;
        check_members(&lead, &config.bytes, &mut snapshot.findings).await?;
        check_requests(&lead, &mut snapshot.findings).await?;
        snapshot.teams.push(team_folder(&lead, config.bytes).await?);
    }
    Ok(snapshot)
}

/// Finds events that their authors may not record.
async fn check_events(lead: &Seat, findings: &mut Vec<NatsFinding>) -> Result<(), CliError> {
    lead.store.history(&lead.team).await?;
    let refused = lead.store.refused_events(&lead.team);
    findings.extend(refused.into_iter().map(|(refused, count)| NatsFinding {
        check: "forged-event",
        place: member_place(&refused.by, &lead.team),
        what: format!("it recorded {}: {refused}", text::count(count, "event")),
        advice: format!(
            "find out which program has the credentials of {}; `brigade org revoke --help` shows how to revoke them",
            refused.by
        ),
    }));
    Ok(())
}

/// Reads a team from the NATS store into the form that the task checks use.
async fn team_folder(lead: &Seat, config: Vec<u8>) -> Result<TeamFolder, CliError> {
    let file = |bytes| FileContent { path: Path::new("").into(), bytes, age: 0 };
    let tasks = lead.store.tasks(&lead.team).await?.into_iter();
    let tasks = tasks.map(|(id, document)| (id, file(document.bytes))).collect();
    Ok(TeamFolder::in_nats(lead.team.clone(), file(config), tasks))
}

/// Finds members that are marked as active but run on no host, and members whose last turn failed.
async fn check_members(
    lead: &Seat,
    config: &[u8],
    findings: &mut Vec<NatsFinding>,
) -> Result<(), CliError> {
    let roster = Team::read(config).map_err(CliError::failed)?;
    for member in roster.members() {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if name == lead.name {
            continue;
        }
        let team = &lead.team;
        match pulse::last_report(lead, &name).await?.map(|pulse| pulse.state) {
            None if member.is_active() == Some(true) => findings.push(NatsFinding {
                check: "unplayed-active",
                place: member_place(&name, team),
                what: "it is marked as active, but no host runs it".into(),
                advice: format!(
                    "start it again with `brigade resume {team}` on the host where it ran; or mark it idle with \
                     `brigade --team {team} team activity {name} idle`"
                ),
            }),
            Some(ReportedState::Idle { failed: Some(why), .. }) => findings.push(NatsFinding {
                check: "failed-turn",
                place: member_place(&name, team),
                what: turn_failed(&why),
                advice: continue_advice(team.as_str(), &name),
            }),
            _ => {}
        }
    }
    Ok(())
}

async fn check_requests(lead: &Seat, findings: &mut Vec<NatsFinding>) -> Result<(), CliError> {
    for approval in approvals::waiting(lead).await? {
        let waited = lead.clock.now().duration_since(approval.at);
        if waited > LONG_WAIT {
            let waited = duration(waited.as_secs());
            findings.push(NatsFinding {
                check: "long-wait",
                place: format!("{} in team {}", approval.request_id, lead.team),
                what: format!(
                    "a request of {} has waited for an answer for {waited}",
                    approval.from
                ),
                advice: ANSWER_ADVICE.into(),
            });
        }
    }
    Ok(())
}

/// Finds problems with the servers.
#[cfg(feature = "nats")]
async fn check_servers(
    servers: &NatsServers,
    notes: &mut Vec<String>,
) -> Result<Vec<NatsFinding>, CliError> {
    use brigade_host::store_check::{PAYLOAD_ADVICE, payload_problem};
    use brigade_nats::health::{self, StreamHealth};
    let health = health::check_health(&servers.store_options()).await?;
    let mut findings: Vec<NatsFinding> = Vec::new();
    if let Some(what) = payload_problem(&health) {
        let (place, advice) = (servers.servers.join(", "), PAYLOAD_ADVICE.into());
        findings.push(NatsFinding { check: "small-payload", place, what, advice });
    }
    if health.ahead.abs() > MAX_CLOCK_SKEW {
        let side = if health.ahead.is_negative() { "behind" } else { "ahead of" };
        findings.push(NatsFinding {
            check: "clock-apart",
            place: "this host".into(),
            what: format!(
                "its clock is {} {side} the server's",
                pulse::format_duration(health.ahead.abs())
            ),
            advice: "synchronize both clocks with NTP".into(),
        });
    }
    match health.streams {
        None => notes
            .push("these credentials do not permit checking the streams of the NATS server".into()),
        Some(streams) => {
            for StreamHealth { name, problems } in streams {
                for new in problems.iter().map(|problem| stream_finding(&name, problem)) {
                    // An unreachable server affects all its streams. Report the server once, and list its streams.
                    match findings
                        .iter_mut()
                        .find(|known| known.check == new.check && known.what == new.what)
                    {
                        Some(known) => known.place = format!("{}, {}", known.place, name),
                        None => findings.push(new),
                    }
                }
            }
        }
    }
    Ok(findings)
}

#[cfg(feature = "nats")]
fn stream_finding(stream: &str, ailment: &brigade_nats::health::HealthProblem) -> NatsFinding {
    use brigade_nats::health::HealthProblem;
    let (check, what, advice) = match ailment {
        HealthProblem::Missing => (
            "no-stream",
            "it does not exist".to_owned(),
            "restore the stream from a backup; a new stream would be empty",
        ),
        HealthProblem::Setting(name) => (
            "odd-stream",
            format!("its setting {name} does not have the value that brigade needs"),
            "change the setting with `nats stream edit`, or move the teams to a new NATS server",
        ),
        HealthProblem::Leaderless => (
            "no-leader",
            "it has no leader".to_owned(),
            "find out which servers are down, and start them",
        ),
        HealthProblem::Replica(server) => (
            "lost-replica",
            format!("server {server} is unreachable or behind"),
            "start that server or fix the network; it catches up by itself",
        ),
        HealthProblem::Few { replicas } => (
            "few-replicas",
            format!("it is stored on only {replicas} of the cluster's servers"),
            "store it on three servers: `nats stream edit --replicas 3`",
        ),
    };
    NatsFinding { check, place: format!("stream {stream}"), what, advice: advice.into() }
}

/// In a build without NATS support, nothing calls this function.
#[cfg(not(feature = "nats"))]
async fn check_servers(_: &NatsServers, _: &mut Vec<String>) -> Result<Vec<NatsFinding>, CliError> {
    let _unused = MAX_CLOCK_SKEW;
    Ok(Vec::new())
}
