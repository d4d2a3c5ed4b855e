//! The exit codes of `brigade`. Each code has one meaning.

/// Success.
pub(crate) const DONE: u8 = 0;
/// The operation was refused or failed, or the person answered no to a question.
pub(crate) const FAILED: u8 = 1;
/// An invalid command line.
pub(crate) const USAGE: u8 = 2;
/// A part was done, and a later step failed. Repeating the command would do that part again.
pub(crate) const PARTLY: u8 = 3;
/// Nothing found: an empty inbox, an empty board.
pub(crate) const NOTHING: u8 = 4;
/// The change is stored, and the member has not reacted to it yet.
pub(crate) const UNCONFIRMED: u8 = 5;
/// A bug in brigade.
pub(crate) const BUG: u8 = 70;
/// Locked by another program; try again.
pub(crate) const LOCKED: u8 = 75;
/// The time given with `--timeout` is over. The program `timeout` uses the same code.
pub(crate) const TIMED_OUT: u8 = 124;
/// Interrupted by a signal, for example by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// The list of exit codes in the help and the manual page.
pub(crate) const HELP: &str = "\
Exit codes:
   0  success (also if the reader of the output closed the pipe; a warning says what is incomplete)
   1  refused or failed, or you answered no to a question
   2  invalid command line
   3  done in part; read the message before you repeat the command
   4  nothing found: an empty inbox, an empty board
   5  sent, and not yet confirmed by the member
  70  a bug in brigade
  75  locked by another program; try again
 124  not in time: the --timeout of `wait` or `ask` is over
 130  interrupted, for example by Ctrl-C";
