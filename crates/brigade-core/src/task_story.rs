//! The story of one task: its changes, the mail that mentions it, and the turns of its owner.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use brigade_wire::inbox::with_message;
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::board::BoardError;
use crate::event::{Event, Record, TurnOutcome, WorkEvent};
use crate::seat::Seat;
use crate::task_details::TaskDetails;

/// The records about a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskStory {
    /// The changes of the task, oldest first.
    pub history: Vec<TaskStep>,
    /// The messages that mention the task as `#3` or `task 3`, oldest first.
    pub mail: Vec<TaskMention>,
    /// The turns of the members that owned the task while it was in progress, oldest first.
    pub turns: Vec<TaskTurn>,
}

/// A change of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskStep {
    /// When it happened.
    pub at: Timestamp,
    /// The member that made the change; `None` if another program did.
    pub by: Option<String>,
    /// The change: "added", "claimed by bob", "completed", …
    pub change: String,
}

/// A message that mentions a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskMention {
    /// When the message was recorded.
    pub at: Timestamp,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The text.
    pub text: String,
}

/// A turn of a member during which the member had the task in progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskTurn {
    /// The member.
    pub member: String,
    /// When the turn began.
    pub started: Timestamp,
    /// When the turn ended; `None` if it has not ended.
    pub ended: Option<Timestamp>,
    /// How the turn ended.
    pub outcome: Option<TurnOutcome>,
    /// The tokens that the model read in the turn, as far as the agent reported them.
    pub input: u64,
    /// The tokens that the model wrote in the turn, as far as the agent reported them.
    pub output: u64,
    /// The cost of the turn in US dollars, if the agent reported it.
    pub cost: Option<f64>,
}

impl TaskStory {
    /// Returns the tokens of all turns: those that models read, and those that they wrote.
    pub fn tokens(&self) -> (u64, u64) {
        let sum = |count: fn(&TaskTurn) -> u64| self.turns.iter().map(count).sum();
        (sum(|turn| turn.input), sum(|turn| turn.output))
    }

    /// Returns the cost of all turns in US dollars; `None` if no agent reported a cost.
    pub fn cost(&self) -> Option<f64> {
        let costs = self.turns.iter().filter_map(|turn| turn.cost);
        costs.fold(None, |sum, cost| Some(sum.unwrap_or(0.0) + cost))
    }
}

/// Reads the story of a task from the history of the team.
pub async fn read(seat: &Seat, id: TaskId) -> Result<TaskStory, BoardError> {
    let created = seat.roster().await?.team().created_at().unwrap_or_default();
    let records = seat.store.history(&seat.team).await?;
    let records: Vec<&Record> =
        records.iter().filter(|record| record.belongs_to_team(created)).collect();
    let (history, spans) = changes(&records, id);
    Ok(TaskStory { history, mail: mentions(&records, id), turns: turns(&records, &spans) })
}

/// A time in which a member had the task in progress.
struct OwnerSpan {
    owner: String,
    from: Timestamp,
    to: Option<Timestamp>,
}

/// A version of the task.
struct TaskVersion {
    status: Option<Status>,
    owner: Option<String>,
    details: TaskDetails,
    text: (String, String, Vec<String>),
}

impl TaskVersion {
    fn read(json: &RawValue) -> Option<Self> {
        let task = Task::read(json.get().as_bytes()).ok()?;
        let text = |text: Option<Cow<'_, str>>| text.unwrap_or_default().into_owned();
        let blockers = task.blocked_by().unwrap_or_default();
        Some(Self {
            status: task.status(),
            owner: task.owner().filter(|owner| !owner.is_empty()).map(Cow::into_owned),
            details: TaskDetails::from_task(&task),
            text: (
                text(task.subject()),
                text(task.description()),
                blockers.into_iter().map(Cow::into_owned).collect(),
            ),
        })
    }

