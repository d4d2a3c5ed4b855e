//! Phrases and limits that several checks use.

use std::fmt::Display;

use brigade_wire::name::MemberName;
use jiff::SignedDuration;

/// Requests that wait longer than this are reported.
pub(super) const LONG_WAIT: SignedDuration = SignedDuration::from_mins(10);
/// The advice for a request that has waited too long.
pub(super) const ANSWER_ADVICE: &str = "answer it as the lead; `brigade approvals` lists it";
/// The advice for a folder that can be removed unless the user needs its contents.
pub(super) const MOVE_AWAY: &str = "check whether you need its contents, then move it away";

/// Formats the location of a problem: a member and its team.
pub(super) fn member_place(name: impl Display, team: impl Display) -> String {
    format!("{name} of team {team}")
}

/// Describes the problem that a member's last turn failed.
pub(super) fn turn_failed(why: &str) -> String {
    format!("its last turn failed: {why}")
}

/// Returns the advice for a member whose last turn failed.
pub(super) fn continue_advice(team: &str, name: &MemberName) -> String {
    format!("fix the cause, then run `brigade --team {team} send {name} \"continue\"`")
}
