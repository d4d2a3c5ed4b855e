//! Mail, board and roster of an agent team, on any store.
//!
//! In reading order:
//!
//! - [`seat`]: who somebody is in which team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: what can be done from a seat;
//! - [`handshake`]: asking and answering: shutdown, plan, permission;
//! - [`authority`]: who may do what;
//! - [`graph`]: what the tasks' dependencies mean;
//! - [`event`]: what happened, for the journal and for those who watch;
//! - [`store`]: where a team lives, [`store::file`] beside Claude Code itself;
//! - [`clock`]: what time it is.
//!
//! This crate reads no environment and prints nothing. Paths and locks are known under
//! [`store::file`] alone.

pub mod authority;
pub mod board;
pub mod clock;
pub mod event;
pub mod graph;
pub mod handshake;
mod hash;
pub mod mail;
pub mod roster;
pub mod seat;
pub mod store;
