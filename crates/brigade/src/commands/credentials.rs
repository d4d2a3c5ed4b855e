//! Ends the NATS credentials of members that are stopped or removed.

use brigade_wire::name::{MemberName, TeamName};

use crate::cli::RevokeArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::{exit, output};

/// Revokes the member's credentials if the arguments name the operator's folder. Otherwise, tells the person that the
/// credentials stay valid. Reports on standard error, because standard output has the result of the command.
#[cfg_attr(not(feature = "nats"), expect(unused_variables))]
pub(super) async fn end(
    context: &CliContext,
    team: &TeamName,
    name: &MemberName,
    args: &RevokeArgs,
) -> Result<u8, CliError> {
    #[cfg(feature = "nats")]
    if let Some(dir) = &args.revoke {
        return super::org::revoke_stopped(dir, team, name).await;
    }
    if context.has_credentials() {
        output::note(&format!(
            "the NATS credentials of {name} stay valid; the operator revokes them with `brigade org revoke {team} {name}`"
        ));
    }
    Ok(exit::DONE)
}
