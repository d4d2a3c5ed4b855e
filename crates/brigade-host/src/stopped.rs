//! Members that do not run: when they were stopped, and how a person starts them again.

use std::path::{Path, PathBuf};

use brigade_core::authority::Denied;
use brigade_core::board::BoardError;
use brigade_core::mail::MailError;
use brigade_core::policy::shell::quote;
use brigade_core::pulse::format_duration;
use brigade_core::roster::RosterError;
use brigade_core::seat::Seat;
use brigade_core::store::{Mail, MailContent};
use brigade_wire::name::{MemberName, TeamName};

use crate::context::Context;
use crate::error::{HostError, Trouble};
use crate::registry::Registry;
use crate::spec::MemberSpec;
use crate::team_file::{self, OutsidePaths};

/// A team file that started a team, and its members.
pub(crate) struct StartedFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The members, and the agent that leads, in the order of the file.
    pub members: Vec<MemberSpec>,
}

impl StartedFile {
    /// Reads the team file that started a team. Returns `None` if no file did, or if the file is not valid now.
    pub(crate) fn read(registry: &Registry, team: &TeamName) -> Option<Self> {
        let origin = registry.origin(team).ok()??;
        let file = team_file::read(&origin.file, OutsidePaths::Skip).ok()?;
        let members = file.spec.lead.into_iter().chain(file.spec.members);
        (file.spec.team == *team).then(|| Self { path: origin.file, members: members.collect() })
    }
}

/// Returns the command that starts the members of a team file, from the folder `cwd`.
pub fn up_command(cwd: &Path, file: &Path) -> String {
    match team_file::find(cwd) {
        Ok(found) if team_file::identity(&found) == file => "brigade up".to_owned(),
        _ => format!("brigade up --file {}", quote(&file.to_string_lossy())),
    }
}

/// Returns the command that starts a stopped member again. Returns `None` if this host has no record of such a member.
pub fn start_command(
    context: &Context,
    team: &TeamName,
    name: &MemberName,
) -> Result<Option<String>, HostError> {
    let registry = context.registry();
    if registry.stopped_member(team, name)?.is_none() {
        return Ok(None);
    }
    if let Some(file) = StartedFile::read(&registry, team)
        && file.members.iter().any(|member| member.name == *name)
    {
        return Ok(Some(up_command(&context.cwd, &file.path)));
    }
    let option = context.named_team().map(|team| format!(" --team {team}")).unwrap_or_default();
    Ok(Some(format!("brigade spawn {name} --like {name}{option}")))
}

/// Returns how a person starts members again that were just stopped, in one sentence for each command.
pub async fn start_advice(
    context: &Context,
    team: &TeamName,
    names: &[MemberName],
) -> Result<Vec<String>, HostError> {
    let is_ours = !context.team_exists(team).await? || context.store.is_ours(team).await?;
    let mut commands: Vec<(Option<String>, Vec<&str>)> = Vec::new();
    for name in names {
        let command = start_command(context, team, name)?;
        match commands.iter_mut().find(|(other, _)| *other == command) {
            Some((_, others)) => others.push(name.as_str()),
            None => commands.push((command, vec![name.as_str()])),
        }
    }
    let sentence = |(command, names): (Option<String>, Vec<&str>)| {
        let names = names.join(", ");
        match command {
            Some(command) => Some(format!("`{command}` starts {names} again")),
            None if !is_ours => Some(format!("ask Claude Code to start {names} again")),
            None => None,
        }
    };
    Ok(commands.into_iter().filter_map(sentence).collect())
}

/// Returns the error for a member that was stopped on this host. Returns `None` if this host has no record of such a member.
pub fn stopped_error(
    context: &Context,
    team: &TeamName,
    name: &MemberName,
) -> Result<Option<HostError>, HostError> {
    let Some(stopped) = context.registry().stopped_member(team, name)? else { return Ok(None) };
    let ago = format_duration(context.clock.now().duration_since(stopped.at));
    let (who, of) = (name.to_string(), team.to_string());
    let error = HostError::failed(Trouble::WasStopped { name: who, team: of, ago });
    Ok(Some(match start_command(context, team, name)? {
        Some(command) => error.hint(format!("start it again with `{command}`")),
        None => error,
    }))
}

/// Returns the number of unread texts in the inbox of a member that was stopped. A member of the same name gets them when it is
/// started. Returns 0 if no such member was stopped, or if its inbox cannot be read.
pub(crate) async fn unread_texts(
    registry: &Registry,
    lead: &Seat,
    name: &MemberName,
) -> Result<usize, HostError> {
    if registry.stopped_member(&lead.team, name)?.is_none() {
        return Ok(0);
    }
    let is_text =
        |mail: &&Mail| mail.is_unread() && matches!(mail.content(), Some(MailContent::Text(_)));
    let inbox = lead.store.inbox(&lead.team, name).await.unwrap_or_default();
    Ok(inbox.iter().filter(is_text).count())
}

/// If an operation failed because there is no such member, and the member was stopped on this host, returns an error that says
/// so. Returns all other errors unchanged.
pub async fn explain(context: &Context, error: HostError) -> HostError {
    let Some((name, team)) = missing_member(&error) else { return error };
    let team = match team {
        Some(team) => Some(team),
        None => context.team_choice().await.ok().map(|choice| choice.team),
    };
    let stopped = team.and_then(|team| stopped_error(context, &team, &name).ok()?);
    stopped.unwrap_or(error)
}

/// Returns the member that does not exist according to an error, and its team if the error names it.
fn missing_member(error: &HostError) -> Option<(MemberName, Option<TeamName>)> {
    let source = error.source.as_ref();
    let (name, team) = if let Some(MailError::NoMember { to, team, .. }) = source.downcast_ref() {
        (to.parse().ok()?, team.parse().ok())
    } else if let Some(BoardError::NoMember { name, .. }) = source.downcast_ref() {
        (name.parse().ok()?, None)
    } else if let Some(RosterError::NoMember { name, team, .. }) = source.downcast_ref() {
        (name.clone(), Some(team.clone()))
    } else if let Some(Denied::NotAMember { who, team, .. }) = source.downcast_ref() {
        (who.clone(), team.parse().ok())
    } else if let Some(Trouble::NoMember { name, team } | Trouble::NotHere { name, team }) =
        source.downcast_ref()
    {
        (name.parse().ok()?, team.parse().ok())
    } else {
        return None;
    };
    Some((name, team))
}
