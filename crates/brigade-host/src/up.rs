//! Bringing a team up: what its file says becomes true, and nothing that is true already changes.

use std::collections::HashMap;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::roster::{self, RosterError, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Task;
use serde_json::{Value, json};

use super::spec::{MemberSpec, TaskSpec, TeamSpec};
use super::{Host, failed, seat, state};
use crate::error::{CliError, Trouble};

/// Where a task says what it is called in the file.
const KEY: &str = "brigadeKey";

/// What bringing a team up came to.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    /// Members that are new.
    pub(crate) new: Vec<MemberName>,
    /// What the file says and is not so, because it was otherwise when the member started.
    pub(crate) differs: Vec<(MemberName, String)>,
    /// Members that another host plays, and which.
    pub(crate) elsewhere: Vec<(MemberName, String)>,
    /// How many tasks are new.
    pub(crate) tasks: usize,
}

/// Makes the team what its file says.
pub(crate) async fn up(host: &Host, lead: &Seat, spec: &TeamSpec) -> Result<Brought, CliError> {
    let place = seat::wait_for(&host.folder.up(&lead.team)?).await;
    let _alone = place.map_err(|source| failed("wait for another `brigade up`", source))?;
    if !host.may_lead {
        return join(host, lead, spec).await;
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
                let error = CliError::failed(Trouble::NotOurs { team: lead.team.to_string() });
                return Err(error.hint("give the team in brigade.toml another name"));
            }
        }
        Err(error) => return Err(error.into()),
    }
    let mut brought = Brought { tasks: tasks(lead, &spec.tasks).await?, ..Brought::default() };
    host.folder.put_team(&TeamSpec { members: Vec::new(), ..spec.clone() })?;
    add_all(host, lead, spec, &mut brought).await?;
    Ok(brought)
}

/// Brings up members of a team that is led from another host, and has its tasks from there.
async fn join(host: &Host, lead: &Seat, spec: &TeamSpec) -> Result<Brought, CliError> {
    if lead.store.team(&lead.team).await?.is_none() {
        let error = CliError::from(StoreError::NoTeam { team: lead.team.clone() });
        return Err(error.hint("whoever leads it makes it; these credentials are a member's"));
    }
    let mut brought = Brought::default();
    host.folder.put_team(&TeamSpec { members: Vec::new(), ..spec.clone() })?;
    add_all(host, lead, spec, &mut brought).await?;
    Ok(brought)
}

async fn add_all(
    host: &Host,
    lead: &Seat,
    spec: &TeamSpec,
    brought: &mut Brought,
) -> Result<(), CliError> {
    for member in spec.members.iter().chain(&spec.lead) {
        if let Some(other) = state::played_afar(host, lead, &member.name).await? {
            brought.elsewhere.push((member.name.clone(), other));
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
) -> Result<bool, CliError> {
    if host.folder.add_member(&lead.team, spec)? {
        return Ok(true);
    }
    if let Some(there) = host.folder.member(&lead.team, &spec.name)?
        && let Some(difference) = difference(&there, spec)
    {
        brought.differs.push((spec.name.clone(), difference));
    }
    // Whoever was given up is tried again.
    host.folder.set_trouble(&lead.team, &spec.name, None)?;
    Ok(false)
}

/// In what two members of one name differ.
pub(crate) fn difference(there: &MemberSpec, wanted: &MemberSpec) -> Option<String> {
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
async fn tasks(lead: &Seat, tasks: &[TaskSpec]) -> Result<usize, CliError> {
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
pub(crate) async fn give(lead: &Seat, tasks: &[TaskSpec]) -> Result<(), CliError> {
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
