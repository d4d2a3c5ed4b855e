//! The store of `brigade-core` on NATS JetStream: one team across several hosts.
//!
//! The streams hold both the current state and the journal. A document is the last message on its subjects;
//! the history is all messages in order. With credentials, the server enforces that a member sends only under
//! its own name and reads only its own mail. A message is stored once by its id, and a document changes only if
//! nobody else has changed it since it was read.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use brigade_core::seat::Seat;
//! use brigade_nats::{NatsStore, NatsOptions};
//!
//! # async fn lead_seat() -> Result<Seat, Box<dyn std::error::Error>> {
//! let servers = vec!["nats://127.0.0.1:4222".to_owned()];
//! let store = NatsStore::connect(NatsOptions { servers, ..NatsOptions::default() }).await?;
//! Ok(Seat::new(Arc::new(store), "demo".parse()?, "team-lead".parse()?))
//! # }
//! ```
//!
//! # Parts
//!
//! - [`options`]: how to connect; [`NatsStore`]: the store itself, one private file for each trait;
//! - [`layout`]: streams and subjects, and who may write to them;
//! - [`identity`]: what a client's credentials allow; [`org`]: organisations, issuing and revoking credentials;
//! - [`backup`], [`health`], [`stream_metrics`]: operating the NATS store.
//!
//! Below them, private: `connection` (one client: requests, retries, permission errors), `read`, `write` and
//! `watch` (messages of a stream), `mailbox` with `marks`, `board` and `roster` (what the messages mean),
//! `read_floor` and `replicas` (a client reads its own writes in a cluster).
//!
//! # What it must not do
//!
//! - It gives documents no meaning: `brigade-core` decides who may do what, and the server enforces it.
//! - It keeps nothing outside of the streams. Caches can be rebuilt from them at any time.
//! - It starts no servers, reads no environment variables and prints nothing.
//! - Names of streams, subjects and headers are permanent: older versions read the same streams.

#![forbid(unsafe_code)]

pub mod backup;
pub mod health;
pub mod identity;
pub mod layout;
pub mod options;
pub mod org;
pub mod stream_metrics;

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
pub use options::{NatsOptions, RetryLimit, StreamSettings};
pub use store::NatsStore;

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
