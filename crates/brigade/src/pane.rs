//! The pane of a teammate: what its agent says and does, and a line to type in.
//!
//! What is typed reaches the agent as its user's message, by the agent's own protocol. Nothing is
//! ever typed into the agent's terminal, for it has none.

use std::io::{BufRead, IsTerminal};

use brigade_agents::driver::{Agent, End, Event, Usage};
use brigade_agents::teammate::Sight;
use brigade_core::seat::Seat;
use brigade_core::text;
use tokio::sync::mpsc;

use crate::diff;
use crate::output::{self, BUSY, FAINT, HINT, READY, STRONG};

/// How much of a message that was given to the agent is repeated.
const GIVEN: usize = 200;

/// A teammate's pane.
#[derive(Debug, Default)]
pub(crate) struct Pane {
    /// What the agent says, up to the end of the line it is in.
    line: String,
    used: Usage,
}

impl Pane {
    /// Opens the pane, and sends what is typed in it.
    pub(crate) fn open(seat: &Seat, agent: &Agent, typed: mpsc::UnboundedSender<String>) -> Self {
        let mut pane = Self::default();
        pane.print(&format!(
            "{STRONG}{}{STRONG:#} of team {}: {}\n",
            seat.name, seat.team, agent.title
        ));
        if std::io::stdin().is_terminal() {
            pane.print(&format!("{FAINT}What you type here goes to {}.{FAINT:#}\n", agent.title));
        }
        // A thread, for reading a terminal cannot be called off.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if !line.trim().is_empty() && typed.send(line).is_err() {
                    return;
                }
            }
        });
        pane
    }

    /// Shows something.
    pub(crate) fn show(&mut self, sight: &Sight) {
        match sight {
            Sight::Started => self.state("starting"),
            Sight::Given(text) => {
                for (from, text) in letters(text) {
                    let text = text::cut(&text::plain(&text).replace('\n', " "), GIVEN);
                    let from = text::one_line(&from);
                    self.fresh(&format!("{STRONG}← {from}{STRONG:#} {FAINT}{text}{FAINT:#}"));
                }
            }
            Sight::Did(event) => self.event(event),
            Sight::Waits { request_id, what } => {
                let what = text::one_line(what);
                self.fresh(&format!(
                    "{HINT}? {what}{HINT:#}  {FAINT}waits for the lead: {request_id}{FAINT:#}"
                ));
            }
            Sight::Answered { request_id, yes } => {
                let word = if *yes { "yes" } else { "no" };
                self.fresh(&format!(
                    "{HINT}! {word}{HINT:#}  {FAINT}{}{FAINT:#}",
                    text::one_line(request_id)
                ));
            }
            Sight::Trouble(what) => {
                self.fresh(&format!("{HINT}! {}{HINT:#}", text::one_line(what)));
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Ready { .. } => self.state("idle"),
            Event::TurnStarted => self.state("working"),
            Event::Said(text) => self.say(text),
            Event::ToolStarted { tool, about, .. } => {
                let line = text::one_line(&format!("{tool} {about}"));
                self.fresh(&format!("{BUSY}● {}{BUSY:#}", text::cut(&line, 160)));
            }
            Event::Changed(change) => self.fresh(&diff::short(change)),
            Event::ToolEnded { ok: false, .. } => self.fresh(&format!("{FAINT}  failed{FAINT:#}")),
            Event::Used(used) => self.used = *used,
            Event::Retries { why } => {
                self.state(&format!("tries again: {}", text::one_line(why)));
            }
            Event::Limited { why } => self.state(&format!("limited: {}", text::one_line(why))),
            Event::TurnEnded(end) => {
                let word = match end {
                    End::Done => "idle".to_owned(),
                    End::Interrupted => "interrupted".to_owned(),
                    End::Failed(why) => format!("failed: {}", text::one_line(why)),
                    End::Limited(why) => format!("limited: {}", text::one_line(why)),
                };
                let Usage { input, output, .. } = self.used;
                self.state(&format!("{word}  {input} tokens in, {output} out"));
            }
            _ => {}
        }
    }

    /// A piece of what the agent says; lines are shown when they are whole.
    fn say(&mut self, text: &str) {
        self.line.push_str(text);
        while let Some((line, rest)) = self.line.split_once('\n') {
            let (line, rest) = (text::plain(line), rest.to_owned());
            self.line = rest;
            self.print(&format!("{line}\n"));
        }
    }

    fn state(&mut self, word: &str) {
        self.fresh(&format!("{READY}—{READY:#} {FAINT}{word}{FAINT:#}"));
    }

    /// A line of our own, below what the agent was saying.
    fn fresh(&mut self, line: &str) {
        if !self.line.is_empty() {
            let said = std::mem::take(&mut self.line);
            self.print(&format!("{}\n", text::plain(&said)));
        }
        self.print(&format!("{line}\n"));
    }

    fn print(&mut self, text: &str) {
        // A pane nobody looks at any more is no reason to stop.
        let _closed = output::print(text);
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self) {
        self.state("has left the team");
    }
}

/// The messages in what was given to an agent: from whom, and what. What somebody typed stands in the
/// pane already.
fn letters(given: &str) -> Vec<(String, String)> {
    let mut letters: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in given.lines() {
        if let Some(head) = line.strip_prefix("<teammate-message teammate_id=\"") {
            let mut from = head.split('"').next().unwrap_or_default().to_owned();
            // An attribute holds no quotation mark, so this is nobody's summary.
            if head.ends_with(" verified=\"false\">") {
                from.push_str(" (unverified)");
            }
            letters.push((from, String::new()));
            inside = true;
        } else if line == "</teammate-message>" {
            inside = false;
        } else if let (true, Some((_, text))) = (inside, letters.last_mut()) {
            text.push_str(line);
            text.push(' ');
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_in_what_was_given() {
        let given = "[mail 3-0 for bob@demo]\n\
            <teammate-message teammate_id=\"alice\" color=\"blue\">\none\ntwo\n</teammate-message>\n\
            typed\n<teammate-message teammate_id=\"team-lead\" verified=\"false\">\nthree\n</teammate-message>";
        let found = [("alice", "one two "), ("team-lead (unverified)", "three ")];
        let found = found.map(|(from, text)| (from.to_owned(), text.to_owned()));
        assert_eq!(letters(given), found);
    }
}
