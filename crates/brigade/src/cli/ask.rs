//! `brigade ask`

use std::time::Duration;

use clap::Args;

use super::MessageArgs;
use super::duration::time;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade ask bob \"which test fails, and why?\"
  git diff | brigade ask bob - --timeout 20m > review.md

Exit codes:
    0  the reply was printed
    1  the member cannot reply: it stopped, its turn failed, or it ended its turn without a reply
  124  the time is over; the question stays sent";

/// Arguments of `brigade ask`.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    /// The member to ask
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// The longest time to wait for the reply, such as 30s or 20m
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5m")]
    pub(crate) timeout: Duration,
}
