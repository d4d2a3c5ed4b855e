//! `brigade ui`, the terminal dashboard of a team, and `brigade attach`, the screen of one member.
//!
//! The dashboard shows a running team's members, mail, task board, open approval requests and timeline. It can
//! also replay a journal. A person can use it to send messages, add tasks, approve plans, and start and stop
//! members.
//!
//! # Parts
//!
//! - `screen` is the state of the dashboard. `Screen::update` takes an event and returns a list of effects, and
//!   `Screen::draw` draws the state. Neither function reads a clock, a file or the terminal, so tests can press
//!   keys and compare what is drawn.
//! - `screen::attached` is the screen of `brigade attach`: the transcript of one member and a line to write to it.
//! - Inside `screen`, `views` has one module for each tab, `dialog` asks for input or confirmation before an
//!   action, and `frame` draws the title, the tabs and the bottom line around the view.
//! - `run` is the event loop. It connects the screen to the store, the clock and the terminal, and
//!   carries out the effects. `source` opens a team or a journal; `replay` delivers the records of a journal
//!   at their original speed.
//! - `actions` changes the team; `programs` builds the commands that use the terminal in place of the
//!   dashboard; `terminal` sets the terminal up and restores it.
//! - `keys` is the table of all key bindings; `view` names the views; every view draws with `canvas`, `style`,
//!   `text_layout`, `markdown` and `time`.
//!
//! # Limits of this crate
//!
//! - It does not decide rules: `brigade-core` and `brigade-host` decide who may answer a request and when a
//!   member may be stopped. An action calls the same function as the command line and shows the result.
//! - It does not communicate with agents: it reads the team's records and writes mail. It uses
//!   `brigade-agents` only for the names of the agents that can be started.
//! - It does not print to standard output or read the environment. It draws on the screen, returns errors, and
//!   gets facts about the terminal from its caller in [`UiOptions`].
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
mod source;
mod style;
mod terminal;
mod text_layout;
mod time;
mod view;

pub use self::keys::key_table;
pub use self::run::{UiOptions, attach, run};
pub use self::screen::attached::keys::attached_key_table;
pub use self::view::View;
