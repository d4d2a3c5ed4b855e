//! `brigade diff`

use std::io::IsTerminal as _;

use brigade_wire::name::MemberName;
use serde_json::json;

use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, Kind};
use crate::{env, exit, output};
use brigade_host::down::choose_team;
use brigade_host::worktree::Worktree;

pub(crate) async fn run(
    context: &CliContext,
    name: &MemberName,
    stat: bool,
) -> Result<u8, CliError> {
    let host = context.host()?;
    let team = choose_team(context, &host, None).await?;
    let spec = host.local_member(&team, name)?;
    let worktree = host.worktree(&team, &spec).filter(Worktree::exists);
    let Some(worktree) = worktree else {
        let error = CliError::failed(CliTrouble::NoWorktree { name: name.to_string() });
        return Err(error.hint("set `worktree = true` for the member in brigade.toml"));
    };
    let color = !context.json && std::io::stdout().is_terminal() && env::read("NO_COLOR").is_none();
    let diff = worktree.diff(color, stat)?;
    if context.json {
        let distance = worktree.distance()?;
        output::print_json(&json!({ "dir": worktree.dir, "distance": distance, "diff": diff }))?;
        return Ok(if diff.is_empty() { exit::NOTHING } else { exit::DONE });
    }
    if diff.is_empty() {
        return Err(CliError::new(
            Kind::Nothing,
            CliTrouble::NoDifference { name: name.to_string() },
        ));
    }
    output::print_raw(diff.as_bytes())?;
    Ok(exit::DONE)
}
