//! What an operator watches: mailboxes, boards, and the engine itself

use brigade_core::board;
use brigade_core::depth::{self, Depth};
use brigade_core::store::Strain;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::task::{Status, Task};
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, BUSY, Cell, FAINT, STRONG, Table};

/// Of the time that mail is kept, the share after which mail that nobody saw is warned of.
const LATE: f64 = 0.9;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Metrics {
    /// The engine, if the teams live in one.
    #[cfg(feature = "nats")]
    engine: Option<brigade_nats::measures::Measures>,
    teams: Vec<TeamMetrics>,
}

/// A team's.
#[derive(Debug, Serialize)]
struct TeamMetrics {
    team: TeamName,
    tasks: Tasks,
    mailboxes: Vec<Mailbox>,
    /// What its members' processes had to do twice, together. Members that do not run are not in it, and
    /// nor is what commands did.
    strain: Strain,
}

#[derive(Debug, Default, Serialize)]
struct Tasks {
    pending: usize,
    in_progress: usize,
    completed: usize,
}

#[derive(Debug, Serialize)]
struct Mailbox {
    #[serde(flatten)]
    depth: Depth,
    /// How old the oldest message is that nobody was shown, in seconds.
    oldest_unshown_secs: Option<u64>,
    /// Whether it will soon be too old to be kept.
    ends_soon: bool,
}

pub(super) async fn run(context: &Context) -> Result<u8, CliError> {
    let teams = match context.named_team() {
        Some(_) => vec![context.team().await?],
        None => context.store.teams().await?,
    };
    let metrics = Metrics::read(context, teams).await?;
    if context.json {
        output::print_json(&metrics)?;
    } else {
        output::print(&tell(&metrics))?;
    }
    Ok(exit::DONE)
}

impl Metrics {
    pub(super) async fn read(context: &Context, teams: Vec<TeamName>) -> Result<Self, CliError> {
        #[cfg(feature = "nats")]
        let (engine, kept) = {
            let engine = match context.home().engine() {
                Some(engine) => Some(engine.measures().await?),
                None => None,
            };
            let kept = engine.as_ref().and_then(|engine| engine.retention_secs);
            (engine, kept)
        };
        #[cfg(not(feature = "nats"))]
        let kept = None;
        let mut read = Vec::new();
        for team in teams {
            // It may have been deleted meanwhile.
            read.extend(TeamMetrics::read(context, team, kept).await?);
        }
        Ok(Self {
            #[cfg(feature = "nats")]
            engine,
            teams: read,
        })
    }
}

impl TeamMetrics {
    async fn read(
        context: &Context,
        team: TeamName,
        kept: Option<u64>,
    ) -> Result<Option<Self>, CliError> {
        let Some(config) = context.store.team(&team).await? else { return Ok(None) };
        let seat = context.seat_of(team.clone(), MemberName::lead());
        let mut tasks = Tasks::default();
        for (_, document) in board::list(&seat).await?.0 {
            let Ok(task) = Task::read(&document.bytes) else { continue };
            match task.status() {
                Some(Status::Pending) => tasks.pending += 1,
                Some(Status::InProgress) => tasks.in_progress += 1,
                Some(Status::Completed) => tasks.completed += 1,
                _ => {}
            }
        }
        let names: Vec<MemberName> = Team::read(&config.bytes).map_or_else(
            |_| Vec::new(),
            |team| team.members().filter_map(|member| member.name()?.parse().ok()).collect(),
        );
        let now = context.clock.now();
        let (mut mailboxes, mut strain) = (Vec::new(), Strain::default());
        for name in names {
            let depth = depth::depth(context.store.as_ref(), &team, &name).await?;
            strain = strain + depth.strain.unwrap_or_default();
            mailboxes.push(Mailbox::of(depth, now, kept));
        }
        Ok(Some(Self { team, tasks, mailboxes, strain }))
    }
}

impl Mailbox {
    fn of(depth: Depth, now: Timestamp, kept: Option<u64>) -> Self {
        let age = depth.oldest_unshown.map(|at| now.duration_since(at).as_secs());
        let age = age.map(|age| u64::try_from(age).unwrap_or_default());
        #[expect(clippy::cast_precision_loss, reason = "a share of a time need not be exact")]
        let late = |age: u64, kept: u64| age as f64 >= kept as f64 * LATE;
        let ends_soon = age.zip(kept).is_some_and(|(age, kept)| late(age, kept));
        Self { depth, oldest_unshown_secs: age, ends_soon }
    }
}

