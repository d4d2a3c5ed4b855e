//! One conversation with an agent: what is heard, and what is done about it.

use std::io;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::life::Life;
use super::{SLOW_LOOK, Sight, Teammate, TeammateError};
use crate::delivery::{Action, Parcel};
use crate::driver::{Access, Ask, End, Event, Output, Verdict};
use brigade_core::event;
use brigade_core::handshake::{self, Kind, Leave};
use brigade_core::mail;
use brigade_core::roster::{self, Activity, RosterError};
use brigade_core::store::{Mark, StoreError, Watch};

/// How a conversation ended.
pub(super) enum Over {
    /// The member is no longer on the team, or nobody wants it any more.
    Left,
    /// The agent's program ended or broke.
    Died(String),
}

impl<S: FnMut(Sight)> Teammate<S> {
    /// Talks with the agent for as long as it lives and is wanted.
    pub(super) async fn converse(
        &mut self,
        life: &mut Life,
        watch: &mut Watch,
        typed: &mut Option<mpsc::UnboundedReceiver<String>>,
    ) -> Over {
        let mut room = vec![0; 64 * 1024];
        let mut look_at = Instant::now();
        loop {
            if let Some(why) = self.pump(life).await {
                return Over::Died(why);
            }
            self.beat().await;
            tokio::select! {
                read = life.read(&mut room) => match read {
                    Ok(0) => return Over::Died(life.ended().to_owned()),
                    Ok(count) => self.driver.hear(room.get(..count).unwrap_or_default()),
                    Err(error) => return Over::Died(format!("it cannot be heard: {error}")),
                },
                record = watch.next_shared() => match record {
                    Some(record) => match self.happened(&record) {
                        News::Mail => look_at = Instant::now(),
                        News::Left => return Over::Left,
                        News::None => {}
                    },
                    None => return Over::Left,
                },
                line = next_line(typed) => self.typed(line).await,
                () = sleep_until(look_at) => {
                    look_at = Instant::now() + SLOW_LOOK;
                    match self.look().await {
                        Ok(true) => {}
                        Ok(false) | Err(TeammateError::Store(StoreError::NoTeam { .. })) => {
                            return Over::Left;
                        }
                        Err(error) => self.trouble("the mail could not be looked at", &error),
                    }
                }
            }
        }
    }

    /// Brings what the driver has to the program and to the house; a reason if it broke.
    async fn pump(&mut self, life: &Life) -> Option<String> {
        while let Some(output) = self.driver.next() {
            match output {
                Output::Write(bytes) => life.write(bytes),
                Output::Event(event) => {
                    let broken = match &event {
                        Event::Broken { why } => Some(why.clone()),
                        _ => None,
                    };
                    self.heard(event).await;
                    if broken.is_some() {
                        return broken;
                    }
                }
            }
        }
        None
    }

    /// The program ended by itself, which may tell something, too.
    pub(super) async fn ended(&mut self, code: i32) {
        self.driver.ended(code);
        while let Some(output) = self.driver.next() {
            if let Output::Event(event) = output {
                self.heard(event).await;
            }
        }
    }

    async fn heard(&mut self, event: Event) {
        // Before the actions: they write down the session, and it belongs to it.
        if let Event::Ready { session } = &event
            && self.delivery.memory().session.as_ref() != Some(session)
        {
            self.minute = self.this_minute();
        }
        let actions = self.delivery.heard(&event);
        self.turn.heard(&event);
        self.vitals.heard(&event, self.plan.seat.clock.now());
        match &event {
            Event::Asks(ask) => {
                if let Err(error) = self.asked(ask.clone()).await {
                    self.trouble("the lead could not be asked", &error);
                    let no = Verdict::Deny(format!("the lead could not be asked: {error}"));
                    self.driver.answer(ask.id, &no);
                }
            }
            Event::RemembersIn { path } => self.recall(path),
            Event::Ready { .. } => self.ready = true,
            Event::Broken { .. } => self.refused = !self.ready,
            Event::TurnEnded(End::Done) => self.got_on = true,
            Event::AsksNoLonger(id) => {
                let gone = self.asks.extract_if(|_, (_, ask)| ask == id);
                let gone: Vec<String> = gone.map(|(request_id, _)| request_id).collect();
                if !gone.is_empty() {
                    self.take_back(|request_id| gone.iter().any(|gone| gone == request_id)).await;
                }
            }
            _ => {}
        }
        (self.sights)(Sight::Did(event));
        // The scribe comes first, if it can: what was said stands before what came of it.
        tokio::task::yield_now().await;
        self.act(actions).await;
    }

    /// Looks into the agent's own record for what it was given last. One that cannot be read tells
    /// nothing, as if it held nothing.
    fn recall(&mut self, path: &str) {
        if self.delivery.is_in_doubt()
            && let Ok(record) = read_one(path)
        {
            let text = self.driver.recalled(&whole_lines(&record)).into_owned();
            let _away = self.delivery.heard(&Event::Remembers { text });
        }
    }

    pub(super) async fn typed(&mut self, line: String) {
        let actions = self.delivery.arrived([Parcel { key: None, text: line }]);
        self.act(actions).await;
    }

