//! Mail, board and roster of an agent team, on any store.
//!
//! In reading order:
//!
//! - [`seat`]: who somebody is in which team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: what can be done from a seat;
//! - [`handshake`]: asking and answering: shutdown, plan, permission;
//! - [`authority`]: who may do what;
//! - [`driver`]: which agent CLI, and how it is started, fed and heard;
//! - [`program`]: an agent's program, running;
//! - [`delivery`]: unread mail becoming an agent's turns;
//! - [`signature`]: whether a message is the lead's own;
//! - [`teammate`]: an agent as a member of the team, from its start to its end;
//! - [`words`], [`brief`]: what models and people are told;
//! - [`graph`]: what the tasks' dependencies mean;
//! - [`event`]: what happened, for the journal and for those who watch;
//! - [`store`]: where a team lives, [`store::file`] beside Claude Code itself;
//! - [`clock`]: what time it is.
//!
//! This crate reads no environment and prints nothing. Paths and locks are known under
//! [`store::file`] alone.

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
pub mod program;
pub mod roster;
pub mod seat;
pub mod signature;
pub mod store;
pub mod teammate;
pub mod words;
