//! Runs links, in this process or in the background. [`link_registry`](crate::link_registry) describes their files.

mod control;
mod process;
mod refusal;
mod run;
mod supervise;

pub use self::control::{StartedLink, start, stop};
pub use self::run::{LinkEventHandler, LinkNote, LinkOptions, LinkOutput, once, run};
pub(crate) use self::supervise::SupervisedLinks;
