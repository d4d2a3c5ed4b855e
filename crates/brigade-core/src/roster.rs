//! The members of a team: create and delete a team, join and leave it, record activity.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::roster::{self, SkipChecks, MemberPlan, TeamPlan};
//! use brigade_core::seat::Seat;
//! use brigade_core::store::memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lead = Seat::new(Arc::new(MemoryStore::default()), "demo".parse()?, "team-lead".parse()?);
//! roster::create(&lead, TeamPlan::new("an example", "/work")).await?;
//! let bob = "bob".parse()?;
//! roster::join(&lead, &bob, MemberPlan::new("general-purpose", "/work")).await?;
//! roster::leave(&lead, &bob).await?;
//! roster::delete(&lead, SkipChecks::No).await?;
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use brigade_wire::backend;
use brigade_wire::color::Color;
use brigade_wire::member::{Member, MemberChange, NewMember};
use brigade_wire::name::{MemberName, NameError, TaskId, TeamName};
use brigade_wire::team::{NewTeam, Team};
use thiserror::Error;
use uuid::Uuid;

use crate::authority::{self, Denied};
use crate::board::{self, BoardError};
use crate::mail;
use crate::seat::Seat;
use crate::store::StoreError;

/// The maximum number of attempts to change the roster if other programs change it at the same time.
const MAX_TRIES: usize = 100;
/// The maximum number of members of a team, including the lead.
const MAX_MEMBERS: usize = 1_000;
/// How long to wait between checks that no other program has overwritten a change to the roster.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A new team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamPlan<'p> {
    /// The team's purpose.
    pub description: &'p str,
    /// The lead's model, for information only.
    pub lead_model: &'p str,
    /// The lead's working directory.
    pub cwd: &'p str,
}

impl<'p> TeamPlan<'p> {
    /// Plans a team with this description. Its lead works in folder `cwd` and has an unknown model.
    pub fn new(description: &'p str, cwd: &'p str) -> Self {
        Self { description, lead_model: UNKNOWN, cwd }
    }
}

/// A new member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPlan<'p> {
    /// The kind of agent, for example `codex`.
    pub agent_type: &'p str,
    /// The member's model.
    pub model: &'p str,
    /// The member's first prompt.
    pub prompt: &'p str,
    /// The member's working directory.
    pub cwd: &'p str,
    /// How the member runs: one of the values in [`backend`].
    pub backend_type: &'p str,
}

impl<'p> MemberPlan<'p> {
    /// Plans a member with this kind of agent, which works in folder `cwd` and has an unknown model. The agent
    /// runs as a process outside Claude Code's windows.
    pub fn new(agent_type: &'p str, cwd: &'p str) -> Self {
        Self { agent_type, model: UNKNOWN, prompt: "", cwd, backend_type: backend::PROCESS }
    }

    /// Returns the plan with another backend type.
    pub fn with_backend_type(self, backend_type: &'p str) -> Self {
        Self { backend_type, ..self }
    }
}

/// The value of a model field if the model is unknown.
const UNKNOWN: &str = "unknown";

/// Whether a member is in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The member is in a turn.
    Active,
    /// The member waits for work.
    Idle,
}

