//! `brigade resume`

use brigade_core::text;
use brigade_host::error::ErrorKind;
use brigade_host::resume;
use serde_json::json;

use crate::cli::ResumeArgs;
use crate::context::CliContext;
use crate::error::{CliError, Trouble};
use crate::output::{self, STRONG};
use crate::{exit, progress};

pub(crate) async fn run(context: &CliContext, asked: &ResumeArgs) -> Result<u8, CliError> {
    let done = |one: &resume::Resumed| {
        if context.json {
            return Ok(());
        }
        let (team, running) = (&one.team, text::count(one.running, "member"));
        if one.has_no_members() {
            output::note(&format!("team {team} has no members on this host"));
            return Ok(());
        }
        if one.running == 0 {
            // The error at the end names the members that did not start.
            return Ok(());
        }
        output::print(&format!("team {STRONG}{team}{STRONG:#} is up again with {running}\n"))
    };
    let resumed = resume::resume(context, asked.which.as_ref(), &progress::print, done).await?;
    let dead: Vec<String> =
        resumed.iter().flat_map(|one| &one.dead).map(ToString::to_string).collect();
    if context.json {
        let teams: Vec<_> = resumed.iter().map(|one| &one.team).collect();
        output::print_json(&json!({ "teams": teams, "dead": dead }))?;
    }
    if resumed.iter().all(|one| one.has_no_members() && !one.restored) {
        let error = CliError::new(ErrorKind::Nothing, Trouble::NothingToResume);
        return Err(error.hint(
            "`brigade up` adds the members of brigade.toml, `brigade down TEAM` deletes a team",
        ));
    }
    if dead.is_empty() {
        return Ok(exit::DONE);
    }
    let error = CliError::failed(Trouble::DidNotStart { names: dead });
    Err(error.hint("`brigade status` shows the reason; `brigade resume` tries again"))
}
