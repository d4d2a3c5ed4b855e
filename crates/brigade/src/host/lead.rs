//! What is done in the lead's seat without anybody being asked.

use brigade_core::approvals;
use brigade_core::policy::Ruling;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use super::Host;
use super::supervisor::log;
use crate::error::CliError;

/// Answers the requests that a rule answers. Only where brigade holds the lead's seat.
pub(super) async fn duties(host: &Host, seat: &Seat) -> Result<(), CliError> {
    if !seat.store.is_ours(&seat.team).await? {
        return Ok(());
    }
    let rules_of = |name: &MemberName| {
        let spec = host.folder.member(&seat.team, name).ok().flatten();
        spec.map(|spec| spec.rules).unwrap_or_default()
    };
    for ruled in approvals::apply(seat, rules_of).await.map_err(CliError::failed)? {
        let word = if ruled.ruling == Ruling::Allow { "allowed" } else { "denied" };
        log(&format!(
            "{} of team {}: {} {word} by rule {}",
            ruled.approval.from, seat.team, ruled.approval.request_id, ruled.rule
        ));
    }
    Ok(())
}