/// Why a roster operation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RosterError {
    /// The member name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The team has too many members.
    #[error("team {team} has {members} members, and a team can have {MAX_MEMBERS}")]
    Full {
        /// The name of the team.
        team: TeamName,
        /// The number of members.
        members: usize,
    },
    /// The member is not on the roster. It may have left, and a late write must not add it again.
    #[error("no member named \"{name}\" in team \"{team}\"")]
    NoMember {
        /// The name of the member.
        name: MemberName,
        /// The name of the team.
        team: TeamName,
        /// The names of all members on the roster.
        members: Vec<String>,
    },
    /// The member on the roster is another one of the same name, which joined later.
    #[error("{name} has joined the team again")]
    JoinedAgain {
        /// The name of the member.
        name: MemberName,
    },
    /// The lead cannot leave, because a team cannot exist without its lead.
    #[error("the lead cannot leave; delete the team instead")]
    LeadStays,
    /// Some members are still working.
    #[error("team {team} still has active members: {}", .active.join(", "))]
    StillActive {
        /// The name of the team.
        team: TeamName,
        /// The names of the active members.
        active: Vec<String>,
    },
    /// A running Claude Code session leads the team, and deletes the team when the session ends.
    #[error("team {team} belongs to a running Claude Code session")]
    Native {
        /// The name of the team.
        team: TeamName,
    },
    /// Other programs kept changing the roster, so every attempt to change it failed.
    #[error(
        "could not change the roster of team {team}: other programs changed it during each of {MAX_TRIES} attempts"
    )]
    Contended {
        /// The name of the team.
        team: TeamName,
    },
    /// The list of messages that an interrupted restore still has to send cannot be read.
    #[error("cannot read which unread messages of team {team} are still to be restored")]
    UnreadableRevival {
        /// The name of the team.
        team: TeamName,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The seat's role does not allow the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The member left, but not all of its tasks could be released.
    #[error(transparent)]
    Release(#[from] BoardError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates a team in the older Claude Code generation's format, with the seat as its lead.
pub async fn create(seat: &Seat, plan: TeamPlan<'_>) -> Result<(), RosterError> {
    let team = NewTeam {
        name: &seat.team,
        description: plan.description,
        created_at: seat.now_ms(),
        lead_session_id: &Uuid::new_v4().to_string(),
        lead_model: plan.lead_model,
        lead_cwd: plan.cwd,
    };
    seat.store.create_team(&seat.team, &team.to_bytes(), &seat.actor()).await?;
    Ok(())
}

/// Adds a member and returns its color: the first color that no other member has.
pub async fn join(
    seat: &Seat,
    name: &MemberName,
    plan: MemberPlan<'_>,
) -> Result<Color, RosterError> {
    let joined_at = seat.now_ms();
    let mut assigned_color = None;
    let add = |team: &Team<'_>| {
        let members = team.members().len();
        if members >= MAX_MEMBERS && team.member(name.as_str()).is_none() {
            return Err(RosterError::Full { team: seat.team.clone(), members });
        }
        let color = *assigned_color.get_or_insert_with(|| next_color(team));
        let member = NewMember {
            name,
            agent_type: plan.agent_type,
            model: plan.model,
            prompt: plan.prompt,
            color,
            plan_mode_required: false,
            joined_at,
            tmux_pane_id: "",
            cwd: plan.cwd,
            backend_type: Some(plan.backend_type),
            is_active: Some(false),
        };
        Ok(team.with_member(&member)?)
    };
    change_durably(seat, name, Presence::Present, &mut { add }).await?;
    assigned_color.ok_or_else(|| RosterError::Contended { team: seat.team.clone() })
}

/// Removes a member and returns its open tasks to the board. Only the member itself and the lead may call this. If
/// the member has already left, only releases the tasks that an interrupted call did not release.
pub async fn leave(seat: &Seat, name: &MemberName) -> Result<Left, RosterError> {
    remove(seat, name, |_| true).await
}

/// Like [`leave`], but fails with [`RosterError::JoinedAgain`] if the member on the roster joined at another time.
/// `joined_at` is in milliseconds.
pub async fn leave_if_joined_at(
    seat: &Seat,
    name: &MemberName,
    joined_at: Option<u64>,
) -> Result<Left, RosterError> {
    remove(seat, name, |member| member.joined_at() == joined_at).await
}

async fn remove(
    seat: &Seat,
    name: &MemberName,
    is_meant: impl Fn(&Member<'_>) -> bool + Send + Sync,
) -> Result<Left, RosterError> {
    let mut was_there = false;
    let remove = |team: &Team<'_>| {
        let member = team.member(name.as_str());
        if member.as_ref().is_some_and(|member| !is_meant(member)) {
            return Err(RosterError::JoinedAgain { name: name.clone() });
        }
        was_there |= member.is_some();
        authority::require_lead_or(seat, team, name, "remove it from the team")?;
        if team.lead().is_some_and(|lead| lead.is(name.as_str())) {
            return Err(RosterError::LeadStays);
        }
        Ok(team.without_member(name.as_str()).into_owned())
    };
    change_durably(seat, name, Presence::Absent, &mut { remove }).await?;
    // Remove the member first: if this process crashes before it releases the tasks, the next call releases them.
    let released = board::release(seat, name).await?;
    Ok(Left { was_there, released })
}

/// The result of [`leave`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whether the member was on the roster.
    pub was_there: bool,
    /// The tasks that returned to the board.
    pub released: Vec<TaskId>,
}

/// Records in the roster whether a member is in a turn.
pub async fn set_activity(
    seat: &Seat,
    name: &MemberName,
    activity: Activity,
) -> Result<(), RosterError> {
    let is_active = Some(activity == Activity::Active);
    change_entry(
        seat,
        name,
        &MemberChange { is_active, ..MemberChange::default() },
        "change its activity",
    )
    .await
}

/// Changes fields of a member's entry, and keeps all others. Only the member itself and the lead may call this.
pub async fn change_member(
    seat: &Seat,
    name: &MemberName,
    change: &MemberChange<'_>,
) -> Result<(), RosterError> {
    change_entry(seat, name, change, "change its entry in the roster").await
}

