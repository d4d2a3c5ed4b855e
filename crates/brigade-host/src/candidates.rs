//! The values that a shell offers to complete a word of the command line.

use std::path::Path;

use brigade_agents::driver::{AGENTS, known_model};
use brigade_core::approvals::{self, ApprovalSubject};
use brigade_core::task_details::TaskDetails;
use brigade_core::text::one_line;
use brigade_core::{board, graph::Graph};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{Status, Task};

use crate::context::Context;
use crate::error::HostError;
use crate::host::Host;
use crate::origin;

/// The kind of thing that a word of the command line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CandidateKind {
    /// A member, also the lead.
    AnyMember,
    /// A member other than the lead.
    Teammate,
    /// A task, the unfinished ones first.
    AnyTask,
    /// A task that is not completed.
    OpenTask,
    /// A task that is completed.
    FinishedTask,
    /// A label of a task.
    Label,
    /// A plan or permission request that waits for an answer.
    Request,
    /// A team.
    Team,
    /// An agent.
    Agent,
    /// A model that a member of the team uses.
    Model,
}

/// A value that completes a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The value.
    pub value: String,
    /// One line that describes the value; may be empty.
    pub description: String,
}

impl Candidate {
    /// Creates a candidate. The description is made one line.
    pub fn new(value: impl Into<String>, description: &str) -> Self {
        Self { value: value.into(), description: one_line(description) }
    }
}

/// Returns the agents that brigade supports.
pub fn agents() -> Vec<Candidate> {
    AGENTS.iter().map(|agent| Candidate::new(agent.name, agent.title)).collect()
}

/// Returns the values of this kind in the context's store.
pub async fn find(context: &Context, kind: CandidateKind) -> Result<Vec<Candidate>, HostError> {
    match kind {
        CandidateKind::Agent => Ok(agents()),
        CandidateKind::Team => {
            let teams = context.teams().await?;
            Ok(teams.iter().map(|team| Candidate::new(team.as_str(), "")).collect())
        }
        CandidateKind::AnyMember | CandidateKind::Teammate | CandidateKind::Model => {
            members(context, kind).await
        }
        CandidateKind::Request => requests(context).await,
        CandidateKind::AnyTask
        | CandidateKind::OpenTask
        | CandidateKind::FinishedTask
        | CandidateKind::Label => tasks(context, kind).await,
    }
}

async fn members(context: &Context, kind: CandidateKind) -> Result<Vec<Candidate>, HostError> {
    let seat = context.reader().await?;
    let roster = seat.roster().await?;
    let team = roster.team();
    let mut found = Vec::new();
    for member in team.members() {
        let name = member.name().and_then(|name| name.parse::<MemberName>().ok());
        let Some(name) = name else { continue };
        let is_lead = name == MemberName::lead();
        let agent = member.agent_type().unwrap_or_default();
        match kind {
            CandidateKind::Model => {
                if let Some(model) = known_model(&member).filter(|model| model != "unknown") {
                    found.push(Candidate::new(model, &agent));
                }
            }
            CandidateKind::Teammate if is_lead => {}
            _ => found.push(Candidate::new(name.as_str(), if is_lead { "lead" } else { &agent })),
        }
    }
    found.dedup_by(|a, b| a.value == b.value);
    Ok(found)
}

async fn tasks(context: &Context, kind: CandidateKind) -> Result<Vec<Candidate>, HostError> {
    let (documents, graph) = board::list(&context.reader().await?).await?;
    let mut found = Vec::new();
    let mut finished = Vec::new();
    for (id, document) in &documents {
        let Ok(task) = Task::read(&document.bytes) else { continue };
        if kind == CandidateKind::Label {
            let labels = TaskDetails::from_task(&task).labels;
            found.extend(labels.into_iter().map(|label| Candidate::new(label, "")));
            continue;
        }
        let Some(is_finished) = is_finished(&graph, *id) else { continue };
        let candidate = Candidate::new(id.to_string(), &task.subject().unwrap_or_default());
        if is_finished { finished.push(candidate) } else { found.push(candidate) }
    }
    match kind {
        CandidateKind::Label => {
            found.sort_by(|a, b| a.value.cmp(&b.value));
            found.dedup();
        }
        CandidateKind::AnyTask => found.extend(finished),
        CandidateKind::FinishedTask => found = finished,
        _ => {}
    }
    Ok(found)
}

/// Returns whether a task is completed; `None` if Claude Code would not show the task.
fn is_finished(graph: &Graph, id: TaskId) -> Option<bool> {
    Some(graph.node(id)?.status == Status::Completed)
}

async fn requests(context: &Context) -> Result<Vec<Candidate>, HostError> {
    // A completion changes nothing, and to give a request a number on a NATS server is a change.
    let waiting = approvals::waiting_with_numbers(&context.answering_seat().await?).await?;
    let candidate = |approval: &approvals::Approval| {
        let what = match &approval.subject {
            ApprovalSubject::Plan { .. } => "plan".to_owned(),
            ApprovalSubject::Permission { action, .. } => action.summary(),
        };
        Candidate::new(approval.number.to_string(), &format!("{}: {what}", approval.from))
    };
    Ok(waiting.iter().map(candidate).collect())
}

/// Returns the values of this kind that this host knows without asking its store: the teams and members that it runs. `named` is
/// the team that the caller named, `cwd` its folder.
pub fn on_this_host(
    host: &Host,
    named: Option<TeamName>,
    cwd: &Path,
    kind: CandidateKind,
) -> Result<Vec<Candidate>, HostError> {
    let teams = host.registry.teams()?;
    match kind {
        CandidateKind::Agent => Ok(agents()),
        CandidateKind::Team => {
            Ok(teams.iter().map(|team| Candidate::new(team.as_str(), "")).collect())
        }
        CandidateKind::AnyMember | CandidateKind::Teammate => {
            let of_folder = || Some(origin::folder_team(cwd).ok()??.team);
            let only = || teams.first().filter(|_| teams.len() == 1).cloned();
            let Some(team) = named.or_else(of_folder).or_else(only) else { return Ok(Vec::new()) };
            let members = host.registry.members(&team)?;
            Ok(members.iter().map(|name| Candidate::new(name.as_str(), "")).collect())
        }
        _ => Ok(Vec::new()),
    }
}
