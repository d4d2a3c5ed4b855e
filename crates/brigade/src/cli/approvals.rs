//! `brigade approvals`, `brigade approve`, `brigade deny`

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade approvals             see who asks for what
  brigade approvals --follow    go on with what is asked and answered
  brigade approvals --json | jq -r '.[] | select(.kind == \"permission\") | .command'";

pub(super) const APPROVE_EXAMPLES: &str = "\
Examples:
  brigade approve 3
  brigade approve 3 4 plan_approval-1794700029486@bob@demo";

pub(super) const DENY_EXAMPLES: &str = "\
Example:
  brigade deny 3 --reason \"not on main; make a branch first\"";

/// What waits.
#[derive(Args, Debug)]
pub(crate) struct Approvals {
    /// Go on with what is asked and answered from now on, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Yes.
#[derive(Args, Debug)]
pub(crate) struct Approve {
    /// The numbers or ids of the requests
    #[arg(value_name = "ID", required = true)]
    pub(crate) which: Vec<String>,
}

/// No.
#[derive(Args, Debug)]
pub(crate) struct Deny {
    /// The number or id of the request
    #[arg(value_name = "ID")]
    pub(crate) which: String,
    /// Tell the teammate why, and what to do instead
    #[arg(long, short, allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
}
