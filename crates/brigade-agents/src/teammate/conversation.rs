//! Runs one conversation with an agent: handles the agent's events and the team's events.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::input::{CommandResult, MemberInput, next_input};
use super::running_agent::RunningAgent;
use super::{RETRY_INTERVAL, TeammateError, TeammateEvent, TeammateLoop};
use crate::delivery::{Action, Item};
use crate::driver::{Access, AgentAsk, AgentEvent, DriverOutput, PermissionAnswer, TurnEnd};
use brigade_core::event;
use brigade_core::handshake::{self, PermissionAsk, RequestKind};
use brigade_core::mail;
use brigade_core::roster::{self, Activity, RosterError};
use brigade_core::store::{Mark, StoreError};

/// The roster says that a member is active if its turn takes longer than this. Every change of the roster costs more in a
/// larger team, and the member's pulse reports every turn at once.
const ACTIVE_AFTER: Duration = Duration::from_secs(1);

/// How a conversation ended.
pub(super) enum ConversationEnd {
    /// The member is no longer on the team, or the team's event stream ended.
    Left,
    /// The agent's program ended or failed.
    Died(String),
    /// A command needs the end of the agent's program.
    Commanded,
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Handles events until the agent's program ends or the member leaves the team.
    pub(super) async fn converse(
        &mut self,
        agent: &mut RunningAgent,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> ConversationEnd {
        let mut buffer = vec![0; 64 * 1024];
        // `None` if the inbox must be checked now.
        let mut last_check = None;
        let mut has_failed = false;
        loop {
            if let Some(why) = self.pump(agent).await {
                return ConversationEnd::Died(why);
            }
            if self.cannot_save.is_some() {
                return ConversationEnd::Left;
            }
            self.settle_interrupts(agent);
            if self.must_end_program().await {
                return ConversationEnd::Commanded;
            }
            match self.noticed.take() {
                Some(EventEffect::Mail) => last_check = None,
                Some(EventEffect::Left) => return ConversationEnd::Left,
                Some(EventEffect::None) | None => {}
            }
            self.beat().await;
            let is_pending = has_failed || !self.shown.is_empty() || self.unsent.is_some();
            let interval = match is_pending {
                true => RETRY_INTERVAL,
                false => self.config.seat.store.recheck_interval(),
            };
            let next_check = last_check.map_or_else(Instant::now, |at| at + interval);
            tokio::select! {
                read = agent.read(&mut buffer) => match read {
                    Ok(0) => return ConversationEnd::Died(agent.end_message().to_owned()),
                    Ok(count) => self.driver.on_output(buffer.get(..count).unwrap_or_default()),
                    Err(error) => return ConversationEnd::Died(format!("cannot read the agent's output: {error}")),
                },
                record = self.watch.next_shared() => match record {
                    Some(record) => match self.on_team_event(&record) {
                        EventEffect::Mail => last_check = None,
                        EventEffect::Left => return ConversationEnd::Left,
                        EventEffect::None => {}
                    },
                    None => return ConversationEnd::Left,
                },
                input = next_input(inputs) => if self.on_input(input).await {
                    return ConversationEnd::Commanded;
                },
                () = sleep_until(self.active_at.unwrap_or_else(Instant::now)), if self.active_at.is_some() => {
                    self.active_at = None;
                    self.set_activity(Activity::Active).await;
                }
                // The next round saves the pulse.
                () = sleep(self.config.seat.store.pulse_interval()) => {}
                () = sleep_until(next_check) => {
                    last_check = Some(Instant::now());
                    has_failed = false;
                    self.send_unsent().await;
                    match self.check_inbox().await {
                        Ok(true) => {}
                        Ok(false) | Err(TeammateError::Store(StoreError::NoTeam { .. })) => {
                            return ConversationEnd::Left;
                        }
                        Err(error) => {
                            has_failed = true;
                            self.trouble("cannot check the inbox", &error);
                        }
                    }
                }
            }
        }
    }

    /// Writes the driver's bytes to the program and handles the driver's events. If the conversation cannot
    /// continue, returns the reason.
    async fn pump(&mut self, agent: &RunningAgent) -> Option<String> {
        while let Some(output) = self.driver.next() {
            match output {
                DriverOutput::Write(bytes) => agent.write(bytes),
                DriverOutput::Event(event) => {
                    let broken = match &event {
                        AgentEvent::Broken { why } => Some(why.clone()),
                        _ => None,
                    };
                    self.on_agent_event(event).await;
                    if broken.is_some() {
                        return broken;
                    }
                }
            }
        }
        None
    }

    /// Passes the program's exit code to the driver, since some agents report failure through the exit code.
    pub(super) async fn program_exited(&mut self, code: i32) {
        self.driver.on_exit(code);
        while let Some(output) = self.driver.next() {
            if let DriverOutput::Event(event) = output {
                self.on_agent_event(event).await;
            }
        }
    }

    async fn on_agent_event(&mut self, event: AgentEvent) {
        let event = match self.vitals.with_earlier_usage(event) {
            AgentEvent::TurnEnded(TurnEnd::Failed(why)) => {
                AgentEvent::TurnEnded(TurnEnd::Failed(self.config.agent.explain_failure(&why)))
            }
            event => event,
        };
        // Set `session_minute` before `carry_out` saves it together with the session id.
        if let AgentEvent::Ready { session } = &event
            && self.delivery.saved().session.as_ref() != Some(session)
        {
            self.session_minute = self.this_minute();
        }
        let actions = self.delivery.on_event(&event);
        self.turn.on_event(&event);
        self.vitals.on_event(&event, self.config.seat.clock.now());
        self.track_commands(&event);
        match &event {
            AgentEvent::Asks(ask) => self.ask_lead(ask.clone()).await,
            AgentEvent::RemembersIn { path } => self.recall(path),
            AgentEvent::Ready { .. } => {
                self.ready = true;
                self.settle_restart(CommandResult::Done);
            }
            AgentEvent::Broken { .. } => self.failed_to_start = !self.ready,
            AgentEvent::TurnEnded(TurnEnd::Done) => self.completed_turn = true,
            AgentEvent::AsksNoLonger(id) => {
                self.unsent.asks.retain(|ask| ask.id != *id);
                let withdrawn = self.asks.extract_if(|_, (_, ask)| ask == id);
                let withdrawn: Vec<String> = withdrawn.map(|(request_id, _)| request_id).collect();
                if !withdrawn.is_empty() {
                    self.withdraw_requests(|request_id| {
                        withdrawn.iter().any(|withdrawn| withdrawn == request_id)
                    })
                    .await;
                }
            }
            _ => {}
        }
        if matches!(event, AgentEvent::Ready { .. }) {
            // A reader that is woken by the record of this event must find that the member is ready.
            self.beat().await;
        }
        (self.observer)(TeammateEvent::Did(event));
        // Let the work recorder's task run, so that it records the event before the actions take effect.
        tokio::task::yield_now().await;
        self.carry_out(actions).await;
    }

    /// Searches the agent's own session record for batches that the agent may have received. If the record
    /// cannot be read, no batch counts as received.
    fn recall(&mut self, path: &str) {
        if self.delivery.has_unknown_batches()
            && let Ok(record) = read_first_match(path)
        {
            let text = self.driver.recalled(&complete_lines(&record)).into_owned();
            let _no_actions = self.delivery.on_event(&AgentEvent::Remembers { text });
        }
    }

    pub(super) async fn typed(&mut self, line: String) {
        let actions = self.delivery.enqueue([Item { message: None, text: line }]);
        self.carry_out(actions).await;
    }

    pub(super) async fn carry_out(&mut self, actions: Vec<Action>) {
        let starts_turn = actions.iter().any(|action| matches!(action, Action::StartTurn(..)));
        for action in actions {
            if self.cannot_save.is_some() {
                return;
            }
            match action {
                Action::Persist(_) => self.save().await,
                Action::StartTurn(note, text) => {
                    self.driver.prompt(note, &text);
                    (self.observer)(TeammateEvent::Given(text));
                }
                Action::Steer(note, text) => {
                    self.driver.steer(note, &text);
                    (self.observer)(TeammateEvent::Given(text));
                }
                Action::MarkShown(keys) => {
                    // A reader that finds no unread mail must find that the member works on it.
                    self.beat().await;
                    self.shown.extend(keys);
                    self.mark_shown().await;
                }
                Action::TurnStarted => {
                    self.in_turn = true;
                    self.active_at = Some(Instant::now() + ACTIVE_AFTER);
                }
                Action::TurnEnded(end) => {
                    self.in_turn = false;
                    // A reader that is woken by the report to the lead must find that the member is idle.
                    if !starts_turn {
                        self.beat().await;
                    }
                    self.end_turn().await;
                    self.inform_lead(&end).await;
                }
            }
        }
    }

    /// Marks messages as shown after the agent has received them. If marking fails, the next call tries again. The
    /// messages are not sent to the agent again.
    pub(super) async fn mark_shown(&mut self) {
        if self.shown.is_empty() {
            return;
        }
        match mail::mark(&self.config.seat, &self.shown, Mark::Shown).await {
            Ok(()) => self.seen.extend(self.shown.drain(..)),
            Err(error) => self.trouble("cannot mark messages as shown yet; retrying", &error),
        }
    }

    /// Forwards the agent's permission request or plan to the lead. Denies permission requests as long as the
    /// agent has read-only access, because its plan is not approved yet.
    pub(super) async fn forward_request(&mut self, ask: &AgentAsk) -> Result<(), TeammateError> {
        let seat = &self.config.seat;
        let (kind, forward_request) = if let Some(plan) = &ask.plan {
            (RequestKind::Plan, handshake::submit_plan(seat, plan, None).await?)
        } else if self.access == Access::ReadOnly {
            let why = "you may not change anything before your plan is approved; use submit_plan";
            let denied = PermissionAnswer::Deny(why.to_owned());
            self.driver.answer(ask.id, &denied);
            return Ok(());
        } else {
            let request = PermissionAsk {
                tool: &ask.tool,
                tool_use_id: &ask.tool_use_id,
                description: &ask.description,
                input: &ask.input,
                request: &ask.request,
                cwd: &self.config.launch.cwd,
            };
            (RequestKind::Permission, handshake::request_permission(seat, &request).await?)
        };
        self.asks.insert(forward_request.request_id.clone(), (kind, ask.id));
        let what = format!("{}: {}", ask.tool, ask.description);
        (self.observer)(TeammateEvent::Waits { request_id: forward_request.request_id, what });
        Ok(())
    }

    /// Withdraws requests whose answers the agent no longer waits for, so that the lead need not answer them.
    pub(super) async fn withdraw_requests(&mut self, withdrawn: impl Fn(&str) -> bool) {
        if let Err(error) = handshake::withdraw(&self.config.seat, withdrawn).await {
            self.trouble("cannot withdraw a request", &error);
        }
    }

    /// Records that the member is not in a turn any more.
    pub(super) async fn end_turn(&mut self) {
        self.in_turn = false;
        self.active_at = None;
        self.set_activity(Activity::Idle).await;
    }

    async fn set_activity(&mut self, activity: Activity) {
        if self.activity == Some(activity) {
            return;
        }
        let seat = &self.config.seat;
        match roster::set_activity(seat, &seat.name, activity).await {
            // If the member has left the team meanwhile, the event stream will report that.
            Ok(()) | Err(RosterError::NoMember { .. }) => self.activity = Some(activity),
            Err(error) => self.trouble("cannot update the member's activity", &error),
        }
    }

    /// Handles the team's events so far, so that the report about a turn contains everything that the member has done.
    pub(super) fn read_events(&mut self) {
        self.watch.refresh();
        while let Some(record) = self.watch.try_next() {
            let effect = self.on_team_event(&record);
            self.noticed = self.noticed.max(Some(effect));
        }
    }

    /// Handles a team event and returns its effect on this member.
    pub(super) fn on_team_event(&mut self, record: &event::Record) -> EventEffect {
        let me = self.config.seat.name.as_str();
        match &record.event {
            event::Event::Sent { to, key, .. } if to == me => {
                if !self.seen.contains(key) {
                    self.just_sent.insert(*key);
                }
                EventEffect::Mail
            }
            event::Event::Seen { to, .. } if to == me => EventEffect::Mail,
            // A message is also marked as shown when the agent reads the message with a tool.
            event::Event::Shown { to, key } if to == me => {
                self.seen.insert(*key);
                self.just_sent.remove(key);
                EventEffect::None
            }
            // The new team may not have this member. The check of the inbox finds out.
            event::Event::TeamCreated { .. } => EventEffect::Mail,
            event::Event::MemberLeft { name } if name == me => EventEffect::Left,
            event::Event::TeamDeleted {} => EventEffect::Left,
            _ => {
                if record.by.as_deref() == Some(me) {
                    self.turn.on_own_event(record, self.lead.as_ref());
                }
                EventEffect::None
            }
        }
    }
}

/// The meaning of a team event for this member, the most important one last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventEffect {
    None,
    /// The member has new mail.
    Mail,
    /// The member was removed, or its team was deleted.
    Left,
}

/// Reads the file at `path`. If a folder name in the path is `*`, reads the first readable file that matches.
fn read_first_match(path: &str) -> io::Result<Vec<u8>> {
    let Some((folder, rest)) = path.split_once("/*/") else {
        return std::fs::read(path);
    };
    let found = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path().join(rest)));
    found.map(std::fs::read).find(Result::is_ok).unwrap_or(Err(io::ErrorKind::NotFound.into()))
}

/// Returns the complete lines of a session record. If the program was killed, the last line may be incomplete. The
/// program itself ignores such a line when it resumes the session.
fn complete_lines(record: &[u8]) -> String {
    let end = record.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    String::from_utf8_lossy(record.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::complete_lines;

    #[test]
    fn an_unfinished_last_line_is_ignored() {
        for (record, whole) in [("", ""), ("cut", ""), ("a\n", "a"), ("a\nb\ncut", "a\nb")] {
            assert_eq!(complete_lines(record.as_bytes()), whole, "{record:?}");
        }
    }
}
