//! Watches a team: turns its new messages into records as they arrive.
//!
//! A stream republishes each stored message once, to the subscribers of that moment. A watch therefore looks for
//! gaps in what it receives. It also compares with the stream after a reconnect, and at regular intervals.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brigade_core::event::Record;
use brigade_core::store::{StoreError, Watch};
use brigade_wire::name::TeamName;
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::error::Trouble;
use crate::identity::Role;
use crate::journal::Scribe;
use crate::layout::{Place, Stream, Weight, matches, wake};
use crate::letter::Letter;
use crate::mailbox::Mailboxes;
use crate::read::{Stored, Which};
use crate::roster::Roster;

/// When to compare with the stream: soon after the start, because servers in a cluster learn of a new
/// subscription with a delay, then every half minute.
const SOON: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];
const SWEEP: Duration = Duration::from_secs(30);
const DOING: &str = "watch the team";

/// A filter on a stream, and how far it was processed.
#[derive(Debug)]
pub(crate) struct Source {
    stream: String,
    filter: String,
    /// Every message up to this sequence was processed.
    done: u64,
    /// Later messages that were processed already.
    ahead: BTreeSet<u64>,
}

impl Source {
    /// Watches the messages of a stream that match a filter.
    pub(crate) fn new(place: &Place, stream: Stream, filter: String) -> Self {
        let stream = place.stream(stream);
        Self { stream, filter, done: 0, ahead: BTreeSet::new() }
    }

    /// Whether the message was processed.
    fn has(&self, seq: u64) -> bool {
        seq <= self.done || self.ahead.contains(&seq)
    }
}

/// The watched teams. Each watch has a generation number, which changes when a message may have been missed.
/// Caches filled in an older generation may be incomplete.
#[derive(Debug, Default)]
pub(crate) struct Followed(Mutex<(u64, HashMap<TeamName, u64>)>);

impl Followed {
    /// The current watch generation of a team; `None` if it is not watched.
    pub(crate) fn now(&self, team: &TeamName) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.get(team).copied()
    }

    fn begin(&self, team: &TeamName) -> u64 {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.0 += 1;
        let number = followed.0;
        followed.1.insert(team.clone(), number);
        number
    }

    fn end(&self, team: &TeamName, number: u64) {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.1.get(team) == Some(&number) {
            followed.1.remove(team);
        }
    }
}

/// Ends the watch when the receiver is dropped.
struct Following {
    follower: JoinHandle<()>,
    followed: Arc<Followed>,
    team: TeamName,
    number: Arc<AtomicU64>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followed.end(&self.team, self.number.load(Ordering::Relaxed));
        self.follower.abort();
    }
}

/// Watches a team from now on.
pub(crate) async fn follow(
    engine: Arc<Engine>,
    place: &Place,
    mut sources: Vec<Source>,
    followed: Arc<Followed>,
    mailboxes: Arc<Mailboxes>,
) -> Result<Watch, StoreError> {
    // Subscribe first, then read: a message in between is received twice rather than missed.
    let mut heard = Vec::new();
    for source in &sources {
        let wakes = engine.client.subscribe(wake(&source.filter)).await;
        heard.push(wakes.map_err(|error| Trouble::Said(error.to_string()).doing(DOING))?);
    }
    for source in &mut sources {
        let last = engine.last(&source.stream, &source.filter, DOING).await?;
        source.done = last.map_or(0, |last| last.seq);
    }
    let roster = engine.roster(place, Roster::default()).await?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let elections = elections(&engine, place).await;
    let team = place.team.clone();
    let number = Arc::new(AtomicU64::new(followed.begin(&team)));
    let follower = Follower {
        engine,
        sources,
        scribe: Scribe::knowing(roster),
        sender,
        place: place.clone(),
        team: team.clone(),
        number: Arc::clone(&number),
        followed: Arc::clone(&followed),
        mailboxes,
    };
    let follower = tokio::spawn(follower.run(select_all(heard), elections));
    Ok(Watch::new(receiver, Following { follower, followed, team, number }))
}

/// Leader elections of the team's streams, for clients that may receive them. A message stored during an
/// election may not be republished.
async fn elections(engine: &Engine, place: &Place) -> SelectAll<async_nats::Subscriber> {
    let mut elections = Vec::new();
    if engine.identity.role == Role::Admin {
        for stream in [Stream::Mail, Stream::Board, Stream::Team] {
            let subject =
                format!("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.{}", place.stream(stream));
            elections.extend(engine.client.subscribe(subject).await);
        }
    }
    select_all(elections)
}

struct Follower {
    engine: Arc<Engine>,
    sources: Vec<Source>,
    scribe: Scribe,
    sender: mpsc::UnboundedSender<Arc<Record>>,
    place: Place,
    team: TeamName,
    number: Arc<AtomicU64>,
    followed: Arc<Followed>,
    mailboxes: Arc<Mailboxes>,
}

