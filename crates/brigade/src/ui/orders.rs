//! Actions that a person triggers on the screen, carried out by the same functions as on the command line.

use std::path::PathBuf;
use std::time::Duration;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::{self, Answer};
use brigade_core::mail::{self, Words};
use brigade_core::seat::Seat;
use brigade_core::{approvals, roster};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};

use crate::context::{Context, cwd};
use crate::error::CliError;
use crate::host::end::{self, Ended, Manner};
use crate::host::hire;
use crate::host::spec::{MemberSpec, Place};
use crate::patience::patiently;

/// How long to wait for a member to agree to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// An action on the team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Send {
        to: String,
        text: String,
    },
    Broadcast {
        text: String,
    },
    AddTask {
        subject: String,
        description: String,
        after: Vec<TaskId>,
        owner: Option<MemberName>,
    },
    Assign {
        id: TaskId,
        owner: Option<MemberName>,
    },
    Claim {
        id: TaskId,
    },
    Finish {
        id: TaskId,
    },
    Spawn {
        name: MemberName,
        agent: String,
        prompt: Option<String>,
        worktree: bool,
        plan: bool,
    },
    Stop {
        name: MemberName,
        now: bool,
    },
    Answer {
        request_id: String,
        no: Option<String>,
    },
    /// Opens a member's window in place of the dashboard until the person leaves it.
    Pane {
        name: MemberName,
    },
    /// Opens a shell in the member's folder.
    Worktree {
        name: MemberName,
    },
}

impl Order {
    /// The text shown while the action runs.
    pub(crate) fn doing(&self) -> String {
        match self {
            Self::Send { to, .. } => format!("sending to {to} …"),
            Self::Broadcast { .. } => "sending to all members …".into(),
            Self::AddTask { .. } => "adding a task …".into(),
            Self::Assign { id, .. } | Self::Claim { id } | Self::Finish { id } => {
                format!("changing task {id} …")
            }
            Self::Spawn { name, .. } => format!("starting {name} …"),
            Self::Stop { name, now: true } => format!("stopping {name} …"),
            Self::Stop { name, .. } => format!("waiting for {name} to stop …"),
            Self::Answer { .. } => "answering …".into(),
            Self::Pane { name } | Self::Worktree { name } => format!("opening {name} …"),
        }
    }
}

/// Carries out an order as the member `me` and returns the text to show.
pub(crate) async fn carry_out(
    context: &Context,
    team: &TeamName,
    me: &MemberName,
    order: Order,
) -> Result<String, CliError> {
    let seat = context.seat_of(team.clone(), me.clone());
    Ok(match order {
        Order::Send { to, text } => {
            let sent = patiently(mail::send(&seat, &to, message_text(&text))).await?;
            let caveat = sent.caveat().map(|why| format!("; {why}")).unwrap_or_default();
            format!("sent to {}{caveat}", sent.to)
        }
        Order::Broadcast { text } => {
            let sent = patiently(mail::broadcast(&seat, message_text(&text))).await?;
            let to: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
            if to.is_empty() {
                "the team has no other members".into()
            } else {
                format!("sent to {}", to.join(", "))
            }
        }
        Order::AddTask { subject, description, after, owner } => {
            let plan = TaskPlan {
                subject,
                description,
                active_form: None,
                blocked_by: after,
                metadata: Vec::new(),
            };
            let id = patiently(board::add(&seat, &plan)).await?;
            if let Some(owner) = owner {
                patiently(board::update(&seat, id, &owned(Change::Set(owner)))).await?;
            }
            format!("added task {id}")
        }
        Order::Assign { id, owner } => {
            let to = owner.as_ref().map_or("nobody".to_owned(), ToString::to_string);
            let owner = owner.map_or(Change::Clear, Change::Set);
            patiently(board::update(&seat, id, &owned(owner))).await?;
            format!("task {id} is assigned to {to}")
        }
        Order::Claim { id } => {
            patiently(board::claim(&seat, id)).await?;
            format!("claimed task {id}")
        }
        Order::Finish { id } => {
            patiently(board::done(&seat, id)).await?;
            format!("task {id} is done")
        }
        Order::Spawn { name, agent, prompt, worktree, plan } => {
            let plain = hire::plain(name, agent, PathBuf::from(cwd()));
            let spec = MemberSpec { prompt, worktree, plan, place: Place::Headless, ..plain };
            spawn(context, &seat, &spec).await?
        }
        Order::Stop { name, now } => stop(context, &seat, name, now).await?,
        Order::Answer { request_id, no } => {
            let approval = patiently(approvals::find(&seat, &request_id)).await?;
            let answer = no.as_deref().map_or(Answer::Yes, Answer::No);
            let answered = patiently(approvals::answer(&seat, &approval, answer)).await?;
            let word = if no.is_some() { "denied" } else { "approved" };
            format!("{word} {}'s {}", answered.to, approval.wanted.kind())
        }
        // These need the terminal; the event loop runs them.
        Order::Pane { .. } | Order::Worktree { .. } => String::new(),
    })
}

fn message_text(text: &str) -> Words<'_> {
    Words { text, summary: None }
}

fn owned(owner: Change<MemberName>) -> Update {
    Update { owner, ..Update::default() }
}

async fn spawn(context: &Context, seat: &Seat, spec: &MemberSpec) -> Result<String, CliError> {
    let host = context.host()?;
    let lead = seat.of(MemberName::lead());
    let hired = hire::hire(&host, &lead, spec).await?;
    let listens = roster::lead_listens(&lead).await?;
    let note = if listens {
        ""
    } else {
        "; the lead reads mail only while it has a teammate that it started"
    };
    Ok(match hired.trouble {
        Some(why) => format!("{} did not start: {why}", spec.name),
        None if hired.new => format!("{} joined the team{note}", spec.name),
        None => format!("{} is already on the team", spec.name),
    })
}

async fn stop(
    context: &Context,
    seat: &Seat,
    name: MemberName,
    now: bool,
) -> Result<String, CliError> {
    let host = context.host()?;
    if host.folder.member(&seat.team, &name)?.is_none() {
        // Another host or a Claude Code lead runs it; all we can do is ask it to stop.
        patiently(handshake::request_shutdown(seat, name.as_str(), None)).await?;
        return Ok(format!("asked {name} to stop"));
    }
    context.refuse_to_lead(&seat.team, "ask a member to stop")?;
    let lead = seat.of(MemberName::lead());
    let manner = Manner { ask: (!now).then_some(STOP_TIMEOUT), reason: None, may_refuse: !now };
    let ended = end::members(&host, &lead, std::slice::from_ref(&name), manner, |_, _| {}).await?;
    Ok(match ended.into_iter().next() {
        Some((_, Ended::Refused(why))) => format!("{name} refused to stop: {why}"),
        Some((_, Ended::WasGone)) => format!("{name} had already stopped"),
        _ => format!("{name} stopped"),
    })
}
