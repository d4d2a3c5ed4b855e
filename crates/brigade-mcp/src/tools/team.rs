//! Tools for listing the members, and for creating and deleting the team.

use brigade_core::roster::{self, SkipChecks, TeamPlan};
use brigade_wire::name::TeamName;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

pub(super) use super::NoParams;
use crate::call_context::CallContext;
pub(super) use crate::reply::DoneReply;
use crate::reply::{CallResult, ToolError, ToolReply};
use crate::team_view::{self, MemberSummary};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamCreateParams {
    /// Lower-case letters, digits and -
    team_name: String,
    #[serde(default)]
    description: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MembersReply {
    success: bool,
    message: String,
    team: String,
    you: String,
    members: Vec<MemberSummary>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TeamCreated {
    success: bool,
    message: String,
    team_name: String,
    lead_agent_id: String,
}

pub(super) async fn list_members(call: &CallContext<'_>, _: NoParams) -> CallResult {
    let seat = call.seat()?;
    let members = team_view::members(seat).await?;
    let render = |member: &MemberSummary| {
        let mut text = member.name.clone();
        if member.name == seat.name.as_str() {
            text.push_str(" (you)");
        }
        if member.lead {
            text.push_str(", lead");
        } else if let Some(agent_type) = &member.agent_type {
            text = format!("{text}, {agent_type}");
        }
        match member.is_active {
            Some(true) => text.push_str(", working"),
            Some(false) => text.push_str(", idle"),
            None => {}
        }
        text
    };
    let rendered: Vec<String> = members.iter().map(render).collect();
    let message = format!("team {}: {}", seat.team, rendered.join("; "));
    let (team, you) = (seat.team.to_string(), seat.name.to_string());
    Ok(ToolReply::new(
        message.clone(),
        &MembersReply { success: true, message, team, you, members },
    ))
}

pub(super) async fn team_create(call: &CallContext<'_>, args: TeamCreateParams) -> CallResult {
    let invalid = |error| ToolError::new(format!("{error}"));
    let name: TeamName =
        args.team_name.parse().map_err(|error: brigade_wire::name::NameError| invalid(error))?;
    let seat = call.server.founder_seat(name)?;
    let plan = TeamPlan { description: &args.description, lead_model: "unknown", cwd: &call.cwd() };
    roster::create(&seat, plan).await?;
    let message = format!("Team {} created; you are its lead, {}", seat.team, seat.name);
    let made = TeamCreated {
        success: true,
        message: message.clone(),
        team_name: seat.team.to_string(),
        lead_agent_id: format!("{}@{}", seat.name, seat.team),
    };
    call.server.set_seat(seat);
    // Notify the client, which may have cached the list of tools. A failure is harmless.
    let _not_notified = call.request.peer.notify_tool_list_changed().await;
    Ok(ToolReply::new(message, &made))
}

pub(super) async fn team_delete(call: &CallContext<'_>, _: NoParams) -> CallResult {
    let seat = call.seat()?;
    roster::delete(seat, SkipChecks::No).await?;
    let message = format!("Team {} deleted", seat.team);
    Ok(ToolReply::done(message))
}
