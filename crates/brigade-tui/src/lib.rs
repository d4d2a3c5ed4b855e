//! `brigade ui`: the team on a terminal.
//!
//! [`screen`] is one state and one `update`; [`frame`] and [`views`] draw it; [`keys`] is the table of all
//! keys; [`dialog`] asks before something is done; [`orders`] does it, with the functions that the command
//! line has too. `run` is the loop that knows the store, the clock and the terminal.

#![forbid(unsafe_code)]

mod canvas;
mod dialog;
mod frame;
mod keys;
mod lend;
mod markdown;
mod orders;
mod prose;
mod replay;
mod run;
mod screen;
mod style;
mod terminal;
#[cfg(test)]
mod tests;
mod time;
mod views;

pub use self::keys::documented as key_table;
pub use self::run::{Options, run};
pub use self::views::View;
