//! The person who uses brigade beside a Claude Code lead.

use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::error::HostError;

/// Returns the seat with which the caller sends a message to a member. A person who names no member writes to a member that
/// Claude Code started and that brigade runs as its lead, with the person's own key.
pub async fn sending_seat(context: &Context, to: &str) -> Result<Seat, HostError> {
    if context.named_member().is_none() && context.location().nats().is_none() {
        let team = context.team().await?;
        if let Ok(name) = to.parse::<MemberName>()
            && !context.store.is_ours(&team).await?
            && context.registry().claude_led().member_process(&team, &name)?.is_some()
        {
            return context.person_seat(&context.seat_of(team, MemberName::lead()));
        }
    }
    context.seat().await
}
