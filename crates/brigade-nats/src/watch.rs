//! Watches a team: converts the team's new messages into records as they arrive.
//!
//! A stream republishes each stored message once, to the clients that are subscribed at that moment. A watch may
//! miss some messages. It therefore looks for gaps in the messages that it receives. After a reconnect and at
//! regular intervals, it also reads the stream to find the messages that it has missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brigade_core::event::{Record, RefusedEvents};
use brigade_core::store::{StoreError, Watch};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::CredentialRole;
use crate::journal::RecordDecoder;
use crate::layout::{MessageClass, Stream, Subjects, matches, wake};
use crate::mail_message::MailMessage;
use crate::mailbox::MailboxCache;
use crate::marks::MailboxMarks;
use crate::read::{ReadRange, StoredMessage};
use crate::roster::Roster;
use crate::watch_generations::{WatchGenerations, WatchedMailboxes};

/// When a watch reads the stream to find missed messages. The first reads are soon after its start, because some
/// servers of a cluster might not know the new subscription yet. After that, the interval is `SWEEP_INTERVAL`.
const FIRST_SWEEPS: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
const DOING: &str = "watch the team";

/// A filter on a stream. Remembers which of the matching messages were processed.
#[derive(Debug)]
pub(crate) struct WatchedFilter {
    stream: String,
    filter: String,
    /// Every message up to this sequence was processed.
    done: u64,
    /// The messages after `done` that were already processed.
    ahead: BTreeSet<u64>,
}

impl WatchedFilter {
    /// Creates a filter. No message is processed yet.
    pub(crate) fn new(subjects: &Subjects, stream: Stream, filter: String) -> Self {
        let stream = subjects.stream(stream);
        Self { stream, filter, done: 0, ahead: BTreeSet::new() }
    }

    /// Whether the message with this sequence was processed.
    fn contains(&self, seq: u64) -> bool {
        seq <= self.done || self.ahead.contains(&seq)
    }
}

/// Ends the watch when the receiver is dropped.
struct WatchGuard {
    follower: JoinHandle<()>,
    generations: Arc<WatchGenerations>,
    scope: WatchedMailboxes,
    generation: Arc<AtomicU64>,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.generations.end(&self.scope, self.generation.load(Ordering::Relaxed));
        self.follower.abort();
    }
}

