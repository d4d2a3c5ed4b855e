//! Who is on a team: create, join, leave, activity, delete.
//!
//! ```
//! use std::sync::Arc;
//!
//! use brigade_core::roster::{self, Force, MemberPlan, TeamPlan};
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
//! roster::delete(&lead, Force::No).await?;
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use brigade_wire::color::Color;
use brigade_wire::member::{Member, MemberChange, NewMember};
use brigade_wire::name::{MemberName, NameError, TaskId, TeamName};
use brigade_wire::team::{NewTeam, Team};
use thiserror::Error;
use uuid::Uuid;

use crate::authority::{self, Denied};
use crate::board::{self, BoardError};
use crate::mail::member_names;
use crate::seat::Seat;
use crate::store::StoreError;

/// How often a change to the roster is tried again when somebody else made one meanwhile.
const TRIES: usize = 100;
/// How often it is checked that a change to the roster still stands.
const CHECK: Duration = Duration::from_millis(20);

/// A team to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamPlan<'p> {
    /// What it is for.
    pub description: &'p str,
    /// The lead's model, for the record.
    pub lead_model: &'p str,
    /// Where the lead works.
    pub cwd: &'p str,
}

impl<'p> TeamPlan<'p> {
    /// A team for this purpose, whose lead works in this folder, with whatever model.
    pub fn new(description: &'p str, cwd: &'p str) -> Self {
        Self { description, lead_model: UNKNOWN, cwd }
    }
}

/// A member to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPlan<'p> {
    /// What kind of agent, `codex` for one.
    pub agent_type: &'p str,
    /// Its model.
    pub model: &'p str,
    /// What it was told at first.
    pub prompt: &'p str,
    /// Where it works.
    pub cwd: &'p str,
    /// Where it runs: a word of the wire, or [`BACKEND`].
    pub backend_type: &'p str,
}

impl<'p> MemberPlan<'p> {
    /// A member of this kind that works in this folder, in a process that is no window of Claude Code's, with
    /// whatever model.
    pub fn new(agent_type: &'p str, cwd: &'p str) -> Self {
        Self { agent_type, model: UNKNOWN, prompt: "", cwd, backend_type: BACKEND }
    }

    /// The same, running elsewhere.
    pub fn in_backend(self, backend_type: &'p str) -> Self {
        Self { backend_type, ..self }
    }
}

/// Where a member runs that is a process of its own, in nobody's window.
pub const BACKEND: &str = "process";

/// The word for a model nobody told us.
const UNKNOWN: &str = "unknown";

/// Whether a member is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is in a turn.
    Active,
    /// It waits.
    Idle,
}

/// Why the roster was not changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RosterError {
    /// The name cannot be had.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Nobody of that name. A late write does not bring back who has left.
    #[error("no member {name} in team {team}")]
    NoMember {
        /// Who.
        name: MemberName,
        /// Where.
        team: TeamName,
        /// Who is there.
        members: Vec<String>,
    },
    /// The lead is the team.
    #[error("the lead cannot leave; delete the team instead")]
    LeadStays,
    /// Members are still at work.
    #[error("team {team} still has active members: {}", .active.join(", "))]
    StillActive {
        /// Which team.
        team: TeamName,
        /// Who.
        active: Vec<String>,
    },
    /// Claude Code runs this team; it deletes it when its session ends.
    #[error("team {team} belongs to a running Claude Code session")]
    Native {
        /// Which team.
        team: TeamName,
    },
    /// Somebody else kept changing it.
    #[error("the roster of team {team} changed {TRIES} times while it was to be changed")]
    Contended {
        /// Which team.
        team: TeamName,
    },
    /// It is not for the seat to do.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The member left, and its tasks could not all be given back.
    #[error(transparent)]
    Release(#[from] BoardError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a team of the old form, with the seat as its lead.
pub async fn create(seat: &Seat, plan: TeamPlan<'_>) -> Result<(), RosterError> {
    let team = NewTeam {
        name: &seat.team,
        description: plan.description,
        created_at: milliseconds(seat),
        lead_session_id: &Uuid::new_v4().to_string(),
        lead_model: plan.lead_model,
        lead_cwd: plan.cwd,
    };
    seat.store.create_team(&seat.team, &team.to_bytes(), &seat.actor()).await?;
    Ok(())
}

/// Adds a member, in the first colour nobody has, and gives its colour back.
pub async fn join(
    seat: &Seat,
    name: &MemberName,
    plan: MemberPlan<'_>,
) -> Result<Color, RosterError> {
    let joined_at = milliseconds(seat);
    let mut given = None;
    let add = |team: &Team<'_>| {
        let color = *given.get_or_insert_with(|| next_color(team));
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
    change_for_good(seat, name, Presence::There, &mut { add }).await?;
    given.ok_or_else(|| RosterError::Contended { team: seat.team.clone() })
}

/// Takes a member off the team, which it does itself or the lead, and gives its open tasks back to
/// the board. Who has left already
/// leaves nothing more behind, unless somebody died in the middle of it.
pub async fn leave(seat: &Seat, name: &MemberName) -> Result<Left, RosterError> {
    let mut was_there = false;
    let remove = |team: &Team<'_>| {
        was_there |= team.member(name.as_str()).is_some();
        authority::lead_or(seat, team, name, "take it off the team")?;
        if team.lead().is_some_and(|lead| lead.is(name.as_str())) {
            return Err(RosterError::LeadStays);
        }
        Ok(team.without_member(name.as_str()).into_owned())
    };
    let mut remove = remove;
    change_for_good(seat, name, Presence::Gone, &mut remove).await?;
    // Behind the leaving: whoever dies in between runs it again, and finds them still to release.
    let released = board::release(seat, name).await?;
    Ok(Left { was_there, released })
}