async fn change_entry(
    seat: &Seat,
    name: &MemberName,
    changes: &MemberChange<'_>,
    what: &'static str,
) -> Result<(), RosterError> {
    let edit = |team: &Team<'_>| {
        authority::require_lead_or(seat, team, name, what)?;
        let changed = team.with_member_changed(name.as_str(), changes);
        Ok(changed.ok_or_else(|| no_member(seat, name, team))?.into_owned())
    };
    change(seat, &mut { edit }).await
}

/// Returns whether the lead currently reads its inbox. A lead of the newer generation reads its inbox only while a
/// teammate that it started itself is running.
pub async fn is_lead_reading(seat: &Seat) -> Result<bool, StoreError> {
    let roster = seat.roster().await?;
    let team = roster.team();
    mail::lead_reads_inbox(seat, &team).await
}

/// Deletes the team. Only the lead may call this. Unless `force` is set, fails while members are active or a
/// Claude Code session leads the team. If a process died while it deleted the team, completes that deletion.
pub async fn delete(seat: &Seat, force: SkipChecks) -> Result<(), RosterError> {
    let config = match seat.find_config().await? {
        Some(config) => config,
        // Without a roster, only the name shows who leads.
        None if seat.name == MemberName::lead() => {
            return Ok(seat.store.delete_team(&seat.team, &seat.actor()).await?);
        }
        None => seat.config().await?,
    };
    let team = seat.read(&config)?;
    authority::require_lead(seat, &team, "delete the team")?;
    if force == SkipChecks::No {
        if mail::is_led_by_session(seat, &team).await? {
            return Err(RosterError::Native { team: seat.team.clone() });
        }
        let lead = team.lead().and_then(|lead| Some(lead.name()?.into_owned()));
        let active: Vec<String> = team
            .members()
            .filter(|member| member.is_active() != Some(false))
            .filter_map(|member| Some(member.name()?.into_owned()))
            .filter(|name| Some(name) != lead.as_ref())
            .collect();
        if !active.is_empty() {
            return Err(RosterError::StillActive { team: seat.team.clone(), active });
        }
    }
    Ok(seat.store.delete_team(&seat.team, &seat.actor()).await?)
}

/// Whether to skip the checks before deleting a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipChecks {
    /// Refuse to delete the team while members are active or a Claude Code session leads it.
    No,
    /// Delete the team in any case. The user has confirmed the deletion.
    Yes,
}

/// Whether a member should be on the roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Present,
    Absent,
}

/// Changes the roster. Applies the change again whenever another program overwrites it: Claude Code of the older
/// generation takes no lock, so it may write back a copy of the file that it read before the change. Returns once
/// no program can overwrite the change any more.
async fn change_durably(
    seat: &Seat,
    name: &MemberName,
    presence: Presence,
    edit: &mut RosterEdit<'_>,
) -> Result<(), RosterError> {
    change(seat, edit).await?;
    let window = seat.store.undo_window(&seat.team).await?;
    // Count the checks instead of measuring time: a busy machine delays both this process and the other writer.
    let checks = window.as_millis().div_ceil(CHECK_INTERVAL.as_millis());
    let mut passed = 0;
    while passed < checks {
        tokio::time::sleep(CHECK_INTERVAL).await;
        passed += 1;
        let is_present = seat.roster().await?.team().member(name.as_str()).is_some();
        if is_present != (presence == Presence::Present) {
            tracing::warn!(team = %seat.team, member = %name, "another program overwrote our roster change; applying it again");
            change(seat, edit).await?;
            passed = 0;
        }
    }
    Ok(())
}

type RosterEdit<'e> = dyn FnMut(&Team<'_>) -> Result<Vec<u8>, RosterError> + Send + 'e;

/// Changes the roster by compare-and-set. Retries if another program changed it in the meantime.
async fn change(seat: &Seat, edit: &mut RosterEdit<'_>) -> Result<(), RosterError> {
    for _ in 0..MAX_TRIES {
        let config = seat.config().await?;
        let edited = edit(&seat.read(&config)?)?;
        if edited == config.bytes {
            return Ok(());
        }
        match seat.store.replace_team(&seat.team, &edited, config.revision, &seat.actor()).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(RosterError::Contended { team: seat.team.clone() })
}

fn no_member(seat: &Seat, name: &MemberName, team: &Team<'_>) -> RosterError {
    let (name, members) = (name.clone(), team.member_names());
    RosterError::NoMember { name, team: seat.team.clone(), members }
}

/// Returns the first color, in Claude Code's order, that no member has. If all colors are in use, they repeat.
fn next_color(team: &Team<'_>) -> Color {
    let taken = |color: &Color| {
        team.members().any(|member| member.color().is_some_and(|taken| taken == color.as_str()))
    };
    let free = Color::ALL.iter().copied().find(|color| !taken(color));
    free.unwrap_or_else(|| Color::nth(team.members().len().saturating_sub(1)))
}
