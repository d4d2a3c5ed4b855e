//! Mail, board and roster of an agent team, on any store, and agents of any vendor as its members.
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
//! // The files that Claude Code itself uses, and a folder of our own.
//! let options = Options::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//!
//! // A team, led from here, with one member.
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! let bob = lead.of("bob".parse()?);
//! roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/work")).await?;
//!
//! // Mail, and a task that is his once he claims it.
//! mail::send(&lead, "bob", "there is something on the board").await?;
//! let task = board::add(&lead, &TaskPlan::new("mend the parser")).await?;
//! board::claim(&bob, task).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The parts, in reading order
//!
//! What everybody needs:
//!
//! - [`store`]: where a team lives, [`store::file`] beside Claude Code itself, [`store::memory`] for tests;
//! - [`seat`]: who somebody is in which team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: what can be done from a seat;
//! - [`wire`]: the names and documents all of them speak of.
//!
//! Who takes part:
//!
//! - [`worker`]: a Rust value as a member, in our own process;
//! - [`driver`]: which agent CLI, and how it is started, fed and heard; [`program`]: what stands beside it;
//! - [`teammate`]: an agent, or a worker, as a member from its start to its end;
//! - [`handshake`]: asking and answering: shutdown, plan, permission;
//! - [`approvals`]: what waits for the lead's answer; [`policy`]: what is answered by rule;
//! - [`authority`]: who may do what; [`signature`]: whether a message is the lead's own;
//! - [`words`], [`brief`]: what models and people are told.
//!
//! Looking at it:
//!
//! - [`event`]: what happened, for the journal and for those who watch;
//! - [`chronicle`]: all that happened, and then what happens; [`picture`]: what a team looks like, drawn from that;
//! - [`graph`]: what the tasks' dependencies mean;
//! - [`pulse`]: how a member is; [`depth`]: how much mail waits for it.
//!
//! Keeping it:
//!
//! - [`revive`]: a team whose folder is gone, from what was written down;
//! - [`again`]: mail that Claude Code took and its model never saw;
//! - [`export`]: a whole team as lines of text, and back;
//! - [`link`]: one team on several hosts;
//! - [`clock`]: what time it is.
//!
//! This crate reads no environment and prints nothing. Paths and locks are known under
//! [`store::file`] alone. What it promises of its surface before 1.0 is in `docs/library.md`.

#![forbid(unsafe_code)]

pub mod approvals;
pub mod authority;
pub mod board;
pub mod clock;
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

/// Keeps the examples of the guide true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;

/// Keeps the example in the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
