//! Runs coding agents of any vendor as members of an agent team.
//!
//! An agent is a program such as Codex or Gemini CLI, with a protocol of its own. This crate starts the
//! program, turns the member's mail into turns of its model, forwards its permission requests to the
//! lead, restarts it when it dies, and records its work. The member's inbox, tasks and history are those
//! of `brigade-core`: the other members cannot tell which agent runs it.
//!
//! ```
//! use brigade_agents::driver::{self, LaunchOptions, DriverOutput, ToolServer};
//!
//! // A driver does no I/O: it returns the bytes for the program and the events of the agent.
//! let codex = driver::agent("codex").unwrap();
//! let mut driver = (codex.agent.driver)(LaunchOptions::new("/work", ToolServer::default()));
//! assert_eq!(driver.invocation().args.first().unwrap(), "app-server");
//! driver.start();
//! let Some(DriverOutput::Write(hello)) = driver.next() else { panic!("the driver speaks first") };
//! assert!(hello.ends_with(b"\n"));
//! ```
//!
//! [`teammate`] has an example that runs an agent, and [`worker`] one without any agent.
//!
//! # Parts
//!
//! - [`driver`]: which agent CLIs there are, and how each is started, prompted and understood;
//! - [`program`]: the running process of an agent, and the guard that ends what it started;
//! - [`worker`]: a Rust value as a member, in this process, in place of a program;
//! - [`delivery`]: a state machine that turns unread mail into turns, so that the model sees each message
//!   once, whichever process dies;
//! - [`teammate`]: the loop that runs an agent or a worker as a member until it leaves the team;
//! - [`instructions`]: the instructions a model gets about its team;
//! - [`resend`]: sends mail again that a native Claude Code took and its model never saw.
//!
//! # What it must not do
//!
//! - It reads no environment variables and prints nothing; `brigade-host` passes settings in and shows events.
//! - It knows stores only by the traits of `brigade-core`.
//! - Drivers do no I/O and do not panic on any bytes. Their tests replay recorded programs.
//! - It never types into a terminal.

#![forbid(unsafe_code)]

pub mod instructions;
// For the tests of this crate; `teammate` is its only other user.
#[doc(hidden)]
pub mod delivery;
pub mod driver;
pub mod program;
pub mod resend;
pub mod teammate;
pub mod worker;
