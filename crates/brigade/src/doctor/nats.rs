//! Teams that live in an engine, and the engine itself. Here the store is asked: there is nothing else
//! that knows, and looking changes nothing in it.

use std::path::Path;

use brigade_core::approvals;
use brigade_core::mail::MAX_TEXT;
use brigade_core::pulse::{self, State};
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use jiff::SignedDuration;

use super::locks::ago;
use super::members;
use super::snapshot::{Paper, TeamFolder};
use crate::context::Context;
use crate::error::CliError;
use crate::output;
use brigade_host::location::NatsServers;

/// How many teams are looked at, if none is named.
const TEAMS: usize = 100;
/// A request has waited for long after this.
const LONG: SignedDuration = SignedDuration::from_mins(10);
/// Clocks that are this far apart make the pulses of members look old.
const APART: SignedDuration = SignedDuration::from_secs(5);

/// What is looked for in an engine, and what comes of it.
pub(super) const CHECKS: &[(&str, &str)] = &[
    ("no-stream", "nothing can be written that belongs there; it was deleted, or never made"),
    ("odd-stream", "somebody changed it; members may not be woken, or history may be lost"),
    ("no-leader", "nothing can be written there until enough servers are back"),
    ("lost-replica", "the loss of one more server may stop the team"),
    ("few-replicas", "the loss of one server takes what is there with it"),
    ("small-payload", "a long message is refused by the server"),
    ("clock-apart", "members of this host look dead from others, or dead ones alive"),
    ("unplayed-active", "it counts as at work for ever, and others wait for it"),
    ("failed-turn", "what it was told is not done, and it waits for the next message"),
    ("long-wait", "whoever asked does nothing until it is answered"),
];

/// One thing that is wrong, for a person to see to.
#[derive(Debug)]
pub(crate) struct Ill {
    pub(super) check: &'static str,
    pub(super) place: String,
    pub(super) what: String,
    pub(super) advice: String,
}

/// What was seen.
pub(crate) struct Sight {
    pub(crate) teams: Vec<TeamFolder>,
    pub(crate) ills: Vec<Ill>,
}

/// Looks at the engine, and at the teams in it.
pub(super) async fn look(context: &Context, engine: &NatsServers) -> Result<Sight, CliError> {
    let mut sight = Sight { teams: Vec::new(), ills: servers(engine).await? };
    // Whoever asks for what is not there waits for long, and in vain.
    if sight.ills.iter().any(|ill| matches!(ill.check, "no-stream" | "no-leader")) {
        output::note("the teams were not looked at, for not all of them can be read");
        return Ok(sight);
    }
    let mut teams = match context.named_team() {
        Some(_) => vec![context.team().await?],
        None => context.store.teams().await?,
    };
    if teams.len() > TEAMS {
        let all = teams.len();
        output::note(&format!("looked at {TEAMS} of {all} teams; --team TEAM names another"));
        teams.truncate(TEAMS);
    }
    let hosted = context.host()?.registry.teams()?;
    teams.extend(hosted.into_iter().filter(|team| !teams.contains(team)).collect::<Vec<_>>());
    for team in teams {
        let lead = context.seat_of(team, MemberName::lead());
        let Some(config) = lead.store.team(&lead.team).await? else { continue };
        members(&lead, &config.bytes, &mut sight.ills).await?;
        requests(&lead, &mut sight.ills).await?;
        sight.teams.push(folder(&lead, config.bytes).await?);
    }
    Ok(sight)
}

/// A team as the checks of its board know one.
async fn folder(lead: &Seat, config: Vec<u8>) -> Result<TeamFolder, CliError> {
    let paper = |bytes| Paper { path: Path::new("").into(), bytes, age: 0 };
    let tasks = lead.store.tasks(&lead.team).await?.into_iter();
    let tasks = tasks.map(|(id, document)| (id, paper(document.bytes))).collect();
    Ok(TeamFolder::in_engine(lead.team.clone(), paper(config), tasks))
}

