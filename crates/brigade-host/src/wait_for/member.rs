//! Whether a member is idle.

use brigade_core::handshake::{self, HandshakeError};
use brigade_core::mail::{self, InboxFilter, MailError};
use brigade_core::pulse::{self, Judgement, Liveness, Pulse, ReportedState};
use brigade_core::seat::Seat;
use brigade_core::store::{Mail, StoreError};
use brigade_core::text;
use brigade_wire::name::MemberName;
use jiff::Timestamp;

use super::CheckedCondition;
use crate::error::HostError;
use crate::{Context, state};

/// The state of a member, and whether brigade still tries to run it.
struct ObservedMember {
    judged: Judgement,
    pulse: Option<Pulse>,
    /// Whether the member does not come back without help.
    is_lost: bool,
}

/// Returns whether a member of the seat's team is idle: between turns, without unread mail and without an open request.
pub(crate) async fn check_member(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
) -> Result<CheckedCondition, HostError> {
    let Some(ObservedMember { judged, pulse, is_lost }) = observe(context, seat, name).await?
    else {
        return Ok(CheckedCondition::failed(format!("{name} is not in the team")));
    };
    let Judgement { liveness, evidence } = judged;
    if is_lost {
        return Ok(CheckedCondition::failed(format!("{name} does not run: {evidence}")));
    }
    if !matches!(liveness, Liveness::Idle | Liveness::Paused) {
        return Ok(CheckedCondition::unmet(format!("{name} is {}: {evidence}", liveness.label())));
    }
    let unread = match mail::inbox(seat, name, InboxFilter::Unread).await {
        Ok(unread) => unread,
        Err(MailError::Store(StoreError::Forbidden { .. })) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if let Some(Pulse { state: ReportedState::Idle { failed: Some(why), .. }, since, .. }) = pulse
        && !unread.iter().any(|mail| is_newer(mail, since))
    {
        // The mail that the failed turn was about stays unread, because brigade tries again later.
        return Ok(CheckedCondition::failed(format!("the last turn of {name} failed: {why}")));
    }
    if !unread.is_empty() {
        let unread = text::count(unread.len(), "unread message");
        return Ok(CheckedCondition::unmet(format!("{name} has {unread}")));
    }
    if has_open_request(seat, name).await? {
        return Ok(CheckedCondition::unmet(format!("{name} waits for an answer")));
    }
    Ok(CheckedCondition::met(format!("{name} is idle")))
}

/// Returns whether a message was sent after this time.
fn is_newer(mail: &Mail, than: Timestamp) -> bool {
    let sent = mail.read_with(|message| message.timestamp().parse::<Timestamp>().ok());
    sent.flatten().is_some_and(|sent| sent > than)
}

/// Returns whether the member waits for the lead's answer. A caller that may not read the requests sees none.
async fn has_open_request(seat: &Seat, name: &MemberName) -> Result<bool, HostError> {
    let lead = {
        let roster = seat.roster().await?;
        roster.team().lead().and_then(|lead| lead.name()?.parse().ok())
    };
    let Some(lead) = lead else { return Ok(false) };
    match handshake::open(&seat.for_member(lead)).await {
        Ok(open) => Ok(open.iter().any(|request| request.from == *name)),
        Err(HandshakeError::Store(StoreError::Forbidden { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of a member; `None` if the member is not in the team.
async fn observe(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
) -> Result<Option<ObservedMember>, HostError> {
    let host = context.host()?.of_member(&seat.team, name)?;
    if host.registry.member(&seat.team, name)?.is_some() {
        if state::has_left(&host, seat, name).await? {
            return Ok(None);
        }
        let (process, pulse, judged) = state::liveness(&host, seat, name).await?;
        let is_unsupervised = process.is_none()
            && judged.liveness == Liveness::Dead
            && (host.is_claude_led || host.supervisor()?.is_none());
        let is_lost = is_unsupervised
            || state::is_lost(&host, seat, name, process.is_some(), judged.liveness);
        return Ok(Some(ObservedMember { judged, pulse, is_lost }));
    }
    let roster = seat.roster().await?;
    let team = roster.team();
    let Some(entry) = team.member(name.as_str()) else { return Ok(None) };
    if host.is_shared {
        let pulse = pulse::last_report(seat, name).await?;
        let judged = pulse::judge(pulse.as_ref(), None, &host.name, seat.clock.now());
        // A member that never reported may be a person, or its host may have been cut off for long.
        let is_lost = pulse.is_some() && judged.liveness == Liveness::Dead;
        return Ok(Some(ObservedMember { judged, pulse, is_lost }));
    }
    // Claude Code, a person or another program runs the member, and the roster says whether it is in a turn.
    let liveness = if entry.is_active() == Some(true) { Liveness::Working } else { Liveness::Idle };
    let judged = Judgement { liveness, evidence: "according to the roster".to_owned() };
    Ok(Some(ObservedMember { judged, pulse: None, is_lost: false }))
}
