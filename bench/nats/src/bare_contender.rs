//! The contender that uses a bare NATS client instead of the NATS store. For each send, receive and claim, it
//! makes as few requests as possible. Like a member's watch in the store, it watches what concerns the member.

use std::time::{Duration, Instant};

use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID, NATS_SEQUENCE};
use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{Client, HeaderMap, Message};
use brigade_core::store::Outgoing;
use brigade_nats::layout::{MessageClass, Stream, Subjects, wake};
use brigade_wire::change::Change;
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use futures_util::StreamExt;
use futures_util::stream::select_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use uuid::Uuid;

use crate::contender::{Contender, LANES, READER, SHARDS, SINK, WRITER, message, team};
use crate::fixtures::{member, text};

/// The name of a header that a compare-and-set write has. Its value is a subject filter: the server rejects the
/// write if a message that matches the filter was stored after the expected sequence number.
pub(crate) const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Two connections, like those of a sender and a reader on two hosts.
#[derive(Debug)]
pub(crate) struct BareContender {
    sender: Context,
    reader: Client,
    marker: Context,
    lanes: Vec<BareLane>,
}

#[derive(Debug)]
struct BareLane {
    place: Subjects,
    /// The subjects of messages to the sink and to the reader.
    sink: String,
    reader: String,
    mailbox: String,
    marks: String,
    state: Mutex<ReaderState>,
}

#[derive(Debug)]
struct ReaderState {
    wakes: UnboundedReceiver<Message>,
    /// The sequence number of the last write of read marks. The next write fails if another write came in between.
    marked: u64,
}

impl BareContender {
    /// Connects to servers on which the streams already exist.
    pub(crate) async fn connect(urls: &[String]) -> Self {
        // Connect to the first server in the list, as the store does. Otherwise one contender could be faster
        // because its server happens to be the leader.
        let connect = async || {
            let options = async_nats::ConnectOptions::new().retain_servers_order();
            options.connect(urls).await.unwrap()
        };
        let sender = async_nats::jetstream::new(connect().await);
        let reader = connect().await;
        let mut lanes = Vec::new();
        for number in 0..LANES {
            let place = Subjects::new(&team("bare", number), SHARDS);
            let name = member(READER);
            let subject = |to: &MemberName| place.message(to, WRITER, MessageClass::Text);
            let wakes = watch(&reader, &place, &name).await;
            lanes.push(BareLane {
                sink: subject(&member(SINK)),
                reader: subject(&name),
                mailbox: place.mailbox(&name),
                marks: place.marks(&name),
                state: Mutex::new(ReaderState { wakes, marked: 0 }),
                place,
            });
        }
        reader.flush().await.unwrap();
        let marker = async_nats::jetstream::new(reader.clone());
        Self { sender, reader, marker, lanes }
    }

    async fn publish(&self, subject: &str, number: usize) {
        let message = message(WRITER, number);
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, message.msg_id.as_str());
        let body = entry(&message);
        let ack = self.sender.publish_with_headers(subject.to_owned(), headers, body.into());
        ack.await.unwrap().await.unwrap();
    }
}

impl Contender for BareContender {
    const NAME: &'static str = "bare";

    async fn send(&self, lane: usize, number: usize) {
        self.publish(&self.lanes[lane].sink, number).await;
    }

