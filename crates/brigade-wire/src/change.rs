//! A change to one optional field.
//!
//! ```
//! use brigade_wire::change::Change;
//! use brigade_wire::task::{Task, TaskChange};
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let task = Task::read(br#"{"id": "7", "owner": "bob", "theirs": 1}"#)?;
//! let without_owner = TaskChange { owner: Change::Clear, ..TaskChange::default() };
//! assert_eq!(&*task.with(&without_owner), br#"{"id": "7", "theirs": 1}"#);
//! # Ok(())
//! # }
//! ```

use serde::Serialize;

use crate::patch::ObjectEdit;

/// A change to a field that may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leave the field unchanged.
    #[default]
    Keep,
    /// Set the field to this value.
    Set(T),
    /// Remove the field.
    Clear,
}

impl<T: Serialize> Change<T> {
    pub(crate) fn record<'d>(&self, edit: &mut ObjectEdit<'d>, key: &'d str) {
        match self {
            Self::Keep => {}
            Self::Set(value) => edit.set(key, value),
            Self::Clear => edit.remove(key),
        }
    }
}
