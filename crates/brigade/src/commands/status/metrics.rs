//! `brigade status --metrics`: metrics of mailboxes, task boards and the NATS server, for operators.

use brigade_core::board;
use brigade_core::depth::{self, MailBacklog};
use brigade_core::store::RetryStats;
use brigade_core::text::count;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::task::{Status, Task};
use brigade_wire::team::Team;
use jiff::Timestamp;
use serde::Serialize;

use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, BUSY, Cell, FAINT, STRONG, Table, duration};

/// Warn if this share of the retention time has passed and the member's model has still not seen the message.
const WARN_SHARE: f64 = 0.9;

/// All metrics that the command prints.
#[derive(Debug, Serialize)]
pub(super) struct StatusMetrics {
    /// Metrics of the NATS server, if the teams are stored there.
    #[cfg(feature = "nats")]
    engine: Option<brigade_nats::stream_metrics::Measures>,
    teams: Vec<TeamMetrics>,
}

/// The metrics of one team.
#[derive(Debug, Serialize)]
struct TeamMetrics {
    team: TeamName,
    tasks: TaskCounts,
    mailboxes: Vec<MailboxMetrics>,
    /// Number of conflicts, retries and reconnects, summed over the team's running member processes. Does not
    /// include brigade commands.
    strain: RetryStats,
}

#[derive(Debug, Default, Serialize)]
struct TaskCounts {
    pending: usize,
    in_progress: usize,
    completed: usize,
}

#[derive(Debug, Serialize)]
struct MailboxMetrics {
    #[serde(flatten)]
    depth: MailBacklog,
    /// Age in seconds of the oldest message that was not yet shown to the member's model.
    oldest_unshown_secs: Option<u64>,
    /// Whether that message will soon reach the retention limit and be deleted.
    ends_soon: bool,
}

pub(super) async fn run(context: &CliContext) -> Result<u8, CliError> {
    let teams = match context.named_team() {
        Some(_) => vec![context.team().await?],
        None => context.teams().await?,
    };
    let metrics = StatusMetrics::read(context, teams).await?;
    if context.json {
        output::print_json(&metrics)?;
    } else {
        output::print(&render(&metrics))?;
    }
    Ok(exit::DONE)
}

