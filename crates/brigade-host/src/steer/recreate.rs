//! Restarts a member with the settings of its team file.

use std::time::Duration;

use brigade_core::mail::{self, MessageText};
use brigade_core::seat::Seat;
use tokio::time::Instant;

use super::{MemberReply, READY_WITHIN, SteeredMember};
use crate::context::Context;
use crate::control::ControlRequest;
use crate::differences::MemberDifferences;
use crate::error::{HostError, Trouble};
use crate::progress::{Progress, ReportProgress};
use crate::spec::{MemberPlace, MemberSpec};
use crate::worktree::{IgnoredFiles, Removed};
use crate::{briefing, preflight, roster_entry, wait};

/// How often to check whether the member's new process runs.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The settings that the supervisor reads whenever it needs them. They need no restart.
const READ_EACH_TIME: [&str; 3] = ["prompt", "rules", "restart"];
/// With another of these settings, an agent cannot continue its session: another agent does not have the session, and
/// agents keep their sessions by folder.
const OTHER_SESSION: [&str; 3] = ["agent", "dir", "worktree"];

/// How a member continues with its new settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recreated {
    /// Without a restart.
    Running,
    /// Restarted, in the same session.
    SameSession,
    /// Restarted, in a new session with a briefing.
    NewSession,
}

/// Gives a member the settings of its team file, and waits until its agent is ready. Restarts the agent if necessary: in
/// the same session if possible, else in a new one with a briefing. A new prompt is sent as a message.
pub async fn recreate(
    context: &Context,
    lead: &Seat,
    wanted: &MemberSpec,
    differences: &MemberDifferences,
    report: ReportProgress<'_>,
) -> Result<Recreated, HostError> {
    let (name, team) = (&wanted.name, &lead.team);
    context.check_may_start(lead, name, &wanted.agent)?;
    let mut member = SteeredMember::find(context, lead, name, "restart a member")?;
    if wanted.place == MemberPlace::Native {
        let (name, team) = (name.to_string(), team.to_string());
        let error = Trouble::ClaudeRuns { name: name.clone(), team, what: "start it" };
        let error = HostError::failed(error);
        return Err(error.hint(format!("use `brigade stop {name}` and then `brigade up`")));
    }
    let host = member.host.clone();
    preflight::check(&host.programs, [wanted])?;
    let needs_restart = differences.settings.iter().any(|it| !READ_EACH_TIME.contains(&it.setting));
    let fresh = match differences.has_any(&OTHER_SESSION) {
        true => Some(briefing::write(&host, lead, &member.spec).await?),
        false => None,
    };
    if differences.has_any(&["prompt"]) {
        send_new_prompt(&member, lead, wanted).await?;
    }
    let old = std::mem::replace(&mut member.spec, wanted.clone());
    let registry = &host.registry;
    if !needs_restart {
        registry.replace_member(team, &old, wanted)?;
        roster_entry::write(&host, lead, wanted, None).await;
        return Ok(Recreated::Running);
    }
    // The new process of the member writes the roster. If this process dies between these steps, the member is restarted anyway, with its old or its new settings.
    registry.request_restart(team, name)?;
    registry.replace_member(team, &old, wanted)?;
    registry.request_restart(team, name)?;
    let end = Instant::now() + READY_WITHIN;
    while registry.is_restart_requested(team, name) {
        host.ensure_supervisor().await?;
        if Instant::now() > end {
            return Err(not_ready(name.as_str()));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    remove_old_worktree(&member, lead, &old, report);
    if let Some(briefing) = fresh {
        begin_session(&member, lead, briefing, end).await?;
        return Ok(Recreated::NewSession);
    }
    match wait::until_ready(&host, lead, std::slice::from_ref(name), report).await?.is_empty() {
        true => Ok(Recreated::SameSession),
        false => {
            let error = HostError::failed(Trouble::DidNotStart { names: vec![name.to_string()] });
            Err(error.hint("`brigade status` shows the reason"))
        }
    }
}

/// Sends the prompt of the team file to a member that joined with another prompt. Does so once, also if an earlier call
/// was killed before it stored the new settings. Only the lead can send it.
async fn send_new_prompt(
    member: &SteeredMember,
    lead: &Seat,
    wanted: &MemberSpec,
) -> Result<(), HostError> {
    let Some(prompt) = &wanted.prompt else { return Ok(()) };
    if !member.host.leads(lead).await? {
        return Ok(());
    }
    let key = member.host.registry.keys(&lead.team).member_key(&wanted.name);
    let key = key.map_err(HostError::failed)?;
    let changed = member.host.registry.settings_changed(&lead.team, &wanted.name)?;
    let id = format!("new prompt {changed} {}", key.private_id());
    mail::send_once(lead, &wanted.name, &id, MessageText { text: prompt, summary: None }).await?;
    Ok(())
}

/// Removes the worktree that the member does not use any more, unless it has work that exists nowhere else.
fn remove_old_worktree(
    member: &SteeredMember,
    lead: &Seat,
    old: &MemberSpec,
    report: ReportProgress<'_>,
) {
    let Some(worktree) = member.host.worktree(&lead.team, old) else { return };
    let new = member.host.worktree(&lead.team, &member.spec);
    if new.is_some_and(|new| new.dir == worktree.dir) {
        return;
    }
    match worktree.remove(IgnoredFiles::Keep).unwrap_or(Removed::Unclear) {
        Removed::None | Removed::Wholly => {}
        stays => report(Progress::WorktreeKept(old.name.clone(), stays, worktree)),
    }
}

/// Lets the member's new process begin a new session as soon as it accepts commands. Before that, its agent may fail to
/// resume the old session.
async fn begin_session(
    member: &SteeredMember,
    lead: &Seat,
    briefing: String,
    end: Instant,
) -> Result<(), HostError> {
    let request = ControlRequest::Restart { fresh: Some(briefing), model: None };
    let name = &member.spec.name;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Until the process has opened its socket, the connection fails.
        if let Ok(Some(_)) = member.connect(lead).await {
            return match member.request(lead, &request, left).await? {
                MemberReply::Replied(_) => Ok(()),
                MemberReply::NotYet | MemberReply::NotRunning => Err(not_ready(name.as_str())),
            };
        }
        if left.is_zero() {
            return Err(not_ready(name.as_str()));
        }
        member.host.ensure_supervisor().await?;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn not_ready(name: &str) -> HostError {
    let why = format!("its agent is not ready after {} s", READY_WITHIN.as_secs());
    let error = HostError::failed(Trouble::NotSteered { name: name.to_owned(), why });
    error.hint("`brigade status` shows its state")
}
