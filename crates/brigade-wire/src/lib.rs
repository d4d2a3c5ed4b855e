//! The files of an agent team exactly as Claude Code writes them, in two generations.
//!
//! This crate uses no I/O, no clock, no randomness and no async: bytes in, views and bytes out.
//!
//! The modules in reading order:
//!
//! - [`name`], [`request_id`], [`color`]: validated names and ids;
//! - [`generation`]: the two generations of Claude Code's team files;
//! - [`inbox`] and [`message`], [`team`] and [`member`], [`task`]: views over the documents. They
//!   know the position of each field, so a change to one field leaves every other byte unchanged;
//! - [`member_entry`]: a copy of a member's entry for another host;
//! - [`backend`]: the values of `backendType`;
//! - [`settings`]: a view of the settings file of Claude Code or Gemini CLI;
//! - [`body`], [`protocol`] and [`permission`]: the content of a message;
//! - [`envelope`]: how a message is shown to a model.
//!
//! # Incomplete files
//!
//! Claude Code writes some files in place, so a reader can see a file that is blank, that is cut off, or that ends
//! with text of its previous version. Reading such a file fails with [`Damage`]. The file is never treated as an
//! empty document.
//!
//! ```
//! use brigade_wire::Damage;
//! use brigade_wire::inbox::Inbox;
//!
//! assert_eq!(Inbox::read(b"[]").unwrap().entries().len(), 0);
//! assert_eq!(Inbox::read(b"").unwrap_err(), Damage::Blank);
//! assert_eq!(Inbox::read(b"[\n  {\"fr").unwrap_err(), Damage::CutOff { len: 8 });
//! ```

#![forbid(unsafe_code)]

pub mod backend;
pub mod body;
pub mod change;
pub mod color;
mod document;
pub mod envelope;
pub mod generation;
pub mod inbox;
mod layout;
pub mod legible;
pub mod member;
pub mod member_entry;
pub mod message;
pub mod name;
mod patch;
pub mod permission;
pub mod protocol;
pub mod request_id;
pub mod settings;
pub mod task;
pub mod team;

pub use document::{Damage, JsonKind};

/// Compiles and runs the examples in this crate's README and in the workspace README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
struct Readme;
