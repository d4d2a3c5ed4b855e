//! `brigade down` and `brigade stop`

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use brigade_core::text;
use brigade_host::down::{self, DownResult};
use brigade_host::progress::{Ended, Progress};
use brigade_host::shutdown::StopOptions;
use brigade_host::signals;
use brigade_host::stopped;
use brigade_host::worktree::IgnoredFiles;
use brigade_wire::name::{MemberName, TeamName};
use serde_json::json;

use super::credentials;
use super::steer::first_failure;
use crate::cli::{DownArgs, GlobalArgs, ShutdownArgs, StopArgs};
use crate::context::{CliContext, current_dir, host_alone, named_team};
use crate::error::{CliError, Trouble};
use crate::output::{self, STRONG};
use crate::{exit, progress};

/// The hint for a NATS server that cannot be used.
pub(crate) const NOW_HINT: &str = "`brigade down TEAM --now` kills the members on this host anyway";

fn manner(ending: &ShutdownArgs, may_refuse: bool) -> StopOptions<'_> {
    let ask = (!ending.now).then(|| Duration::from_secs(ending.limit));
    let ignored_files = if ending.discard { IgnoredFiles::Discard } else { IgnoredFiles::Keep };
    StopOptions { ask, reason: ending.reason.as_deref(), may_refuse, ignored_files }
}

/// Prints progress, and remembers which members were asked to stop and have not ended.
#[derive(Default)]
struct StopTracker {
    stopping: Mutex<BTreeSet<MemberName>>,
}

impl StopTracker {
    fn print(&self, step: Progress) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        match &step {
            Progress::AskedToStop(name, _) | Progress::ToldToEnd(name) => {
                stopping.insert(name.clone());
            }
            Progress::Ended(name, _) => {
                stopping.remove(name);
            }
            _ => {}
        }
        progress::print(step);
    }

    /// Says what an interrupted command has done, and which command continues it.
    fn note_interrupted(&self, command: &str) {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = stopping.iter().map(MemberName::as_str).collect();
        let asked = match names.as_slice() {
            [] => "nothing is in progress".to_owned(),
            names => format!("asked to stop, and may still do so: {}", names.join(", ")),
        };
        output::note(&format!("interrupted; {asked}; `{command}` completes it"));
    }
}

/// Runs `brigade stop`.
pub(crate) async fn stop(context: &CliContext, stop: &StopArgs) -> Result<u8, CliError> {
    let lead = context.seat_of(down::team_of_stopped(context).await?, MemberName::lead());
    let names = match stop.members.all {
        true => down::members_here(context, &lead.team)?,
        false => stop.members.names.clone(),
    };
    let manner = manner(&stop.how, !stop.how.now);
    let tracker = StopTracker::default();
    let report = |step: Progress| tracker.print(step);
    let stopping = down::stop_all(context, &lead, &names, manner, &report);
    let Some(results) = signals::until_stop_signal(async { Ok(stopping.await) }).await? else {
        let names: Vec<&str> = names.iter().map(MemberName::as_str).collect();
        let command = format!("brigade stop {} --team {}", names.join(" "), lead.team);
        tracker.note_interrupted(&command);
        return Ok(exit::INTERRUPTED);
    };
    let (mut ended, mut failures) = (Vec::new(), Vec::new());
    let mut code = exit::DONE;
    for (name, result) in results {
        match result {
            Ok(Ended::Refused(why)) => {
                ended.push((name.clone(), Ended::Refused(why.clone())));
                let error = CliError::failed(Trouble::Refuses { name: name.to_string(), why });
                failures.push(error.hint(format!("`brigade stop {name} --now` kills it anyway")));
            }
            Ok(end) => {
                ended.push((name.clone(), end));
                match credentials::end(context, &lead.team, &name, &stop.credentials).await {
                    Ok(of_one) => code = code.max(of_one),
                    Err(error) => failures.push(error),
                }
            }
            Err(error) => failures.push(error),
        }
    }
    let is_stopped = |(_, end): &&(MemberName, Ended)| !matches!(end, Ended::Refused(_));
    let stopped: Vec<MemberName> =
        ended.iter().filter(is_stopped).map(|(name, _)| name.clone()).collect();
    if context.json {
        output::print_json(&stop_document(context, &lead.team, &ended)?)?;
    } else {
        for advice in stopped::start_advice(context, &lead.team, &stopped).await? {
            output::hint(&advice);
        }
    }
    first_failure(failures, names.len(), code)
}

