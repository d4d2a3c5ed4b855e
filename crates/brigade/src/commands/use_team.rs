//! `brigade use`

use brigade_host::team_choice::TeamSource;
use brigade_wire::name::TeamName;
use serde_json::json;

use crate::cli::UseArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::output::{self, STRONG};
use crate::{env, exit};

/// Sets, clears or shows the default team. `is_option` says that an option names a team.
pub(crate) async fn run(
    context: &CliContext,
    args: &UseArgs,
    is_option: bool,
) -> Result<u8, CliError> {
    if args.clear {
        context.set_default_team(None)?;
    } else if let Some(team) = &args.which {
        context.check_exists(team).await?;
        context.set_default_team(Some(team))?;
    } else {
        return show(context, is_option).await;
    }
    if context.json {
        output::print_json(&json!({ "default": args.which }))?;
        return Ok(exit::DONE);
    }
    match &args.which {
        None => output::print("there is no default team any more\n")?,
        Some(team) => {
            output::print(&format!("default team: {STRONG}{team}{STRONG:#}\n"))?;
            note_other(context, team, is_option).await;
        }
    }
    Ok(exit::DONE)
}

/// Says that commands here use another team than the default.
async fn note_other(context: &CliContext, team: &TeamName, is_option: bool) {
    if let Ok(choice) = context.team_choice().await
        && choice.team != *team
    {
        let why = reason(choice.source, is_option);
        output::note(&format!("commands here still use team {} ({why})", choice.team));
    }
}

async fn show(context: &CliContext, is_option: bool) -> Result<u8, CliError> {
    let default = context.default_team()?;
    let choice = context.team_choice().await?;
    if context.json {
        let (team, source) = (&choice.team, choice.source);
        output::print_json(&json!({ "team": team, "source": source, "default": default }))?;
        return Ok(exit::DONE);
    }
    let why = reason(choice.source, is_option);
    output::print(&format!("team {STRONG}{}{STRONG:#} ({why})\n", choice.team))?;
    if let Some(default) = default.filter(|default| *default != choice.team) {
        output::print(&format!("default team: {default} (chosen with `brigade use`)\n"))?;
    }
    Ok(exit::DONE)
}

fn reason(source: TeamSource, is_option: bool) -> String {
    match source {
        TeamSource::Named if is_option => "named with `--team`".to_owned(),
        TeamSource::Named if env::read(env::TEAM).is_some() => format!("from {}", env::TEAM),
        TeamSource::Named => "of the credentials".to_owned(),
        source => source.as_text().to_owned(),
    }
}
