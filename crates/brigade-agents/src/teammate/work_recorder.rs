//! What can be seen of a member at work, written into the journal.
//!
//! What is seen of work is no promise: it is noted here in no time, and written down by a task of its
//! own. If the store is slow, the oldest of what waits is lost; the agent is never held up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::Sight;
use crate::driver::{self, End, Usage};
use brigade_core::event::Event;
use brigade_core::event::{Act, Ending};
use brigade_core::seat::Seat;
use brigade_core::store::StoreError;

/// How many acts may wait to be written down.
const WAITING: usize = 256;
/// How much of what an agent says in one go is kept, in bytes; and of any other of its words.
const SPEECH: usize = 8 * 1024;
const WORDS: usize = 1024;
/// How long an agent is silent before what it said is written down, though it may go on.
const SILENCE: Duration = Duration::from_secs(1);
/// How long is waited at the member's end for what is not written down yet.
const LAST: Duration = Duration::from_secs(1);

/// Who writes down what a member does.
#[derive(Debug)]
pub(super) struct Scribe {
    sheet: Arc<Sheet>,
    /// Goes with the member; with it gone, what is noted is written down and that is the end.
    member: oneshot::Sender<()>,
    writer: JoinHandle<()>,
}

impl Scribe {
    /// One for the member of this seat.
    pub(super) fn new(seat: Seat) -> Self {
        let sheet = Arc::<Sheet>::default();
        let (member, gone) = oneshot::channel();
        let writer = tokio::spawn(write(seat, Arc::clone(&sheet), gone));
        Self { sheet, member, writer }
    }

    /// Notes what is seen.
    pub(super) fn see(&self, sight: &Sight) {
        self.sheet.notes().see(sight);
        self.sheet.news.notify_one();
    }

    /// The member's end: waits a little for what is not written down yet.
    pub(super) async fn end(self) {
        drop(self.member);
        // It ends by itself in time; if it panicked, there is nothing to wait for.
        let _ended = self.writer.await;
    }
}

/// What is noted, and that there is something new.
#[derive(Debug, Default)]
struct Sheet {
    notes: Mutex<Notes>,
    news: Notify,
}

impl Sheet {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is noted and not written down yet.
#[derive(Debug, Default)]
struct Notes {
    acts: VecDeque<Act>,
    /// What the agent says, as far as it is kept; whether there was more; and when it last said
    /// something.
    speech: String,
    is_cut: bool,
    spoke: Option<Instant>,
    /// The last thing that went wrong, so that it is noted once.
    wrong: Option<Act>,
    used: Usage,
    /// What it had used when that was last noted.
    told: Usage,
    /// How many acts were lost since that was last said.
    lost: usize,
    /// Whether nothing will come any more.
    over: bool,
}

impl Notes {
    fn see(&mut self, sight: &Sight) {
        match sight {
            Sight::Started => self.note(Act::Started {}),
            Sight::Did(event) => self.did(event),
            Sight::Waits { .. } => self.end_speech(),
            Sight::Trouble(why) => self.go_wrong(Act::Trouble { why: cut(why, WORDS) }),
            Sight::Given(_) | Sight::Answered { .. } => {}
        }
    }

    fn did(&mut self, event: &driver::Event) {
        use driver::Event as Did;
        match event {
            Did::Ready { .. } => self.note(Act::Ready {}),
            Did::TurnStarted => self.note(Act::TurnStarted {}),
            Did::Said(piece) => self.say(piece),
            Did::ToolStarted { id, tool, about } => self.note(Act::ToolStarted {
                id: cut(id, WORDS),
                tool: cut(tool, WORDS),
                about: cut(about, WORDS),
            }),
            Did::ToolEnded { id, ok } => {
                self.note(Act::ToolEnded { id: cut(id, WORDS), ok: *ok });
            }
            Did::Changed(change) => {
                let (added, removed) = change.lines();
                self.note(Act::Changed { path: cut(&change.path, WORDS), added, removed });
            }
            Did::Asks(_) => self.end_speech(),
            Did::Used(used) => self.used = *used,
            Did::Limited { why } => self.go_wrong(Act::Limited { why: cut(why, WORDS) }),
            Did::TurnEnded(end) => self.end_turn(end),
            // What is known otherwise: from the mailbox, or when the program is started again.
            Did::Remembers { .. }
            | Did::RemembersIn { .. }
            | Did::Taken(_)
            | Did::NotTaken(_)
            | Did::AsksNoLonger(_)
            | Did::Retries { .. }
            | Did::Broken { .. } => {}
        }
    }