/// Members that count as at work, and of whom nothing is heard; and those whose last turn failed.
async fn members(lead: &Seat, config: &[u8], ills: &mut Vec<Ill>) -> Result<(), CliError> {
    let roster = Team::read(config).map_err(CliError::failed)?;
    for member in roster.members() {
        let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) else { continue };
        if name == lead.name {
            continue;
        }
        let team = &lead.team;
        match pulse::of(lead, &name).await?.map(|pulse| pulse.state) {
            None if member.is_active() == Some(true) => ills.push(Ill {
                check: "unplayed-active",
                place: place(&name, team),
                what: "it counts as at work, and no host says that it plays it".into(),
                advice: format!(
                    "start it again where it ran, with `brigade resume {team}`; or `brigade --team \
                     {team} team activity {name} idle`"
                ),
            }),
            Some(State::Idle { failed: Some(why) }) => ills.push(Ill {
                check: "failed-turn",
                place: place(&name, team),
                what: members::failed(&why),
                advice: members::go_on(team.as_str(), &name),
            }),
            _ => {}
        }
    }
    Ok(())
}

async fn requests(lead: &Seat, ills: &mut Vec<Ill>) -> Result<(), CliError> {
    for approval in approvals::waiting(lead).await? {
        let waited = lead.clock.now().duration_since(approval.at);
        if waited > LONG {
            let waited = ago(waited.as_secs());
            ills.push(Ill {
                check: "long-wait",
                place: format!("{} in team {}", approval.request_id, lead.team),
                what: format!("a request of {} waits for an answer, {waited}", approval.from),
                advice: "the lead answers it: `brigade approvals`".into(),
            });
        }
    }
    Ok(())
}

fn place(name: &MemberName, team: &TeamName) -> String {
    format!("{name} of team {team}")
}

/// What is wrong with the servers.
#[cfg(feature = "nats")]
async fn servers(engine: &NatsServers) -> Result<Vec<Ill>, CliError> {
    use brigade_nats::health::{self, StreamHealth};
    let health = health::examine(&engine.words()).await?;
    let servers = engine.servers.join(", ");
    let mut ills: Vec<Ill> = Vec::new();
    if health.max_payload < 2 * MAX_TEXT {
        ills.push(Ill {
            check: "small-payload",
            place: servers.clone(),
            what: format!("the server takes messages of at most {} bytes", health.max_payload),
            advice: "set max_payload to 8MB in the configuration of every server".into(),
        });
    }
    if health.ahead.abs() > APART {
        let side = if health.ahead.is_negative() { "behind" } else { "ahead of" };
        ills.push(Ill {
            check: "clock-apart",
            place: "this host".into(),
            what: format!("its clock is {} {side} the server's", pulse::words(health.ahead.abs())),
            advice: "let both keep their time by the network (NTP)".into(),
        });
    }
    match health.streams {
        None => output::note("these credentials may not look at the streams of the engine"),
        Some(streams) => {
            for StreamHealth { name, ailments } in streams {
                for ill in ailments.iter().map(|ailment| ill(&name, ailment)) {
                    // A server that is away is so for all its streams.
                    match ills.iter_mut().find(|its| its.check == ill.check && its.what == ill.what)
                    {
                        Some(its) => its.place = format!("{}, {}", its.place, name),
                        None => ills.push(ill),
                    }
                }
            }
        }
    }
    Ok(ills)
}

#[cfg(feature = "nats")]
fn ill(stream: &str, ailment: &brigade_nats::health::Ailment) -> Ill {
    use brigade_nats::health::Ailment;
    let (check, what, advice) = match ailment {
        Ailment::Missing => (
            "no-stream",
            "it is not there".to_owned(),
            "bring it back from a backup; one that is made anew is empty",
        ),
        Ailment::Setting(name) => (
            "odd-stream",
            format!("its {name} is not what brigade needs"),
            "set it right with `nats stream edit`, or make a new engine and move the teams there",
        ),
        Ailment::Leaderless => (
            "no-leader",
            "no server leads it".to_owned(),
            "see which servers are down, and start them",
        ),
        Ailment::Replica(server) => (
            "lost-replica",
            format!("server {server} is away, or is behind"),
            "start that server, or see to the network between them; it catches up by itself",
        ),
        Ailment::Few { replicas } => (
            "few-replicas",
            format!("it is on {replicas} of the servers of a cluster"),
            "keep it on three: `nats stream edit --replicas 3`",
        ),
    };
    Ill { check, place: format!("stream {stream}"), what, advice: advice.into() }
}

/// Without the engine nobody gets here.
#[cfg(not(feature = "nats"))]
async fn servers(_: &NatsServers) -> Result<Vec<Ill>, CliError> {
    let _unused = (MAX_TEXT, APART);
    Ok(Vec::new())
}
