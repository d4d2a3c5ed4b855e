//! Commands that use the terminal in place of the dashboard: show a member's tmux window, or start a shell in
//! the member's folder.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use brigade_core::projection::MemberView;
use brigade_host::Context;
use brigade_host::spec::MemberPlace;
use brigade_wire::name::TeamName;

/// Returns the command that shows a member's tmux window.
pub(crate) fn window(
    context: &Context,
    in_tmux: bool,
    team: &TeamName,
    person: &MemberView,
) -> Result<Command, String> {
    let name = &person.name;
    let none = || format!("{name} has no window; view 6 shows its activity");
    let host = context.host().map_err(|error| error.to_one_line())?;
    let member = person.member_name().ok_or_else(none)?;
    let spec = host.registry.member(team, &member).map_err(|error| error.to_one_line())?;
    if let Some(spec) = spec {
        if spec.place == MemberPlace::Headless {
            return Err(none());
        }
        let process = host.member_process(team, &member).ok().flatten();
        return Ok(host.tmux().server_of(process.as_ref()).show(team.as_str(), name));
    }
    // The Claude Code lead opened this pane, in the current tmux server or in another one.
    let pane = person.entry.as_ref().and_then(|entry| entry.tmux_pane_id.as_deref());
    let pane = pane.filter(|pane| pane.starts_with('%')).ok_or_else(none)?;
    let mut tmux = Command::new("tmux");
    tmux.args(["select-window", "-t", pane, ";", "select-pane", "-t", pane]);
    if !in_tmux {
        tmux.args([";", "attach-session", "-t", pane]);
    }
    Ok(tmux)
}

/// Returns the command that starts a shell in a member's folder.
pub(crate) fn shell(
    context: &Context,
    shell: &OsStr,
    team: &TeamName,
    person: &MemberView,
) -> Result<Command, String> {
    let host = context.host().map_err(|error| error.to_one_line())?;
    let spec = person.member_name().map(|name| host.registry.member(team, &name));
    let spec = spec.transpose().map_err(|error| error.to_one_line())?.flatten();
    let worktree = spec.and_then(|spec| host.worktree(team, &spec)).map(|worktree| worktree.dir);
    let cwd = person.entry.as_ref().and_then(|entry| entry.cwd.clone()).map(PathBuf::from);
    let folder = worktree.filter(|dir| dir.is_dir()).or(cwd);
    let folder = folder.filter(|dir| dir.is_dir());
    let folder = folder.ok_or_else(|| format!("{}'s folder is not on this host", person.name))?;
    let mut shell = Command::new(shell);
    shell.current_dir(folder);
    Ok(shell)
}
