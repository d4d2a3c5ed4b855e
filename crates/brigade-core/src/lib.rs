//! Mail, task board and roster of an agent team, on any store, independent of the store.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::board::{self, TaskPlan};
//! use brigade_core::mail;
//! use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! use brigade_core::seat::Seat;
//! use brigade_files::{FileStore, FileStoreOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! // The files that Claude Code itself uses, and a state folder of our own.
//! let options = FileStoreOptions::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//!
//! // A team with one member. This process leads it.
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! let bob = lead.for_member("bob".parse()?);
//! roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/work")).await?;
//!
//! // A message, and a task that belongs to bob once he claims it.
//! mail::send(&lead, "bob", "there is a task on the board").await?;
//! let task = board::add(&lead, &TaskPlan::new("fix the parser")).await?;
//! board::claim(&bob, task).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The modules, in reading order
//!
//! The basics:
//!
//! - [`store`]: the traits of a store; [`store::memory`] is one for tests, brigade-files and brigade-nats are others;
//! - [`seat`]: the identity of a caller, one member of one team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: the operations a seat can perform;
//! - [`wire`]: the names and documents of the wire format.
//!
//! Members:
//!
//! - [`handshake`]: requests and answers: shutdown, plan, permission;
//! - [`approvals`]: requests waiting for the lead; [`policy`]: rules that answer some of them;
//! - [`authority`]: which role may do what; [`signature`]: verifies that a message comes from the lead;
//! - [`protocol_text`]: protocol messages as text for models and people.
//!
//! Observing a team:
//!
//! - [`event`]: the events in the journal and in a watch;
//! - [`store::event_log`]: the event history followed by live events; [`projection`]: the state of a team, folded from events;
//! - [`graph`]: task dependencies; [`task_view`]: the state of a task as a person sees it;
//! - [`pulse`]: the state of a member's process; [`depth`]: its unread mail.
//!
//! Recovery and transfer:
//!
//! - [`revive`]: restores a team whose folder was deleted from the journal;
//! - [`export`]: a whole team as lines of text, and back.
//!
//! Shared helpers: [`clock`] (the time, replaceable in tests), [`hash`], [`text`].
//!
//! This crate does no input or output: it reads no environment and no file, and prints nothing.
//! `docs/library.md` states which parts of the API are stable before 1.0.

#![forbid(unsafe_code)]

pub mod approvals;
pub mod authority;
pub mod board;
pub mod clock;
pub mod depth;
pub mod event;
pub mod export;
pub mod graph;
pub mod handshake;
pub mod hash;
pub mod mail;
pub mod policy;
pub mod projection;
pub mod protocol_text;
pub mod pulse;
pub mod revive;
pub mod roster;
pub mod seat;
pub mod signature;
pub mod store;
pub mod task_view;
pub mod text;
mod work_event;

pub use brigade_wire as wire;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
