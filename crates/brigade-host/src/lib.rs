//! Runs the members of agent teams on this host.
//!
//! Every front end (command line, MCP server, dashboard) calls the functions of this crate. They check what
//! has to be checked before a member is started or stopped, so that no front end decides anything itself.
//!
//! - [`context`]: which store, which team, in whose name; [`location`]: where teams are stored;
//! - [`team_file`]: reads `brigade.toml`; [`spec`]: the team and the members it describes;
//! - [`up`], [`spawn`], [`shutdown`], [`down`], [`resume`], [`answer`]: what a person can ask for;
//! - [`registry`]: the members that should run here, on disk; [`process_lock`]: the process that runs one;
//! - [`supervisor`]: starts members that should run and do not; `restarts`: when; [`start`]: how;
//!   `policy_answers`: answers permission requests by rule;
//! - [`native`]: the real Claude Code as a member, with its [`keys`] and its [`transcript`];
//! - [`state`]: the state of teams and members; [`wait`]: waits until members are ready;
//! - [`preflight`], [`installed`]: the programs members need; [`worktree`], [`tmux`]: git and tmux;
//! - [`progress`]: what a front end can show meanwhile; [`error`]: what failed, with hints;
//! - [`history_text`]: records of the journal as lines of text.
//!
//! The crate prints nothing, ends no process but those it started, and reads no environment: a front end
//! passes in what it needs.

#![forbid(unsafe_code)]

pub mod answer;
pub mod context;
pub mod down;
pub mod error;
mod error_core;
#[cfg(feature = "nats")]
mod error_nats;
pub mod history_text;
pub mod host;
pub mod installed;
pub mod keys;
pub mod location;
pub mod native;
mod native_heartbeat;
mod policy_answers;
pub mod preflight;
pub mod process;
pub mod process_lock;
pub mod process_tree;
pub mod progress;
pub mod registry;
mod restarts;
pub mod resume;
pub mod shutdown;
pub mod signals;
pub mod spawn;
pub mod spec;
pub mod start;
pub mod state;
pub mod suggest;
pub mod supervisor;
pub mod team_file;
pub mod tmux;
pub mod transcript;
pub mod up;
pub mod variables;
pub mod wait;
pub mod worktree;

pub use self::context::Context;
pub use self::error::{ErrorKind, HostError, Trouble};
pub use self::host::Host;
