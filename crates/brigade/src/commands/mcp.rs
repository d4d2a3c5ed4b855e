//! `brigade mcp`

use brigade_core::store::StoreError;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::error::{CliError, Trouble};
use crate::{env, exit, mcp};

/// Runs the MCP server. Team and member must be named explicitly; other commands fall back to defaults, but
/// a model must not get a member's identity by accident.
pub(crate) async fn run(context: &Context) -> Result<u8, CliError> {
    let (team, me) = (context.named_team(), context.named_me());
    let leads = me.is_none_or(|me| *me == MemberName::lead());
    match team {
        Some(team) if context.store.team(team).await?.is_some() => {
            let Some(me) = me else {
                let error = CliError::usage(Trouble::WhoAmI { team: team.to_string() });
                return Err(error.hint(format!("add `--as NAME` or set {}", env::AS)));
            };
            let seat = context.seat_of(team.clone(), me.clone());
            mcp::serve(context, seat.with_hand(context.agent())).await?;
        }
        Some(team) if !leads => {
            let error = CliError::from(StoreError::NoTeam { team: team.clone() });
            return Err(error.hint(format!("create it with `brigade team create {team}`")));
        }
        None if !leads => {
            let error = CliError::usage(Trouble::WhichTeam);
            return Err(error.hint(format!("add `--team TEAM` or set {}", env::TEAM)));
        }
        named => mcp::serve_founder(context, named.cloned()).await?,
    }
    Ok(exit::DONE)
}
