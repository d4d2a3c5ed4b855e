//! What may happen to one field.

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
