//! Bringing a team up: what its file says becomes true, and nothing that is true already changes.

use std::collections::HashMap;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::roster::{self, RosterError, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Task;
use serde_json::{Value, json};

use crate::error::{HostError, Trouble, failed};
use crate::progress::{Progress, Report};
use crate::spec::{MemberSpec, Place, TaskSpec, TeamSpec};
use crate::{Host, preflight, process_lock, state};

/// Where a task says what it is called in the file.
const KEY: &str = "brigadeKey";

/// What bringing a team up came to.
#[derive(Debug, Default)]
pub struct Brought {
    /// Members that are new.
    pub new: Vec<MemberName>,
    /// What the file says and is not so, because it was otherwise when the member started.
    pub differs: Vec<(MemberName, String)>,
    /// How many tasks are new.
    pub tasks: usize,
}

/// Makes the team what its file says.
pub async fn up(
    host: &Host,
    lead: &Seat,
    spec: &TeamSpec,
    report: Report<'_>,
) -> Result<Brought, HostError> {
    refuse_native(host, spec)?;
    check_programs(host, spec, report)?;
    let place = process_lock::wait_for(&host.registry.up(&lead.team)?).await;
    let _alone = place.map_err(|source| failed("wait for another `brigade up`", source))?;
    if !host.may_lead {
        return join(host, lead, spec, report).await;
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
    let mut brought = Brought { tasks: tasks(lead, &spec.tasks).await?, ..Brought::default() };
    host.registry.put_team(&TeamSpec { members: Vec::new(), ..spec.clone() })?;
    add_all(host, lead, spec, &mut brought, report).await?;
    Ok(brought)
}

/// A native Claude Code reads and writes files; it cannot be a member of a team on a NATS server.
fn refuse_native(host: &Host, spec: &TeamSpec) -> Result<(), HostError> {
    let members = spec.lead.iter().chain(&spec.members);
    let natives = members.filter(|member| member.place == Place::Native);
    let names: Vec<String> = natives.map(|member| member.name.to_string()).collect();
    if !host.is_shared || names.is_empty() {
        return Ok(());
    }
    let error = HostError::failed(Trouble::NativeInEngine { names });
    Err(error
        .hint("start them in the files of this host with `--store files`, and connect both stores with `brigade link`")
        .hint("or set place = \"headless\" or \"tmux\", so that brigade runs Claude Code"))
}

/// Refuses to start members whose programs are not installed. On a NATS server it only reports them, because
/// such a member may be meant for another host.
fn check_programs(host: &Host, spec: &TeamSpec, report: Report<'_>) -> Result<(), HostError> {
    let mut new = Vec::new();
    for member in spec.members.iter().chain(&spec.lead) {
        if host.registry.member(&spec.team, &member.name)?.is_none() {
            new.push(member);
        }
    }
    if host.is_shared {
        for lack in preflight::lacks(&host.programs, new) {
            report(Progress::NotInstalled(lack.what, lack.remedy));
        }
        return Ok(());
    }
    preflight::refuse(&host.programs, new)
}

/// Brings up members of a team that is led from another host, and has its tasks from there.
async fn join(
    host: &Host,
    lead: &Seat,
    spec: &TeamSpec,
    report: Report<'_>,
) -> Result<Brought, HostError> {
    if lead.store.team(&lead.team).await?.is_none() {
        let error = HostError::from(StoreError::NoTeam { team: lead.team.clone() });
        return Err(error.hint("whoever leads it makes it; these credentials are a member's"));
    }
    let mut brought = Brought::default();
    host.registry.put_team(&TeamSpec { members: Vec::new(), ..spec.clone() })?;
    add_all(host, lead, spec, &mut brought, report).await?;
    Ok(brought)
}

async fn add_all(
    host: &Host,
    lead: &Seat,
    spec: &TeamSpec,
    brought: &mut Brought,
    report: Report<'_>,
) -> Result<(), HostError> {
    for member in spec.members.iter().chain(&spec.lead) {
        if let Some(other) = state::played_afar(host, lead, &member.name).await? {
            report(Progress::RunsElsewhere(member.name.clone(), other));
        } else if add(host, lead, member, brought)? {
            brought.new.push(member.name.clone());
        }
    }
    Ok(())
}

/// Writes down a member, unless it is there; whether it was not.
fn add(
    host: &Host,
    lead: &Seat,
    spec: &MemberSpec,
    brought: &mut Brought,
) -> Result<bool, HostError> {
    if host.registry.add_member(&lead.team, spec)? {
        return Ok(true);
    }
    if let Some(there) = host.registry.member(&lead.team, &spec.name)?
        && let Some(difference) = difference(&there, spec)
    {
        brought.differs.push((spec.name.clone(), difference));
    }
    // Whoever was given up is tried again.
    host.registry.set_trouble(&lead.team, &spec.name, None)?;
    Ok(false)
}

/// In what two members of one name differ.
pub fn difference(there: &MemberSpec, wanted: &MemberSpec) -> Option<String> {
    let fields = |spec: &MemberSpec| match serde_json::to_value(spec) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (there, wanted) = (fields(there), fields(wanted));
    let differs: Vec<&str> = wanted
        .iter()
        .filter(|(name, value)| there.get(*name) != Some(*value))
        .map(|(name, _)| name.as_str())
        .collect();
    (!differs.is_empty()).then(|| differs.join(", "))
}

/// Puts on the board the tasks that are not there yet; how many.
async fn tasks(lead: &Seat, tasks: &[TaskSpec]) -> Result<usize, HostError> {
    let (there, _) = board::list(lead).await?;
    let mut known: HashMap<String, TaskId> = HashMap::new();
    for (id, document) in &there {
        let key = Task::read(&document.bytes).ok().and_then(|task| {
            let metadata: Value = serde_json::from_str(task.field("metadata")?).ok()?;
            Some(metadata.get(KEY)?.as_str()?.to_owned())
        });
        known.extend(key.map(|key| (key, *id)));
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
            // They stand before it in the file.
            blocked_by: task.after.iter().filter_map(|key| known.get(key).copied()).collect(),
            metadata: vec![(KEY.to_owned(), json!(task.key))],
        };
        let id = board::add(lead, &plan).await?;
        known.insert(task.key.clone(), id);
        new += 1;
    }
    Ok(new)
}

/// Gives tasks to those the file gives them to. Only a member can have one, so this comes last; a task
/// that is somebody's stays theirs.
pub async fn give(lead: &Seat, tasks: &[TaskSpec]) -> Result<(), HostError> {
    let (there, _) = board::list(lead).await?;
    for (id, document) in &there {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        let metadata = task.field("metadata").and_then(|json| serde_json::from_str(json).ok());
        let metadata: Value = metadata.unwrap_or_default();
        let key = metadata.get(KEY).and_then(Value::as_str);
        let spec = tasks.iter().find(|spec| Some(spec.key.as_str()) == key);
        let Some(owner) = spec.and_then(|spec| spec.owner.as_ref()) else { continue };
        if task.owner().is_none() {
            let owner = brigade_wire::change::Change::Set(owner.clone());
            board::update(lead, *id, &Update { owner, ..Update::default() }).await?;
        }
    }
    Ok(())
}