impl StatusMetrics {
    pub(super) async fn read(context: &CliContext, teams: Vec<TeamName>) -> Result<Self, CliError> {
        #[cfg(feature = "nats")]
        let (engine, retention) = {
            let engine = match context.location().nats() {
                Some(engine) => Some(engine.measures().await?),
                None => None,
            };
            let retention = engine.as_ref().and_then(|engine| engine.retention_secs);
            (engine, retention)
        };
        #[cfg(not(feature = "nats"))]
        let retention = None;
        let mut read = Vec::new();
        for team in teams {
            // `read` returns `None` if the team was deleted meanwhile.
            read.extend(TeamMetrics::read(context, team, retention).await?);
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
        context: &CliContext,
        team: TeamName,
        retention: Option<u64>,
    ) -> Result<Option<Self>, CliError> {
        let seat = context.seat_of(team.clone(), MemberName::lead());
        let Some(config) = seat.find_config().await? else { return Ok(None) };
        let mut tasks = TaskCounts::default();
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
        let (mut mailboxes, mut strain) = (Vec::new(), RetryStats::default());
        for name in names {
            let depth = depth::depth(&*seat.store, &team, &name).await?;
            strain = strain + depth.strain.unwrap_or_default();
            mailboxes.push(MailboxMetrics::new(depth, now, retention));
        }
        Ok(Some(Self { team, tasks, mailboxes, strain }))
    }
}

impl MailboxMetrics {
    fn new(depth: MailBacklog, now: Timestamp, retention: Option<u64>) -> Self {
        let age = depth.oldest_unshown.map(|at| now.duration_since(at).as_secs());
        let age = age.map(|age| u64::try_from(age).unwrap_or_default());
        #[expect(clippy::cast_precision_loss, reason = "the comparison need not be exact")]
        let late = |age: u64, retention: u64| age as f64 >= retention as f64 * WARN_SHARE;
        let ends_soon = age.zip(retention).is_some_and(|(age, retention)| late(age, retention));
        Self { depth, oldest_unshown_secs: age, ends_soon }
    }
}

/// Renders the metrics as text.
pub(super) fn render(metrics: &StatusMetrics) -> String {
    let mut text = String::new();
    for TeamMetrics { team, tasks, mailboxes, strain } in &metrics.teams {
        let TaskCounts { pending, in_progress, completed } = tasks;
        let pending = count(*pending, "task");
        text.push_str(&format!(
            "\n{STRONG}{team}{STRONG:#}  {pending} pending, {in_progress} in progress, {completed} done\n"
        ));
        let mut table = Table::new(&["MAILBOX", "UNREAD", "OLDEST UNSHOWN", ""]);
        for MailboxMetrics { depth, oldest_unshown_secs, ends_soon } in mailboxes {
            let unread = depth.unread.map_or_else(|| "no permission".into(), |n| n.to_string());
            let oldest = oldest_unshown_secs.map(duration).unwrap_or_default();
            let warning = if *ends_soon { "will be deleted soon" } else { "" };
            table.row([
                Cell::new(STRONG, depth.name.as_str()),
                unread.into(),
                oldest.into(),
                Cell::new(BUSY, warning),
            ]);
        }
        text.push_str(&table.render("  ", output::width()));
        let RetryStats { conflicts, retries, reconnects } = strain;
        if *strain != RetryStats::default() {
            text.push_str(&format!(
                "  {FAINT}its members' processes: {conflicts} conflicts, {retries} retries, {reconnects} reconnects{FAINT:#}\n"
            ));
        }
    }
    #[cfg(feature = "nats")]
    if let Some(engine) = &metrics.engine {
        text.push_str(&render_server(engine));
    }
    text
}

#[cfg(feature = "nats")]
fn render_server(engine: &brigade_nats::stream_metrics::Measures) -> String {
    let retention = engine
        .retention_secs
        .map_or_else(|| "forever".into(), |secs| format!("for {}", duration(secs)));
    let mut text = format!(
        "\n{STRONG}NATS server{STRONG:#}  nats-server {} at {}, round trip {} µs; mail is kept {retention}\n",
        engine.version, engine.server, engine.round_trip_us
    );
    if engine.streams.is_empty() {
        text.push_str(&format!("  {FAINT}only the administrator can see its streams{FAINT:#}\n"));
        return text;
    }
    let mut table = Table::new(&["STREAM", "MESSAGES", "BYTES", "REPLICAS", "LEADER", "BEHIND"]);
    for stream in &engine.streams {
        let behind = stream.behind.iter().map(|replica| {
            let lag =
                if replica.offline { "offline".into() } else { format!("by {}", replica.lag) };
            format!("{} {lag}", replica.server)
        });
        let behind: Vec<String> = behind.collect();
        table.row([
            stream.name.as_str().into(),
            stream.messages.to_string().into(),
            stream.bytes.to_string().into(),
            stream.replicas.to_string().into(),
            match &stream.leader {
                Some(leader) => leader.as_str().into(),
                None => Cell::new(BUSY, "none"),
            },
            Cell::new(BUSY, &behind.join(", ")),
        ]);
    }
    text.push_str(&table.render("  ", output::width()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_about_unseen_mail_before_it_is_deleted() {
        let check = |age: i64, retention: Option<u64>, soon: bool| {
            let now = Timestamp::from_second(1_000_000).unwrap();
            let at = Timestamp::from_second(1_000_000 - age).unwrap();
            let (name, strain) = ("bob".parse().unwrap(), None);
            let depth = MailBacklog { name, unread: Some(1), oldest_unshown: Some(at), strain };
            assert_eq!(
                MailboxMetrics::new(depth, now, retention).ends_soon,
                soon,
                "{age} of {retention:?}"
            );
        };
        check(89, Some(100), false);
        check(90, Some(100), true);
        check(900, None, false);
        // If the server's clock is ahead of this host's clock, the age is negative.
        check(-5, Some(100), false);
    }
}
