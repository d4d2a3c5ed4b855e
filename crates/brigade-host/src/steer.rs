//! Steers running members: interrupts a turn, pauses and continues a member, restarts its agent, and hands the agent's session
//! over to a person's terminal.

mod recreate;

use std::time::Duration;

use brigade_core::authority::Denied;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use crate::context::Context;
use crate::control::{ControlConnection, ControlReply, ControlRequest, HandedOverCommand};
use crate::error::{HostError, Trouble, failed};
use crate::host::Host;
use crate::process_lock::ProcessLock;
use crate::progress::ReportProgress;
use crate::spec::{MemberPlace, MemberSpec};
use crate::{briefing, down, preflight, roster_entry, takeover, wait};

pub use self::recreate::{Recreated, recreate};

/// How long a member may take to end a turn that was interrupted.
const INTERRUPT_WITHIN: Duration = Duration::from_secs(10);
/// How long an agent may take to become ready after a restart. Some agents can resume a session only in the next minute.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// The result of [`interrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The turn is over.
    TurnOver {
        /// How many processes that the agent had started were ended.
        ended: usize,
    },
    /// The member was not in a turn.
    NotInTurn,
    /// The agent has not ended its turn in time.
    NotYet,
}

/// The result of [`toggle_paused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseChange {
    /// Whether the member is paused now.
    pub paused: bool,
    /// Whether the process of the member has confirmed the change.
    pub is_confirmed: bool,
}

/// The settings of [`restart`].
#[derive(Clone, Debug, Default)]
pub struct RestartOptions {
    /// Whether the agent begins a new session, with a briefing about the earlier one.
    pub fresh: bool,
    /// The model from now on; `None` keeps the model.
    pub model: Option<String>,
}

/// A member whose session is handed over. The member continues the session when this value is dropped, or when this process and
/// the programs that inherited the lock have ended.
#[derive(Debug)]
pub struct HandedOver {
    /// The command that continues the session.
    pub command: HandedOverCommand,
    /// The lock of the session.
    pub lock: ProcessLock,
    _connection: ControlConnection,
}

/// The reaction of a member's process to a request.
enum MemberReply {
    Replied(ControlReply),
    /// The process has not replied in time.
    NotYet,
    /// No process runs the member.
    NotRunning,
}

/// A member that can be steered from this host.
struct SteeredMember {
    host: Host,
    spec: MemberSpec,
}

impl SteeredMember {
    fn find(
        context: &Context,
        lead: &Seat,
        name: &MemberName,
        what: &'static str,
    ) -> Result<Self, HostError> {
        let host = context.host()?.of_member(&lead.team, name)?;
        // The socket is local, so a NATS server does not check the caller.
        if let Some(me) = context.named_member()
            && *me != MemberName::lead()
            && me != name
        {
            let (who, team) = (me.clone(), lead.team.to_string());
            return Err(Denied::LeadOnly { what, who, team }.into());
        }
        if host.is_claude_led {
            // Fails if an agent, or Claude Code, runs the command.
            context.person_seat(lead)?;
        }
        let spec = host.registry.member(&lead.team, name)?;
        let spec = spec.ok_or_else(|| down::not_here(context, &host, &lead.team, name))?;
        if spec.place == MemberPlace::Native {
            let (name, team) = (name.to_string(), lead.team.to_string());
            let error = HostError::failed(Trouble::ClaudeRuns { name, team, what });
            return Err(error.hint("use the member's own window: Esc interrupts its turn"));
        }
        Ok(Self { host, spec })
    }

    /// Connects to the member's process. Returns `None` if no process runs the member.
    async fn connect(&self, lead: &Seat) -> Result<Option<ControlConnection>, HostError> {
        let name = &self.spec.name;
        if self.host.member_process(&lead.team, name)?.is_none() {
            return Ok(None);
        }
        let dir = self.host.registry.member_dir(&lead.team, name);
        match ControlConnection::open(&dir).await {
            Ok(connection) => Ok(Some(connection)),
            Err(source) => {
                let error = failed(format!("reach the process of {name}"), source);
                Err(error.hint(
                    "if an earlier version of brigade started it, `brigade stop` and start it again",
                ))
            }
        }
    }

    /// Sends a request to the member's process, and waits for the reply.
    async fn request(
        &self,
        lead: &Seat,
        request: &ControlRequest,
        within: Duration,
    ) -> Result<MemberReply, HostError> {
        let Some(mut connection) = self.connect(lead).await? else {
            return Ok(MemberReply::NotRunning);
        };
        let name = &self.spec.name;
        match tokio::time::timeout(within, connection.request(request)).await {
            Ok(Ok(ControlReply::Failed { why })) => {
                Err(HostError::failed(Trouble::NotSteered { name: name.to_string(), why }))
            }
            Ok(Ok(reply)) => Ok(MemberReply::Replied(reply)),
            Ok(Err(source)) => Err(failed(format!("command the process of {name}"), source)),
            Err(_elapsed) => Ok(MemberReply::NotYet),
        }
    }
}

