//! Carries out the commands that a person gives to a running member.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::conversation::EventEffect;
use super::input::{CommandResult, InteractiveCommand, MemberCommand, MemberInput, next_input};
use super::running_agent::RunningAgent;
use super::{AgentRunner, REPORT_INTERVAL, TeammateEvent, TeammateLoop};
use crate::driver::AgentEvent;

/// How often a member checks whether the program that has its session open has ended.
const USE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The commands that have not taken effect yet.
#[derive(Debug, Default)]
pub(super) struct PendingCommands {
    /// The senders of `Interrupt` commands. They wait for the end of the turn.
    interrupts: Vec<oneshot::Sender<CommandResult>>,
    /// When the oldest of the agent's unfinished tool calls began. Commands that the agent has started since then belong to the
    /// interrupted turn.
    calls_since: Option<Instant>,
    /// Whether the interrupted turn has ended.
    turn_over: bool,
    /// The agent must be started again. The sender waits until the agent is ready.
    restart: Option<RestartCommand>,
    restarted: Option<oneshot::Sender<CommandResult>>,
    hand_over: Option<(oneshot::Receiver<()>, oneshot::Sender<CommandResult>)>,
}

#[derive(Debug)]
struct RestartCommand {
    fresh: Option<String>,
    model: Option<String>,
}

/// Waits until the terminal that has the session reports back. Never returns if there is none.
async fn reported_back(release: &mut Option<oneshot::Receiver<()>>) {
    match release {
        // The sender is dropped without a value if the terminal was killed.
        Some(release) => drop(release.await),
        None => std::future::pending().await,
    }
}

/// The tool calls that the agent has started and not finished.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    last_event: Option<Instant>,
    /// For each call, the time of the event before its start: a command may run before the agent reports it.
    since: HashMap<String, Instant>,
}

impl OpenCalls {
    fn on_event(&mut self, event: &AgentEvent) {
        let now = Instant::now();
        match event {
            AgentEvent::TurnStarted => self.since.clear(),
            AgentEvent::ToolStarted { id, .. } => {
                self.since.insert(id.clone(), self.last_event.unwrap_or(now));
            }
            AgentEvent::ToolEnded { id, .. } => drop(self.since.remove(id)),
            _ => {}
        }
        self.last_event = Some(now);
    }

    fn oldest(&self) -> Option<Instant> {
        self.since.values().min().copied()
    }
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Handles input. Returns whether the agent's program must be ended.
    pub(super) async fn on_input(&mut self, input: MemberInput) -> bool {
        let (command, reply) = match input {
            MemberInput::Line(line) => {
                self.typed(line).await;
                return false;
            }
            MemberInput::Command(command, reply) => (command, reply),
        };
        match command {
            MemberCommand::Interrupt if !self.delivery.is_busy() => {
                let result = match self.delivery.will_continue_turn() {
                    true => CommandResult::Failed(
                        "its agent is being started, and will continue a turn; try again in a moment"
                            .to_owned(),
                    ),
                    false => CommandResult::NotInTurn,
                };
                let _gone = reply.send(result);
            }
            MemberCommand::Interrupt => {
                self.commands.interrupts.push(reply);
                self.commands.calls_since = self.commands.calls_since.or(self.open_calls.oldest());
                self.driver.interrupt();
            }
            MemberCommand::Pause => {
                self.set_paused(true).await;
                let _gone = reply.send(CommandResult::Done);
            }
            MemberCommand::Unpause => {
                self.set_paused(false).await;
                let _gone = reply.send(CommandResult::Done);
            }
            MemberCommand::Restart { fresh, model } => {
                self.commands.restart = Some(RestartCommand { fresh, model });
                self.commands.restarted = Some(reply);
            }
            MemberCommand::HandOver(release) => {
                if self.commands.hand_over.is_some() {
                    let why = "another terminal waits for its session".to_owned();
                    let _gone = reply.send(CommandResult::Failed(why));
                } else if self.config.agent.interactive.is_empty() {
                    let why = format!(
                        "{} cannot continue a session in a terminal",
                        self.config.agent.title
                    );
                    let _gone = reply.send(CommandResult::Failed(why));
                } else {
                    self.commands.hand_over = Some((release, reply));
                    self.hold_if_needed().await;
                }
            }
        }
        self.must_end_program().await
    }

    /// Returns whether a command waits for the end of the agent's program.
    pub(super) async fn must_end_program(&mut self) -> bool {
        if self.commands.hand_over.as_ref().is_some_and(|(_, reply)| reply.is_closed()) {
            // The process that asked for the session has ended.
            self.commands.hand_over = None;
            self.hold_if_needed().await;
        }
        self.commands.restart.is_some()
            || (self.commands.hand_over.is_some() && !self.delivery.is_busy())
    }

