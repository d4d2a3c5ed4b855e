//! `brigade approvals`, `brigade approve`, `brigade deny`

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade approvals             list waiting requests
  brigade approvals 3           print request 3 in full
  brigade approvals --follow    also print new requests and answers
  brigade approvals --watch     show the waiting requests, updated in place
  brigade approvals --json | jq -r '.[] | select(.kind == \"permission\") | .command'";

pub(super) const APPROVE_EXAMPLES: &str = "\
Examples:
  brigade approve 3
  brigade approve 3 4 plan_approval-1794700029486@bob@demo
  brigade approve --all                         show what waits, and ask once
  brigade approve 3 --turn                      also allow exactly this command until the turn ends
  brigade approve 3 --always                    also allow exactly this command from now on
  brigade approve 3 --always --rule 'cargo test *'";

pub(super) const DENY_EXAMPLES: &str = "\
Examples:
  brigade deny 3 4
  brigade deny 3 --reason \"not on main; make a branch first\"
  brigade deny 3 --always --rule 'git push *'";

/// Arguments of `brigade approvals`.
#[derive(Args, Debug)]
pub(crate) struct ApprovalsArgs {
    /// Number or id of each request to print in full, answered or not
    #[arg(value_name = "ID", conflicts_with_all = ["follow", "watch"])]
    pub(crate) which: Vec<String>,
    /// Keep printing new requests and answers until interrupted
    #[arg(long, short, conflicts_with = "watch")]
    pub(crate) follow: bool,
    /// Show the waiting requests on the terminal, updated in place until interrupted
    #[arg(long, short)]
    pub(crate) watch: bool,
}

/// Arguments of `brigade approve`.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// Number or id of each request
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) which: Vec<String>,
    /// Approve every waiting request, after showing them all and asking
    #[arg(long, conflicts_with_all = ["which", "always", "turn"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) rule: NewRuleArgs,
}

/// Arguments of `brigade deny`.
#[derive(Args, Debug)]
pub(crate) struct DenyArgs {
    /// Number or id of each request
    #[arg(value_name = "ID", required = true)]
    pub(crate) which: Vec<String>,
    /// Reason sent to the teammate: why not, and what to do instead
    #[arg(long, short, allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) rule: NewRuleArgs,
}

/// Options that make a rule out of an answer.
#[derive(Args, Debug)]
pub(crate) struct NewRuleArgs {
    /// Add a rule to your policy file that gives this answer from now on, after showing it and asking
    #[arg(long, group = "scope")]
    pub(crate) always: bool,
    /// Give the same answer to the same request until the member's turn ends
    #[arg(long, group = "scope")]
    pub(crate) turn: bool,
    /// Use this pattern for the rule instead of the exact command (repeat it for a pipeline)
    #[arg(long, value_name = "PATTERN", requires = "scope", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) rule: Vec<String>,
    /// Let the rule apply in every folder, not only in the folder of the member
    #[arg(long, requires = "always")]
    pub(crate) everywhere: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}
