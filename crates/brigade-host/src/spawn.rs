//! One more member for a team.

use std::path::PathBuf;

use brigade_core::roster::RosterError;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;

use super::spec::{AccessWord, Answers, MemberSpec, Place, Restart, TeamSpec};
use super::{Host, bring, needs, wait};
use crate::error::{CliError, Trouble};

/// What came of it.
#[derive(Debug)]
pub(crate) struct Hired {
    /// Whether nobody of that name was there.
    pub(crate) new: bool,
    /// Why it did not start, if it did not.
    pub(crate) trouble: Option<String>,
}

/// A member as it is when nothing else is said.
pub(crate) fn plain(name: MemberName, agent: String, cwd: PathBuf) -> MemberSpec {
    MemberSpec {
        name,
        agent,
        program: None,
        model: None,
        prompt: None,
        plan: false,
        access: AccessWord::Ask,
        rules: Vec::new(),
        cwd,
        worktree: false,
        env: None,
        place: Place::Headless,
        restart: Restart::Always,
    }
}

/// Refuses a name that would be somebody else's seat or inbox, before anything is begun.
pub(crate) async fn refuse_name(seat: &Seat, name: &MemberName) -> Result<(), CliError> {
    let Some(config) = seat.store.team(&seat.team).await? else { return Ok(()) };
    let team = Team::read(&config.bytes).map_err(CliError::failed)?;
    if team.lead().is_some_and(|lead| lead.is(name.as_str())) {
        let (name, team) = (name.to_string(), seat.team.to_string());
        let error = CliError::failed(Trouble::LeadsIt { name, team });
        return Err(error.hint("choose another name; `[lead]` in brigade.toml has an agent lead"));
    }
    if team.member(name.as_str()).is_none() {
        let names: Vec<_> = team.members().filter_map(|member| member.name()).collect();
        name.check_free(names.iter().map(AsRef::as_ref)).map_err(RosterError::Name)?;
    }
    Ok(())
}

/// Has a member started on this host, and waits for it. Whoever asks again for one that is there
/// changes nothing; of several who ask at once one does.
pub(crate) async fn hire(host: &Host, lead: &Seat, spec: &MemberSpec) -> Result<Hired, CliError> {
    if host.folder.member(&lead.team, &spec.name)?.is_none() {
        refuse_name(lead, &spec.name).await?;
        needs::refuse([spec])?;
    }
    if host.folder.team(&lead.team)?.is_none() {
        host.folder.put_team(&TeamSpec {
            team: lead.team.clone(),
            description: String::new(),
            root: spec.cwd.clone(),
            lead: None,
            answers: Answers::Person,
            members: Vec::new(),
            tasks: Vec::new(),
        })?;
    }
    let new = host.folder.add_member(&lead.team, spec)?;
    if !new
        && let Some(there) = host.folder.member(&lead.team, &spec.name)?
        && let Some(difference) = bring::difference(&there, spec)
    {
        let name = spec.name.to_string();
        let error = CliError::failed(Trouble::OtherMember { name, difference });
        return Err(error.hint("choose another name, or stop it first"));
    }
    host.folder.set_trouble(&lead.team, &spec.name, None)?;
    let dead = wait::until_there(host, lead, std::slice::from_ref(&spec.name)).await?;
    Ok(Hired { new, trouble: dead.into_iter().next().map(|(_, why)| why) })
}
