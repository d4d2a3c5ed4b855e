//! Formats the team's members for tools and resources.

use brigade_agents::driver;
use brigade_core::seat::Seat;
use brigade_wire::team::Team;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

use crate::reply::ToolError;

/// A member in a tool's result.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberSummary {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    color: Option<String>,
    pub(super) lead: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_active: Option<bool>,
}

/// Reads the seat's team, calls `read` with the team, and returns the result.
pub(super) async fn with_team<T>(
    seat: &Seat,
    read: impl FnOnce(&Team<'_>) -> T,
) -> Result<T, ToolError> {
    let config = seat.config().await?;
    let damaged = |_| ToolError::new("the team's configuration cannot be read; try again");
    let team = Team::read(&config.bytes).map_err(damaged)?;
    Ok(read(&team))
}

/// Returns all members of the team, in roster order.
pub(super) async fn members(seat: &Seat) -> Result<Vec<MemberSummary>, ToolError> {
    with_team(seat, |team| {
        let lead = team.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let owned =
            |text: Option<std::borrow::Cow<'_, str>>| text.map(std::borrow::Cow::into_owned);
        let view = |member: brigade_wire::member::Member<'_>| {
            let name = member.name()?.into_owned();
            Some(MemberSummary {
                lead: lead.as_ref() == Some(&name),
                name,
                agent_type: owned(member.agent_type()),
                model: owned(driver::known_model(&member)),
                color: owned(member.color()),
                is_active: member.is_active(),
            })
        };
        team.members().filter_map(view).collect()
    })
    .await
}