    async fn receive(&self, lane: usize, number: usize) -> Duration {
        let lane = &self.lanes[lane];
        let mut state = lane.state.lock().await;
        let start = Instant::now();
        // Send and read concurrently: the reader may be woken before the sender has its acknowledgement.
        let read = async {
            let announced = sequence(&state.wakes.recv().await.unwrap());
            let wake = start.elapsed();
            let (stream, mailbox) = (lane.place.stream(Stream::Mail), lane.mailbox.as_str());
            // Retry: the replica that answers may be behind the replica that woke the reader.
            let sequence = loop {
                let found = last(&self.reader, &stream, mailbox).await;
                if let Some(found) =
                    found.map(|found| sequence(&found)).filter(|found| *found >= announced)
                {
                    break found;
                }
            };
            let mut headers = HeaderMap::new();
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, state.marked.to_string());
            let mark = format!("{{\"read\":{sequence},\"shown\":{sequence}}}");
            let subject = lane.marks.clone();
            let ack = self.marker.publish_with_headers(subject, headers, mark.into());
            state.marked = ack.await.unwrap().await.unwrap().sequence;
            wake
        };
        let ((), wake) = tokio::join!(self.publish(&lane.reader, number), read);
        wake
    }

    async fn add_tasks(&self, lane: usize, first: usize, count: usize) {
        let place = &self.lanes[lane].place;
        for number in first..first + count {
            let id = task_id(number);
            let task = NewTask {
                id,
                subject: &format!("task {number}"),
                description: &text("task", number),
                active_form: None,
                owner: None,
                status: Status::Pending,
                blocks: &[],
                blocked_by: &[],
                metadata: &[],
            };
            let ack = self.sender.publish(place.task_by(id, "team-lead"), task.to_bytes().into());
            ack.await.unwrap().await.unwrap();
        }
    }

    async fn claim(&self, lane: usize, number: usize) {
        let place = &self.lanes[lane].place;
        let id = task_id(number);
        let any = place.task(id);
        // Like the store, read the roster to look up the claimer.
        let (board, team, roster) =
            (place.stream(Stream::Board), place.stream(Stream::Team), place.roster());
        let task = last(&self.reader, &board, &any);
        let (found, _roster) = tokio::join!(task, last(&self.reader, &team, &roster));
        let found = found.unwrap();
        let task = Task::read(&found.payload).unwrap();
        let status = Some(Status::InProgress);
        let change = TaskChange { owner: Change::Set(READER), status, ..TaskChange::default() };
        let claimed = task.with(&change).into_owned();
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence(&found).to_string());
        headers.insert(EXPECTED_SUBJECT, any.as_str());
        let subject = place.task_by(id, READER);
        let ack = self.marker.publish_with_headers(subject, headers, claimed.into());
        ack.await.unwrap().await.unwrap();
    }
}

/// Subscribes to what concerns one member, as the member's watch does. Forwards only the messages for its mailbox.
async fn watch(reader: &Client, place: &Subjects, name: &MemberName) -> UnboundedReceiver<Message> {
    let filters = [
        place.mailbox(name),
        place.messages_from(name),
        place.marks(name),
        place.events_to(name),
        place.events_by(name),
        place.tasks_by(name),
        place.roster(),
    ];
    let mut subscriptions = Vec::new();
    for filter in filters {
        subscriptions.push(reader.subscribe(wake(&filter)).await.unwrap());
    }
    let mailbox = wake(&place.mailbox(name));
    let mailbox = mailbox.trim_end_matches('>').to_owned();
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = select_all(subscriptions);
        while let Some(message) = messages.next().await {
            if message.subject.starts_with(&mailbox) && sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

/// How many unacknowledged messages a connection from `publisher` may have.
pub(crate) const IN_FLIGHT: usize = 512;

/// Opens a connection for many concurrent publishes.
pub(crate) async fn publisher(urls: &[String]) -> Context {
    ContextBuilder::new()
        .max_ack_inflight(IN_FLIGHT)
        .backpressure_on_inflight(true)
        .timeout(Duration::from_secs(60))
        .build(async_nats::connect(urls).await.unwrap())
}

/// Creates a consumer for these subjects, and returns the server's answer. The server deletes inactive consumers.
pub(crate) async fn create_consumer(
    client: &Client,
    stream: &str,
    subjects: &str,
    more: Value,
) -> Value {
    let name = Uuid::new_v4().simple().to_string();
    let mut config = json!({
        "name": name, "ack_policy": "none", "filter_subject": subjects, "mem_storage": true,
        "num_replicas": 1,
    });
    config.as_object_mut().unwrap().append(&mut serde_json::from_value(more).unwrap());
    let body = json!({ "stream_name": stream, "config": config, "action": "create" });
    let ask = format!("$JS.API.CONSUMER.CREATE.{stream}.{name}.{subjects}");
    let answer = client.request(ask, body.to_string().into()).await.unwrap();
    serde_json::from_slice(&answer.payload).unwrap()
}

/// Returns the payload that the store would write for this message.
pub(crate) fn entry(message: &Outgoing) -> Vec<u8> {
    serde_json::to_vec(&message.to_inbox_entry()).unwrap()
}

/// Returns the last message on some subjects (wildcards allowed).
pub(crate) async fn last(client: &Client, stream: &str, subjects: &str) -> Option<Message> {
    let ask = format!("$JS.API.DIRECT.GET.{stream}.{subjects}");
    let found = client.request(ask, "".into()).await.unwrap();
    found.status.is_none().then_some(found)
}

/// Returns the sequence of a message in its stream.
pub(crate) fn sequence(message: &Message) -> u64 {
    let headers = message.headers.as_ref().expect("a stored message has headers");
    headers.get(NATS_SEQUENCE).unwrap().as_str().parse().unwrap()
}

/// Returns the id of a lane's task. Task numbers start at 0, and task ids at 1.
pub(crate) fn task_id(number: usize) -> TaskId {
    TaskId::new(number as u64 + 1).unwrap()
}
