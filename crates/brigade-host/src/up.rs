//! Brings a team up. Creates the members and tasks of the team file that do not exist yet. Does not change
//! existing members and tasks.

mod apply;
mod preview;

use std::collections::HashMap;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::roster::{self, RosterError, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::{Document, StoreError};
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{Status, Task};
use serde_json::{Value, json};

use crate::context::Context;
use crate::differences::TeamDifferences;
use crate::error::{HostError, Trouble};
use crate::progress::{Progress, ReportProgress};
use crate::spec::{MemberSpec, TaskSpec, TeamSpec};
use crate::trust::TrustedTeamFile;
use crate::{Host, origin, preflight, renewal, state, stopped, team_lock, wait};

pub use self::apply::{check_recreated, members_to_recreate, remove_orphans};
pub use self::preview::{UpPreview, preview};

/// The metadata key under which a task stores its name in the team file.
const KEY: &str = "brigadeKey";

/// The result of bringing a team up.
#[derive(Debug, Default)]
pub struct UpResult {
    /// The members that were added.
    pub new: Vec<MemberName>,
    /// The differences between the team file and the members that were on this host before.
    pub differences: TeamDifferences,
    /// The number of tasks that were added.
    pub tasks: usize,
    /// The members that run on another host.
    pub elsewhere: Vec<MemberName>,
    /// The number of tasks that were assigned to members which had joined before.
    pub assigned: usize,
}

/// The reaction to a team of the same name that belongs to another team file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherOwner {
    /// Fail.
    Refuse,
    /// Continue that team with this file.
    Adopt,
}

/// Brings up the team of a team file.
pub async fn up(
    context: &Context,
    host: &Host,
    lead: &Seat,
    file: &TrustedTeamFile,
    other_owner: OtherOwner,
    report: ReportProgress<'_>,
) -> Result<UpResult, HostError> {
    let spec = file.spec();
    for member in &spec.members {
        context.check_may_start(lead, &member.name, &member.agent)?;
    }
    preflight::refuse_native(host.is_shared, spec.lead.iter().chain(&spec.members))?;
    check_programs(host, spec, report)?;
    let _lock = team_lock::acquire(&host.registry, &lead.team, report).await?;
    renewal::renew(context, host, report).await?;
    if other_owner == OtherOwner::Refuse {
        origin::check_owner(&host.registry, lead, host.is_shared, file.path()).await?;
    }
    if !host.may_lead {
        return join(host, lead, file, report).await;
    }
    let plan = TeamPlan {
        description: &spec.description,
        lead_model: spec.lead.as_ref().and_then(|lead| lead.model.as_deref()).unwrap_or("unknown"),
        cwd: &spec.root.to_string_lossy(),
    };
    match roster::create(lead, plan).await {
        Ok(()) => {}
        Err(RosterError::Store(StoreError::TeamExists { .. })) => {
            if !lead.store.is_ours(&lead.team).await? {
                let error = HostError::failed(Trouble::NotOurs { team: lead.team.to_string() });
                return Err(error.hint("give the team in brigade.toml another name"));
            }
        }
        Err(error) => return Err(error.into()),
    }
    let mut result = UpResult { tasks: add_tasks(lead, &spec.tasks).await?, ..UpResult::default() };
    origin::record(&host.registry, lead, file.path()).await?;
    host.registry.put_team(spec)?;
    add_all(host, lead, spec, &mut result, report).await?;
    // The supervisor assigns the tasks of the members that have not joined yet.
    let has_joined = |owner: &MemberName| host.registry.has_joined(&lead.team, owner);
    result.assigned = assign_tasks(lead, &spec.tasks, has_joined).await?;
    Ok(result)
}

/// Fails if a member's program is not installed. If the team is on a NATS server, only reports the program,
/// because the member may be meant for another host.
fn check_programs(
    host: &Host,
    spec: &TeamSpec,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let mut new = Vec::new();
    for member in spec.members.iter().chain(&spec.lead) {
        if host.registry.member(&spec.team, &member.name)?.is_none() {
            new.push(member);
        }
    }
    if host.is_shared {
        for missing in preflight::missing_programs(&host.programs, new) {
            report(Progress::NotInstalled(missing.what, missing.remedy));
        }
        return Ok(());
    }
    preflight::check(&host.programs, new)
}

/// Brings up this host's members of a team that another host leads. The other host adds the tasks.
async fn join(
    host: &Host,
    lead: &Seat,
    file: &TrustedTeamFile,
    report: ReportProgress<'_>,
) -> Result<UpResult, HostError> {
    let spec = file.spec();
    if lead.find_config().await?.is_none() {
        let error = HostError::from(StoreError::NoTeam { team: lead.team.clone() });
        return Err(
            error.hint("the lead has to create the team; these credentials belong to a member")
        );
    }
    let mut result = UpResult::default();
    origin::record(&host.registry, lead, file.path()).await?;
    host.registry.put_team(spec)?;
    add_all(host, lead, spec, &mut result, report).await?;
    Ok(result)
}

async fn add_all(
    host: &Host,
    lead: &Seat,
    spec: &TeamSpec,
    result: &mut UpResult,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    result.differences = TeamDifferences::find(&host.registry, spec)?;
    for member in spec.members.iter().chain(&spec.lead) {
        if let Some(other) = state::remote_host(host, lead, &member.name).await? {
            report(Progress::RunsElsewhere(member.name.clone(), other));
            result.elsewhere.push(member.name.clone());
        } else if add(host, lead, member, report).await? {
            result.new.push(member.name.clone());
        }
    }
    result.differences.added.retain(|name| !result.elsewhere.contains(name));
    Ok(())
}