/// For people.
pub(super) fn tell(metrics: &Metrics) -> String {
    let mut said = String::new();
    for TeamMetrics { team, tasks, mailboxes, strain } in &metrics.teams {
        let Tasks { pending, in_progress, completed } = tasks;
        said.push_str(&format!(
            "\n{STRONG}{team}{STRONG:#}  {pending} tasks not begun, {in_progress} in progress, {completed} done\n"
        ));
        let mut table = Table::new(&["MAILBOX", "UNREAD", "OLDEST UNSHOWN", ""]);
        for Mailbox { depth, oldest_unshown_secs, ends_soon } in mailboxes {
            let unread = depth.unread.map_or_else(|| "not yours to see".into(), |n| n.to_string());
            let oldest = oldest_unshown_secs.map(age).unwrap_or_default();
            let warning = if *ends_soon { "soon too old to be kept" } else { "" };
            table.row([
                Cell::new(STRONG, depth.name.as_str()),
                unread.into(),
                oldest.into(),
                Cell::new(BUSY, warning),
            ]);
        }
        said.push_str(&table.render("  ", output::width()));
        let Strain { conflicts, retries, reconnects } = strain;
        if *strain != Strain::default() {
            said.push_str(&format!(
                "  {FAINT}its members' processes: {conflicts} conflicts, {retries} tries again, {reconnects} reconnects{FAINT:#}\n"
            ));
        }
    }
    #[cfg(feature = "nats")]
    if let Some(engine) = &metrics.engine {
        said.push_str(&tell_engine(engine));
    }
    said
}

#[cfg(feature = "nats")]
fn tell_engine(engine: &brigade_nats::measures::Measures) -> String {
    let kept = engine
        .retention_secs
        .map_or_else(|| "for ever".into(), |secs| format!("for {}", age(secs)));
    let mut said = format!(
        "\n{STRONG}engine{STRONG:#}  nats-server {} at {}, an answer takes {} µs; mail is kept {kept}\n",
        engine.version, engine.server, engine.round_trip_us
    );
    if engine.streams.is_empty() {
        said.push_str(&format!("  {FAINT}its streams are for its admin to see{FAINT:#}\n"));
        return said;
    }
    let mut table = Table::new(&["STREAM", "MESSAGES", "BYTES", "SERVERS", "LED BY", "BEHIND"]);
    for stream in &engine.streams {
        let behind = stream.behind.iter().map(|its| {
            let how = if its.offline { "away".into() } else { format!("by {}", its.lag) };
            format!("{} {how}", its.server)
        });
        let behind: Vec<String> = behind.collect();
        table.row([
            stream.name.as_str().into(),
            stream.messages.to_string().into(),
            stream.bytes.to_string().into(),
            stream.replicas.to_string().into(),
            match &stream.leader {
                Some(leader) => leader.as_str().into(),
                None => Cell::new(BUSY, "nobody"),
            },
            Cell::new(BUSY, &behind.join(", ")),
        ]);
    }
    said.push_str(&table.render("  ", output::width()));
    said
}

/// A time in few words.
fn age(seconds: impl std::borrow::Borrow<u64>) -> String {
    match *seconds.borrow() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_that_nobody_saw_is_warned_of_before_it_goes() {
        let check = |age: i64, kept: Option<u64>, soon: bool| {
            let now = Timestamp::from_second(1_000_000).unwrap();
            let at = Timestamp::from_second(1_000_000 - age).unwrap();
            let (name, strain) = ("bob".parse().unwrap(), None);
            let depth = Depth { name, unread: Some(1), oldest_unshown: Some(at), strain };
            assert_eq!(Mailbox::of(depth, now, kept).ends_soon, soon, "{age} of {kept:?}");
        };
        check(89, Some(100), false);
        check(90, Some(100), true);
        check(900, None, false);
        // The clock of the engine is ahead of ours.
        check(-5, Some(100), false);
    }
}
