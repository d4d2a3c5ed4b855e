//! The files of an agent team exactly as Claude Code writes them, in two generations.
//!
//! No I/O, no clock, no randomness, no async: bytes in, views and bytes out.
//!
//! In reading order:
//!
//! - [`name`], [`request_id`], [`color`]: what a thing may be called;
//! - [`generation`]: which of the two generations a file is of;
//! - [`inbox`] and [`message`], [`team`] and [`member`], [`task`]: the documents, as views that know
//!   where each field stands, so that a change to one leaves every other byte as it was;
//! - [`settings`]: the same for what a person has set for a whole program;
//! - [`body`], [`protocol`] and [`permission`]: what a message means;
//! - [`envelope`]: what a model sees of it.
//!
//! # A file that is not whole
//!
//! Claude Code writes some files in place, so a reader can meet one that is blank, cut off, or new
//! text with an old tail. Reading such bytes is a [`Damage`], never an empty document.
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
pub mod message;
pub mod name;
mod patch;
pub mod permission;
pub mod protocol;
pub mod request_id;
pub mod settings;
pub mod task;
pub mod team;

pub use document::{Damage, Kind};

/// Keeps the examples in the READMEs true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
struct Readme;
