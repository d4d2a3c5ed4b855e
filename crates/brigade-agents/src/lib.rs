//! Coding agents of any vendor as members of an agent team.
//!
//! - [`driver`]: which agent CLIs there are, and how each is started, prompted and read, without I/O;
//! - [`program`]: the running process of an agent;
//! - [`worker`]: a Rust value as a member, in this process, in place of a program;
//! - [`delivery`]: turns unread mail into agent turns, exactly once as the model sees it;
//! - [`teammate`]: runs an agent, or a worker, as a member until it leaves the team;
//! - [`brief`]: the instructions a model gets about its team;
//! - [`resend`]: sends mail again that a native Claude Code read and its model never saw.
//!
//! The crate reads no environment, prints nothing and does not depend on a particular store.

#![forbid(unsafe_code)]

pub mod brief;
// For the tests of this crate; `teammate` is its only other user.
#[doc(hidden)]
pub mod delivery;
pub mod driver;
pub mod program;
pub mod resend;
pub mod teammate;
pub mod worker;