/// Starts to watch a team, or the mailbox of one member. Returns a watch that receives the records of new messages.
pub(crate) async fn follow(
    connection: Arc<NatsConnection>,
    subjects: &Subjects,
    scope: WatchedMailboxes,
    mut filters: Vec<WatchedFilter>,
    generations: Arc<WatchGenerations>,
    mailboxes: Arc<MailboxCache>,
    refused: Arc<RefusedEvents>,
) -> Result<Watch, StoreError> {
    // Subscribe before the read. A message that arrives in between is then received twice, but never missed.
    let mut wakes = Vec::new();
    for watched in &filters {
        let subscriber = connection.client.subscribe(wake(&watched.filter)).await;
        wakes.push(
            subscriber.map_err(|error| NatsError::Server(error.to_string()).while_doing(DOING))?,
        );
    }
    let lasts =
        filters.iter().map(|watched| connection.last(&watched.stream, &watched.filter, DOING));
    let roster = connection.roster(subjects, Roster::default());
    let (lasts, roster) = tokio::try_join!(try_join_all(lasts), roster)?;
    for (watched, last) in filters.iter_mut().zip(lasts) {
        watched.done = last.map_or(0, |last| last.seq);
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    let elections = elections(&connection, subjects).await;
    let generation = Arc::new(AtomicU64::new(generations.begin(&scope)));
    let follower = WatchTask {
        connection,
        filters,
        decoder: RecordDecoder::with_roster(&subjects.team, roster, refused),
        sender,
        subjects: subjects.clone(),
        scope: scope.clone(),
        generation: Arc::clone(&generation),
        generations: Arc::clone(&generations),
        mailboxes,
    };
    let follower = tokio::spawn(follower.run(select_all(wakes), elections));
    Ok(Watch::new(receiver, WatchGuard { follower, generations, scope, generation }))
}

/// If the client's role allows it, subscribes to leader elections of the team's streams. The watch must know about
/// elections, because the server may fail to republish a message that is stored during an election.
async fn elections(
    connection: &NatsConnection,
    subjects: &Subjects,
) -> SelectAll<async_nats::Subscriber> {
    let mut elections = Vec::new();
    if connection.identity.role == CredentialRole::Admin {
        for stream in [Stream::Mail, Stream::Board, Stream::Team] {
            let subject =
                format!("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.{}", subjects.stream(stream));
            elections.extend(connection.client.subscribe(subject).await);
        }
    }
    select_all(elections)
}

struct WatchTask {
    connection: Arc<NatsConnection>,
    filters: Vec<WatchedFilter>,
    decoder: RecordDecoder,
    sender: mpsc::UnboundedSender<Arc<Record>>,
    subjects: Subjects,
    scope: WatchedMailboxes,
    generation: Arc<AtomicU64>,
    generations: Arc<WatchGenerations>,
    mailboxes: Arc<MailboxCache>,
}

impl WatchTask {
    async fn run(
        mut self,
        mut wakes: SelectAll<async_nats::Subscriber>,
        mut elections: SelectAll<async_nats::Subscriber>,
    ) {
        let mut reconnected = self.connection.reconnected.subscribe();
        let mut first_sweeps = FIRST_SWEEPS.into_iter();
        let mut next = tokio::time::Instant::now() + first_sweeps.next().unwrap_or(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                // `biased` checks the branches from top to bottom. An election is processed before the messages
                // that follow it. The timer comes before messages, so that a busy team cannot delay the read.
                biased;
                Some(_) = elections.next() => {
                    self.start_new_generation();
                    first_sweeps = FIRST_SWEEPS.into_iter();
                    next = tokio::time::Instant::now() + FIRST_SWEEPS[0];
                }
                _ = reconnected.recv() => {
                    self.start_new_generation();
                    first_sweeps = FIRST_SWEEPS.into_iter();
                    next = tokio::time::Instant::now();
                }
                () = tokio::time::sleep_until(next) => {
                    self.sweep_all().await;
                    next = tokio::time::Instant::now() + first_sweeps.next().unwrap_or(SWEEP_INTERVAL);
                }
                message = wakes.next() => {
                    let Some(message) = message else { return };
                    if let Some(stored) = StoredMessage::from_wake(message) {
                        self.process(&stored).await;
                    }
                }
            }
        }
    }

    /// Processes a republished message. If earlier messages were missed, processes those first.
    async fn process(&mut self, stored: &StoredMessage) {
        let index =
            self.filters.iter().position(|watched| matches(&watched.filter, &stored.subject));
        let Some((at, watched)) = index.and_then(|at| Some((at, self.filters.get_mut(at)?))) else {
            return;
        };
        if watched.contains(stored.seq) {
            return;
        }
        // A member could make the server send forged content on this subject. A watch with a seat's credentials
        // therefore ignores the content. The message is only a signal to read the stream.
        let is_trusted = self.connection.identity.role == CredentialRole::Admin;
        let before = stored.header("Nats-Last-Sequence").and_then(|word| word.parse().ok());
        if is_trusted && watched.contains(before.unwrap_or(0)) {
            watched.ahead.insert(stored.seq);
            self.emit(stored).await;
            return;
        }
        if is_trusted {
            self.start_new_generation();
        }
        self.sweep(at).await;
    }

    /// Starts a new generation, because the watch may have missed a message. All caches that are filled already
    /// must be read again.
    fn start_new_generation(&self) {
        self.generation.store(self.generations.begin(&self.scope), Ordering::Relaxed);
    }

    /// Reads the streams and processes the messages that the watch has missed.
    async fn sweep_all(&mut self) {
        for at in 0..self.filters.len() {
            self.sweep(at).await;
        }
    }

    async fn sweep(&mut self, at: usize) {
        let Some(watched) = self.filters.get(at) else { return };
        let missed = match self.missed(watched).await {
            Ok(missed) => missed,
            Err(error) => {
                tracing::debug!(%error, "a watch cannot read its stream to find missed messages; will retry");
                return;
            }
        };
        for stored in missed {
            let Some(watched) = self.filters.get_mut(at) else { return };
            let is_done = watched.contains(stored.seq);
            watched.done = watched.done.max(stored.seq);
            watched.ahead.remove(&stored.seq);
            if !is_done {
                self.emit(&stored).await;
            }
        }
        let Some(watched) = self.filters.get(at) else { return };
        for (member, mailbox) in self.mailboxes.of_team(&self.scope.team) {
            if matches(
                &watched.filter,
                &self.subjects.message(&member, "anybody", MessageClass::Text),
            ) {
                let generation = self.generation.load(Ordering::Relaxed);
                mailbox.lock().await.confirm_upto(generation, watched.done);
            }
        }
    }

    /// Reads all messages after `done`, including those that were already processed.
    async fn missed(&self, watched: &WatchedFilter) -> Result<Vec<StoredMessage>, StoreError> {
        let (stream, filter, done) = (&watched.stream, &watched.filter, watched.done);
        let last = self.connection.last(stream, filter, DOING).await?;
        if last.is_none_or(|last| last.seq <= done) {
            return Ok(Vec::new());
        }
        self.connection.read(stream, filter, ReadRange::From(done + 1), DOING).await
    }

    async fn emit(&mut self, stored: &StoredMessage) {
        // A client that gets the record may read the message. Reject answers from replicas without the message.
        self.connection.raise_floor(&stored.subject, stored.seq);
        let records = if stored.subject.starts_with("mb.") {
            let mail = MailMessage::read(stored);
            if let Some(mail) = &mail {
                self.add_mail(mail).await;
            }
            mail.map(|mail| RecordDecoder::sent(stored, mail)).into_iter().collect()
        } else {
            self.add_marks(stored).await;
            self.decoder.decode(stored)
        };
        for record in records {
            // `send` fails only if the watch was dropped. In that case, this task is aborted anyway.
            let _receiver_dropped = self.sender.send(Arc::new(record));
        }
    }

    /// Adds a message to its mailbox, if the mailbox is cached.
    async fn add_mail(&self, mail: &MailMessage) {
        let Some(mailbox) = self.mailboxes.get(&self.scope.team, &mail.to) else { return };
        let generation = self.generation.load(Ordering::Relaxed);
        if mailbox.lock().await.add_heard(generation, mail)
            && let Ok(member) = mail.to.parse()
        {
            let (connection, subjects) = (Arc::clone(&self.connection), self.subjects.clone());
            tokio::spawn(async move {
                connection.confirm_messages(&subjects, &member, &mailbox).await;
            });
        }
    }

    /// Replaces the read marks of a cached mailbox, if the message contains read marks.
    async fn add_marks(&self, stored: &StoredMessage) {
        let tokens = stored.tokens();
        let member = tokens.first().filter(|_| stored.subject.starts_with("mk."));
        let mailbox = member.and_then(|member| self.mailboxes.get(&self.scope.team, member));
        if let Some(mailbox) = mailbox
            && let Ok(marks) = MailboxMarks::read(&stored.payload, stored.seq)
        {
            let generation = self.generation.load(Ordering::Relaxed);
            mailbox.lock().await.add_heard_marks(generation, marks, stored.seq);
        }
    }
}
