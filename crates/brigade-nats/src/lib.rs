//! Implements the `Store` trait of `brigade-core` on NATS JetStream, so that one team can run on several hosts.
//!
//! The streams hold both the current state and the journal. The current version of a document is the last message
//! on its subjects. The history consists of all messages, in order. If clients connect with credentials, the
//! server enforces that a member sends only under its own name and reads only its own mail. The server stores only
//! one message with a given id. It replaces a document only if the writer has read the current version.
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
//! - [`options`]: how to connect; [`connect_error`]: why it failed; [`NatsStore`]: the store itself, with a private module for each trait;
//! - [`layout`]: streams and subjects, and who may write to them;
//! - [`identity`]: what a client's credentials allow; [`org`]: organisations, issuing and revoking credentials;
//! - [`backup`], [`health`], [`shards`], [`stream_metrics`]: tools for operators of the NATS servers.
//!
//! The private modules: `connect` connects and waits for servers that are away. `connection` sends requests, retries them and detects permission errors. `read`, `write`
//! and `watch` handle the messages of a stream. `mailbox` (with `marks`), `board` and `roster` interpret messages.
//! `shard_map` says which team is in which shard, and `placement` assigns new teams to shards.
//! `read_floor` and `replicas` make sure that a client in a cluster can read its own writes.
//!
//! # Limits of this crate
//!
//! - It does not interpret documents: `brigade-core` decides who may do what, and the server enforces that.
//! - It stores nothing outside the streams. Its caches can be rebuilt from the streams at any time.
//! - It starts no servers, reads no environment variables and prints nothing.
//! - The names of streams, subjects and headers never change, because older versions read the same streams.

#![forbid(unsafe_code)]

pub mod backup;
pub mod connect_error;
pub mod health;
pub mod identity;
pub mod layout;
pub mod options;
pub mod org;
pub mod shards;
pub mod stream_metrics;

mod board;
mod connect;
mod connection;
mod direct;
mod error;
mod journal;
mod mail_message;
mod mailbox;
mod marks;
mod placement;
mod post;
mod read;
mod read_floor;
mod replicas;
mod roster;
mod sent_messages;
mod shard_map;
mod store;
mod streams;
mod visibility;
mod watch;
mod watch_generations;
mod write;

pub use identity::Identity;
pub use options::{NatsOptions, RetryLimit, StreamSettings};
pub use store::NatsStore;

/// Makes `cargo test` compile the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