    fn say(&mut self, piece: &str) {
        self.spoke = Some(Instant::now());
        if !self.is_cut {
            let room = SPEECH - self.speech.len();
            self.is_cut = piece.len() > room;
            self.speech.push_str(&cut(piece, room));
        }
    }

    fn end_turn(&mut self, end: &End) {
        self.end_speech();
        if self.used != self.told {
            self.told = self.used;
            let Usage { input, output, cost, .. } = self.used;
            self.note(Act::Used { input, output, cost });
        }
        let (end, why) = match end {
            End::Done => (Ending::Done, None),
            End::Interrupted => (Ending::Interrupted, None),
            End::Failed(why) => (Ending::Failed, Some(cut(why, WORDS))),
            End::Limited(why) => (Ending::Limited, Some(cut(why, WORDS))),
        };
        self.note(Act::TurnEnded { end, why });
    }

    /// Whoever tries in vain again and again says so once.
    fn go_wrong(&mut self, act: Act) {
        self.end_speech();
        if self.wrong.as_ref() != Some(&act) {
            self.note(act.clone());
            self.wrong = Some(act);
        }
    }

    fn note(&mut self, act: Act) {
        self.end_speech();
        self.wrong = None;
        self.put(act);
    }

    /// What was said is whole.
    fn end_speech(&mut self) {
        self.spoke = None;
        self.is_cut = false;
        let text = std::mem::take(&mut self.speech);
        if !text.trim().is_empty() {
            self.wrong = None;
            self.put(Act::Said { text });
        }
    }

    fn put(&mut self, act: Act) {
        if self.acts.len() >= WAITING {
            // The newest say how things are.
            self.acts.pop_front();
            self.lost += 1;
        }
        self.acts.push_back(act);
    }

    /// What is to be done next.
    fn next(&mut self, now: Instant) -> Next {
        if self.over || self.spoke.is_some_and(|spoke| now >= spoke + SILENCE) {
            self.end_speech();
        }
        match (self.acts.pop_front(), self.spoke) {
            (Some(act), _) => Next::Write(act, std::mem::take(&mut self.lost)),
            (None, _) if self.over => Next::End,
            (None, Some(spoke)) => Next::WaitUntil(spoke + SILENCE),
            (None, None) => Next::Wait,
        }
    }
}

/// What a scribe has to do.
#[derive(Debug, PartialEq)]
enum Next {
    /// To write this down; and so many before it were lost.
    Write(Act, usize),
    WaitUntil(Instant),
    Wait,
    End,
}

/// Writes down what is noted, until the member is gone.
async fn write(seat: Seat, sheet: Arc<Sheet>, gone: oneshot::Receiver<()>) {
    let patience = async {
        // Nothing is sent; the member's going is all there is to hear.
        let _gone = gone.await;
        sheet.notes().over = true;
        sheet.news.notify_one();
        sleep(LAST).await;
    };
    tokio::select! {
        () = write_all(&seat, &sheet) => {}
        () = patience => {
            tracing::warn!(team = %seat.team, member = %seat.name, "the last of its work is not written down");
        }
    }
}

async fn write_all(seat: &Seat, sheet: &Sheet) {
    let (team, member) = (&seat.team, &seat.name);
    loop {
        let next = sheet.notes().next(Instant::now());
        match next {
            Next::Write(act, lost) => {
                if lost > 0 {
                    tracing::warn!(%team, %member, lost, "the store is slow; some work is not written down");
                }
                let event = Event::Worked { name: member.to_string(), act };
                match seat.store.record(team, event, &seat.actor()).await {
                    // The member's going is told otherwise.
                    Ok(()) | Err(StoreError::NoTeam { .. }) => {}
                    Err(error) => {
                        tracing::warn!(%team, %member, %error, "its work cannot be written down");
                    }
                }
            }
            Next::WaitUntil(time) => drop(timeout_at(time, sheet.news.notified()).await),
            Next::Wait => sheet.news.notified().await,
            Next::End => return,
        }
    }
}

/// The beginning of a text, so many bytes at most, and a sign that there was more.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(most)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Event as Did;

    fn said(text: &str) -> Act {
        Act::Said { text: text.to_owned() }
    }

    fn saying(text: &str) -> Sight {
        Sight::Did(Did::Said(text.to_owned()))
    }

