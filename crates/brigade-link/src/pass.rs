//! One pass over what there is to do, and what tells that there is something.

use std::collections::BTreeSet;

use brigade_wire::name::TaskId;

use super::{LINK, Link, LinkError};
use brigade_core::event::{Event, Record};

/// What there is to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) roster: bool,
    pub(super) every_box: bool,
    boxes: BTreeSet<String>,
    pub(super) every_task: bool,
    pub(super) tasks: BTreeSet<TaskId>,
}

impl Work {
    /// Everything.
    pub(super) fn all() -> Self {
        Self { roster: true, every_box: true, every_task: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        let parts = self.boxes.is_empty() && self.tasks.is_empty();
        !self.roster && !self.every_box && !self.every_task && parts
    }

    /// What something that happened, on either side, gives to do.
    fn note(&mut self, event: &Event) {
        if let Some(of) = event.mailbox() {
            self.boxes.insert(of.to_owned());
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
    /// Takes in what happened in the files.
    pub(super) fn heard_here(&mut self, record: &Record, work: &mut Work) {
        work.note(&record.event);
        if let Some(of) = record.event.mailbox()
            && let Some(post) = of.parse().ok().and_then(|of| self.posts.get_mut(&of))
        {
            post.note_here(record);
        }
        if let (Event::Task { id, .. }, Some(by)) = (&record.event, &record.by)
            && by != LINK
            && let Some(id) = TaskId::new(*id)
        {
            self.changed_by.insert(id, by.clone());
        }
    }

    /// Takes in what happened in the far store.
    pub(super) fn heard_there(&mut self, record: &Record, work: &mut Work) {
        work.note(&record.event);
        if let Some(of) = record.event.mailbox()
            && let Some(post) = of.parse().ok().and_then(|of| self.posts.get_mut(&of))
        {
            post.note_there(record);
        }
    }

    /// Does what there is to do. What could not be done for reasons of its own is said, and done with the
    /// next sweep; if the far store cannot be reached, all of it is left.
    pub(super) async fn pass(&mut self, work: &mut Work) -> Result<(), LinkError> {
        let done = self.try_pass(work).await;
        // What is in step is so whatever came after.
        self.save()?;
        done
    }

    async fn try_pass(&mut self, work: &mut Work) -> Result<(), LinkError> {
        let sides = match self.sides.take() {
            Some(sides) if !work.roster => sides,
            before => {
                let sides = self.meet().await?;
                work.roster = false;
                // Whose inbox is carried which way may be another now.
                if before.is_none_or(|before| before != sides) {
                    work.every_box = true;
                }
                sides
            }
        };
        self.sides = Some(sides.clone());
        for member in sides.local.iter().chain(&sides.remote) {
            if !work.every_box && !work.boxes.contains(member.as_str()) {
                continue;
            }
            let done = if sides.local.contains(member) {
                self.inward(member, &sides).await
            } else {
                self.outward(member, &sides, work.every_box).await
            };
            self.pass_over(done, &format!("the mail of {member}"))?;
        }
        (work.every_box, work.boxes) = (false, BTreeSet::new());
        let done = self.board(work, &sides).await;
        self.pass_over(done, "the board")?;
        (work.every_task, work.tasks) = (false, BTreeSet::new());
        self.memory.fresh = false;
        Ok(())
    }

    /// Lets pass what is wrong with one part, so that the others go on.
    pub(super) fn pass_over(
        &mut self,
        done: Result<(), LinkError>,
        what: &str,
    ) -> Result<(), LinkError> {
        match done {
            Err(error) if error.is_cut() => Err(error),
            Err(error) => {
                self.complain(format!("{what}: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
