//! `brigade mcp`

use std::sync::Arc;

use brigade_agents::instructions::MailDelivery;
use brigade_core::store::StoreError;
use brigade_wire::name::MemberName;

use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::{env, exit};

/// Serves the team's tools. Unlike other commands, this one never guesses the team or the member: a model uses the
/// tools and must not act as a member by accident.
pub(crate) async fn run(context: CliContext) -> Result<u8, CliError> {
    let context = Arc::new(context.into_host());
    let mail = if env::read(env::DELIVERED).is_some() {
        MailDelivery::Delivered
    } else {
        MailDelivery::Fetched
    };
    let (team, me) = (context.named_team(), context.named_member());
    let leads = me.is_none_or(|me| *me == MemberName::lead());
    match team {
        Some(team) if context.team_exists(team).await? => {
            let Some(me) = me else {
                let error = CliError::usage(CliTrouble::NoMemberName { team: team.to_string() });
                return Err(error.hint(format!("add `--as NAME`, or set {}", env::AS)));
            };
            let seat = context.seat_of(team.clone(), me.clone());
            let seat = seat.with_user(context.agent());
            brigade_mcp::serve(Arc::clone(&context), seat, mail).await?;
        }
        Some(team) if !leads => {
            let error = CliError::from(StoreError::NoTeam { team: team.clone() });
            return Err(error.hint(format!("create it with `brigade team create {team}`")));
        }
        None if !leads => {
            let error = CliError::usage(CliTrouble::WhichTeam);
            return Err(error.hint(format!("add `--team TEAM`, or set {}", env::TEAM)));
        }
        named => {
            brigade_mcp::serve_without_team(Arc::clone(&context), named.cloned(), mail).await?;
        }
    }
    Ok(exit::DONE)
}
