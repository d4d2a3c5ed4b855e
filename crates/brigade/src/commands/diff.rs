//! `brigade diff`

use std::io::IsTerminal as _;

use brigade_wire::name::MemberName;
use serde_json::json;

use super::down::which;
use crate::context::Context;
use crate::error::{CliError, Kind, Trouble};
use crate::host::worktree::Worktree;
use crate::{env, exit, output};

pub(crate) async fn run(context: &Context, name: &MemberName, stat: bool) -> Result<u8, CliError> {
    let host = context.host()?;
    let team = which(context, &host, None).await?;
    let Some(spec) = host.folder.member(&team, name)? else {
        let (name, team) = (name.to_string(), team.to_string());
        return Err(CliError::failed(Trouble::NotHere { name, team }));
    };
    let worktree = host.worktree(&team, &spec).filter(Worktree::is_there);
    let Some(worktree) = worktree else {
        let error = CliError::failed(Trouble::NoWorktree { name: name.to_string() });
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
        return Err(CliError::new(Kind::Nothing, Trouble::NoDifference { name: name.to_string() }));
    }
    output::print_raw(diff.as_bytes())?;
    Ok(exit::DONE)
}
