//! The terminal pane of a teammate: shows what the teammate's agent says and does, and accepts the user's input.
//!
//! Brigade sends the input to the agent as a user message over the agent's protocol. The agent has no terminal of
//! its own, so brigade never simulates keystrokes.

use std::io::{BufRead, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brigade_agents::driver::{Agent, AgentEvent, TurnEnd, Usage};
use brigade_agents::teammate::{MemberInput, TeammateEvent};
use brigade_core::seat::Seat;
use brigade_core::text;
use tokio::sync::mpsc;

use crate::diff;
use crate::output::{self, BUSY, FAINT, HINT, READY, STRONG};

/// Maximum width of a delivered message in the pane.
const MESSAGE_WIDTH: usize = 200;

/// A teammate's pane.
#[derive(Debug, Default)]
pub(crate) struct Pane {
    /// The incomplete last line of the agent's output.
    line: String,
    used: Usage,
}

impl Pane {
    /// Opens the pane and starts to forward input lines to the channel `typed`.
    pub(crate) fn open(
        seat: &Seat,
        agent: &Agent,
        typed: mpsc::UnboundedSender<MemberInput>,
    ) -> Self {
        let mut pane = Self::default();
        pane.print(&format!(
            "{STRONG}{}{STRONG:#} of team {}: {}\n",
            seat.name, seat.team, agent.title
        ));
        if std::io::stdin().is_terminal() {
            pane.print(&format!(
                "{FAINT}Type here to send a message to {}.{FAINT:#}\n",
                agent.title
            ));
        }
        let is_first = reader().replace(typed).is_none();
        if is_first {
            // Use a thread, because a blocking read of the terminal cannot be cancelled.
            std::thread::spawn(|| {
                for line in std::io::stdin().lock().lines() {
                    let Ok(line) = line else { return };
                    if let Some(typed) = &*reader()
                        && !line.trim().is_empty()
                    {
                        // If the receiver is gone, the agent does not run at the moment.
                        let _lost = typed.send(MemberInput::Line(line));
                    }
                }
            });
        }
        pane
    }

    /// Prints an event of the teammate.
    pub(crate) fn show(&mut self, sight: &TeammateEvent) {
        match sight {
            TeammateEvent::Started => self.state("starting"),
            TeammateEvent::Given(text) => {
                for (from, text) in messages(text) {
                    let text = text::cut(&text::plain(&text).replace('\n', " "), MESSAGE_WIDTH);
                    let from = text::one_line(&from);
                    self.print_line(&format!("{STRONG}← {from}{STRONG:#} {FAINT}{text}{FAINT:#}"));
                }
            }
            TeammateEvent::Did(event) => self.event(event),
            TeammateEvent::Waits { request_id, what } => {
                let what = text::one_line(what);
                self.print_line(&format!(
                    "{HINT}? {what}{HINT:#}  {FAINT}waiting for the lead: {request_id}{FAINT:#}"
                ));
            }
            TeammateEvent::Answered { request_id, yes } => {
                let word = if *yes { "approved" } else { "denied" };
                self.print_line(&format!(
                    "{HINT}! {word}{HINT:#}  {FAINT}{}{FAINT:#}",
                    text::one_line(request_id)
                ));
            }
            TeammateEvent::Trouble(what) => {
                self.print_line(&format!("{HINT}! {}{HINT:#}", text::one_line(what)));
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Ready { .. } => self.state("idle"),
            AgentEvent::TurnStarted => self.state("working"),
            AgentEvent::Said(text) => self.append(text),
            AgentEvent::ToolStarted { tool, about, .. } => {
                let line = text::one_line(&format!("{tool} {about}"));
                self.print_line(&format!("{BUSY}● {}{BUSY:#}", text::cut(&line, 160)));
            }
            AgentEvent::Changed(change) => self.print_line(&diff::short(change)),
            AgentEvent::ToolEnded { ok: false, why, .. } => {
                let why = text::one_line(why);
                let failed = if why.is_empty() { "failed" } else { "failed: " };
                self.print_line(&format!("{FAINT}  {failed}{}{FAINT:#}", text::cut(&why, 160)));
            }
            AgentEvent::Used(used) => self.used = *used,
            AgentEvent::Retries { why } => {
                self.state(&format!("retrying: {}", text::one_line(why)));
            }
            AgentEvent::Limited { why } => {
                self.state(&format!("rate-limited: {}", text::one_line(why)));
            }
            AgentEvent::TurnEnded(end) => {
                let word = match end {
                    TurnEnd::Done => "idle".to_owned(),
                    TurnEnd::Interrupted => "interrupted".to_owned(),
                    TurnEnd::Failed(why) => format!("failed: {}", text::one_line(why)),
                    TurnEnd::Limited(why) => format!("rate-limited: {}", text::one_line(why)),
                };
                let Usage { input, output, .. } = self.used;
                self.state(&format!("{word}  {input} tokens in, {output} out"));
            }
            _ => {}
        }
    }

    /// Adds a piece of the agent's output and prints the lines that are now complete.
    fn append(&mut self, text: &str) {
        self.line.push_str(text);
        while let Some((line, rest)) = self.line.split_once('\n') {
            let (line, rest) = (text::plain(line), rest.to_owned());
            self.line = rest;
            self.print(&format!("{line}\n"));
        }
    }

    fn state(&mut self, word: &str) {
        self.print_line(&format!("{READY}—{READY:#} {FAINT}{word}{FAINT:#}"));
    }

    /// Prints a line from brigade itself. If the agent's last line is incomplete, prints the agent's line first.
    fn print_line(&mut self, line: &str) {
        if !self.line.is_empty() {
            let incomplete = std::mem::take(&mut self.line);
            self.print(&format!("{}\n", text::plain(&incomplete)));
        }
        self.print(&format!("{line}\n"));
    }

    fn print(&mut self, text: &str) {
        // Ignore the error: the teammate keeps running if its pane was closed.
        let _closed = output::print(text);
    }

    /// Prints that the teammate waits until the session of its lead, which has this id, is resumed.
    pub(crate) fn wait_for_lead(&mut self, session: Option<&String>) {
        let how = session.map(|id| format!("; `claude --resume {id}` resumes it"));
        let how = how.unwrap_or_default();
        self.state(&format!("waiting for Claude Code: its session has ended{how}"));
    }

    /// Prints that the teammate has left.
    pub(crate) fn close(&mut self) {
        self.state("left the team");
    }
}

/// Returns the channel that receives the typed lines at present.
fn reader() -> MutexGuard<'static, Option<mpsc::UnboundedSender<MemberInput>>> {
    static READER: Mutex<Option<mpsc::UnboundedSender<MemberInput>>> = Mutex::new(None);
    READER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Extracts the messages from the text of a turn, each as sender and text. Skips typed input, which the pane
/// shows already.
fn messages(turn: &str) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in turn.lines() {
        if let Some(head) = line.strip_prefix("<teammate-message teammate_id=\"") {
            let mut from = head.split('"').next().unwrap_or_default().to_owned();
            // Attribute values contain no quotation marks, so a sender's summary cannot contain this ending.
            if head.ends_with(" verified=\"false\">") {
                from.push_str(" (unverified)");
            }
            messages.push((from, String::new()));
            inside = true;
        } else if line == "</teammate-message>" {
            inside = false;
        } else if let (true, Some((_, text))) = (inside, messages.last_mut()) {
            text.push_str(line);
            text.push(' ');
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_messages_from_a_turn() {
        let turn = "[mail 3-0 for bob@demo]\n\
            <teammate-message teammate_id=\"alice\" color=\"blue\">\none\ntwo\n</teammate-message>\n\
            typed\n<teammate-message teammate_id=\"team-lead\" verified=\"false\">\nthree\n</teammate-message>";
        let found = [("alice", "one two "), ("team-lead (unverified)", "three ")];
        let found = found.map(|(from, text)| (from.to_owned(), text.to_owned()));
        assert_eq!(messages(turn), found);
    }
}
