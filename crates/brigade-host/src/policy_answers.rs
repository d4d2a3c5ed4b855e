//! Answers permission requests on behalf of the lead, by the rules in the team file and in the person's policy file.

use std::time::Duration;

use brigade_core::approvals;
use brigade_core::policy::RuleDecision;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::Host;
use crate::context::Context;
use crate::error::HostError;
use crate::personal_policy::PersonalPolicy;
use crate::progress::Log;
use crate::rules::{member_rules, real_path};

/// How long to wait before checking a request a second time. If a process decided on an answer but died before
/// sending the answer, the second check sends it.
const RECHECK_AFTER: Duration = Duration::from_secs(30);

/// Whether requests wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// At least one request waits for an answer.
    Wait,
    /// No request waits for an answer.
    None,
}

/// Decides when to check for requests. A check reads whole journals, so only mail that contains a request causes
/// a check.
#[derive(Debug, Default)]
pub(crate) struct RequestSchedule {
    next: Option<Duration>,
}

impl RequestSchedule {
    /// Returns whether a check is due. `asked` means that a request has arrived since the last check.
    pub(crate) fn is_due(&mut self, asked: bool, now: Duration) -> bool {
        let recheck = self.next.is_some_and(|next| now >= next);
        if recheck {
            self.next = None;
        }
        if asked {
            self.renew(now);
        }
        asked || recheck
    }

    /// Schedules another check, because a request still waits for an answer.
    pub(crate) fn renew(&mut self, now: Duration) {
        self.next = Some(now + RECHECK_AFTER);
    }
}

/// Answers the requests that match a rule of the asking member or of the person. Returns whether any requests still wait for
/// an answer. If brigade does not lead the team, does nothing and returns [`Requests::None`]. While the person's rules cannot be
/// read, no rule answers: one of them may deny what another rule allows.
pub(crate) async fn answer_by_rule(
    context: &Context,
    host: &Host,
    seat: &Seat,
    log: Log<'_>,
) -> Result<Requests, HostError> {
    if !host.leads(seat).await? {
        return Ok(Requests::None);
    }
    let personal = PersonalPolicy::of_context(context);
    if let Err(error) = &personal {
        log(&format!("team {}: no rule answers: {}", seat.team, error.to_one_line()));
    }
    let rules_of = |name: &MemberName| {
        let spec = host.registry.member(&seat.team, name).ok().flatten();
        let both = spec.zip(personal.as_ref().ok());
        // If the rules of the member cannot be read, no rule answers its requests.
        both.and_then(|(spec, personal)| member_rules(host, personal, &seat.team, &spec).ok())
            .unwrap_or_default()
    };
    let ruled = approvals::apply_rules(seat, rules_of, real_path).await;
    for ruled in ruled.map_err(HostError::failed)? {
        let ruling = if ruled.decision == RuleDecision::Allow { "allowed" } else { "denied" };
        log(&format!(
            "{} of team {}: {} {ruling} by {}",
            ruled.approval.from, seat.team, ruled.approval.request_id, ruled.rule
        ));
    }
    let waiting = approvals::waiting(seat).await.map_err(HostError::failed)?;
    Ok(if waiting.is_empty() { Requests::None } else { Requests::Wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked_when_asked_and_once_more_later() {
        let mut schedule = RequestSchedule::default();
        let mut check = |second, asked, due| {
            let now = Duration::from_secs(second);
            assert_eq!(schedule.is_due(asked, now), due, "at {second} s");
        };
        check(0, false, false);
        check(10, true, true);
        check(11, false, false);
        // The second check sends an answer that was decided but not sent.
        check(40, false, true);
        check(41, false, false);
    }

    #[test]
    fn waiting_requests_are_checked_again() {
        let mut schedule = RequestSchedule::default();
        let at = Duration::from_secs;
        schedule.renew(at(30));
        assert!(!schedule.is_due(false, at(59)));
        assert!(schedule.is_due(false, at(60)));
        assert!(!schedule.is_due(false, at(90)));
    }
}