    /// Describes the change from an earlier version; `None` if it does not concern a person.
    fn change_since(&self, before: &Self) -> Option<String> {
        let owner = self.owner.as_deref();
        let is_same_owner = owner == before.owner.as_deref();
        let mut parts = Vec::new();
        match (before.status, self.status) {
            (old, new) if old == new => {}
            (_, Some(Status::InProgress)) => {
                let owner = owner.map_or(String::new(), |owner| format!(" by {owner}"));
                return Some(format!("claimed{owner}"));
            }
            (_, Some(Status::Completed)) => parts.push(match &self.details.cancelled {
                None => "completed".to_owned(),
                Some(reason) if reason.is_empty() => "cancelled".to_owned(),
                Some(reason) => format!("cancelled: {reason}"),
            }),
            (Some(Status::Completed), _) => parts.push("reopened".to_owned()),
            (_, Some(Status::Pending)) if owner.is_some() => {
                parts.push("set to pending".to_owned());
            }
            _ => {}
        }
        match owner {
            _ if is_same_owner => {}
            Some(owner) => parts.push(format!("assigned to {owner}")),
            None => parts.push("unassigned".to_owned()),
        }
        let (labels, priority) = (&self.details.labels, self.details.priority);
        let old = &before.details;
        if self.text != before.text || *labels != old.labels || priority != old.priority {
            parts.push("edited".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Returns the changes of the task, and the times in which it was in progress.
fn changes(records: &[&Record], id: TaskId) -> (Vec<TaskStep>, Vec<OwnerSpan>) {
    let mut steps = Vec::new();
    let mut spans: Vec<OwnerSpan> = Vec::new();
    let mut last: Option<TaskVersion> = None;
    for record in records {
        let Event::Task { id: number, task } = &record.event else { continue };
        let Some(version) = TaskVersion::read(task).filter(|_| TaskId::new(*number) == Some(id))
        else {
            continue;
        };
        let change = match &last {
            None => Some("added".to_owned()),
            Some(before) => version.change_since(before),
        };
        if let Some(change) = change {
            steps.push(TaskStep { at: record.at, by: record.by.clone(), change });
        }
        let owner = version.owner.clone().filter(|_| version.status == Some(Status::InProgress));
        let open = spans.last_mut().filter(|span| span.to.is_none());
        if open.as_ref().map(|span| span.owner.as_str()) != owner.as_deref() {
            if let Some(open) = open {
                open.to = Some(record.at);
            }
            spans.extend(owner.map(|owner| OwnerSpan { owner, from: record.at, to: None }));
        }
        last = Some(version);
    }
    (steps, spans)
}

fn mentions(records: &[&Record], id: TaskId) -> Vec<TaskMention> {
    let mut seen = HashSet::new();
    let mut mail = Vec::new();
    for record in records {
        let (Event::Sent { to, key, message, .. } | Event::Seen { to, key, message }) =
            &record.event
        else {
            continue;
        };
        let read = with_message(message.get().as_bytes(), |message| {
            let message = message?;
            Some((message.from().into_owned(), message.text().into_owned()))
        });
        let Ok(Some((from, text))) = read else { continue };
        // A protocol message, such as an assignment, is JSON; the history has its contents.
        let is_protocol = text.starts_with('{');
        if !is_protocol && mentions_task(&text, id) && seen.insert((to.clone(), *key)) {
            mail.push(TaskMention { at: record.at, from, to: to.clone(), text });
        }
    }
    mail
}

/// Returns whether a text contains `#3` or `task 3` as whole words.
fn mentions_task(text: &str, id: TaskId) -> bool {
    let text = text.to_lowercase();
    let found = |needle: String| {
        text.match_indices(&needle).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + needle.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
    };
    [format!("#{id}"), format!("task {id}"), format!("task #{id}")].into_iter().any(found)
}

/// Returns the turns that overlap with the times in which their member had the task in progress.
fn turns(records: &[&Record], spans: &[OwnerSpan]) -> Vec<TaskTurn> {
    let mut finished = Vec::new();
    let mut open: BTreeMap<&str, TaskTurn> = BTreeMap::new();
    // The usage that each agent has reported so far. Agents report totals of their conversation.
    let mut totals: BTreeMap<&str, (u64, u64, f64)> = BTreeMap::new();
    for record in records {
        let Event::Worked { name, act } = &record.event else { continue };
        match act {
            WorkEvent::TurnStarted {} => {
                let turn = TaskTurn {
                    member: name.clone(),
                    started: record.at,
                    ended: None,
                    outcome: None,
                    input: 0,
                    output: 0,
                    cost: None,
                };
                finished.extend(open.insert(name, turn));
            }
            WorkEvent::Used { input, output, cost } => {
                let total = totals.entry(name).or_default();
                if let Some(turn) = open.get_mut(name.as_str()) {
                    // A lower total belongs to a new conversation.
                    turn.input += input.checked_sub(total.0).unwrap_or(*input);
                    turn.output += output.checked_sub(total.1).unwrap_or(*output);
                    if let Some(cost) = cost {
                        let more = if *cost < total.2 { *cost } else { cost - total.2 };
                        turn.cost = Some(turn.cost.unwrap_or(0.0) + more);
                    }
                }
                *total = (*input, *output, cost.unwrap_or(total.2));
            }
            WorkEvent::TurnEnded { end, .. } => {
                let turn = open.remove(name.as_str());
                let end = |turn| TaskTurn { ended: Some(record.at), outcome: Some(*end), ..turn };
                finished.extend(turn.map(end));
            }
            _ => {}
        }
    }
    finished.extend(open.into_values());
    finished.retain(|turn| spans.iter().any(|span| overlaps(turn, span)));
    finished.sort_by_key(|turn| turn.started);
    finished
}

fn overlaps(turn: &TaskTurn, span: &OwnerSpan) -> bool {
    turn.member == span.owner
        && span.to.is_none_or(|to| turn.started <= to)
        && turn.ended.is_none_or(|ended| ended >= span.from)
}

#[cfg(test)]
mod tests {
    use super::mentions_task;

    #[test]
    fn a_mention_is_a_whole_word() {
        let three = "3".parse().unwrap();
        for text in ["see #3", "Task 3 is yours", "task #3.", "(#3)"] {
            assert!(mentions_task(text, three), "{text}");
        }
        for text in ["see #31", "task 30", "multitask 3", "PR x#3", "3"] {
            assert!(!mentions_task(text, three), "{text}");
        }
    }
}
