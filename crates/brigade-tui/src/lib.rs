//! `brigade ui`: the terminal dashboard of a team.
//!
//! `screen` holds all state and one `update` function; `frame` and `views` draw it; `keys` is the
//! table of all key bindings; `dialog` asks for input or confirmation before an action; `orders`
//! carries the action out with the same functions as the command line. `run` is the event loop:
//! only it knows the store, the clock and the terminal.

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
