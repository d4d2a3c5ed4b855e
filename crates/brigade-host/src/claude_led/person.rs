//! The person who uses brigade beside a Claude Code lead.

use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::error::HostError;

/// Returns the seat with which the caller sends a message to a member. A person who names no member writes to a member that
/// brigade runs on this host in a team that Claude Code leads: as the lead, with the person's own key.
pub async fn sending_seat(context: &Context, to: &str) -> Result<Seat, HostError> {
    if context.named_member().is_some() || context.location().nats().is_some() {
        return context.seat().await;
    }
    let team = context.team().await?;
    if context.store.is_ours(&team).await? {
        return Ok(context.seat_of(team, MemberName::lead()));
    }
    let registry = context.registry();
    if let Ok(name) = to.parse::<MemberName>()
        && (registry.member(&team, &name)?.is_some()
            || registry.claude_led().member_process(&team, &name)?.is_some())
    {
        return context.person_seat(&context.seat_of(team, MemberName::lead()));
    }
    let me = context.identity(&team).await?;
    Ok(context.seat_of(team, me))
}
