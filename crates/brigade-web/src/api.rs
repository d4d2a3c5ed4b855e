//! The calls of the API, one module for each part of a team. The module `endpoints` has the table of them.

pub(crate) mod approvals;
pub(crate) mod log;
pub(crate) mod mail;
pub(crate) mod members;
pub(crate) mod session;
pub(crate) mod tasks;
pub(crate) mod teams;