    pub(super) async fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Keep(_) => self.keep().await,
                Action::Prompt(note, text) => {
                    self.driver.prompt(note, &text);
                    (self.sights)(Sight::Given(text));
                }
                Action::Steer(note, text) => {
                    self.driver.steer(note, &text);
                    (self.sights)(Sight::Given(text));
                }
                Action::Shown(keys) => {
                    self.shown.extend(keys);
                    self.mark_shown().await;
                }
                Action::Busy => self.set_activity(Activity::Active).await,
                Action::Idle(end) => {
                    self.set_activity(Activity::Idle).await;
                    if let Err(error) = self.report(&end).await {
                        self.trouble("the lead could not be told", &error);
                    }
                }
            }
        }
    }

    /// Marks what the agent has. What cannot be marked now is marked later, and not given again.
    pub(super) async fn mark_shown(&mut self) {
        if self.shown.is_empty() {
            return;
        }
        match mail::mark(&self.plan.seat, &self.shown, Mark::Shown).await {
            Ok(()) => {
                let marked = self.shown.drain(..);
                if let Some(seen) = &mut self.seen {
                    seen.extend(marked);
                }
            }
            Err(error) => self.trouble("the agent's mail cannot be marked yet", &error),
        }
    }

    /// The agent asks leave: its lead decides. With a plan still to be approved nobody does.
    async fn asked(&mut self, ask: Ask) -> Result<(), TeammateError> {
        let seat = &self.plan.seat;
        let (kind, asked) = if let Some(plan) = &ask.plan {
            (Kind::Plan, handshake::submit_plan(seat, plan, None).await?)
        } else if self.access == Access::ReadOnly {
            let first = "nothing may be changed before your plan is approved; use submit_plan";
            let no = Verdict::Deny(first.to_owned());
            self.driver.answer(ask.id, &no);
            return Ok(());
        } else {
            let leave = Leave {
                tool: &ask.tool,
                tool_use_id: &ask.tool_use_id,
                description: &ask.description,
                input: &ask.input,
                cwd: &self.plan.launch.cwd,
            };
            (Kind::Permission, handshake::request_permission(seat, &leave).await?)
        };
        self.asks.insert(asked.request_id.clone(), (kind, ask.id));
        let what = format!("{}: {}", ask.tool, ask.description);
        (self.sights)(Sight::Waits { request_id: asked.request_id, what });
        Ok(())
    }

    /// Takes back what the agent no longer asks for, so that nobody answers it in vain.
    pub(super) async fn take_back(&mut self, gone: impl Fn(&str) -> bool) {
        if let Err(error) = handshake::take_back(&self.plan.seat, gone).await {
            self.trouble("a request could not be taken back", &error);
        }
    }

    pub(super) async fn set_activity(&mut self, activity: Activity) {
        if self.activity == Some(activity) {
            return;
        }
        let seat = &self.plan.seat;
        match roster::set_activity(seat, &seat.name, activity).await {
            // It has left meanwhile; the watch will tell.
            Ok(()) | Err(RosterError::NoMember { .. }) => self.activity = Some(activity),
            Err(error) => self.trouble("whether it is at work could not be told", &error),
        }
    }

    /// What something that happened in the team means to this member.
    pub(super) fn happened(&mut self, record: &event::Record) -> News {
        let me = self.plan.seat.name.as_str();
        match &record.event {
            event::Event::Sent { to, .. } | event::Event::Seen { to, .. } if to == me => News::Mail,
            // Its agent may have looked for itself, with a tool.
            event::Event::Shown { to, key } if to == me => {
                if let Some(seen) = &mut self.seen {
                    seen.insert(*key);
                }
                News::None
            }
            event::Event::MemberLeft { name } if name == me => News::Left,
            event::Event::TeamDeleted {} => News::Left,
            _ => {
                if record.by.as_deref() == Some(me) {
                    self.turn.did(record, self.lead.as_ref());
                }
                News::None
            }
        }
    }
}

/// What something that happened in the team means to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Mail,
    Left,
    None,
}

/// The next line somebody types; never, once nobody can.
pub(super) async fn next_line(typed: &mut Option<mpsc::UnboundedReceiver<String>>) -> String {
    if let Some(lines) = typed {
        if let Some(line) = lines.recv().await {
            return line;
        }
        *typed = None;
    }
    std::future::pending().await
}

/// Reads the file of a path, in which `*` may stand in place of one folder's name: the first there is.
fn read_one(path: &str) -> io::Result<Vec<u8>> {
    let Some((folder, rest)) = path.split_once("/*/") else {
        return std::fs::read(path);
    };
    let found = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path().join(rest)));
    found.map(std::fs::read).find(Result::is_ok).unwrap_or(Err(io::ErrorKind::NotFound.into()))
}

/// What a program that was killed had written as far as it can read it again: without a last line that
/// has no end.
fn whole_lines(record: &[u8]) -> String {
    let end = record.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    String::from_utf8_lossy(record.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::whole_lines;

    #[test]
    fn a_line_without_an_end_was_not_written() {
        for (record, whole) in [("", ""), ("cut", ""), ("a\n", "a"), ("a\nb\ncut", "a\nb")] {
            assert_eq!(whole_lines(record.as_bytes()), whole, "{record:?}");
        }
    }
}
