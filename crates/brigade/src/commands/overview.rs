//! `brigade` without a command: an overview of the teams.

use std::fmt::Write as _;

use brigade_core::board;
use brigade_core::graph::Graph;
use brigade_core::mail::{self, InboxFilter, MailError};
use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_core::text;
use brigade_core::unread;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use serde::Serialize;

use super::status::view;
use super::team::show;
use crate::context::CliContext;
use crate::error::CliError;
use crate::output::{self, BUSY, Cell, FAINT, READY, STRONG, Table};
use crate::{exit, progress};
use brigade_core::task_view::TaskView;
use brigade_host::Host;
use brigade_host::context::EndedSession;
use brigade_host::origin;
use brigade_host::state::{self, AttentionItem, MemberState, TeamState};

/// Maximum number of ready tasks to list.
const MAX_READY: usize = 5;
/// Maximum number of things to list that wait for the person.
const MAX_ATTENTION: usize = 3;

const GETTING_STARTED: &str = "\
There is no team yet. To start one:
  brigade init                 Claude Code leads and can start teammates of other vendors
  brigade new, brigade up      you lead a team defined in a file
  brigade team create demo     you lead and add agents with `brigade spawn bob --agent codex`
";

#[derive(Serialize)]
struct TeamOverview {
    name: TeamName,
    description: String,
    members: Vec<MemberLine>,
    tasks: OverviewTaskCounts,
    ready: Vec<TaskId>,
    /// The number of members besides the lead.
    #[serde(skip)]
    member_count: usize,
    #[serde(skip)]
    graph: Graph,
    /// The things that wait for the person.
    #[serde(skip)]
    attention: Vec<AttentionItem>,
}

#[derive(Serialize)]
struct MemberLine {
    name: String,
    agent_type: String,
    active: Option<bool>,
    /// The member's state, if it runs on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    liveness: Option<Liveness>,
    /// Number of unread messages; `None` if the name is invalid, because then the member cannot have an inbox, or if
    /// the mailbox is unreadable.
    unread: Option<usize>,
    #[serde(skip)]
    state: Cell,
}

#[derive(Default, Serialize)]
struct OverviewTaskCounts {
    total: usize,
    done: usize,
    in_progress: usize,
    blocked: usize,
    /// Number of tasks that have an owner but were not started.
    kept: usize,
    ready: usize,
}

pub(crate) async fn run(context: &CliContext) -> Result<u8, CliError> {
    let teams = match context.named_team() {
        Some(_) => vec![context.team().await?],
        None => context.teams().await?,
    };
    let host = context.host()?;
    let mut overviews = Vec::new();
    let mut is_complete = true;
    for team in teams {
        let seat = context.seat_of(team, MemberName::lead());
        // Continue after an unreadable team, so that the other teams are still shown.
        match read_overview(&host, &seat).await {
            Ok(overview) => overviews.push(overview),
            Err(error) => {
                output::note(&error.to_string());
                is_complete = false;
            }
        }
    }
    let ended = match context.named_team() {
        Some(_) => Vec::new(),
        None => context.ended_sessions().await?,
    };
    if context.json {
        output::print_json(&overviews)?;
    } else if overviews.is_empty() && ended.is_empty() && is_complete {
        match origin::folder_team(&context.cwd) {
            Ok(Some(folder)) => output::print(&format!("{}\n", folder.not_up_text()))?,
            _ => output::print(GETTING_STARTED)?,
        }
    } else {
        let width = output::width();
        let names_team = overviews.len() > 1;
        let teams = overviews.iter().map(|team| render(team, names_team, width));
        let texts: Vec<String> = teams.chain(ended.iter().map(render_ended)).collect();
        output::print(&texts.join("\n"))?;
    }
    Ok(if is_complete { exit::DONE } else { exit::FAILED })
}

