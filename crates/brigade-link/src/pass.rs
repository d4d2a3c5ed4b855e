//! Synchronizes everything that recent events have changed.

use std::collections::BTreeSet;

use brigade_wire::name::TaskId;

use super::{LINK_ACTOR, Link, LinkError, MailboxSync};
use brigade_core::event::{Event, Record};

/// The parts of a team that need synchronization.
#[derive(Debug, Default)]
pub(super) struct PendingSync {
    pub(super) roster: bool,
    pub(super) every_mailbox: bool,
    mailboxes: BTreeSet<String>,
    pub(super) every_task: bool,
    pub(super) tasks: BTreeSet<TaskId>,
}

impl PendingSync {
    /// Selects all parts of the team.
    pub(super) fn all() -> Self {
        Self { roster: true, every_mailbox: true, every_task: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        let parts = self.mailboxes.is_empty() && self.tasks.is_empty();
        !self.roster && !self.every_mailbox && !self.every_task && parts
    }

    /// Adds the work that an event from the files or the shared store requires.
    fn note(&mut self, event: &Event) {
        if let Some(member) = event.mailbox() {
            self.mailboxes.insert(member.to_owned());
        }
        match event {
            Event::Task { id, .. } | Event::TaskDeleted { id } => {
                self.tasks.extend(TaskId::new(*id));
            }
            Event::TeamCreated { .. }
            | Event::TeamDeleted {}
            | Event::Member { .. }
            | Event::MemberLeft { .. } => self.roster = true,
            _ => {}
        }
    }
}

impl Link {
    /// Handles an event from the files.
    pub(super) fn on_local_event(&mut self, record: &Record, work: &mut PendingSync) {
        work.note(&record.event);
        if let Some(mailbox) = self.mailbox(&record.event) {
            mailbox.note_local(record);
        }
        if let (Event::Task { id, .. }, Some(by)) = (&record.event, &record.by)
            && by != LINK_ACTOR
            && let Some(id) = TaskId::new(*id)
        {
            self.changed_by.insert(id, by.clone());
        }
    }

    fn mailbox(&mut self, event: &Event) -> Option<&mut MailboxSync> {
        self.mailboxes.get_mut(&event.mailbox()?.parse().ok()?)
    }

    /// Handles an event from the shared store.
    pub(super) fn on_shared_event(&mut self, record: &Record, work: &mut PendingSync) {
        work.note(&record.event);
        if let Some(mailbox) = self.mailbox(&record.event) {
            mailbox.note_shared(record);
        }
    }

    /// Does the pending work. If one part fails, reports the problem and continues; the next full
    /// check tries that part again. Returns an error if the shared store cannot be reached.
    pub(super) async fn pass(&mut self, work: &mut PendingSync) -> Result<(), LinkError> {
        let result = self.try_pass(work).await;
        // Save the state of the parts that were synchronized, even if a later part failed.
        self.save()?;
        result
    }

    async fn try_pass(&mut self, work: &mut PendingSync) -> Result<(), LinkError> {
        let sides = match self.sides.take() {
            Some(sides) if !work.roster => sides,
            before => {
                let sides = self.sync_rosters().await?;
                work.roster = false;
                // If a member became local or remote, the link must now copy the member's mail in
                // the other direction.
                if before.is_none_or(|before| before != sides) {
                    work.every_mailbox = true;
                }
                sides
            }
        };
        self.sides = Some(sides.clone());
        for member in sides.local.iter().chain(&sides.remote) {
            if !work.every_mailbox && !work.mailboxes.contains(member.as_str()) {
                continue;
            }
            let result = if sides.local.contains(member) {
                self.inward(member, &sides).await
            } else {
                self.outward(member, &sides, work.every_mailbox).await
            };
            self.report_part(result, &format!("mail of {member}"))?;
        }
        (work.every_mailbox, work.mailboxes) = (false, BTreeSet::new());
        let result = self.sync_board(work, &sides).await;
        self.report_part(result, "task board")?;
        (work.every_task, work.tasks) = (false, BTreeSet::new());
        self.state.fresh = false;
        Ok(())
    }

    /// Reports a problem with one part instead of returning an error, so that the other parts are
    /// still synchronized. Returns an error only if the shared store cannot be reached.
    pub(super) fn report_part(
        &mut self,
        result: Result<(), LinkError>,
        what: &str,
    ) -> Result<(), LinkError> {
        match result {
            Err(error) if error.is_unreachable() => Err(error),
            Err(error) => {
                self.report_problem(format!("{what}: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