    /// What is to be written down after some sights.
    fn acts(sights: impl IntoIterator<Item = Sight>) -> Vec<Act> {
        let mut notes = Notes::default();
        sights.into_iter().for_each(|sight| notes.see(&sight));
        notes.over = true;
        let next = || match notes.next(Instant::now()) {
            Next::Write(act, _) => Some(act),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn what_is_said_in_one_go_is_one_act() {
        let tool = || Did::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "ls".into() };
        let mut sights = vec![Sight::Started, Sight::Did(Did::TurnStarted)];
        sights.extend((0..50).map(|number| saying(&format!("{number} "))));
        sights.push(Sight::Did(tool()));
        sights.push(Sight::Did(Did::ToolEnded { id: "1".into(), ok: false }));
        sights.extend(["Do", "ne."].map(saying));
        sights.push(Sight::Did(Did::TurnEnded(End::Failed("tired".into()))));
        // Nothing but blanks says nothing.
        sights.push(saying("\n"));
        let counted: String = (0..50).map(|number| format!("{number} ")).collect();
        let expected = [
            Act::Started {},
            Act::TurnStarted {},
            said(&counted),
            Act::ToolStarted { id: "1".into(), tool: "Bash".into(), about: "ls".into() },
            Act::ToolEnded { id: "1".into(), ok: false },
            said("Done."),
            Act::TurnEnded { end: Ending::Failed, why: Some("tired".into()) },
        ];
        assert_eq!(acts(sights), expected);
    }

    #[test]
    fn silence_ends_what_was_said() {
        let mut notes = Notes::default();
        notes.see(&saying("Let me"));
        let spoke = notes.spoke.unwrap();
        assert_eq!(notes.next(spoke), Next::WaitUntil(spoke + SILENCE));
        notes.see(&saying(" see."));
        let spoke = notes.spoke.unwrap();
        assert_eq!(notes.next(spoke + SILENCE), Next::Write(said("Let me see."), 0));
        assert_eq!(notes.next(spoke + SILENCE), Next::Wait);
    }

    /// However it comes, and whatever its signs.
    #[test]
    fn a_long_speech_is_cut_between_two_signs() {
        for sign in ["m", "ü", "€", "\u{1f600}"] {
            for pieces in [1, 7, 4096] {
                let piece = sign.repeat(3 * SPEECH / sign.len() / pieces + 1);
                let acts = acts((0..pieces).map(|_| saying(&piece)));
                let [Act::Said { text }] = acts.as_slice() else { panic!("{acts:?}") };
                let kept = text.strip_suffix('…').unwrap();
                assert!(kept.len() > SPEECH - 4 && kept.len() <= SPEECH, "{}", kept.len());
                assert_eq!(kept.replace(sign, ""), "");
            }
        }
        assert_eq!(acts([saying(&"m".repeat(SPEECH))]), [said(&"m".repeat(SPEECH))]);
    }

    #[test]
    fn use_is_told_at_the_end_of_a_turn_if_it_is_new() {
        let used = |input| Sight::Did(Did::Used(Usage { input, ..Usage::default() }));
        let ended = || Sight::Did(Did::TurnEnded(End::Done));
        let is = |input| Act::Used { input, output: 0, cost: None };
        let end = || Act::TurnEnded { end: Ending::Done, why: None };
        let acts = acts([used(1), used(2), ended(), ended(), used(2), ended(), used(3), ended()]);
        assert_eq!(acts, [is(2), end(), end(), end(), is(3), end()]);
    }

    #[test]
    fn the_same_trouble_is_told_once() {
        let trouble = || Sight::Trouble("no disk".into());
        let is = || Act::Trouble { why: "no disk".into() };
        assert_eq!(acts([trouble(), trouble(), trouble()]), [is()]);
        let acts = acts([trouble(), saying("I try."), trouble(), trouble()]);
        assert_eq!(acts, [is(), said("I try."), is()]);
    }

    #[test]
    fn of_too_much_the_newest_is_kept() {
        let mut notes = Notes::default();
        for number in 0..WAITING + 10 {
            notes.see(&Sight::Did(Did::ToolEnded { id: number.to_string(), ok: true }));
        }
        let first = Act::ToolEnded { id: "10".into(), ok: true };
        assert_eq!(notes.next(Instant::now()), Next::Write(first, 10));
        assert_eq!(notes.acts.len(), WAITING - 1);
    }
}
