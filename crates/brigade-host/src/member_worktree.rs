//! Finds the worktree of a member that runs, that was stopped, or whose team is down.

use brigade_core::text;
use brigade_wire::name::{MemberName, TeamName};

use crate::context::Context;
use crate::error::{HostError, Trouble};
use crate::host::Host;
use crate::spec::MemberSpec;
use crate::trust::Trust;
use crate::worktree::Worktree;
use crate::{down, origin, stopped};

/// Returns the worktree of a member on this host. Brigade keeps the worktree of a stopped member if it has work that exists
/// nowhere else. If the team is down, the settings in the team file of the current folder tell where the worktree is.
pub async fn find(
    context: &Context,
    name: &MemberName,
    trust: &Trust,
) -> Result<Worktree, HostError> {
    let host = context.host()?;
    let team = match context.named_team() {
        // Claude Code may lead the team, so that it was not started by brigade.
        Some(team) => Ok(team.clone()),
        None => down::choose_team_with_members(context, &host, None).await,
    };
    let team = match team {
        Ok(team) => team,
        Err(error) => return of_team_file(context, &host, name, trust).ok_or(error),
    };
    if let Some(spec) = host.of_member(&team, name)?.registry.member(&team, name)? {
        return match host.worktree(&team, &spec).filter(Worktree::exists) {
            Some(worktree) => Ok(worktree),
            None => Err(no_worktree(&host, &team, &spec)?),
        };
    }
    let Some(stopped) = host.registry.stopped_member(&team, name)? else {
        let kept = of_team_file(context, &host, name, trust);
        return kept.ok_or_else(|| down::not_here(context, &host, &team, name));
    };
    let worktree = host.worktree(&team, &stopped.spec);
    match worktree {
        Some(worktree) if worktree.exists() => Ok(worktree),
        worktree => {
            let error = stopped::stopped_error(context, &team, name)?;
            let error = error.unwrap_or_else(|| down::not_here(context, &host, &team, name));
            Err(match worktree {
                None => error.hint("it had no worktree of its own"),
                Some(worktree) => error.hint(removed_hint(&worktree)),
            })
        }
    }
}

/// Returns the error for a member that runs without a worktree.
fn no_worktree(host: &Host, team: &TeamName, spec: &MemberSpec) -> Result<HostError, HostError> {
    let name = &spec.name;
    let error = HostError::failed(Trouble::NoWorktree { name: name.to_string() });
    Ok(match host.of_member(team, name)?.is_claude_led {
        true => error.hint(format!(
            "{name} works in {}; `git diff` there shows the changes",
            text::one_line(&spec.cwd.to_string_lossy())
        )),
        false => error
            .hint(format!(
                "if {name} is in brigade.toml, set `worktree = true` there, then `brigade up --recreate`"
            ))
            .hint(format!("`brigade spawn {name}2 --like {name} --worktree` starts another member with one")),
    })
}

fn removed_hint(worktree: &Worktree) -> String {
    let branch = &worktree.branch;
    match worktree.has_branch() {
        true => format!("its worktree was removed; `git diff HEAD...{branch}` shows its commits"),
        false => "its worktree was removed, because it had no changes".to_owned(),
    }
}

/// Returns the worktree of a member of the team file for the current folder. The file need not have a running team, but the
/// user must trust it: it names folders in which brigade runs git.
fn of_team_file(
    context: &Context,
    host: &Host,
    name: &MemberName,
    trust: &Trust,
) -> Option<Worktree> {
    let folder = origin::folder_team(&context.cwd).ok()??;
    if context.named_team().is_some_and(|named| *named != folder.team) {
        return None;
    }
    let file = trust.read(&folder.file).ok()?;
    let spec = file.spec().members.iter().find(|member| member.name == *name)?;
    host.worktree(&folder.team, spec).filter(Worktree::exists)
}
