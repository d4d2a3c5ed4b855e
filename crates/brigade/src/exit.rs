//! The exit codes, one meaning each.

/// Done.
pub(crate) const DONE: u8 = 0;
/// Refused or failed.
pub(crate) const FAILED: u8 = 1;
/// A bad command line.
pub(crate) const USAGE: u8 = 2;
/// Nothing there: an empty inbox, an empty board.
pub(crate) const NOTHING: u8 = 4;
/// A bug of ours.
pub(crate) const BUG: u8 = 70;
/// Locked by somebody else; try again.
pub(crate) const LOCKED: u8 = 75;

/// The codes as the help and the man page tell them.
pub(crate) const HELP: &str = "\
Exit codes:
   0  done (also when the reader of the output went away)
   1  refused or failed
   2  bad command line
   4  nothing there: an empty inbox, an empty board
  70  a bug in brigade
  75  locked by another program; try again";
