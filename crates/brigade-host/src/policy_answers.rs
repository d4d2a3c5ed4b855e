//! What is done in the lead's seat without anybody being asked.

use std::time::Duration;

use brigade_core::approvals;
use brigade_core::policy::Ruling;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::Host;
use crate::error::HostError;
use crate::progress::Log;

/// How long after a request came, or was last seen to wait, it is looked at again. An answer that somebody decided
/// on who died is sent within this time.
const AGAIN: Duration = Duration::from_secs(30);

/// Whether requests wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// Some do.
    Wait,
    /// None does.
    None,
}

/// When requests are looked at. That reads whole journals, and the lead gets mail all the time: other mail than a
/// request is no reason.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    next: Option<Duration>,
}

impl Attention {
    /// Whether it is time to look: somebody has `asked`, or did a while ago.
    pub(crate) fn is_due(&mut self, asked: bool, now: Duration) -> bool {
        let again = self.next.is_some_and(|next| now >= next);
        if again {
            self.next = None;
        }
        if asked {
            self.renew(now);
        }
        asked || again
    }

    /// Something waits.
    pub(crate) fn renew(&mut self, now: Duration) {
        self.next = Some(now + AGAIN);
    }
}

/// Answers the requests that a rule answers; whether others wait. Only where brigade holds the lead's seat.
pub(crate) async fn duties(host: &Host, seat: &Seat, log: Log<'_>) -> Result<Requests, HostError> {
    if !host.leads(seat).await? {
        return Ok(Requests::None);
    }
    let rules_of = |name: &MemberName| {
        let spec = host.registry.member(&seat.team, name).ok().flatten();
        spec.map(|spec| spec.rules).unwrap_or_default()
    };
    for ruled in approvals::apply(seat, rules_of).await.map_err(HostError::failed)? {
        let word = if ruled.ruling == Ruling::Allow { "allowed" } else { "denied" };
        log(&format!(
            "{} of team {}: {} {word} by rule {}",
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
    fn requests_are_looked_at_while_somebody_has_asked() {
        let mut attention = Attention::default();
        let mut check = |second, asked, due| {
            let now = Duration::from_secs(second);
            assert_eq!(attention.is_due(asked, now), due, "at {second} s");
        };
        check(0, false, false);
        check(10, true, true);
        check(11, false, false);
        // Once more, in case an answer was decided on and not sent.
        check(40, false, true);
        check(41, false, false);
    }

    #[test]
    fn what_waits_is_attended_to() {
        let mut attention = Attention::default();
        let at = Duration::from_secs;
        assert!(attention.is_due(true, at(0)));
        assert!(attention.is_due(false, at(30)));
        attention.renew(at(30));
        assert!(!attention.is_due(false, at(59)));
        assert!(attention.is_due(false, at(60)));
        assert!(!attention.is_due(false, at(90)));
    }
}
