//! `brigade resume`

use brigade_core::text;
use brigade_host::claude_led::ResumedSession;
use brigade_host::error::ErrorKind;
use brigade_host::resume;
use brigade_wire::name::{MemberName, TeamName};
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
        if let Some(session) = &one.session {
            return print_session(&one.team, session);
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
    let (which, take_over) = (asked.which.as_ref(), asked.take_over.as_ref());
    let resumed = resume::resume(context, which, take_over, &progress::print, done).await?;
    let dead: Vec<String> =
        resumed.iter().flat_map(|one| &one.dead).map(ToString::to_string).collect();
    if context.json {
        let teams: Vec<_> = resumed.iter().map(|one| &one.team).collect();
        let sessions = resumed.iter().filter_map(|one| one.session.as_ref());
        let waiting: Vec<_> = sessions.flat_map(|session| &session.waiting).collect();
        output::print_json(&json!({ "teams": teams, "dead": dead, "waiting": waiting }))?;
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

/// Prints which members of a team that Claude Code leads are back, and how the others come back.
fn print_session(team: &TeamName, session: &ResumedSession) -> Result<(), CliError> {
    let names =
        |names: &[MemberName]| names.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
    let ResumedSession { joined, waiting, session: id, is_lead_back, cwd, .. } = session;
    if !joined.is_empty() {
        output::print(&format!("on the team of Claude Code again: {}\n", names(joined)))?;
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let of = format!("{} of team {STRONG}{team}{STRONG:#}", names(waiting));
    if *is_lead_back {
        output::print(&format!("waiting: {of}; Claude Code is running\n"))?;
        output::hint(&format!("`brigade --team {team} status` shows why"));
        return Ok(());
    }
    output::print(&format!("waiting for Claude Code: {of}\n"))?;
    if let Some(id) = id {
        let cwd = cwd.as_ref().map(|cwd| format!(" in {}", text::one_line(&cwd.to_string_lossy())));
        let cwd = cwd.unwrap_or_default();
        output::hint(&format!("`claude --resume {id}`{cwd} brings their lead back"));
    }
    output::hint(&format!(
        "`brigade resume {team} --take-over NAME` makes it a team of your own instead"
    ));
    Ok(())
}
