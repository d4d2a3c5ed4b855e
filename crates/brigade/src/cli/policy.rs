//! `brigade policy …`

use std::path::PathBuf;

use brigade_wire::name::MemberName;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade policy list
  brigade policy test 'git log | head -3'
  brigade policy test 'cargo publish' --member bob
  brigade policy remove 2";

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List your rules and the rules of the running members
    ///
    /// With --team, lists only your rules and those of one team. Exits with code 4 if there are none.
    List,

    /// Show which rule decides about a command line, and why
    ///
    /// Runs nothing. Splits the line into its commands and shows the rule for each. Without --member, checks
    /// every member that runs on this host; if none runs, only your rules.
    Test(PolicyTestArgs),

    /// Remove one of your rules
    ///
    /// The rules after it move up by one number. Rules of a team are in its brigade.toml.
    Remove {
        /// The number of the rule in `brigade policy list`
        number: usize,
    },
}

/// Arguments of `brigade policy test`.
#[derive(Args, Debug)]
pub(crate) struct PolicyTestArgs {
    /// The command line, in quotes
    #[arg(value_name = "CMD", value_parser = NonEmptyStringValueParser::new(), allow_hyphen_values = true)]
    pub(crate) line: String,
    /// Check only the rules for this member
    #[arg(long)]
    pub(crate) member: Option<MemberName>,
    /// The folder in which the command would run [default: the member's folder]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}
