//! Members: starting, steering and stopping them, and what they have changed.

use std::path::PathBuf;
use std::time::Duration;

use brigade_host::down::{self, StopResult};
use brigade_host::member_options::MemberOptions;
use brigade_host::member_worktree;
use brigade_host::progress::{Ended, silent};
use brigade_host::shutdown::StopOptions;
use brigade_host::spec::MemberPlace;
use brigade_host::steer::{self, Interrupted, RestartOptions};
use brigade_host::worktree::{BranchDistance, DiffFormat, IgnoredFiles};
use brigade_host::{Context, spawn as host_spawn};
use brigade_wire::name::{MemberName, TeamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Reply, ReplyResult};

/// How long a member may take to agree to stop.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A call without content.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoContent {}

/// The settings of a new member.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnRequest {
    /// The name of the new member.
    name: String,
    /// The agent, such as `codex`.
    agent: String,
    /// The model.
    model: Option<String>,
    /// The first message that the member gets.
    prompt: Option<String>,
    /// Whether the member must not change anything before its plan is approved.
    #[serde(default)]
    plan: bool,
    /// Whether the member works in its own git worktree.
    #[serde(default)]
    worktree: bool,
    /// The folder that the member works in.
    dir: Option<PathBuf>,
}

/// A member that was started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SpawnedDocument {
    name: String,
    /// Whether the member is new.
    new: bool,
    /// Why the member did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

/// The effect of a call on a member.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffectDocument {
    name: String,
    /// The effect, in one word.
    result: &'static str,
}

/// How to start an agent again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartRequest {
    /// Whether to begin a new session.
    #[serde(default)]
    fresh: bool,
    /// The model from now on.
    model: Option<String>,
}

/// How to stop members.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopRequest {
    /// Whether to stop without asking the members.
    #[serde(default)]
    now: bool,
    /// The reason for the members.
    reason: Option<String>,
}

/// Members that were stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoppedDocument {
    members: Vec<StoppedMemberDocument>,
}

/// A member that was stopped.
#[derive(Debug, Serialize, JsonSchema)]
struct StoppedMemberDocument {
    name: String,
    /// `agreed`, `killed`, `gone`, `refused` or `asked`.
    ended: &'static str,
    /// Why the member refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The changes of a member.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffDocument {
    /// The folder of the worktree.
    dir: PathBuf,
    /// How far the branch is from the branch that it began at.
    distance: BranchDistance,
    /// The changes, as `git diff` prints them.
    diff: String,
}

pub(crate) async fn spawn(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let asked: SpawnRequest = call.content()?;
    let name: MemberName =
        asked.name.parse().map_err(|error| Problem::invalid(format!("{error}")))?;
    let options = MemberOptions {
        agent: Some(asked.agent),
        model: asked.model,
        prompt: asked.prompt,
        plan: Some(asked.plan),
        worktree: Some(asked.worktree),
        dir: asked.dir,
        place: Some(MemberPlace::Headless),
        ..MemberOptions::default()
    };
    let spec = options.resolve(&context, &team, &name, &call.state.trust)?;
    let lead = context.seat_of(team, MemberName::lead());
    let spawned = host_spawn::spawn(&context, &lead, &spec, &silent).await?;
    let document =
        SpawnedDocument { name: name.to_string(), new: spawned.new, trouble: spawned.trouble };
    Ok(Reply::json(&document)?.created())
}

pub(crate) async fn interrupt(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let name = call.member()?;
    let lead = context.seat_of(team, MemberName::lead());
    let result = match steer::interrupt(&context, &lead, &name).await? {
        Interrupted::TurnOver { .. } => "interrupted",
        Interrupted::NotInTurn => "not_in_turn",
        Interrupted::NotYet => "sent",
    };
    effect(&name, result, result != "sent")
}

pub(crate) async fn pause(call: Call) -> ReplyResult {
    set_paused(call, true).await
}

pub(crate) async fn unpause(call: Call) -> ReplyResult {
    set_paused(call, false).await
}

async fn set_paused(call: Call, paused: bool) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let name = call.member()?;
    let lead = context.seat_of(team, MemberName::lead());
    steer::set_paused(&context, &lead, &name, paused).await?;
    effect(&name, if paused { "paused" } else { "unpaused" }, true)
}

pub(crate) async fn restart(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let name = call.member()?;
    let RestartRequest { fresh, model } = call.content()?;
    let lead = context.seat_of(team, MemberName::lead());
    let options = RestartOptions { fresh, model };
    steer::restart(&context, &lead, &name, &options, &silent).await?;
    effect(&name, "restarted", true)
}

fn effect(name: &MemberName, result: &'static str, is_confirmed: bool) -> ReplyResult {
    let document = EffectDocument { name: name.to_string(), result };
    Ok(Reply::json(&document)?.accepted_unless(is_confirmed))
}

pub(crate) async fn stop(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let name = call.member()?;
    let asked: StopRequest = call.content()?;
    let seat = context.seat_of(team, MemberName::lead());
    let stopped = down::stop_or_ask(&context, &seat, &name, manner(&asked), &silent).await?;
    let member = match stopped {
        StopResult::Here(ended) => stopped_member(&name, ended),
        StopResult::Asked => {
            StoppedMemberDocument { name: name.to_string(), ended: "asked", why: None }
        }
    };
    let is_confirmed = !matches!(member.ended, "asked" | "refused");
    let document = StoppedDocument { members: vec![member] };
    Ok(Reply::json(&document)?.accepted_unless(is_confirmed))
}

pub(crate) async fn stop_all(call: Call) -> ReplyResult {
    let (context, team) = call.team_context().await?;
    let asked: StopRequest = call.content()?;
    let members = end_team(&context, &team, &asked).await?;
    Reply::json(&StoppedDocument { members })
}

async fn end_team(
    context: &Context,
    team: &TeamName,
    asked: &StopRequest,
) -> Result<Vec<StoppedMemberDocument>, Problem> {
    let down = down::down(context, Some(team), manner(asked), &silent).await?;
    Ok(down.members.into_iter().map(|(name, ended)| stopped_member(&name, ended)).collect())
}

fn manner(asked: &StopRequest) -> StopOptions<'_> {
    StopOptions {
        ask: (!asked.now).then_some(STOP_WITHIN),
        reason: asked.reason.as_deref(),
        may_refuse: !asked.now,
        ignored_files: IgnoredFiles::Keep,
    }
}

fn stopped_member(name: &MemberName, ended: Ended) -> StoppedMemberDocument {
    let (ended, why) = match ended {
        Ended::Agreed => ("agreed", None),
        Ended::Forced => ("killed", None),
        Ended::WasGone => ("gone", None),
        Ended::Refused(why) => ("refused", Some(why)),
    };
    StoppedMemberDocument { name: name.to_string(), ended, why }
}

pub(crate) async fn diff(call: Call) -> ReplyResult {
    let (context, _) = call.team_context().await?;
    let name = call.member()?;
    let worktree = member_worktree::find(&context, &name, &call.state.trust).await?;
    let document = DiffDocument {
        distance: worktree.distance()?,
        diff: worktree.diff(DiffFormat::Patch, &[])?,
        dir: worktree.dir,
    };
    Reply::json(&document)
}