impl Follower {
    async fn run(
        mut self,
        mut heard: SelectAll<async_nats::Subscriber>,
        mut elections: SelectAll<async_nats::Subscriber>,
    ) {
        let mut reconnected = self.engine.reconnected.subscribe();
        let mut soon = SOON.into_iter();
        let mut next = tokio::time::Instant::now() + soon.next().unwrap_or(SWEEP);
        loop {
            tokio::select! {
                // Process an election before messages received after it. Check the timer before messages,
                // so that a busy team is still compared with the stream.
                biased;
                Some(_) = elections.next() => {
                    self.begin_anew();
                    soon = SOON.into_iter();
                    next = tokio::time::Instant::now() + SOON[0];
                }
                _ = reconnected.recv() => {
                    self.begin_anew();
                    soon = SOON.into_iter();
                    next = tokio::time::Instant::now();
                }
                () = tokio::time::sleep_until(next) => {
                    self.sweep_all().await;
                    next = tokio::time::Instant::now() + soon.next().unwrap_or(SWEEP);
                }
                message = heard.next() => {
                    let Some(message) = message else { return };
                    if let Some(stored) = Stored::heard(message) {
                        self.hear(&stored).await;
                    }
                }
            }
        }
    }

    /// Processes a republished message, after any message that was missed before it.
    async fn hear(&mut self, stored: &Stored) {
        let of = self.sources.iter().position(|source| matches(&source.filter, &stored.subject));
        let Some((at, source)) = of.and_then(|at| Some((at, self.sources.get_mut(at)?))) else {
            return;
        };
        if source.has(stored.seq) {
            return;
        }
        // Between seats that do not trust each other, a republished message is only a hint to read the stream:
        // a seat could make the server send other content on this subject.
        let is_believed = self.engine.identity.role == Role::Admin;
        let before = stored.header("Nats-Last-Sequence").and_then(|word| word.parse().ok());
        if is_believed && source.has(before.unwrap_or(0)) {
            source.ahead.insert(stored.seq);
            self.tell(stored).await;
            return;
        }
        if is_believed {
            self.begin_anew();
        }
        self.sweep(at).await;
    }

    /// A message may have been missed: caches filled until now must be read again.
    fn begin_anew(&self) {
        self.number.store(self.followed.begin(&self.team), Ordering::Relaxed);
    }

    /// Processes what the streams hold and the watch has not received.
    async fn sweep_all(&mut self) {
        for at in 0..self.sources.len() {
            self.sweep(at).await;
        }
    }

    async fn sweep(&mut self, at: usize) {
        let Some(source) = self.sources.get(at) else { return };
        let missed = match self.missed(source).await {
            Ok(missed) => missed,
            Err(error) => {
                tracing::debug!(%error, "cannot compare the watch with the stream; will retry");
                return;
            }
        };
        for stored in missed {
            let Some(source) = self.sources.get_mut(at) else { return };
            let told = source.has(stored.seq);
            source.done = source.done.max(stored.seq);
            source.ahead.remove(&stored.seq);
            if !told {
                self.tell(&stored).await;
            }
        }
        let Some(source) = self.sources.get(at) else { return };
        for (of, mailbox) in self.mailboxes.of_team(&self.team) {
            if matches(&source.filter, &self.place.letter(&of, "anybody", Weight::Words)) {
                let following = self.number.load(Ordering::Relaxed);
                mailbox.lock().await.heard_upto(following, source.done);
            }
        }
    }

    /// Messages after the last complete one, including those that were processed ahead of it.
    async fn missed(&self, source: &Source) -> Result<Vec<Stored>, StoreError> {
        let (stream, filter, done) = (&source.stream, &source.filter, source.done);
        let last = self.engine.last(stream, filter, DOING).await?;
        if last.is_none_or(|last| last.seq <= done) {
            return Ok(Vec::new());
        }
        self.engine.read(stream, filter, Which::From(done + 1), DOING).await
    }

    async fn tell(&mut self, stored: &Stored) {
        // A read triggered by this record must find the message, whichever replica answers.
        self.engine.knows(&stored.subject, stored.seq);
        self.pass_on(stored).await;
        for record in self.scribe.tell(stored) {
            // Fails only if the watch was dropped; then this task is about to be aborted.
            let _nobody = self.sender.send(Arc::new(record));
        }
    }

    /// Updates the cached mailbox that the message belongs to.
    async fn pass_on(&self, stored: &Stored) {
        let tokens = stored.tokens();
        let Some(of) = tokens.first() else { return };
        let is = |kind: &str| stored.subject.starts_with(kind);
        if !is("mb.") && !is("mk.") {
            return;
        }
        let Some(mailbox) = self.mailboxes.known(&self.team, of) else { return };
        let following = self.number.load(Ordering::Relaxed);
        if let Some(letter) = Letter::read(stored) {
            if mailbox.lock().await.hear(following, letter)
                && let Ok(of) = of.parse()
            {
                let (engine, place) = (Arc::clone(&self.engine), self.place.clone());
                tokio::spawn(async move { engine.look_up(&place, &of, &mailbox).await });
            }
        } else if let Ok(marks) = serde_json::from_slice(&stored.payload) {
            mailbox.lock().await.hear_marks(following, marks, stored.seq);
        }
    }
}
