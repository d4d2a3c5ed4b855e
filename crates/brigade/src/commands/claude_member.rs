//! Runs a member that Claude Code started, until the member leaves the team. While the session of its lead is ended, the
//! member waits without its agent, and joins the team again when the session is resumed. A member that `brigade spawn` added
//! to the lead's team does the same.

use std::time::Duration;

use brigade_agents::driver::AgentChoice;
use brigade_core::seat::Seat;
use brigade_host::claude_led::{self, Parting, Registration, Rejoined};
use brigade_host::signals::{self, StopSignal};
use brigade_host::spec::ApprovalAuthority;
use brigade_host::{detach, preflight};
use brigade_wire::name::TeamName;

use super::agent_run::{self, PlayEnd, TeammateSettings};
use crate::context::{CliContext, variable};
use crate::error::CliError;
use crate::{env, exit};

/// How long a member waits for its lead, unless the user says otherwise.
const DEFAULT_WAIT: Duration = Duration::from_hours(24);

/// A member that Claude Code started.
pub(crate) struct ClaudeMember<'c> {
    pub(crate) context: &'c CliContext,
    pub(crate) choice: AgentChoice,
    /// The task list that Claude Code named for the member, if any.
    pub(crate) task_list: Option<TeamName>,
}

impl ClaudeMember<'_> {
    /// Runs the member until it leaves the team. The lead signs its messages with `lead_key`.
    pub(crate) async fn run(
        &self,
        registration: Registration,
        lead_key: Option<&str>,
        parent_session: Option<&str>,
    ) -> Result<u8, CliError> {
        let mut seat = self.seat(&registration);
        // Messages need the signature of Claude Code, or of the person who uses brigade on this host.
        let keys = lead_key.map(|key| format!("{key},{}", registration.key.verify_key()));
        seat.lead_key = keys.as_deref().map(str::parse).transpose().map_err(CliError::usage)?;
        registration.record_lead(&seat, parent_session).await?;
        if let Err(error) = preflight::check(self.context.programs(), [registration.spec()]) {
            let why = format!("it cannot start: {}", error.to_one_line());
            registration.leave(&seat, &why).await?;
            registration.remove()?;
            return Err(error);
        }
        let end = self.play(&registration, seat.clone(), keys).await;
        self.continue_after(registration, seat, end).await
    }

    /// Waits for the lead, then runs the member until it leaves the team.
    pub(crate) async fn wait(&self, registration: Registration) -> Result<u8, CliError> {
        let Some((registration, seat, end)) = self.wait_and_play(registration).await? else {
            return Ok(exit::DONE);
        };
        self.continue_after(registration, seat, end).await
    }

    /// Decides after each run of the member whether it waits for its lead.
    async fn continue_after(
        &self,
        mut registration: Registration,
        mut seat: Seat,
        mut end: Result<PlayEnd, CliError>,
    ) -> Result<u8, CliError> {
        loop {
            let signal = end.as_ref().ok().and_then(|end| end.signal);
            let parting = registration.part(&seat, signal).await?;
            let mut pane = match (parting, end) {
                (Parting::LeadAway, end) => end.unwrap_or_default().pane,
                (Parting::Ended, _) => return Ok(exit::DONE),
                (Parting::Left, Ok(PlayEnd { mut pane, .. })) => {
                    pane.close();
                    registration.remove()?;
                    return Ok(exit::DONE);
                }
                (Parting::Left, Err(error)) => {
                    registration.leave(&seat, &error.to_one_line()).await?;
                    registration.remove()?;
                    return Err(error);
                }
            };
            pane.wait_for_lead(registration.followed_lead()?.sessions.last());
            if signal == Some(StopSignal::HungUp) {
                detach::from_terminal(&registration.log())?;
            }
            let Some(next) = self.wait_and_play(registration).await? else {
                return Ok(exit::DONE);
            };
            (registration, seat, end) = next;
        }
    }

    /// Waits for the lead, adds the member to the lead's team, and runs the member. Returns `None` if a signal
    /// ends the member, if the lead does not come back in time, or if another member has the name.
    async fn wait_and_play(
        &self,
        mut registration: Registration,
    ) -> Result<Option<(Registration, Seat, Result<PlayEnd, CliError>)>, CliError> {
        let hours = variable(env::WAIT_FOR_LEAD, str::parse)?;
        let limit = hours.map_or(DEFAULT_WAIT, Duration::from_hours);
        loop {
            let sessions = registration.followed_lead()?.sessions;
            let found = tokio::select! {
                found = claude_led::wait_for_lead(self.context.claude_dir(), &sessions, limit) => found,
                signal = until_terminated(&registration) => { signal?; None }
            };
            let Some(lead) = found else { return Ok(None) };
            match registration.rejoin(self.context, &lead).await {
                Ok(Rejoined::Joined) => break,
                Ok(Rejoined::NameTaken) => {
                    registration.remove()?;
                    return Ok(None);
                }
                // For example, the lead has ended again.
                Err(error) => tracing::warn!(team = %lead.team, %error, "cannot join the team"),
            }
        }
        let mut seat = self.seat(&registration);
        // Claude Code does not sign messages to members that it has not started in this session.
        let key = registration.key.verify_key();
        seat.lead_key = Some(key.parse().map_err(CliError::failed)?);
        let end = self.play(&registration, seat.clone(), Some(key)).await;
        Ok(Some((registration, seat, end)))
    }

    async fn play(
        &self,
        registration: &Registration,
        seat: Seat,
        lead_key: Option<String>,
    ) -> Result<PlayEnd, CliError> {
        let spec = registration.spec();
        let settings = TeammateSettings {
            program: spec.program.clone(),
            // `None` if Claude Code started the member: the model in its arguments is one of Claude's, even for other agents.
            model: spec.model.clone(),
            access: spec.driver_access(),
            lead_key,
            prompt: None,
            cwd: spec.cwd.to_string_lossy().into_owned(),
            inherits: env::inherited(&self.choice.agent, spec.env.as_deref()),
            // The member's lead is Claude Code, which answers requests.
            answers: ApprovalAuthority::Lead,
            home: self.context.location().clone(),
            task_list: self.task_list.clone(),
            folder: Some(registration.folder()),
            paused: registration.is_paused(),
        };
        tokio::select! {
            end = agent_run::play(seat.clone(), self.choice.clone(), settings) => end,
            // The lead has resumed its session with another team.
            () = registration.follow_lead(&seat) => Ok(PlayEnd::default()),
        }
    }

    fn seat(&self, registration: &Registration) -> Seat {
        self.context.seat_of(registration.team().clone(), registration.spec().name.clone())
    }
}

/// Waits until a signal tells the member to end. The member keeps waiting for its lead when its terminal is closed.
async fn until_terminated(registration: &Registration) -> Result<(), CliError> {
    while signals::stop_signal().await? == StopSignal::HungUp {
        detach::from_terminal(&registration.log())?;
    }
    Ok(())
}
