//! `brigade_core`'s `Store` on NATS JetStream: one team across several hosts.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use brigade_core::seat::Seat;
//! use brigade_nats::{NatsStore, Options};
//!
//! # async fn lead_seat() -> Result<Seat, Box<dyn std::error::Error>> {
//! let servers = vec!["nats://127.0.0.1:4222".to_owned()];
//! let store = NatsStore::connect(Options { servers, ..Options::default() }).await?;
//! Ok(Seat::new(Arc::new(store), "demo".parse()?, "team-lead".parse()?))
//! # }
//! ```
//!
//! In reading order:
//!
//! - [`options`]: how to connect; [`NatsStore`]: the store itself;
//! - [`layout`]: streams and subjects, and who may write to them;
//! - [`identity`]: what a client's credentials allow; [`org`]: organisations, issuing and revoking credentials;
//! - [`backup`], [`health`], [`measures`]: operating the NATS store.
//!
//! The streams hold both the current state and the journal. A document is the last message on its subjects;
//! the history is all messages in order.

#![forbid(unsafe_code)]

pub mod backup;
pub mod health;
pub mod identity;
pub mod layout;
pub mod measures;
pub mod options;
pub mod org;

mod board;
mod connection;
mod error;
mod journal;
mod mail_message;
mod mailbox;
mod marks;
mod read;
mod read_floor;
mod replicas;
mod roster;
mod store;
mod streams;
mod visibility;
mod watch;
mod write;

pub use identity::Identity;
pub use options::{Options, RetryLimit, Settings};
pub use store::NatsStore;

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
