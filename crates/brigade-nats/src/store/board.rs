//! The task board.

use async_trait::async_trait;
use brigade_core::store::{Actor, BoardSize, BoardStore, Document, Revision, StoreError, Written};
use brigade_wire::name::{TaskId, TeamName};
use brigade_wire::task::Task;

use super::NatsStore;

#[async_trait]
impl BoardStore for NatsStore {
    async fn tasks(&self, team: &TeamName) -> Result<Vec<(TaskId, Document)>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        self.connection.tasks(&self.subjects(team), &incarnation).await
    }

    async fn task(&self, team: &TeamName, id: TaskId) -> Result<Option<Document>, StoreError> {
        let incarnation = self.incarnation(team).await?;
        Ok(self.connection.task(&self.subjects(team), id, &incarnation).await?.0)
    }

    async fn board_size(&self, team: &TeamName) -> Result<BoardSize, StoreError> {
        let incarnation = self.incarnation(team).await?;
        let lengths = self.connection.task_lengths(&self.subjects(team), &incarnation).await?;
        Ok(BoardSize::total(lengths.into_iter().map(|(_, len)| len)))
    }

    async fn estimated_task_count(&self, team: &TeamName) -> Result<usize, StoreError> {
        let incarnation = self.incarnation(team).await?;
        let (number, _) = self.connection.last_number(&self.subjects(team), &incarnation).await?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    async fn create_task(
        &self,
        team: &TeamName,
        task: &(dyn for<'i> Fn(TaskId) -> Vec<u8> + Sync),
        by: &Actor,
    ) -> Result<(TaskId, Revision), StoreError> {
        let incarnation = self.incarnation(team).await?;
        let subjects = self.subjects(team);
        loop {
            let id = self.connection.next_number(&subjects, &incarnation, by).await?;
            let bytes = task(id);
            check_task(&bytes)?;
            match self.connection.set_task(&subjects, &incarnation, id, Some(&bytes), 0, by).await {
                // An earlier team of the same name may have had a task with this number.
                Err(StoreError::Conflict) => {
                    let (exists, seq) = self.connection.task(&subjects, id, &incarnation).await?;
                    if exists.is_none() {
                        let expected_last = seq;
                        let written = self
                            .connection
                            .set_task(&subjects, &incarnation, id, Some(&bytes), expected_last, by)
                            .await?;
                        return Ok((id, Revision(written)));
                    }
                }
                written => return Ok((id, Revision(written?))),
            }
        }
    }

    async fn replace_task(
        &self,
        team: &TeamName,
        id: TaskId,
        task: &[u8],
        at: Revision,
        by: &Actor,
    ) -> Written {
        check_task(task)?;
        let incarnation = self.incarnation(team).await?;
        let subjects = self.subjects(team);
        match self.connection.set_task(&subjects, &incarnation, id, Some(task), at.0, by).await {
            Err(StoreError::Conflict) => {
                match self.connection.task(&subjects, id, &incarnation).await?.0 {
                    Some(_) => Err(StoreError::Conflict),
                    None => Err(StoreError::NoTask { id }),
                }
            }
            written => written.map(Revision),
        }
    }

    async fn delete_task(&self, team: &TeamName, id: TaskId, by: &Actor) -> Result<(), StoreError> {
        let incarnation = self.incarnation(team).await?;
        let subjects = self.subjects(team);
        loop {
            let (exists, seq) = self.connection.task(&subjects, id, &incarnation).await?;
            exists.ok_or(StoreError::NoTask { id })?;
            match self.connection.set_task(&subjects, &incarnation, id, None, seq, by).await {
                Err(StoreError::Conflict) => {}
                written => return written.map(drop),
            }
        }
    }
}

fn check_task(task: &[u8]) -> Result<(), StoreError> {
    let read = Task::read(task);
    read.map(drop).map_err(|damage| StoreError::Damaged { place: "the new task".into(), damage })
}
