//! Programs that are given the terminal for a while: a member's own window, a shell where it works.

use std::path::PathBuf;
use std::process::Command;

use brigade_core::projection::Person;
use brigade_host::Context;
use brigade_host::spec::Place;
use brigade_wire::name::TeamName;

use crate::run::Options;

/// What shows a member's own window.
pub(crate) fn window(
    context: &Context,
    options: &Options,
    team: &TeamName,
    person: &Person,
) -> Result<Command, String> {
    let name = &person.name;
    let none = || format!("{name} has no window of its own; view 6 shows what it says and does");
    let host = context.host().map_err(|error| error.in_one_line())?;
    let member = person.member_name().ok_or_else(none)?;
    let spec = host.registry.member(team, &member).map_err(|error| error.in_one_line())?;
    if let Some(spec) = spec {
        if spec.place == Place::Headless {
            return Err(none());
        }
        return Ok(host.tmux().show(team.as_str(), name));
    }
    // A pane that its lead opened, in the tmux one sits in or in another.
    let pane = person.entry.as_ref().and_then(|entry| entry.tmux_pane_id.as_deref());
    let pane = pane.filter(|pane| pane.starts_with('%')).ok_or_else(none)?;
    let mut tmux = Command::new("tmux");
    if options.in_tmux {
        tmux.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane]);
    } else {
        tmux.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane]);
        tmux.args([";", "attach-session", "-t", pane]);
    }
    Ok(tmux)
}

/// A shell in the folder a member works in.
pub(crate) fn shell(
    context: &Context,
    options: &Options,
    team: &TeamName,
    person: &Person,
) -> Result<Command, String> {
    let host = context.host().map_err(|error| error.in_one_line())?;
    let spec = person.member_name().map(|name| host.registry.member(team, &name));
    let spec = spec.transpose().map_err(|error| error.in_one_line())?.flatten();
    let worktree = spec.and_then(|spec| host.worktree(team, &spec)).map(|worktree| worktree.dir);
    let cwd = person.entry.as_ref().and_then(|entry| entry.cwd.clone()).map(PathBuf::from);
    let folder = worktree.filter(|dir| dir.is_dir()).or(cwd);
    let folder = folder.filter(|dir| dir.is_dir());
    let folder =
        folder.ok_or_else(|| format!("the folder {} works in is not on this host", person.name))?;
    let mut shell = Command::new(&options.shell);
    shell.current_dir(folder);
    Ok(shell)
}