/// What came of a leaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whether the member was there to leave.
    pub was_there: bool,
    /// The tasks it gave back.
    pub released: Vec<TaskId>,
}

/// Says whether a member is at work.
pub async fn set_activity(
    seat: &Seat,
    name: &MemberName,
    activity: Activity,
) -> Result<(), RosterError> {
    let is_active = Some(activity == Activity::Active);
    let set = |team: &Team<'_>| {
        authority::lead_or(seat, team, name, "say whether it is at work")?;
        let change = MemberChange { is_active, ..MemberChange::default() };
        let changed = team.with_member_changed(name.as_str(), &change);
        Ok(changed.ok_or_else(|| absent(seat, name, team))?.into_owned())
    };
    change(seat, &mut { set }).await?;
    Ok(())
}

/// Whether the lead reads what is written to it. A lead of the new generation does so only while a
/// teammate that it started itself is there.
pub async fn lead_listens(seat: &Seat) -> Result<bool, StoreError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    Ok(listens(&team))
}

pub(crate) fn listens(team: &Team<'_>) -> bool {
    let lead = team.lead().and_then(|lead| Some(lead.name()?.into_owned()));
    let native = |member: &Member<'_>| {
        let backend = member.backend_type();
        matches!(backend.as_deref(), Some("tmux" | "in-process" | "iterm2"))
            && member.name().as_deref() != lead.as_deref()
    };
    team.lead_process().is_none() || team.members().any(|member| native(&member))
}

/// Deletes the team, which only its lead may, and not while members are at work in it or Claude Code
/// holds it.
pub async fn delete(seat: &Seat, force: Force) -> Result<(), RosterError> {
    let config = seat.config().await?;
    let team = seat.read(&config)?;
    authority::lead(seat, &team, "delete the team")?;
    if force == Force::No {
        if team.lead_process().is_some() {
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

/// Whether to ask questions first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Refuse what could hurt.
    No,
    /// The person knows.
    Yes,
}

/// Where a member shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    There,
    Gone,
}

/// Changes the roster, and looks after the change until nobody can undo it: Claude Code of the old
/// generation takes no lock on it, and a copy that it read before we wrote comes back over ours.
async fn change_for_good(
    seat: &Seat,
    name: &MemberName,
    presence: Presence,
    edit: &mut Edit<'_>,
) -> Result<(), RosterError> {
    change(seat, edit).await?;
    let window = seat.store.undo_window(&seat.team).await?;
    // Counted in looks: a machine that is too busy to let us look also keeps the other from writing.
    let looks = window.as_millis().div_ceil(CHECK.as_millis());
    let mut stood = 0;
    while stood < looks {
        tokio::time::sleep(CHECK).await;
        stood += 1;
        let config = seat.config().await?;
        let there = seat.read(&config)?.member(name.as_str()).is_some();
        if there != (presence == Presence::There) {
            tracing::warn!(team = %seat.team, member = %name, "an old roster was written over ours");
            change(seat, edit).await?;
            stood = 0;
        }
    }
    Ok(())
}

type Edit<'e> = dyn FnMut(&Team<'_>) -> Result<Vec<u8>, RosterError> + Send + 'e;

/// Changes the roster by compare-and-set, as often as it takes.
async fn change(seat: &Seat, edit: &mut Edit<'_>) -> Result<(), RosterError> {
    for _ in 0..TRIES {
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

fn absent(seat: &Seat, name: &MemberName, team: &Team<'_>) -> RosterError {
    let (name, members) = (name.clone(), member_names(team));
    RosterError::NoMember { name, team: seat.team.clone(), members }
}

/// The first colour in Claude Code's order that no teammate has; all taken, they go round.
fn next_color(team: &Team<'_>) -> Color {
    let taken = |color: &Color| {
        team.members().any(|member| member.color().is_some_and(|its| its == color.as_str()))
    };
    let free = Color::ALL.iter().copied().find(|color| !taken(color));
    free.unwrap_or_else(|| Color::nth(team.members().len().saturating_sub(1)))
}

fn milliseconds(seat: &Seat) -> u64 {
    u64::try_from(seat.clock.now().as_millisecond()).unwrap_or_default()
}
