//! The text of `brigade status`: the members of a team, and what waits for the person.

use brigade_core::clock::Timestamp;
use brigade_core::text::{self, one_line};
use brigade_host::Host;
use brigade_host::claude_session::ClaudeSession;
use brigade_host::spec::MemberPlace;
use brigade_host::state::{AttentionItem, MemberState, NotRunningMember, TeamState};
use brigade_host::stopped;
use brigade_host::worktree::BranchDistance;
use brigade_wire::name::MemberName;

use crate::context::current_dir;
use crate::output::{self, BUSY, Cell, FAINT, HINT, STRONG, Table};
use crate::progress;

/// Renders the state of a team. `names_team` is true if the commands in the text must name the team.
pub(crate) fn render(
    host: &Host,
    state: &TeamState,
    names_team: bool,
    now: Timestamp,
    width: Option<usize>,
) -> String {
    let mut text = heading(state);
    if state.is_claude_led && !state.is_ended {
        text.push_str(&output::hanging("  ", &lead_line(state, now), FAINT, 4, width));
    }
    for error in &state.errors {
        text.push_str(&output::hanging("  ", &one_line(error), BUSY, 4, width));
    }
    let has_rows = !state.members.is_empty() || !state.not_running.is_empty();
    if has_rows {
        text.push_str(&members(&state.members, &state.not_running).render("  ", width));
    }
    if state.member_count == 0 && !state.is_claude_led {
        let start = match has_rows {
            true => "no member runs; ",
            false => "no members; `brigade up` starts those of brigade.toml, ",
        };
        let advice = format!("{start}`brigade down {}` deletes the team", state.team);
        text.push_str(&output::hanging("  ", &advice, FAINT, 4, width));
    }
    let has_row = |name: &&MemberName| state.not_running.iter().any(|row| row.name == **name);
    for (label, members) in
        [("not running", &state.unplayed), ("not run by brigade", &state.others)]
    {
        let names: Vec<&str> =
            members.iter().filter(|name| !has_row(name)).map(MemberName::as_str).collect();
        if !names.is_empty() {
            let line = format!("{label}: {}", names.join(", "));
            text.push_str(&output::hanging("  ", &line, FAINT, 4, width));
        }
    }
    let has_window = |place| matches!(place, MemberPlace::Tmux | MemberPlace::Native);
    if state.members.iter().any(|member| member.place.is_some_and(has_window)) {
        let attach = host.tmux_of_team(&state.team).attach(state.team.as_str());
        text.push_str(&format!("  {FAINT}windows: {attach}{FAINT:#}\n"));
    }
    text.push_str(&attention(&state.attention, state.team.as_str(), names_team, width));
    text
}

/// Returns the first line: the team, and its figures.
pub(crate) fn heading(state: &TeamState) -> String {
    let TeamState { team, tasks, .. } = state;
    if state.is_ended {
        return format!("{STRONG}{team}{STRONG:#}  Claude Code's session has ended\n");
    }
    let leads = match (state.is_claude_led, state.may_lead) {
        // The next line describes the session of Claude Code.
        (true, _) => "",
        (false, true) => " (you lead)",
        (false, false) => " (you are a member)",
    };
    let mut figures = vec![text::count(state.member_count, "member")];
    if tasks.total > 0 {
        figures.push(format!("{} of {} tasks done", tasks.done, tasks.total));
    }
    let mut figures = vec![figures.join(" · ")];
    if tasks.unreadable > 0 {
        let unreadable = tasks.unreadable;
        figures.push(format!("{BUSY}{unreadable} unreadable (run `brigade doctor`){BUSY:#}"));
    }
    if let Some(count @ 1..) = state.approvals {
        figures.push(format!("{BUSY}{} waiting{BUSY:#}", text::count(count, "approval")));
    }
    format!("{STRONG}{team}{STRONG:#}{leads}  {}\n", figures.join(" · "))
}

/// Returns the text of a member in a column.
type CellText = fn(&MemberState) -> String;

/// The columns that are shown if they have content.
const OPTIONAL: [(&str, CellText); 5] = [
    ("HOST", remote_host),
    ("TASK", task_text),
    ("UNREAD", unread_text),
    ("CHANGES", changes_text),
    ("TOKENS", usage_text),
];

