//! Mail, task board and roster of an agent team, on any store, with agents of any vendor as members.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::board::{self, TaskPlan};
//! use brigade_core::mail;
//! use brigade_core::roster::{self, MemberPlan, TeamPlan};
//! use brigade_core::seat::Seat;
//! use brigade_files::{FileStore, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! // The files that Claude Code itself uses, and a state folder of our own.
//! let options = Options::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//!
//! // A team with one member. This process leads it.
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! let bob = lead.of("bob".parse()?);
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
//! - [`store`]: where teams are stored; [`store::file`] shares Claude Code's files, [`store::memory`] is for tests;
//! - [`seat`]: the identity of a caller, one member of one team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: the operations a seat can perform;
//! - [`wire`]: the names and documents of the wire format.
//!
//! Members:
//!
//! - [`worker`]: a Rust value as a member, in our own process;
//! - [`driver`]: the supported agent CLIs, and how to start them, feed them and read their output;
//!   [`program`]: the child process and what runs beside it;
//! - [`teammate`]: runs an agent or a worker as a member, from start to end;
//! - [`handshake`]: requests and answers: shutdown, plan, permission;
//! - [`approvals`]: requests waiting for the lead; [`policy`]: rules that answer some of them;
//! - [`authority`]: which role may do what; [`signature`]: verifies that a message comes from the lead;
//! - [`words`], [`brief`]: texts shown to models and people.
//!
//! Observing a team:
//!
//! - [`event`]: the events in the journal and in a watch;
//! - [`chronicle`]: the event history followed by live events; [`picture`]: the state of a team, folded from events;
//! - [`graph`]: task dependencies;
//! - [`pulse`]: the state of a member's process; [`depth`]: its unread mail.
//!
//! Recovery and transfer:
//!
//! - [`revive`]: restores a team whose folder was deleted from the journal;
//! - [`again`]: resends mail that Claude Code took from the inbox but its model never saw;
//! - [`export`]: a whole team as lines of text, and back;
//! - [`link`]: one team on several hosts;
//! - [`clock`]: the current time, replaceable in tests.
//!
//! This crate reads no environment variables and prints nothing. Only [`store::file`] deals with paths and
//! locks. `docs/library.md` states which parts of the API are stable before 1.0.

#![forbid(unsafe_code)]

pub mod approvals;
pub mod authority;
pub mod board;
pub mod clock;
// Public only for this crate's tests; `teammate` is the API to run a member.
#[doc(hidden)]
pub mod delivery;
pub mod depth;
pub mod event;
pub mod event_log;
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