async fn read_overview(host: &Host, seat: &Seat) -> Result<TeamOverview, CliError> {
    let here = local_state(host, seat).await?;
    let roster = seat.roster().await?;
    let team = roster.team();
    let mut members = Vec::new();
    for member in team.members() {
        let Some(name) = member.name() else { continue };
        let (unread, here_member) = match name.parse::<MemberName>() {
            Ok(name) => {
                // Continue after an unreadable mailbox, so that one member cannot hide the others.
                let unread = match mail::inbox(seat, &name, InboxFilter::Unread).await {
                    Ok(unread) => Some(unread::count(&unread)),
                    // With a member's credentials, only the member's own mailbox can be read.
                    Err(MailError::Store(StoreError::Forbidden { .. })) => None,
                    Err(error) => {
                        output::note(&format!("cannot read the mailbox of {name}: {error}"));
                        None
                    }
                };
                let here = here.iter().flat_map(|here| &here.members);
                (unread, here.into_iter().find(|member| member.name == name))
            }
            Err(_) => (None, None),
        };
        let state = here_member.map_or_else(
            || show::state(&team, &member),
            |here| Cell::with_reason(progress::style(here.judged.liveness), &here.words),
        );
        // Only a process of this host shows that a member died.
        let is_run_here = |here: &&MemberState| here.pid.is_some() || here.place.is_some();
        let liveness = here_member.filter(is_run_here).map(|here| here.judged.liveness);
        members.push(MemberLine {
            name: name.into_owned(),
            agent_type: member.agent_type().unwrap_or_default().into_owned(),
            active: member.is_active(),
            liveness,
            unread,
            state,
        });
    }
    let (_, graph) = board::list(seat).await?;
    let mut counts = OverviewTaskCounts::default();
    let mut ready = Vec::new();
    for (id, _) in graph.nodes() {
        counts.total += 1;
        match TaskView::new(&graph, id) {
            TaskView::Done => counts.done += 1,
            TaskView::InProgress => counts.in_progress += 1,
            TaskView::Blocked => counts.blocked += 1,
            TaskView::Kept => counts.kept += 1,
            TaskView::Ready => {
                counts.ready += 1;
                ready.push(id);
            }
        }
    }
    let description = team.description().unwrap_or_default().into_owned();
    let member_count = match &here {
        Some(here) => here.member_count,
        None => state::member_count(&team),
    };
    Ok(TeamOverview {
        name: seat.team.clone(),
        description,
        members,
        tasks: counts,
        ready,
        member_count,
        graph,
        attention: here.map(|here| here.attention).unwrap_or_default(),
    })
}

/// Returns the state of a team that has members on this host.
async fn local_state(host: &Host, seat: &Seat) -> Result<Option<TeamState>, CliError> {
    if host.registry.members(&seat.team)?.is_empty()
        && host.claude_led().registry.members(&seat.team)?.is_empty()
    {
        return Ok(None);
    }
    state::team(host, seat).await.map(Some)
}

fn render_ended(session: &EndedSession) -> String {
    let team = &session.team;
    format!("{STRONG}{team}{STRONG:#}  Claude Code's session has ended\n  {}\n", session.advice())
}

fn render(team: &TeamOverview, names_team: bool, width: Option<usize>) -> String {
    let members = text::count(team.member_count, "member");
    let mut text = format!("{STRONG}{}{STRONG:#}  {members} and the lead", team.name);
    if !team.description.is_empty() {
        let _infallible = write!(text, " · {}", text::one_line(&team.description));
    }
    text.push('\n');
    let mut table = Table::new(&["MEMBER", "STATE", "UNREAD", "TYPE"]);
    for member in &team.members {
        let unread = match member.unread {
            None | Some(0) => Cell::new(FAINT, "-"),
            Some(unread) => Cell::new(BUSY, &unread.to_string()),
        };
        let name = Cell::new(STRONG, &member.name);
        table.row([
            name,
            member.state.clone(),
            unread,
            view::agent_name(&member.agent_type).into(),
        ]);
    }
    text.push_str(&table.render("  ", width));
    let counts = &team.tasks;
    let named = [
        (counts.done, "done"),
        (counts.in_progress, "in progress"),
        (counts.blocked, "blocked"),
        (counts.kept, "assigned"),
        (counts.ready, "ready"),
    ];
    let named = named.iter().filter(|(count, _)| *count > 0);
    let named: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
    let tasks = match counts.total {
        0 => "no tasks".to_owned(),
        1 => format!("1 task: {}", named.join(", ")),
        total => format!("{total} tasks: {}", named.join(", ")),
    };
    let _infallible = writeln!(text, "\n  {tasks}");
    for &id in team.ready.iter().take(MAX_READY) {
        let subject = team.graph.node(id).map_or("", |node| &node.subject);
        let line = format!("{id}  {}", text::one_line(subject));
        let line = width.map_or(line.clone(), |width| text::cut(&line, width.saturating_sub(4)));
        let _infallible = writeln!(text, "  {READY}{}{READY:#} {line}", TaskView::Ready.symbol());
    }
    if team.ready.len() > MAX_READY {
        let more = team.ready.len() - MAX_READY;
        let _infallible =
            writeln!(text, "  {FAINT}… {more} more: brigade task list --ready{FAINT:#}");
    }
    let attention = team.attention.iter().take(MAX_ATTENTION).cloned().collect::<Vec<_>>();
    text.push_str(&view::attention(&attention, team.name.as_str(), names_team, width));
    if team.attention.len() > MAX_ATTENTION {
        let more = team.attention.len() - MAX_ATTENTION;
        let _infallible = writeln!(text, "  {FAINT}… {more} more: brigade status{FAINT:#}");
    }
    text
}