/// Returns the table of the members. A column is left out if it would be empty. The members of the team file that do not run
/// follow with the command that starts them.
fn members(members: &[MemberState], not_running: &[NotRunningMember]) -> Table {
    let is_used =
        |text: fn(&MemberState) -> String| members.iter().any(|member| !text(member).is_empty());
    let used: Vec<_> = OPTIONAL.iter().filter(|(_, text)| is_used(*text)).collect();
    let headings: Vec<&str> = ["MEMBER", "AGENT", "STATE"]
        .into_iter()
        .chain(used.iter().map(|(heading, _)| *heading))
        .collect();
    let mut table = Table::new(&headings);
    for member in members {
        let cells = [
            Cell::new(STRONG, member.name.as_str()),
            agent_text(&member.agent, member.model.as_deref()).into(),
            Cell::with_reason(progress::style(member.judged.liveness), &member.words),
        ];
        let others = used.iter().map(|(_, text)| {
            let text = text(member);
            if text.is_empty() { Cell::new(FAINT, "–") } else { text.into() }
        });
        table.row(cells.into_iter().chain(others));
    }
    for member in not_running {
        let command = stopped::up_command(&current_dir(), &member.file);
        let cells = [
            Cell::new(STRONG, member.name.as_str()),
            agent_text(&member.agent, member.model.as_deref()).into(),
            Cell::new(FAINT, &format!("not running: {command}")),
        ];
        let others = used.iter().map(|_| Cell::new(FAINT, "–"));
        table.row(cells.into_iter().chain(others));
    }
    table
}

/// Returns the name of an agent, and its model if the settings name one.
fn agent_text(agent: &str, model: Option<&str>) -> String {
    let agent = agent_name(agent);
    match model {
        Some(model) => format!("{agent} ({model})"),
        None => agent,
    }
}

/// Returns the name of an agent. Of a command, only the name of the program is shown.
pub(crate) fn agent_name(agent: &str) -> String {
    let Some(command) = agent.strip_prefix("acp:") else { return agent.to_owned() };
    let program = command.split_whitespace().next().unwrap_or_default();
    let file = program.rsplit('/').next().unwrap_or_default();
    format!("acp:{file}")
}

/// Returns the host of a member that another host runs.
fn remote_host(member: &MemberState) -> String {
    member.host.clone().filter(|_| member.place.is_none()).unwrap_or_default()
}

/// Returns the task that a member works on, or the one that it will start, and the number of its other tasks.
fn task_text(member: &MemberState) -> String {
    let Some(task) = &member.task else { return String::new() };
    let others = member.tasks.len() + member.assigned.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" +{others}") };
    let not_started = if member.tasks.is_empty() { " (not started)" } else { "" };
    format!("{} {}{not_started}{more}", task.id, task.subject)
}

fn unread_text(member: &MemberState) -> String {
    match member.unread {
        Some(0) => String::new(),
        Some(unread) => unread.to_string(),
        None => "?".to_owned(),
    }
}

/// Describes the changes in a member's worktree.
fn changes_text(member: &MemberState) -> String {
    let Some(BranchDistance { ahead, behind, changed, .. }) = &member.worktree else {
        return String::new();
    };
    let parts = [
        (*ahead > 0).then(|| text::count(*ahead, "commit")),
        (*changed > 0).then(|| text::count(*changed, "changed file")),
        (*behind > 0).then(|| format!("{behind} behind")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// Formats the tokens and the cost of a conversation: `220k $0.53`.
fn usage_text(member: &MemberState) -> String {
    let (read, wrote) = member.tokens;
    let tokens = match read + wrote {
        0 => String::new(),
        tokens @ ..1_000 => tokens.to_string(),
        tokens @ ..1_000_000 => format!("{}k", tokens / 1_000),
        tokens => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    };
    match member.cost {
        Some(cost) if cost > 0.0 => format!("{tokens} ${cost:.2}").trim_start().to_owned(),
        _ => tokens,
    }
}

/// Lists what waits for the person, each with the command that settles it.
pub(crate) fn attention(
    items: &[AttentionItem],
    team: &str,
    names_team: bool,
    width: Option<usize>,
) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["COMMAND", "WAITING FOR YOU"]).wrapping_last();
    for item in items {
        let command = item.command.clone().unwrap_or_else(|| "–".to_owned());
        let command = match names_team {
            true => command,
            false => command.replace(&format!(" --team {team}"), ""),
        };
        table.row([Cell::new(HINT, &command), item.text.as_str().into()]);
    }
    table.render("  ", width)
}

/// Describes the Claude Code session that leads a team.
fn lead_line(state: &TeamState, now: Timestamp) -> String {
    let Some(session) = &state.lead_session else {
        let how =
            state.last_session.as_ref().map(|id| format!("; `claude --resume {id}` continues"));
        return format!(
            "Claude Code leads; no running session was found{}",
            how.unwrap_or_default()
        );
    };
    let ClaudeSession { pid, cwd, status, waiting_for, started_at, .. } = session;
    let began = i64::try_from(*started_at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let age = began.map_or(0, |began| now.duration_since(began).as_secs());
    let age = output::duration(age);
    let status = if status.is_empty() { "running" } else { status };
    let waits = waiting_for.as_ref().map(|what| format!(" for {what}")).unwrap_or_default();
    one_line(&format!("Claude Code leads: {status}{waits}, in {cwd}, for {age} (process {pid})"))
}
