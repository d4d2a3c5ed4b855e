//! Mail, task board and roster of an agent team, independent of where the team is stored.
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
//! // The files that Claude Code itself uses, and brigade's own state folder.
//! let options = FileStoreOptions::new(home.join(".claude"), home.join(".local/state/brigade"));
//! let store = Arc::new(FileStore::open(options));
//!
//! // Create a team with one member. This process is the lead.
//! let lead = Seat::new(store, "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! let bob = lead.for_member("bob".parse()?);
//! roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/work")).await?;
//!
//! // Send bob a message, add a task, and let bob claim the task.
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
//! - [`store`]: the store traits, which brigade-files and brigade-nats implement; [`store::memory`], for tests;
//! - [`seat`]: the caller's identity: one member of one team, fixed when the program starts;
//! - [`mail`], [`board`] and [`roster`]: the operations that a seat can perform;
//! - [`wire`]: the names and documents of Claude Code's file format.
//!
//! Members:
//!
//! - [`handshake`]: requests between members and the answers to them: shutdown, plan, permission;
//! - [`action`]: what an agent asks permission for, and the text that shows it;
//! - [`approvals`]: requests waiting for the lead's answer; [`policy`]: rules that answer some of these requests;
//! - [`authority`]: which role may do what; [`rights`]: who may record which event;
//!   [`signature`]: checks that a message comes from the lead;
//! - [`protocol_text`]: renders protocol messages as text for models and people.
//!
//! Observing a team:
//!
//! - [`event`]: the events of a team, as recorded in the journal and reported by a watch;
//! - [`store::event_log`]: past events followed by live ones; [`projection`]: a team's state, computed from events;
//! - [`graph`]: task dependencies; [`task_view`]: the state of a task as a person sees it; [`task_details`]: its labels
//!   and its priority; [`task_story`]: its history, mail and turns;
//! - [`search_text`]: the text that a person searches for in the history;
//! - [`pulse`]: the state of a member's process; [`depth`]: a member's unread mail.
//!
//! Recovery and transfer:
//!
//! - [`revive`]: restores a team from the journal after its folder was deleted;
//! - [`export`]: writes a whole team as lines of text, and imports it again;
//! - [`checklist`]: tasks in a Markdown file; [`task_exchange`]: tasks as JSON and CSV.
//!
//! Shared helpers: [`clock`] (the current time, replaceable in tests), [`hash`], [`text`].
//!
//! This crate does no I/O: it reads no environment variables and no files, and prints nothing.
//! `docs/library.md` states which parts of the API are stable before 1.0.

#![forbid(unsafe_code)]

pub mod action;
pub mod approvals;
pub mod authority;
pub mod board;
pub mod checklist;
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
pub mod rights;
pub mod roster;
pub mod search_text;
pub mod seat;
pub mod signature;
pub mod store;
pub mod task_details;
pub mod task_exchange;
pub mod task_story;
pub mod task_view;
pub mod text;
pub mod unread;
mod vendor_tools;
mod work_event;

pub use brigade_wire as wire;

/// Compiles the examples in `docs/library.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
