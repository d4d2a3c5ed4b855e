//! Actions that a person starts from the dashboard. They call the same functions as the command line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade_core::approvals::Approval;
use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::Answer;
use brigade_core::mail::{self, MessageText};
use brigade_core::seat::Seat;
use brigade_host::answer::{self, Confirmation};
use brigade_host::down::{self, StopResult};
use brigade_host::progress::{Ended, Progress, silent};
use brigade_host::shutdown::StopOptions;
use brigade_host::spec::{MemberPlace, MemberSpec};
use brigade_host::steer::{self, Interrupted, PauseChange};
use brigade_host::worktree::IgnoredFiles;
use brigade_host::{Context, HostError, claude_led, spawn, state};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};

/// How long to wait for a member to agree to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A change to the team that a person requests from the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TeamAction {
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
        approval: Box<Approval>,
        denial: Option<String>,
    },
    /// Send a message to the attached member, as `brigade send` does.
    Write {
        to: MemberName,
        text: String,
    },
    Interrupt {
        name: MemberName,
        /// Added to the result if the member is not in a turn.
        if_idle: &'static str,
    },
    /// Pause a member, or let a paused member continue.
    TogglePaused {
        name: MemberName,
    },
}

impl TeamAction {
    /// Returns the text to show while the action runs.
    pub(crate) fn progress_text(&self) -> String {
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
            Self::Write { to, .. } => format!("sending to {to} …"),
            Self::Interrupt { name, .. } => format!("interrupting the turn of {name} …"),
            Self::TogglePaused { name } => format!("pausing or continuing {name} …"),
        }
    }
}

/// Carries out an action as the member `me`, and returns the text that reports the result.
pub(crate) async fn carry_out(
    context: &Context,
    team: &TeamName,
    me: &MemberName,
    action: TeamAction,
) -> Result<String, HostError> {
    let seat = context.seat_of(team.clone(), me.clone());
    Ok(match action {
        TeamAction::Send { to, text } => {
            let sent = mail::send(&seat, &to, message_text(&text)).await?;
            let caveat = sent.caveat().map(|why| format!("; {why}")).unwrap_or_default();
            format!("sent to {}{caveat}", sent.to)
        }
        TeamAction::Broadcast { text } => {
            let sent = mail::broadcast(&seat, message_text(&text)).await?;
            let to: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
            if to.is_empty() {
                "the team has no other members".into()
            } else {
                format!("sent to {}", to.join(", "))
            }
        }
        TeamAction::AddTask { subject, description, after, owner } => {
            let plan = TaskPlan {
                subject,
                description,
                active_form: None,
                blocked_by: after,
                metadata: Vec::new(),
            };
            let id = match owner {
                Some(owner) => board::add_for(&seat, &plan, &owner).await?,
                None => board::add(&seat, &plan).await?,
            };
            format!("added task {id}")
        }
        TeamAction::Assign { id, owner } => {
            let to = owner.as_ref().map_or("nobody".to_owned(), ToString::to_string);
            let owner = owner.map_or(Change::Clear, Change::Set);
            board::update(&seat, id, &with_owner(owner)).await?;
            format!("task {id} is assigned to {to}")
        }
        TeamAction::Claim { id } => {
            board::claim(&seat, id).await?;
            format!("claimed task {id}")
        }
        TeamAction::Finish { id } => {
            board::done(&seat, id).await?;
            format!("task {id} is done")
        }
        TeamAction::Spawn { name, agent, prompt, worktree, plan } => {
            let plain = MemberSpec::new(name, agent, context.cwd.clone());
            let spec = MemberSpec { prompt, worktree, plan, place: MemberPlace::Headless, ..plain };
            spawn_member(context, &seat, &spec).await?
        }
        TeamAction::Stop { name, now } => stop_member(context, &seat, &name, now).await?,
        TeamAction::Answer { approval, denial } => {
            let reply = denial.as_deref().map_or(Answer::Yes, Answer::No);
            let given = answer::answer_one(context, &seat, &approval, reply).await?;
            let word = if denial.is_some() { "denied" } else { "approved" };
            let not_yet = match given.confirmation {
                Confirmation::Confirmed => String::new(),
                Confirmation::NotYet(why) => format!("; sent, not yet confirmed: {why}"),
            };
            format!("{word} {}'s {}{not_yet}", given.answered.to, approval.subject.kind())
        }
        TeamAction::Write { to, text } => {
            let seat = claude_led::sending_seat(context, to.as_str()).await?;
            let sent = mail::send(&seat, to.as_str(), message_text(&text)).await?;
            let caveat = sent.caveat().map(|why| format!("; {why}")).unwrap_or_default();
            let not_running = state::why_not_reached(&context.host()?, &seat, &to).await;
            let not_running = not_running
                .ok()
                .flatten()
                .map(|why| format!("; {to} is not running ({why}) and gets it when it runs again"));
            format!("sent to {to}{caveat}{}", not_running.unwrap_or_default())
        }
        TeamAction::Interrupt { name, if_idle } => {
            let lead = seat.for_member(MemberName::lead());
            match steer::interrupt(context, &lead, &name).await? {
                Interrupted::TurnOver { ended: 0 } => format!("the turn of {name} has ended"),
                Interrupted::TurnOver { ended } => format!(
                    "the turn of {name} has ended; also ended {}",
                    if ended == 1 { "1 process".to_owned() } else { format!("{ended} processes") }
                ),
                Interrupted::NotInTurn => format!("{name} is not in a turn{if_idle}"),
                Interrupted::NotYet => {
                    format!("interrupt sent; the agent of {name} has not ended the turn yet")
                }
            }
        }
        TeamAction::TogglePaused { name } => {
            let lead = seat.for_member(MemberName::lead());
            match steer::toggle_paused(context, &lead, &name).await? {
                PauseChange { paused: true, is_confirmed: true } => {
                    format!("{name} starts no further turn; its mail waits until it is unpaused")
                }
                PauseChange { paused: true, is_confirmed: false } => {
                    format!("{name} will be paused when its process starts")
                }
                PauseChange { paused: false, is_confirmed: true } => format!("{name} continues"),
                PauseChange { paused: false, is_confirmed: false } => {
                    format!("{name} is not running; it is no longer paused")
                }
            }
        }
    })
}

