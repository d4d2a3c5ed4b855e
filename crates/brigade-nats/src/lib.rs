//! The store on NATS JetStream: one team on several hosts.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use brigade_core::seat::Seat;
//! use brigade_nats::{NatsStore, Options};
//!
//! # async fn sit_down() -> Result<Seat, Box<dyn std::error::Error>> {
//! let servers = vec!["nats://127.0.0.1:4222".to_owned()];
//! let store = NatsStore::connect(Options { servers, ..Options::default() }).await?;
//! Ok(Seat::new(Arc::new(store), "demo".parse()?, "team-lead".parse()?))
//! # }
//! ```
//!
//! In reading order:
//!
//! - [`options`]: which engine, and as whom; [`NatsStore`] is the store on it;
//! - [`layout`]: what lies where, and who may write it;
//! - [`identity`]: whose credentials; [`org`]: an organisation, and how credentials are given and taken back;
//! - [`backup`], [`health`], [`measures`]: keeping it, and looking at it.
//!
//! The streams are the journal as well as the state: a document is the last message of its subjects, and what
//! happened is all of them in order.

#![forbid(unsafe_code)]

pub mod backup;
pub mod health;
pub mod identity;
pub mod layout;
pub mod measures;
pub mod options;
pub mod org;

mod board;
mod engine;
mod error;
mod follow;
mod journal;
mod letter;
mod mailbox;
mod marks;
mod read;
mod read_floor;
mod replicas;
mod roster;
mod store;
mod streams;
mod visibility;
mod write;

pub use engine::Metrics;
pub use identity::Identity;
pub use options::{Options, Patience, Settings};
pub use store::NatsStore;

/// Keeps the example in the README true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
