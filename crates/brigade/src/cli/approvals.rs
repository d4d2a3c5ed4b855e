//! `brigade approvals`, `brigade approve`, `brigade deny`

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade approvals             list waiting requests
  brigade approvals 3           print request 3 in full
  brigade approvals --follow    also print new requests and answers
  brigade approvals --json | jq -r '.[] | select(.kind == \"permission\") | .command'";

pub(super) const APPROVE_EXAMPLES: &str = "\
Examples:
  brigade approve 3
  brigade approve 3 4 plan_approval-1794700029486@bob@demo";

pub(super) const DENY_EXAMPLES: &str = "\
Example:
  brigade deny 3 --reason \"not on main; make a branch first\"";

/// Arguments of `brigade approvals`.
#[derive(Args, Debug)]
pub(crate) struct ApprovalsArgs {
    /// Number or id of each request to print in full, answered or not
    #[arg(value_name = "ID", conflicts_with = "follow")]
    pub(crate) which: Vec<String>,
    /// Keep printing new requests and answers until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Arguments of `brigade approve`.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// Number or id of each request
    #[arg(value_name = "ID", required = true)]
    pub(crate) which: Vec<String>,
}

/// Arguments of `brigade deny`.
#[derive(Args, Debug)]
pub(crate) struct DenyArgs {
    /// Number or id of the request
    #[arg(value_name = "ID")]
    pub(crate) which: String,
    /// Reason sent to the teammate: why not, and what to do instead
    #[arg(long, short, allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
}
