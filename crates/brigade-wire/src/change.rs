//! What may happen to one field.
//!
//! ```
//! use brigade_wire::change::Change;
//! use brigade_wire::task::{Task, TaskChange};
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let task = Task::read(br#"{"id": "7", "owner": "bob", "theirs": 1}"#)?;
//! let nobodys = TaskChange { owner: Change::Clear, ..TaskChange::default() };
//! assert_eq!(&*task.with(&nobodys), br#"{"id": "7", "theirs": 1}"#);
//! # Ok(())
//! # }
//! ```

use serde::Serialize;

use crate::patch::ObjectEdit;

/// What to do with a field that may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Give it this value.
    Set(T),
    /// Take it out.
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