fn message_text(text: &str) -> MessageText<'_> {
    MessageText { text, summary: None }
}

fn with_owner(owner: Change<MemberName>) -> Update {
    Update { owner, ..Update::default() }
}

async fn spawn_member(
    context: &Context,
    seat: &Seat,
    spec: &MemberSpec,
) -> Result<String, HostError> {
    let lead = seat.for_member(MemberName::lead());
    let lead_does_not_listen = AtomicBool::new(false);
    let report = |progress| {
        if matches!(progress, Progress::LeadDoesNotListen(..)) {
            lead_does_not_listen.store(true, Ordering::Relaxed);
        }
    };
    let spawned = spawn::spawn(context, &lead, spec, &report).await?;
    let note = if lead_does_not_listen.load(Ordering::Relaxed) {
        "; the lead reads mail only while a teammate that it started itself is running"
    } else {
        ""
    };
    Ok(match spawned.trouble {
        Some(why) => format!("{} did not start: {why}", spec.name),
        None if spawned.new => format!("{} joined the team{note}", spec.name),
        None => format!("{} is already on the team", spec.name),
    })
}

async fn stop_member(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
    now: bool,
) -> Result<String, HostError> {
    let manner = StopOptions {
        ask: (!now).then_some(STOP_TIMEOUT),
        reason: None,
        may_refuse: !now,
        ignored_files: IgnoredFiles::Keep,
    };
    Ok(match down::stop_or_ask(context, seat, name, manner, &silent).await? {
        // Another host or a Claude Code lead runs this member, so this process can only ask the member to
        // stop.
        StopResult::Asked => format!("asked {name} to stop"),
        StopResult::Here(Ended::Refused(why)) => format!("{name} refused to stop: {why}"),
        StopResult::Here(Ended::WasGone) => format!("{name} had already stopped"),
        StopResult::Here(Ended::Agreed | Ended::Forced) => format!("{name} stopped"),
    })
}
