//! Runs coding agents of any vendor as members of an agent team.
//!
//! An agent is a program such as Codex or Gemini CLI, with a protocol of its own. This crate starts the program,
//! delivers the member's mail to its model as turns, forwards the agent's permission requests to the lead,
//! restarts the program when it dies, and records the agent's work. Inbox, tasks and history come from
//! `brigade-core` for every member, so a member cannot tell which agent runs another member.
//!
//! ```
//! use brigade_agents::driver::{self, LaunchOptions, DriverOutput, ToolServer};
//!
//! // A driver does no I/O: it returns events, and bytes for the program to read.
//! let codex = driver::agent("codex").unwrap();
//! let mut driver = (codex.agent.driver)(LaunchOptions::new("/work", ToolServer::default()));
//! assert_eq!(driver.invocation().args.first().unwrap(), "app-server");
//! driver.start();
//! let Some(DriverOutput::Write(hello)) = driver.next() else { panic!("expected bytes") };
//! assert!(hello.ends_with(b"\n"));
//! ```
//!
//! [`teammate`] has an example that runs an agent. [`worker`] has an example that needs no agent.
//!
//! # Parts
//!
//! - [`driver`]: the known agent CLIs, each with a driver that prompts the agent and parses the agent's output;
//! - [`program`]: an agent's running program, and the guard that ends all processes that the program started;
//! - [`worker`]: runs a Rust value as a member inside the current process, in place of a program;
//! - [`delivery`]: a state machine that delivers unread mail as turns. The model sees each message once,
//!   even if the agent or brigade is killed;
//! - [`teammate`]: the loop that runs an agent or a worker as a member until the member leaves the team;
//! - [`instructions`]: the instructions that a model gets about its team;
//! - [`resend`]: resends mail that a native Claude Code took out of its inbox but did not show to its model.
//!
//! # Limits of this crate
//!
//! - It reads no environment variables and prints nothing; `brigade-host` passes settings in and shows events.
//! - It accesses stores only through the traits of `brigade-core`.
//! - Drivers do no I/O, and no input makes them panic. Their tests replay recorded output of the real programs.
//! - It never types into a terminal.

#![forbid(unsafe_code)]

pub mod instructions;
// Public only for this crate's integration tests; within the crate, only `teammate` uses this module.
#[doc(hidden)]
pub mod delivery;
pub mod driver;
pub mod program;
pub mod resend;
pub mod teammate;
pub mod worker;
