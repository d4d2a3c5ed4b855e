//! `brigade ui`: the terminal dashboard of a team.
//!
//! It shows the members, their mail, the task board, open approval requests and a timeline of a running team,
//! or replays a journal. A person can act from it: send a message, add a task, approve a plan, start and stop
//! members.
//!
//! # Parts
//!
//! - `screen` is the state of the dashboard. An event goes in (`Screen::update`), a list of effects comes out,
//!   and `Screen::draw` draws the state. Neither reads a clock, a file or the terminal, so tests press keys
//!   and compare what is drawn.
//! - Below it, `views` has one module for each tab, `dialog` asks for input or confirmation before an action,
//!   and `frame` draws the title, the tabs and the bottom line around them.
//! - `run` is the event loop. Only it knows the store, the clock and the terminal; it feeds the screen and
//!   carries out the effects. `replay` delivers the records of a journal at their original pace.
//! - `actions` changes the team; `programs` builds the commands that borrow the terminal; `terminal` sets it
//!   up and restores it.
//! - `keys` is the table of all key bindings; `view` names the views; `canvas`, `style`, `text_layout`,
//!   `markdown` and `time` are what every view draws with.
//!
//! # What it must not do
//!
//! - Decide rules. Who may answer a request, or when a member may be stopped, is decided by `brigade-core` and
//!   `brigade-host`; an action calls the function that the command line calls and shows its result.
//! - Talk to agents. It reads the team's records and writes mail; `brigade-agents` only supplies the names of
//!   the agents that can be started.
//! - Print, or read the environment. Everything is drawn on the screen, errors are returned, and the caller
//!   passes what it knows of the terminal in [`UiOptions`].
//!
//! # Example
//!
//! ```no_run
//! use brigade_host::{Context, HostError};
//! use brigade_tui::{UiOptions, View};
//!
//! async fn show_board(context: Context) -> Result<(), HostError> {
//!     let options = UiOptions {
//!         view: View::Board,
//!         replay: None,
//!         speed: 1.0,
//!         no_mouse: false,
//!         color: true,
//!         is_dumb: false,
//!         is_remote: false,
//!         in_tmux: false,
//!         shell: "/bin/sh".into(),
//!     };
//!     brigade_tui::run(context, &options).await
//! }
//! ```

#![forbid(unsafe_code)]

mod actions;
mod canvas;
mod keys;
mod markdown;
mod programs;
mod replay;
mod run;
mod screen;
mod style;
mod terminal;
mod text_layout;
mod time;
mod view;

pub use self::keys::key_table;
pub use self::run::{UiOptions, run};
pub use self::view::View;