/// Adds a member to the registry. Returns false if the registry already has the member.
async fn add(
    host: &Host,
    lead: &Seat,
    spec: &MemberSpec,
    report: ReportProgress<'_>,
) -> Result<bool, HostError> {
    wait::until_removed(host, lead, &spec.name, report).await?;
    let unread = stopped::unread_texts(&host.registry, lead, &spec.name).await?;
    if host.registry.add_member(&lead.team, spec)? {
        if unread > 0 {
            report(Progress::HasUnreadMail(spec.name.clone(), unread));
        }
        state::forget_heartbeat(host, lead, &spec.name).await?;
        return Ok(true);
    }
    state::retry_if_dead(host, lead, &spec.name).await?;
    Ok(false)
}

/// Returns the name that a task has in the team file, or `None` if the task did not come from a team file.
fn task_key(task: &Task<'_>) -> Option<String> {
    let metadata: Value = serde_json::from_str(task.field("metadata")?).ok()?;
    Some(metadata.get(KEY)?.as_str()?.to_owned())
}

/// Fails if the file of a task is damaged. Without its name, `up` would add the task a second time.
pub fn check_readable(tasks: &[(TaskId, Document)]) -> Result<(), HostError> {
    let damaged = tasks.iter().filter(|(_, document)| Task::read(&document.bytes).is_err());
    let damaged: Vec<TaskId> = damaged.map(|(id, _)| *id).collect();
    if damaged.is_empty() {
        return Ok(());
    }
    let error = HostError::failed(Trouble::UnreadableTasks { tasks: damaged });
    Err(error.hint("`brigade doctor` shows the damage, `brigade doctor --fix` repairs it"))
}

/// Adds the tasks that are not on the board yet, and returns how many were added.
async fn add_tasks(lead: &Seat, tasks: &[TaskSpec]) -> Result<usize, HostError> {
    let (existing, _) = board::list(lead).await?;
    let mut known: HashMap<String, TaskId> = HashMap::new();
    check_readable(&existing)?;
    for (id, document) in &existing {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        let Some(key) = task_key(&task) else { continue };
        known.insert(key, *id);
        complete_edges(lead, &existing, *id, &task).await?;
    }
    let mut new = 0;
    for task in tasks {
        if known.contains_key(&task.key) {
            continue;
        }
        let plan = TaskPlan {
            subject: task.subject.clone(),
            description: task.description.clone(),
            active_form: None,
            // `tasks` is sorted by dependency, so these tasks are already on the board.
            blocked_by: task.after.iter().filter_map(|key| known.get(key).copied()).collect(),
            metadata: vec![(KEY.to_owned(), json!(task.key))],
        };
        let id = board::add(lead, &plan).await?;
        known.insert(task.key.clone(), id);
        new += 1;
    }
    Ok(new)
}

/// Adds a task to the field `blocks` of the tasks that it waits for. A process that dies after it added the task leaves
/// these fields unchanged.
async fn complete_edges(
    lead: &Seat,
    board: &[(TaskId, Document)],
    id: TaskId,
    task: &Task<'_>,
) -> Result<(), HostError> {
    let name = id.to_string();
    for waits_for in task.blocked_by().unwrap_or_default() {
        let blocker = board.iter().find(|(other, _)| other.to_string() == waits_for);
        let Some((blocker, document)) = blocker else { continue };
        let Ok(known) = Task::read(&document.bytes) else { continue };
        if !known.blocks().unwrap_or_default().iter().any(|blocked| *blocked == name) {
            let update = Update { add_blocks: vec![id], ..Update::default() };
            board::update(lead, *blocker, &update).await?;
        }
    }
    Ok(())
}

/// Assigns tasks to those of their owners in the team file for whom `is_due` returns true. These owners must have
/// joined, because only members can own tasks. Does not change tasks that already have an owner. Returns how many
/// tasks were assigned.
pub async fn assign_tasks(
    lead: &Seat,
    tasks: &[TaskSpec],
    is_due: impl Fn(&MemberName) -> bool,
) -> Result<usize, HostError> {
    let mut assigned = 0;
    if !tasks.iter().filter_map(|task| task.owner.as_ref()).any(&is_due) {
        return Ok(assigned);
    }
    let (existing, _) = board::list(lead).await?;
    for (id, document) in &existing {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        let key = task_key(&task);
        let spec = tasks.iter().find(|spec| Some(&spec.key) == key.as_ref());
        let owner = spec.and_then(|spec| spec.owner.as_ref()).filter(|owner| is_due(owner));
        let Some(owner) = owner else { continue };
        if task.owner().is_none() && task.status() != Some(Status::Completed) {
            let owner = brigade_wire::change::Change::Set(owner.clone());
            board::update(lead, *id, &Update { owner, ..Update::default() }).await?;
            assigned += 1;
        } else if task.owner().is_some_and(|current| current == owner.as_str())
            && task.status() == Some(Status::Pending)
        {
            // The process that assigned the task may have died before it told the owner.
            board::notify_owner_once(lead, *id, owner).await?;
        }
    }
    Ok(assigned)
}
