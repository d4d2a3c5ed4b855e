//! Keeps a member's entry in the roster equal to the settings with which the member runs.

use std::path::Path;

use brigade_core::roster::{self, RosterError};
use brigade_core::seat::Seat;
use brigade_core::wire::backend;
use brigade_wire::member::MemberChange;
use brigade_wire::name::MemberName;

use crate::error::HostError;
use crate::host::Host;
use crate::spec::{MemberPlace, MemberSpec};

/// The value of a model field if the settings name no model.
pub(crate) const UNKNOWN_MODEL: &str = "unknown";

/// Writes the settings of a member to its entry in the roster. `cwd` is the folder in which its agent works: a folder of its
/// worktree, if it has one; `None` keeps the folder. Changes only fields with other values, and keeps all other fields. A
/// member that is not on the roster is not added.
///
/// The roster only describes the member, so the member runs also with an outdated entry: an error is only logged.
pub async fn write(host: &Host, lead: &Seat, spec: &MemberSpec, cwd: Option<&Path>) {
    if let Err(error) = try_write(host, lead, spec, cwd).await {
        tracing::warn!(team = %lead.team, member = %spec.name, %error, "cannot update the roster");
    }
}

async fn try_write(
    host: &Host,
    lead: &Seat,
    spec: &MemberSpec,
    cwd: Option<&Path>,
) -> Result<(), HostError> {
    // Claude Code writes the entries of the members that it started.
    if host.is_claude_led {
        return Ok(());
    }
    let acting = host.acting_seat(lead, &spec.name).await?;
    let cwd = cwd.map(Path::to_string_lossy);
    let mut change = MemberChange::default();
    // Claude Code itself writes the entry of a native member.
    let is_native = spec.place == MemberPlace::Native;
    if !is_native {
        change.model = Some(spec.model.as_deref().unwrap_or(UNKNOWN_MODEL));
    }
    // The type of the lead is its role, and its folder is that of the team. In a shared store, other hosts accept only some
    // fields from a member itself.
    let is_lead = spec.name == MemberName::lead();
    if !is_lead && (acting.name == lead.name || !host.is_shared) {
        change.cwd = cwd.as_deref();
        if !is_native {
            change.agent_type = Some(&spec.agent);
            change.prompt = Some(spec.prompt.as_deref().unwrap_or_default());
            change.backend_type = Some(backend_type(spec.place));
        }
    }
    match roster::change_member(&acting, &spec.name, &change).await {
        Ok(()) | Err(RosterError::NoMember { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the `backendType` that the roster shows for a member that runs at `place`.
pub(crate) fn backend_type(place: MemberPlace) -> &'static str {
    match place {
        MemberPlace::Headless => backend::PROCESS,
        MemberPlace::Tmux | MemberPlace::Native | MemberPlace::Pane => backend::TMUX,
    }
}
