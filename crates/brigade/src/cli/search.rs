//! `brigade search`

use brigade_core::search_text::SearchText;
use brigade_host::search::HistorySearch;
use brigade_wire::name::MemberName;
use clap::Args;
use jiff::Timestamp;

use super::logs::{LogKindWord, point_in_time};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade search parser                          words that begin with `parser`
  brigade search '\"fix the parser\"'              exactly these words
  brigade search timeout --member bob --since 2d
  brigade search --all --kind task release
  brigade search parser --json | jq -r .open";

/// Arguments of `brigade search`.
#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// Words to search for; text in double quotes is searched for as it is
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Search every team, also deleted ones
    #[arg(long, conflicts_with = "team")]
    all: bool,
    /// Only what these members wrote or did, and messages to them
    #[arg(long, short, value_name = "NAME")]
    member: Vec<MemberName>,
    /// Only records of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<LogKindWord>,
    /// Only records from this time on: 10m (ago), 14:00, 2026-11-18 or 2026-11-18T14:00
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    since: Option<Timestamp>,
    /// Only records before this time
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    until: Option<Timestamp>,
    /// Only the newest N of them
    #[arg(long = "last", short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) last: usize,
}

impl SearchArgs {
    /// Returns the text to search for, as it was entered.
    pub(crate) fn text(&self) -> String {
        self.text.join(" ")
    }

    /// Returns the search for this text.
    pub(crate) fn search(&self, text: SearchText) -> HistorySearch {
        HistorySearch {
            text,
            all_teams: self.all,
            members: self.member.clone(),
            kinds: self.kind.iter().map(|kind| (*kind).into()).collect(),
            since: self.since,
            until: self.until,
            limit: self.last,
        }
    }
}
