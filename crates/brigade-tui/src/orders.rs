//! What a person orders on the screen, carried out by the same functions as on the command line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade_core::board::{self, TaskPlan, Update};
use brigade_core::handshake::Answer;
use brigade_core::mail::{self, Words};
use brigade_core::seat::Seat;
use brigade_host::down::{self, Stopped};
use brigade_host::progress::{Ended, Progress, silent};
use brigade_host::shutdown::Manner;
use brigade_host::spec::{MemberSpec, Place};
use brigade_host::{Context, HostError, answer, spawn};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId, TeamName};

/// How long a member is given to agree to stop.
const ASK: Duration = Duration::from_secs(30);

/// An order.
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
    /// Opens a member's own window, in place of this screen until it is left.
    Pane {
        name: MemberName,
    },
    /// Opens a shell where a member works.
    Worktree {
        name: MemberName,
    },
}

impl Order {
    /// What is being done, in words.
    pub(crate) fn doing(&self) -> String {
        match self {
            Self::Send { to, .. } => format!("sending to {to} …"),
            Self::Broadcast { .. } => "sending to everybody …".into(),
            Self::AddTask { .. } => "adding a task …".into(),
            Self::Assign { id, .. } | Self::Claim { id } | Self::Finish { id } => {
                format!("changing task {id} …")
            }
            Self::Spawn { name, .. } => format!("starting {name} …"),
            Self::Stop { name, now: true } => format!("ending {name} …"),
            Self::Stop { name, .. } => format!("waiting for {name} to stop …"),
            Self::Answer { .. } => "answering …".into(),
            Self::Pane { name } | Self::Worktree { name } => format!("opening {name}'s …"),
        }
    }
}

/// Carries out an order in the name of whoever sits before the screen, and says what came of it.
pub(crate) async fn carry_out(
    context: &Context,
    team: &TeamName,
    me: &MemberName,
    order: Order,
) -> Result<String, HostError> {
    let seat = context.seat_of(team.clone(), me.clone());
    Ok(match order {
        Order::Send { to, text } => {
            let sent = mail::send(&seat, &to, words(&text)).await?;
            let caveat = sent.caveat().map(|why| format!("; {why}")).unwrap_or_default();
            format!("sent to {}{caveat}", sent.to)
        }
        Order::Broadcast { text } => {
            let sent = mail::broadcast(&seat, words(&text)).await?;
            let to: Vec<&str> = sent.iter().map(|sent| sent.to.as_str()).collect();
            if to.is_empty() {
                "nobody else is on the team".into()
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
            let id = board::add(&seat, &plan).await?;
            if let Some(owner) = owner {
                board::update(&seat, id, &owned(Change::Set(owner))).await?;
            }
            format!("added task {id}")
        }
        Order::Assign { id, owner } => {
            let to = owner.as_ref().map_or("nobody".to_owned(), ToString::to_string);
            let owner = owner.map_or(Change::Clear, Change::Set);
            board::update(&seat, id, &owned(owner)).await?;
            format!("task {id} is {to}'s")
        }
        Order::Claim { id } => {
            board::claim(&seat, id).await?;
            format!("task {id} is yours, and in progress")
        }
        Order::Finish { id } => {
            board::done(&seat, id).await?;
            format!("task {id} is done")
        }
        Order::Spawn { name, agent, prompt, worktree, plan } => {
            let plain = spawn::plain(name, agent, context.cwd.clone());
            let spec = MemberSpec { prompt, worktree, plan, place: Place::Headless, ..plain };
            start(context, &seat, &spec).await?
        }
        Order::Stop { name, now } => stop(context, &seat, &name, now).await?,
        Order::Answer { request_id, no } => {
            let reply = no.as_deref().map_or(Answer::Yes, Answer::No);
            let outcomes = answer::answer(&seat, &[request_id], reply).await?;
            let word = if no.is_some() { "denied" } else { "approved" };
            let mut text = String::new();
            for (approval, answered) in outcomes {
                text = format!("{word} {}'s {}", answered?.to, approval.wanted.kind());
            }
            text
        }
        // These take the terminal, and are done by whoever has it.
        Order::Pane { .. } | Order::Worktree { .. } => String::new(),
    })
}

fn words(text: &str) -> Words<'_> {
    Words { text, summary: None }
}

fn owned(owner: Change<MemberName>) -> Update {
    Update { owner, ..Update::default() }
}

async fn start(context: &Context, seat: &Seat, spec: &MemberSpec) -> Result<String, HostError> {
    let host = context.host()?;
    let lead = seat.of(MemberName::lead());
    let is_deaf = AtomicBool::new(false);
    let report = |progress| {
        if matches!(progress, Progress::LeadDoesNotListen(..)) {
            is_deaf.store(true, Ordering::Relaxed);
        }
    };
    let spawned = spawn::spawn(&host, &lead, spec, &report).await?;
    let note = if is_deaf.load(Ordering::Relaxed) {
        "; its lead reads mail only while a teammate of its own is there"
    } else {
        ""
    };
    Ok(match spawned.trouble {
        Some(why) => format!("{} did not start: {why}", spec.name),
        None if spawned.new => format!("{} is on the team{note}", spec.name),
        None => format!("{} was there already", spec.name),
    })
}

async fn stop(
    context: &Context,
    seat: &Seat,
    name: &MemberName,
    now: bool,
) -> Result<String, HostError> {
    let manner = Manner { ask: (!now).then_some(ASK), reason: None, may_refuse: !now };
    Ok(match down::stop_or_ask(context, seat, name, manner, &silent).await? {
        Stopped::Asked => format!("{name} is asked to stop"),
        Stopped::Here(Ended::Refused(why)) => format!("{name} would rather stay: {why}"),
        Stopped::Here(Ended::WasGone) => format!("{name} was gone already"),
        Stopped::Here(Ended::Agreed | Ended::Forced) => format!("{name} has left"),
    })
}
