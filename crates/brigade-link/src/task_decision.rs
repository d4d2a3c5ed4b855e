//! Decides how to synchronize a task. The decision uses the task in the files, the task in the
//! shared store, and the task's known history. This module does no I/O.

use super::saved_state::{SyncedTask, task_owner};
use brigade_core::store::Document;

/// How to synchronize a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskAction {
    /// Forget the task, because it exists neither in the files nor in the shared store.
    Forget,
    /// Do nothing, because the task is the same in the files and in the shared store.
    Same,
    /// Create the task in the shared store, because it was created on this host.
    New,
    /// Update the shared store, because the task was changed on this host.
    Out,
    /// Update the files, because the task was changed in the shared store. `lost` means that this
    /// overwrites a change made on this host.
    In { lost: bool },
    /// Create the task in the files. It was created in the shared store, or it was deleted on this
    /// host but changed in the shared store.
    Create,
    /// Delete the task from the files, because it was deleted in the shared store. `lost` means
    /// that this discards a change made on this host.
    DeleteLocal { lost: bool },
    /// Delete the task from the shared store, because it was deleted on this host.
    DeleteShared,
}

/// The known history of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskHistory<'p> {
    /// The task when it was last synchronized.
    pub(super) base: Option<&'p SyncedTask>,
    /// Used only without `base`: whether the files and the shared store are known to have the same
    /// task.
    pub(super) same: bool,
    /// Used only without `base`: whether the task was ever synchronized.
    pub(super) synced_before: bool,
    /// Whether the task was just copied from the shared store to the files.
    pub(super) recently_written: bool,
}

/// Decides how to synchronize a task. `local` is the task in the files.
pub(super) fn decide(
    local: Option<&Document>,
    shared: Option<&Document>,
    history: TaskHistory<'_>,
) -> TaskAction {
    match (local, shared, history.base) {
        (None, None, _) => TaskAction::Forget,
        (Some(local), Some(shared), _) if local.bytes == shared.bytes => TaskAction::Same,
        (Some(_), Some(_), None) if history.same => TaskAction::In { lost: true },
        (Some(_), None, None) if history.synced_before => TaskAction::DeleteLocal { lost: false },
        (Some(_), _, None) => TaskAction::New,
        (Some(local), Some(shared), Some(base)) => {
            let (mine, theirs) = (!base.matches(&local.bytes), shared.revision.0 != base.revision);
            match (mine, theirs) {
                (true, false) if history.recently_written && changes_owner(base, local) => {
                    TaskAction::In { lost: true }
                }
                (true, false) => TaskAction::Out,
                (lost, _) => TaskAction::In { lost },
            }
        }
        (Some(local), None, Some(base)) => {
            TaskAction::DeleteLocal { lost: !base.matches(&local.bytes) }
        }
        (None, Some(shared), Some(base)) if shared.revision.0 == base.revision => {
            TaskAction::DeleteShared
        }
        (None, Some(_), _) => TaskAction::Create,
    }
}

/// Returns whether a local change takes a task away from its owner. If this happens shortly after
/// the link wrote the task, the program that made the change had not seen the new owner.
fn changes_owner(base: &SyncedTask, local: &Document) -> bool {
    let owner = task_owner(&local.bytes);
    let previous = base.owner.as_deref().filter(|owner| !owner.is_empty());
    previous.is_some() && previous != owner.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brigade_core::store::Revision;

    fn task(text: &str, revision: u64) -> Document {
        Document { bytes: text.as_bytes().to_vec(), revision: Revision(revision) }
    }

    #[test]
    fn each_combination_of_states_has_its_action() {
        let (old, mine, theirs) = (task("{}", 1), task(r#"{"m":1}"#, 1), task(r#"{"t":1}"#, 2));
        let base = SyncedTask::new(&old.bytes, old.revision);
        let known = TaskHistory { base: Some(&base), ..TaskHistory::default() };
        let synced_before =
            TaskHistory { synced_before: true, same: true, ..TaskHistory::default() };
        let none = TaskHistory::default();
        let check = |local: Option<&Document>, shared: Option<&Document>, history, expected| {
            assert_eq!(
                decide(local, shared, history),
                expected,
                "{local:?} {shared:?} {history:?}"
            );
        };
        check(None, None, known, TaskAction::Forget);
        check(Some(&old), Some(&old), none, TaskAction::Same);
        check(Some(&mine), Some(&old), known, TaskAction::Out);
        check(Some(&old), Some(&theirs), known, TaskAction::In { lost: false });
        check(Some(&mine), Some(&theirs), known, TaskAction::In { lost: true });
        check(Some(&mine), Some(&theirs), synced_before, TaskAction::In { lost: true });
        check(Some(&mine), Some(&theirs), none, TaskAction::New);
        check(Some(&mine), None, none, TaskAction::New);
        check(Some(&mine), None, synced_before, TaskAction::DeleteLocal { lost: false });
        check(Some(&mine), None, known, TaskAction::DeleteLocal { lost: true });
        check(Some(&old), None, known, TaskAction::DeleteLocal { lost: false });
        check(None, Some(&old), known, TaskAction::DeleteShared);
        check(None, Some(&theirs), known, TaskAction::Create);
        check(None, Some(&theirs), none, TaskAction::Create);
    }

    #[test]
    fn a_late_write_does_not_take_a_task_from_its_owner() {
        let bobs = task(r#"{"owner":"bob"}"#, 7);
        let alices = task(r#"{"owner":"alice"}"#, 1);
        let base = SyncedTask::new(&bobs.bytes, bobs.revision);
        let history = |recently_written| TaskHistory {
            base: Some(&base),
            recently_written,
            ..TaskHistory::default()
        };
        assert_eq!(
            decide(Some(&alices), Some(&bobs), history(true)),
            TaskAction::In { lost: true }
        );
        assert_eq!(decide(Some(&alices), Some(&bobs), history(false)), TaskAction::Out);
        let done = task(r#"{"owner":"bob","status":"completed"}"#, 1);
        assert_eq!(decide(Some(&done), Some(&bobs), history(true)), TaskAction::Out);
    }
}
