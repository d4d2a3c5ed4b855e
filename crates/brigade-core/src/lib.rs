//! Mail, board and roster of an agent team, on any store.
//!
//! In reading order:
//!
//! - [`seat`]: who somebody is in which team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: what can be done from a seat;
//! - [`revive`]: a team whose folder is gone, from what was written down;
//! - [`handshake`]: asking and answering: shutdown, plan, permission;
//! - [`approvals`]: what waits for the lead's answer; [`policy`]: what is answered by rule;
//! - [`authority`]: who may do what;
//! - [`driver`]: which agent CLI, and how it is started, fed and heard;
//! - [`program`]: an agent's program, running;
//! - [`delivery`]: unread mail becoming an agent's turns;
//! - [`signature`]: whether a message is the lead's own;
//! - [`pulse`]: how a member is;
//! - [`again`]: mail that Claude Code took and its model never saw;
//! - [`teammate`]: an agent as a member of the team, from its start to its end;
//! - [`worker`]: a Rust value as a member, in our own process;
//! - [`words`], [`brief`]: what models and people are told;
//! - [`graph`]: what the tasks' dependencies mean;
//! - [`event`]: what happened, for the journal and for those who watch;
//! - [`store`]: where a team lives, [`store::file`] beside Claude Code itself;
//! - [`clock`]: what time it is.
//!
//! This crate reads no environment and prints nothing. Paths and locks are known under
//! [`store::file`] alone.

pub mod again;
pub mod approvals;
pub mod authority;
pub mod board;
pub mod brief;
pub mod clock;
pub mod delivery;
pub mod driver;
pub mod event;
pub mod graph;
pub mod handshake;
mod hash;
pub mod mail;
pub mod policy;
pub mod program;
pub mod pulse;
pub mod revive;
pub mod roster;
pub mod seat;
pub mod signature;
pub mod store;
pub mod teammate;
pub mod words;
pub mod worker;
