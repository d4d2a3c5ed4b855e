//! The team file that a team belongs to, and the team that a folder means.
//!
//! Two repositories can use the same team name. `up` records the file that started a team and the team's creation
//! time, so that commands in one repository never act on the team of another one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brigade_core::seat::Seat;
use brigade_core::store::StoreError;
use brigade_core::text;
use brigade_link::is_mirror;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use crate::error::{HostError, Trouble};
use crate::registry::{Registry, TeamOrigin};
use crate::team_file;
use crate::trust::Trust;
use crate::variables;

/// The team of the `brigade.toml` that applies to a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderTeam {
    /// The path of the team file.
    pub file: PathBuf,
    /// The name of the team in the file.
    pub team: TeamName,
}

impl FolderTeam {
    /// Returns the sentence for a person whose team is not up.
    pub fn not_up_text(&self) -> String {
        format!(
            "team {} of {} is not up; `brigade up` starts it",
            self.team,
            text::one_line(&self.file.to_string_lossy())
        )
    }
}

/// Returns the team of the `brigade.toml` in `dir` or in the nearest folder above, or `None` if there is no such
/// file. Fails if the file names no team, because then no team can be chosen.
pub fn folder_team(dir: &Path) -> Result<Option<FolderTeam>, HostError> {
    let Ok(path) = team_file::find(dir) else { return Ok(None) };
    let file = team_file::identity(&path);
    if let Ok(Some(team)) = team_file::team_name(&path) {
        return Ok(Some(FolderTeam { file, team }));
    }
    let error = HostError::usage(Trouble::UnclearFolder { file });
    Err(error.hint("`brigade up --check` shows its mistakes").hint(choose_hint()))
}

/// Returns the hint on how to choose a team.
pub(crate) fn choose_hint() -> String {
    format!("choose a team with `--team TEAM`, or set {}", variables::TEAM)
}

/// The file or the folder that a team belongs to.
enum Owner {
    File(PathBuf),
    /// For a team without a recorded file: the folder that it was created in.
    Folder(PathBuf),
}

impl Owner {
    /// Returns the path of this owner, unless it is `file` or a folder beside or below `file`.
    fn other_than(self, file: &Path) -> Option<PathBuf> {
        match self {
            Self::File(owner) => (owner != file).then_some(owner),
            Self::Folder(folder) => {
                let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
                let is_ours = file.parent().is_some_and(|root| real.starts_with(root));
                (!is_ours).then_some(folder)
            }
        }
    }
}

/// Returns the file or folder that the team belongs to if it does not belong to `file`. Uses only this host's
/// registry.
pub(crate) fn other_owner_on_host(
    registry: &Registry,
    team: &TeamName,
    file: &Path,
) -> Result<Option<PathBuf>, HostError> {
    let owner = match registry.origin(team)? {
        Some(origin) => Some(Owner::File(origin.file)),
        None => registry.team(team)?.map(|spec| Owner::Folder(spec.root)),
    };
    Ok(owner.and_then(|owner| owner.other_than(file)))
}

/// Returns the file or folder that the team belongs to if it does not belong to `file`. Returns `None` if the team
/// does not exist. `is_shared` says that several hosts use the store: then a team that never ran on this host belongs
/// to everyone who can use the store.
pub(crate) async fn other_owner(
    registry: &Registry,
    lead: &Seat,
    is_shared: bool,
    file: &Path,
) -> Result<Option<PathBuf>, HostError> {
    let config = match lead.find_roster().await {
        Err(StoreError::Damaged { .. }) => None,
        found => found?,
    };
    let roster = config.as_ref().map(|config| config.team());
    let created = roster.as_ref().and_then(Team::created_at);
    let origin = registry.origin(&lead.team)?;
    // If the creation times differ, the record is about an earlier team of this name.
    let is_current = |origin: &TeamOrigin| {
        origin.created.is_none() || created.is_none() || origin.created == created
    };
    let is_outdated = origin.as_ref().is_some_and(|origin| !is_current(origin));
    if let Some(TeamOrigin { file: owner, .. }) = origin.filter(is_current) {
        return Ok(Owner::File(owner).other_than(file));
    }
    // Earlier versions of brigade recorded only the folder of the file: as the lead's folder, and in the registry.
    let owner = match roster.filter(|roster| !is_shared && !is_mirror(roster)) {
        Some(roster) => roster.lead().and_then(|lead| Some(lead.cwd()?.into_owned().into())),
        None if is_outdated => None,
        None => registry.team(&lead.team)?.map(|spec| spec.root),
    };
    Ok(owner.and_then(|folder: PathBuf| Owner::Folder(folder).other_than(file)))
}

/// Fails if the team does not belong to `file`.
pub(crate) async fn check_owner(
    registry: &Registry,
    lead: &Seat,
    is_shared: bool,
    file: &Path,
) -> Result<(), HostError> {
    let Some(owner) = other_owner(registry, lead, is_shared, file).await? else { return Ok(()) };
    let team = lead.team.to_string();
    let error = HostError::failed(Trouble::OtherOwner { team: team.clone(), owner });
    Err(error
        .hint(format!("choose another name: change `team = \"{team}\"` in {}", file.display()))
        .hint(format!("or stop the other team first: `brigade down {team}`"))
        .hint("or, if its file was moved here, continue it with this file: `brigade up --adopt`"))
}

/// Records that a team belongs to `file`.
pub(crate) async fn record(registry: &Registry, lead: &Seat, file: &Path) -> Result<(), HostError> {
    let config = lead.find_config().await?;
    let created = config.and_then(|config| lead.read(&config).ok()?.created_at());
    registry.put_origin(&lead.team, &TeamOrigin { file: file.to_owned(), created })
}

/// Returns the team names that a new team file at `file` should not use, because another file or folder uses them.
/// `leads` are the seats of the leads of all teams in the store.
pub async fn names_in_use(
    registry: &Registry,
    leads: &[Seat],
    trust: &Trust,
    file: &Path,
) -> Result<BTreeSet<String>, HostError> {
    let mut names: BTreeSet<String> =
        registry.elsewhere().iter().map(ToString::to_string).collect();
    for lead in leads {
        if other_owner(registry, lead, false, file).await?.is_some() {
            names.insert(lead.team.to_string());
        }
    }
    for team in registry.teams()? {
        if other_owner_on_host(registry, &team, file)?.is_some() {
            names.insert(team.to_string());
        }
    }
    let trusted = trust.list()?.into_iter();
    let others = trusted.filter(|entry| entry.file != file && entry.file.exists());
    names.extend(others.map(|entry| entry.team.to_string()));
    Ok(names)
}
