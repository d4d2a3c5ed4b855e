//! The text of a record, for searches by people.

use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::protocol::Protocol;
use brigade_wire::task::Task;

use super::{Event, WorkEvent};
use crate::protocol_text;

impl Event {
    /// Returns the text that a person would search for: what a message, a task or an agent says. Returns an empty text for
    /// an event without such a text.
    pub fn search_text(&self) -> String {
        match self {
            Self::Sent { message, .. } | Self::Seen { message, .. } => {
                let text = with_message(message.get().as_bytes(), |message| {
                    let message = message?;
                    let summary = message.summary().unwrap_or_default().into_owned();
                    let text = match message.body() {
                        // The text of a request is the plan or the command that it is about.
                        Body::Protocol(Protocol::PermissionRequest(asked)) => {
                            let command = serde_json::to_string(&asked.input).unwrap_or_default();
                            format!("{} {command}", protocol_text::permission_head(&asked))
                        }
                        Body::Protocol(protocol) => protocol_text::render(&protocol),
                        _ => message.text().into_owned(),
                    };
                    Some(join([summary.as_str(), &text]))
                });
                text.ok().flatten().unwrap_or_default()
            }
            Self::Task { task, .. } => Task::read(task.get().as_bytes()).map_or_else(
                |_| String::new(),
                |task| {
                    let subject = task.subject().unwrap_or_default();
                    let description = task.description().unwrap_or_default();
                    join([subject.as_ref(), description.as_ref()])
                },
            ),
            Self::Answered { reason: Some(reason), .. } => reason.clone(),
            Self::TakenOver { program, session, .. } => {
                join([program.as_str(), session.as_deref().unwrap_or_default()])
            }
            Self::Worked { act, .. } => work_text(act),
            _ => String::new(),
        }
    }
}

fn work_text(act: &WorkEvent) -> String {
    match act {
        WorkEvent::Said { text } => text.clone(),
        WorkEvent::ToolStarted { tool, about, .. } => join([tool.as_str(), about]),
        WorkEvent::Changed { path, .. } => path.clone(),
        WorkEvent::Limited { why }
        | WorkEvent::Trouble { why }
        | WorkEvent::TurnEnded { why: Some(why), .. } => why.clone(),
        _ => String::new(),
    }
}

fn join<const N: usize>(parts: [&str; N]) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}
