//! Runs the members of agent teams on this host.
//!
//! Every front end (command line, MCP server, dashboard) calls the functions of this crate. These functions do all
//! checks before a member is started or stopped, so front ends need no checks of their own.
//!
//! Each member runs in its own process. The [`registry`] on disk lists the members that should run, and each
//! process holds a lock while it runs a member. The [`supervisor`] compares the registry with the locks and starts
//! the missing processes. It needs no state in memory, so another supervisor can take over at any time.
//!
//! # Parts
//!
//! | modules | task |
//! |---|---|
//! | [`context`], [`location`] | the store, team and member that a front end acts for; where teams are stored |
//! | [`host`], [`registry`], [`process_lock`] | this host, the members that should run, the processes that run them |
//! | [`team_file`], [`trust`], [`spec`] | reading `brigade.toml`; the files that the user trusts; the settings of a team and its members |
//! | [`team_choice`] | the team of a command that names none, and the person's default team |
//! | [`origin`] | the file that a team belongs to, and the team of a folder |
//! | [`member_options`] | the settings of a new member from the options of a command |
//! | [`differences`] | what differs between a team file and the running team |
//! | [`up`], [`spawn`], [`shutdown`], [`down`], [`delete`], [`resume`], [`answer`] | the operations that a person asks for |
//! | [`steer`], [`control`], [`takeover`], `briefing` | interrupting, pausing and restarting members; the socket of a member; the lock of a session in a terminal; the first text of a new session |
//! | [`stopped`], [`member_worktree`] | members that were stopped, and how to start them again; the worktree of a member |
//! | [`rules`], [`personal_policy`] | the rules for permission requests, and those of the person in a file of their own |
//! | [`links`], [`link_registry`] | links between teams in files and on NATS servers, and their state |
//! | [`supervisor`], [`start`], `restarts`, [`roster_entry`], `policy_answers` | restarting members; their entries in the roster; answering requests by rule |
//! | [`native`], [`keys`], [`transcript`], `native_heartbeat` | running the real Claude Code as a member |
//! | [`state`], [`wait`], [`task_story`] | the state of teams and members, waiting until they are ready, the story of a task |
//! | [`wait_for`], [`ask`] | waiting for a task, a member, a request, a message or a reply |
//! | [`preflight`], [`installed`], [`login`], [`worktree`], [`tmux`] | required programs and logins, git worktrees, tmux windows |
//! | [`process`], [`process_tree`], [`signals`] | processes and signals |
//! | [`service`] | the service that starts teams again at login |
//! | [`demo`] | a team of scripted agents that shows brigade |
//! | [`progress`], [`error`], [`history_text`], [`suggest`], [`candidates`], [`approval_document`] | text and documents for front ends to show |
//! | [`log_query`], [`recent_log`], [`search`], [`known_members`] | reading and searching the history |
//!
//! # Limits of this crate
//!
//! - It does not print. Front ends get [`progress`] events and a [`HostError`] with hints, and decide how to show
//!   them.
//! - It does not exit, and it ends only processes that it started.
//! - It does not read environment variables. Front ends pass the values in ([`context::ContextSettings`]). The
//!   module [`variables`] contains only the names of the variables.
//! - It does not type into a terminal. Agents get their input over their protocols.
//!
//! # Example
//!
//! ```
//! use brigade_host::context::ContextSettings;
//! use brigade_host::{Context, HostError, progress, state};
//! use brigade_wire::name::MemberName;
//!
//! /// Returns a line for each team that is up on this host.
//! async fn overview(settings: ContextSettings) -> Result<Vec<String>, HostError> {
//!     let context = Context::open(settings, &progress::silent).await?;
//!     let host = context.host()?;
//!     let mut lines = Vec::new();
//!     for team in host.registry.teams()? {
//!         let lead = context.seat_of(team, MemberName::lead());
//!         let state = state::team(&host, &lead).await?;
//!         lines.push(format!("{}: {} members", state.team, state.members.len()));
//!     }
//!     Ok(lines)
//! }
//! ```

#![forbid(unsafe_code)]

pub mod answer;
pub mod approval_document;
pub mod ask;
mod briefing;
pub mod candidates;
pub mod claude_led;
pub mod claude_session;
#[cfg(feature = "nats")]
mod connect_hints;
pub mod context;
pub mod control;
mod credentials_record;
pub mod delete;
pub mod demo;
pub mod detach;
pub mod differences;
pub mod down;
mod empty_folder;
pub mod environment;
pub mod error;
mod error_core;
#[cfg(feature = "nats")]
mod error_nats;
mod git;
pub mod history;
mod history_cleanup;
pub mod history_text;
pub mod host;
pub mod installed;
pub mod keys;
pub mod known_members;
mod leftovers;
pub mod link_registry;
pub mod links;
pub mod local_state;
pub mod location;
pub mod log_query;
pub mod login;
pub mod member_options;
pub mod member_worktree;
pub mod native;
mod native_heartbeat;
pub mod origin;
pub mod personal_policy;
mod policy_answers;
pub mod preflight;
pub mod process;
pub mod process_lock;
pub mod process_tree;
pub mod profile;
pub mod progress;
pub mod recent_log;
pub mod registry;
mod registry_watch;
mod renewal;
mod restarts;
pub mod resume;
pub mod roster_entry;
pub mod rules;
pub mod search;
pub mod service;
pub mod shutdown;
pub mod signals;
pub mod spawn;
pub mod spec;
pub mod start;
pub mod state;
pub mod steer;
pub mod stopped;
#[cfg(feature = "nats")]
pub mod store_check;
pub mod store_choice;
pub mod suggest;
pub mod supervisor;
pub mod supervisor_environment;
pub mod takeover;
pub mod task_story;
pub mod team_choice;
pub mod team_file;
mod team_lock;
pub mod tmux;
pub mod transcript;
pub mod trust;
pub mod up;
pub mod variables;
pub mod wait;
pub mod wait_for;
pub mod worktree;

pub use self::context::Context;
pub use self::error::{ErrorKind, HostError, Trouble};
pub use self::host::Host;