/// Runs `brigade down`.
pub(crate) async fn run(context: &CliContext, down: &DownArgs) -> Result<u8, CliError> {
    let manner = manner(&down.how, false);
    let tracker = StopTracker::default();
    let report = |step: Progress| tracker.print(step);
    let stopping = down::down(context, down.which.as_ref(), manner, &report);
    let Some(taken) = signals::until_stop_signal(stopping).await? else {
        let team = down.which.as_ref().map(|team| format!(" {team}")).unwrap_or_default();
        tracker.note_interrupted(&format!("brigade down{team}"));
        return Ok(exit::INTERRUPTED);
    };
    let DownResult { team, members, lost_tasks, stays_elsewhere, led_by_claude_code } = taken;
    note_lost_tasks(&team, lost_tasks);
    if context.json {
        output::print_json(&document(&members))?;
    } else if led_by_claude_code {
        let stopped = members.iter().filter(|(_, ended)| !matches!(ended, Ended::Refused(_)));
        let stopped: Vec<&str> = stopped.map(|(name, _)| name.as_str()).collect();
        let what = match stopped.as_slice() {
            [] => "no member that brigade runs is left".to_owned(),
            names => format!("stopped {}", names.join(", ")),
        };
        output::print(&format!("{what}; Claude Code still leads team {STRONG}{team}{STRONG:#}\n"))?;
    } else {
        let how = if stays_elsewhere { "no longer runs on this host" } else { "is down" };
        output::print(&format!(
            "team {STRONG}{team}{STRONG:#} {how}; `brigade log --team {team}` still shows its history\n"
        ))?;
    }
    Ok(exit::DONE)
}

/// Says how many unfinished tasks were deleted together with their team.
pub(crate) fn note_lost_tasks(team: &TeamName, lost: usize) {
    if lost > 0 {
        let tasks = text::count(lost, "unfinished task");
        output::note(&format!(
            "the team and its {tasks} were deleted; `brigade log --team {team}` still shows them"
        ));
    }
}

/// Runs `brigade down` while the NATS server is unreachable: with `--now`, kills the members on this host. The
/// team stays on the server until a later `brigade down` deletes it.
pub(crate) async fn without_store(
    global: &GlobalArgs,
    down: &DownArgs,
    unreachable: CliError,
) -> Result<u8, CliError> {
    let host = host_alone(global)?;
    let named = down.which.clone().map_or_else(|| named_team(global), |team| Ok(Some(team)))?;
    let killed = match down.how.now {
        true => {
            down::kill_without_store(&host, named.as_ref(), &current_dir(), &progress::print)
                .await?
        }
        false => None,
    };
    let Some((team, names)) = killed else {
        return Err(unreachable.hint(NOW_HINT));
    };
    output::note(&format!(
        "{}; killed the members of team {team} on this host; the team still exists on the NATS server: run \
         `brigade down {team}` when the server is reachable",
        unreachable.to_one_line()
    ));
    if global.json {
        let ended: Vec<(MemberName, Ended)> =
            names.into_iter().map(|name| (name, Ended::Forced)).collect();
        output::print_json(&document(&ended))?;
    }
    Ok(exit::FAILED)
}

/// Returns the document of `brigade stop`: as that of `brigade down`, with the command that starts each member again.
fn stop_document(
    context: &CliContext,
    team: &TeamName,
    ended: &[(MemberName, Ended)],
) -> Result<serde_json::Value, CliError> {
    let mut members = Vec::new();
    for (name, end) in ended {
        let (word, why) = end_word(end);
        let start_again = stopped::start_command(context, team, name)?;
        members
            .push(json!({ "name": name, "ended": word, "why": why, "start_again": start_again }));
    }
    Ok(json!({ "members": members }))
}

fn document(ended: &[(MemberName, Ended)]) -> serde_json::Value {
    let of = |(name, ended): &(MemberName, Ended)| {
        let (word, why) = end_word(ended);
        json!({ "name": name, "ended": word, "why": why })
    };
    json!({ "members": ended.iter().map(of).collect::<Vec<_>>() })
}

/// Returns the word for the end of a member, and why a member refused to stop.
fn end_word(ended: &Ended) -> (&'static str, Option<&String>) {
    match ended {
        Ended::Agreed => ("agreed", None),
        Ended::WasGone => ("was_gone", None),
        Ended::Forced => ("forced", None),
        Ended::Refused(why) => ("refused", Some(why)),
    }
}
