//! Hearing what happens in a team as it happens.
//!
//! A stream says again what it has stored, once, to whoever listens at that moment. So what is heard is
//! looked at for gaps, and every while, and whenever the connection was made anew, what is stored is
//! compared with what was heard.

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

/// When the stored is compared with the heard: soon after the beginning, for the servers tell each
/// other only by and by that somebody listens; later every half minute.
const SOON: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];
const SWEEP: Duration = Duration::from_secs(30);
const DOING: &str = "follow the team";

/// Some subjects of a stream, and what was heard on them.
#[derive(Debug)]
pub(crate) struct Source {
    stream: String,
    filter: String,
    /// Up to here everything was told.
    done: u64,
    /// What was told beyond it.
    ahead: BTreeSet<u64>,
}

impl Source {
    /// What is stored in a stream under this subject.
    pub(crate) fn new(place: &Place, stream: Stream, filter: String) -> Self {
        let stream = place.stream(stream);
        Self { stream, filter, done: 0, ahead: BTreeSet::new() }
    }

    /// Whether this was told.
    fn has(&self, seq: u64) -> bool {
        seq <= self.done || self.ahead.contains(&seq)
    }
}

/// Which teams are followed. Each following has a number; when something may have been missed, it goes
/// on under another.
#[derive(Debug, Default)]
pub(crate) struct Followed(Mutex<(u64, HashMap<TeamName, u64>)>);

impl Followed {
    /// The number of the following of a team that goes on.
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

/// Ends the following when nobody watches any more.
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

/// Follows a team from now on.
pub(crate) async fn follow(
    engine: Arc<Engine>,
    place: &Place,
    mut sources: Vec<Source>,
    followed: Arc<Followed>,
    mailboxes: Arc<Mailboxes>,
) -> Result<Watch, StoreError> {
    // First listen, then look: what happens between is both heard and found.
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

/// The elections of the leader of the team's mail, for those who may hear of them. What is stored
/// about that moment may not be said again.
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
                // What was said after an election is not to be heard before it; and however much is said, what
                // was stored is looked at in time.
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

    /// Something was said: what it tells, and before it what was missed.
    async fn hear(&mut self, stored: &Stored) {
        let of = self.sources.iter().position(|source| matches(&source.filter, &stored.subject));
        let Some((at, source)) = of.and_then(|at| Some((at, self.sources.get_mut(at)?))) else {
            return;
        };
        if source.has(stored.seq) {
            return;
        }
        // Among seats that need not trust each other a wake says that there is something, and no more:
        // one could make the server say another's words under this subject.
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

    /// Something may have been missed: nobody relies on what was heard until now.
    fn begin_anew(&self) {
        self.number.store(self.followed.begin(&self.team), Ordering::Relaxed);
    }

    /// Compares what is stored with what was told.
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
                tracing::debug!(%error, "the team cannot be followed just now");
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

    /// What is stored behind the last that was told, and what was told beyond it.
    async fn missed(&self, source: &Source) -> Result<Vec<Stored>, StoreError> {
        let (stream, filter, done) = (&source.stream, &source.filter, source.done);
        let last = self.engine.last(stream, filter, DOING).await?;
        if last.is_none_or(|last| last.seq <= done) {
            return Ok(Vec::new());
        }
        self.engine.read(stream, filter, Which::From(done + 1), DOING).await
    }

    async fn tell(&mut self, stored: &Stored) {
        // Who now looks must find it, whichever replica answers.
        self.engine.knows(&stored.subject, stored.seq);
        self.pass_on(stored).await;
        for record in self.scribe.tell(stored) {
            // Nobody listens any more: the watch was dropped, and this ends with it.
            let _nobody = self.sender.send(Arc::new(record));
        }
    }

    /// Lets the mailboxes that were looked into know.
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