    async fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
        self.hold_if_needed().await;
    }

    async fn hold_if_needed(&mut self) {
        let held = self.paused || self.commands.hand_over.is_some();
        let actions = self.delivery.hold(held);
        self.carry_out(actions).await;
    }

    /// Follows the agent's tool calls, and the end of an interrupted turn.
    pub(super) fn track_commands(&mut self, event: &AgentEvent) {
        self.open_calls.on_event(event);
        if self.commands.interrupts.is_empty() {
            return;
        }
        self.commands.calls_since = self.commands.calls_since.or(self.open_calls.oldest());
        if let AgentEvent::TurnEnded(_) = event {
            self.commands.turn_over = true;
        }
    }

    /// After an interrupted turn, ends the commands that the agent left running, and informs the senders of the interrupts.
    pub(super) fn settle_interrupts(&mut self, agent: &RunningAgent) {
        if !std::mem::take(&mut self.commands.turn_over) {
            return;
        }
        let senders = std::mem::take(&mut self.commands.interrupts);
        let since = self.commands.calls_since.take();
        let left = since.map(|since| agent.end_commands(since.elapsed()));
        tokio::spawn(async move {
            let ended = match left.flatten() {
                Some(left) => left.await.unwrap_or_default(),
                None => 0,
            };
            for sender in senders {
                let _gone = sender.send(CommandResult::Interrupted { ended });
            }
        });
    }

    /// Ends the interrupts of a process that has ended: its turn is over, and its commands ended with it.
    pub(super) fn forget_interrupts(&mut self) {
        let senders = std::mem::take(&mut self.commands.interrupts);
        if !senders.is_empty() {
            self.delivery.abandon_turn();
        }
        for sender in senders {
            let _gone = sender.send(CommandResult::Interrupted { ended: 0 });
        }
        self.commands.calls_since = None;
        self.commands.turn_over = false;
        self.open_calls = OpenCalls::default();
    }

    /// Reports to the sender of a restart that the agent is ready, or why it is not.
    pub(super) fn settle_restart(&mut self, result: CommandResult) {
        if let Some(sender) = self.commands.restarted.take() {
            let _gone = sender.send(result);
        }
    }

    /// Prepares the next start of the agent's program, after a command ended the program. Returns `false` if the member has
    /// left the team meanwhile.
    pub(super) async fn after_command(
        &mut self,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> bool {
        self.forget_process();
        if let Some(RestartCommand { fresh, model }) = self.commands.restart.take() {
            self.config.launch.model = model.or(self.config.launch.model.take());
            if let Some(text) = fresh {
                self.delivery.start_new_session(text);
                self.save().await;
            }
        }
        match self.commands.hand_over.take() {
            Some((release, reply)) => self.hand_over(release, reply, inputs).await,
            None => true,
        }
    }

    /// Hands the session over, and waits while a person continues it. Returns `false` if the member has left the team meanwhile.
    async fn hand_over(
        &mut self,
        release: oneshot::Receiver<()>,
        reply: oneshot::Sender<CommandResult>,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> bool {
        self.wait_to_resume().await;
        let result = self.interactive_command();
        let is_handed_over = matches!(result, CommandResult::HandedOver(_));
        if reply.send(result).is_err() || !is_handed_over {
            self.hold_if_needed().await;
            return true;
        }
        self.record_takeover().await;
        self.wait_until_released(Some(release), inputs).await
    }

    /// If another program has the session open, waits until that program has ended: the process of this member was started again
    /// while a person continues the session. Records the end of a takeover. Returns `false` if the member has left the team meanwhile.
    pub(super) async fn wait_while_used(
        &mut self,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> bool {
        let stays =
            !self.config.session_use.is_used() || self.wait_until_released(None, inputs).await;
        if stays {
            self.record_takeover_end().await;
        }
        stays
    }

    /// Waits until the terminal that has the session reports back, and until no other program has the session open. A terminal that
    /// was killed reports back before its program has ended.
    async fn wait_until_released(
        &mut self,
        mut release: Option<oneshot::Receiver<()>>,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> bool {
        self.handed_over = true;
        let stays = loop {
            if release.is_none() && !self.config.session_use.is_used() {
                break true;
            }
            if self.noticed.take() == Some(EventEffect::Left) {
                break false;
            }
            self.beat().await;
            let pause = if release.is_some() { REPORT_INTERVAL } else { USE_CHECK_INTERVAL };
            tokio::select! {
                () = reported_back(&mut release) => release = None,
                () = tokio::time::sleep(pause) => self.send_unsent().await,
                record = self.watch.next_shared() => match record.map(|record| self.on_team_event(&record)) {
                    Some(EventEffect::Left) | None => break false,
                    // The next conversation reads the inbox.
                    Some(EventEffect::Mail | EventEffect::None) => {}
                },
                input = next_input(inputs) => self.refuse_while_handed_over(input).await,
            }
        };
        self.handed_over = false;
        self.hold_if_needed().await;
        stays
    }

    async fn refuse_while_handed_over(&mut self, input: MemberInput) {
        let (command, reply) = match input {
            MemberInput::Line(line) => return self.typed(line).await,
            MemberInput::Command(command, reply) => (command, reply),
        };
        let result = match command {
            MemberCommand::Pause | MemberCommand::Unpause => {
                self.paused = matches!(command, MemberCommand::Pause);
                CommandResult::Done
            }
            _ => CommandResult::Failed("a person continues its session in a terminal".to_owned()),
        };
        let _gone = reply.send(result);
    }

    fn interactive_command(&self) -> CommandResult {
        let Some(session) = self.delivery.saved().session.clone() else {
            return CommandResult::Failed("its agent has no session yet".to_owned());
        };
        let AgentRunner::Program(start) = &self.config.runner else {
            return CommandResult::Failed("it has no program".to_owned());
        };
        let own = self.config.agent.interactive.iter();
        let args = own.map(|arg| OsString::from(arg.replace("{session}", &session)));
        let given = self.config.launch.arguments.iter().map(OsString::from);
        let variables = self.driver.invocation().env.into_iter();
        let mut env = start.inherits.clone().unwrap_or_default();
        env.extend(start.env.iter().cloned());
        env.extend(variables.map(|(name, value)| (name.into(), value.into())));
        CommandResult::HandedOver(InteractiveCommand {
            program: start.program.clone(),
            args: given.chain(args).collect(),
            env,
            cwd: start.cwd.clone(),
            session,
            title: self.config.agent.title.to_owned(),
        })
    }
}
