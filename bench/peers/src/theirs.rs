//! A member implemented with the crate agent-teams 0.1.0, which stores teams in files.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use agent_teams::messaging::{FileInboxManager, InboxManager};
use agent_teams::models::{CreateTaskRequest, InboxMessage, TaskStatus, TaskUpdate};
use agent_teams::task::{FileTaskManager, TaskManager};

use crate::{Claim, LibraryMember, block_on, print_heard, print_line, text};

pub(crate) struct Theirs {
    inboxes: FileInboxManager,
    tasks: FileTaskManager,
    team: String,
    name: String,
    reader: String,
}

impl Theirs {
    pub(crate) fn new(root: &str, team: &str, name: &str, reader: &str) -> Self {
        let claude = Path::new(root).join("claude");
        Self {
            inboxes: FileInboxManager::new(claude.join("teams")),
            tasks: FileTaskManager::new(claude.join("tasks")),
            team: team.to_owned(),
            name: name.to_owned(),
            reader: reader.to_owned(),
        }
    }
}

impl LibraryMember for Theirs {
    fn send(&self, number: usize) -> Result<(), String> {
        let message = InboxMessage::new(&self.name, &self.reader, text(&self.name, number));
        block_on(self.inboxes.send_message(&self.team, message)).map_err(|error| error.to_string())
    }

    fn read(&self) -> usize {
        block_on(self.inboxes.read_unread(&self.team, &self.name)).unwrap().len()
    }

    fn mark(&self) -> usize {
        let unread = block_on(self.inboxes.read_unread(&self.team, &self.name)).unwrap();
        for message in &unread {
            block_on(self.inboxes.mark_read(&self.team, &self.name, &message.id)).unwrap();
        }
        unread.len()
    }

    fn add(&self, number: usize) -> String {
        let request = CreateTaskRequest {
            subject: format!("task {number}"),
            description: Some(text("task", number)),
            active_form: None,
            metadata: None,
        };
        block_on(self.tasks.create_task(&self.team, request)).unwrap().id
    }

    /// Claims a task. The crate has no operation for that, so this function checks that the task is free, and
    /// then sets the owner.
    fn claim(&self, id: &str) -> Claim {
        let claimed = block_on(async {
            let task = self.tasks.get_task(&self.team, id).await?;
            if task.owner.is_some() || task.status != TaskStatus::Pending {
                return Ok(Claim::Taken);
            }
            let step = TaskUpdate {
                owner: Some(self.name.clone()),
                status: Some(TaskStatus::InProgress),
                ..TaskUpdate::default()
            };
            self.tasks.update_task(&self.team, id, step).await?;
            Ok::<_, agent_teams::Error>(Claim::Got)
        });
        claimed.unwrap_or_else(|error| Claim::Failed(error.to_string()))
    }

    fn watch(&self) {
        print_line("ready");
        let mut seen = HashSet::new();
        block_on(async {
            loop {
                let wait = Duration::from_secs(60);
                let unread = self.inboxes.poll_inbox(&self.team, &self.name, wait).await.unwrap();
                for message in unread {
                    if seen.insert(message.id.clone()) {
                        print_heard(&message.content);
                    }
                    self.inboxes.mark_read(&self.team, &self.name, &message.id).await.unwrap();
                }
            }
        });
    }
}