/// Ends the turn of a member. The agent keeps its session. Commands that the agent was running are ended.
pub async fn interrupt(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
) -> Result<Interrupted, HostError> {
    let member = SteeredMember::find(context, lead, name, "interrupt a member")?;
    let reply = member.request(lead, &ControlRequest::Interrupt, INTERRUPT_WITHIN).await?;
    Ok(match reply {
        MemberReply::Replied(ControlReply::Interrupted { ended }) => {
            Interrupted::TurnOver { ended }
        }
        MemberReply::Replied(_) | MemberReply::NotRunning => Interrupted::NotInTurn,
        MemberReply::NotYet => Interrupted::NotYet,
    })
}

/// Pauses a member, or lets it continue. A paused member finishes its turn and starts no other; mail waits. The member stays
/// paused when its process is started again.
///
/// Returns whether the process of the member has confirmed the change. Otherwise, the change applies when a process starts.
pub async fn set_paused(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
    paused: bool,
) -> Result<bool, HostError> {
    let what = if paused { "pause a member" } else { "continue a member" };
    let member = SteeredMember::find(context, lead, name, what)?;
    // A process that starts meanwhile reads the file.
    member.host.registry.set_paused(&lead.team, name, paused)?;
    let request = if paused { ControlRequest::Pause } else { ControlRequest::Unpause };
    let reply = member.request(lead, &request, INTERRUPT_WITHIN).await?;
    Ok(matches!(reply, MemberReply::Replied(_)))
}

/// Pauses a member, or lets a paused member continue.
pub async fn toggle_paused(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
) -> Result<PauseChange, HostError> {
    let host = context.host()?.of_member(&lead.team, name)?;
    let paused = !host.registry.is_paused(&lead.team, name);
    Ok(PauseChange { paused, is_confirmed: set_paused(context, lead, name, paused).await? })
}

/// Restarts the agent of a member, and waits until the agent is ready. The agent resumes its session, or begins a new one.
pub async fn restart(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
    options: &RestartOptions,
    report: ReportProgress<'_>,
) -> Result<(), HostError> {
    let mut member = SteeredMember::find(context, lead, name, "restart a member")?;
    preflight::check(&member.host.programs, [&member.spec])?;
    let fresh = match options.fresh {
        true => Some(briefing::write(&member.host, lead, &member.spec).await?),
        false => None,
    };
    if let Some(model) = &options.model {
        member.spec.model = Some(model.clone());
        member.host.registry.change_member(&lead.team, &member.spec)?;
        roster_entry::write(&member.host, lead, &member.spec, None).await;
    }
    let request = ControlRequest::Restart { fresh: fresh.clone(), model: options.model.clone() };
    match member.request(lead, &request, READY_WITHIN).await? {
        MemberReply::Replied(_) => return Ok(()),
        MemberReply::NotYet => {
            let why = format!("its agent is not ready after {} s", READY_WITHIN.as_secs());
            let error = Trouble::NotSteered { name: name.to_string(), why };
            return Err(HostError::failed(error).hint("`brigade status` shows its state"));
        }
        MemberReply::NotRunning => {}
    }
    if member.host.is_claude_led {
        let (name, team) = (name.to_string(), lead.team.to_string());
        let error = HostError::failed(Trouble::NotRunning { name, team: team.clone() });
        return Err(error.hint(format!("`brigade resume {team}` starts it again")));
    }
    member.host.registry.request_restart(&lead.team, name)?;
    let dead = wait::until_ready(&member.host, lead, std::slice::from_ref(name), report).await?;
    // The process runs now, also if its agent cannot resume the earlier session.
    if fresh.is_some()
        && let MemberReply::Replied(_) = member.request(lead, &request, READY_WITHIN).await?
    {
        return Ok(());
    }
    match dead.into_iter().next() {
        None => Ok(()),
        Some((name, _)) => {
            let error = HostError::failed(Trouble::DidNotStart { names: vec![name.to_string()] });
            Err(error.hint("`brigade status` shows the reason"))
        }
    }
}

/// Ends the agent's program after its turn, so that a person can continue the session in the agent's own interface.
pub async fn hand_over(
    context: &Context,
    lead: &Seat,
    name: &MemberName,
) -> Result<HandedOver, HostError> {
    let member = SteeredMember::find(context, lead, name, "take over a member")?;
    let not_running = || {
        let (name, team) = (name.to_string(), lead.team.to_string());
        HostError::failed(Trouble::NotRunning { name, team })
            .hint("`brigade status` shows its state")
    };
    let mut connection = member.connect(lead).await?.ok_or_else(not_running)?;
    let reply = connection.request(&ControlRequest::HandOver).await;
    match reply.map_err(|source| failed(format!("take over {name}"), source))? {
        ControlReply::HandedOver { command } => {
            let dir = member.host.registry.member_dir(&lead.team, name);
            let lock = takeover::lock(&dir).await?.ok_or_else(|| {
                let why = "another terminal has its session".to_owned();
                HostError::failed(Trouble::NotSteered { name: name.to_string(), why })
            })?;
            // If the member's process was restarted before this process took the lock, the new one runs the agent.
            if !connection.is_open() {
                return Err(not_running());
            }
            Ok(HandedOver { command, lock, _connection: connection })
        }
        ControlReply::Failed { why } => {
            Err(HostError::failed(Trouble::NotSteered { name: name.to_string(), why }))
        }
        _ => Err(not_running()),
    }
}
