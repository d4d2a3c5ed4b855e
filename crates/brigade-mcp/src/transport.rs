//! The transport: standard input and output, with six habits of our own.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::framing::Unusable;
use crate::read_marks::Handed;

/// A transport that
///
/// - says "no such method" to whatever comes before the greeting, where the SDK asks for fields of
///   a later protocol: Claude Code begins with `server/discover`, and goes on only after a plain no;
/// - tells when an answer was written, so that the messages in it can be marked read;
/// - takes no second request under the id of one that is not answered yet. The SDK would answer one of
///   the two, and the messages in the other's answer would be marked read with nobody having them;
/// - takes a few requests at a time. Of more than the SDK has room for, it mixes up the answers, and
///   all would be held in memory;
/// - takes none while the client leaves too much of what was answered unread;
/// - answers what is no message, which the SDK passes over.
pub(super) struct Door<T: Transport<RoleServer>> {
    inner: T,
    unusable: mpsc::Receiver<Unusable>,
    /// An answer of our own that is being written.
    refusal: Option<JoinHandle<Result<(), T::Error>>>,
    greeted: bool,
    handed: Handed,
    unanswered: Unanswered,
    places: Arc<Semaphore>,
    unwritten: Arc<Semaphore>,
}

/// How many requests are taken before the first of them is answered; the SDK has room for twice as many.
const PLACES: usize = 32;
/// How many bytes of answers are kept for a client that does not read them.
const UNWRITTEN: u32 = 16 << 20;

/// The requests that are not answered yet, and the place of each. One that was called off has no place,
/// but keeps its id for ever: its answer may still be made, and then has to find nobody.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<HashMap<RequestId, Option<OwnedSemaphorePermit>>>>);

impl Unanswered {
    fn held(&self) -> MutexGuard<'_, HashMap<RequestId, Option<OwnedSemaphorePermit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the id is free, and then it is this request's.
    fn take(&self, id: &RequestId, place: OwnedSemaphorePermit) -> bool {
        let mut held = self.held();
        let free = !held.contains_key(id);
        if free {
            held.insert(id.clone(), Some(place));
        }
        free
    }

    fn give_up_place(&self, id: &RequestId) {
        if let Some(place) = self.held().get_mut(id) {
            *place = None;
        }
    }
}

impl<T: Transport<RoleServer>> Door<T> {
    pub(super) fn new(inner: T, unusable: mpsc::Receiver<Unusable>, handed: Handed) -> Self {
        let places = Arc::new(Semaphore::new(PLACES));
        let unwritten = Arc::new(Semaphore::new(UNWRITTEN as usize));
        let unanswered = Unanswered::default();
        let (greeted, refusal) = (false, None);
        Self { inner, unusable, refusal, greeted, handed, unanswered, places, unwritten }
    }

    /// Says no. It is written by a task, for the service drops a receive when it has something to send.
    fn refuse(&mut self, error: ErrorData, id: Option<RequestId>) {
        let refusal = self.send(ServerJsonRpcMessage::error(error, id));
        self.refusal = Some(tokio::spawn(refusal));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Door<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if let Some(call) = &answers {
            self.unanswered.give_up_place(call);
        }
        // What finds too little room was asked for when there was some, so it is not much.
        let left = u32::try_from(self.unwritten.available_permits()).unwrap_or(UNWRITTEN);
        let room = size(&item).min(left);
        let room = Arc::clone(&self.unwritten).try_acquire_many_owned(room).ok();
        let (handed, unanswered) = (self.handed.clone(), self.unanswered.clone());
        let send = self.inner.send(item);
        async move {
            send.await?;
            drop(room);
            if let Some(call) = answers {
                unanswered.held().remove(&call);
                handed.written(&call).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // Nothing is lost if this is dropped while it waits for a place or a message; and while it
        // sends, before the greeting, nobody drops it.
        loop {
            if let Some(refusal) = &mut self.refusal {
                // If it cannot be written, nothing can, and the service finds that out.
                let _written = refusal.await;
                self.refusal = None;
            }
            drop(self.unwritten.acquire().await.ok()?);
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            let message = tokio::select! {
                biased;
                Some(Unusable { id, error }) = self.unusable.recv() => {
                    let id = id.filter(|id| !self.unanswered.held().contains_key(id));
                    self.refuse(error, id);
                    continue;
                }
                message = self.inner.receive() => message?,
            };
            if let JsonRpcMessage::Notification(news) = &message
                && let ClientNotification::CancelledNotification(off) = &news.notification
                && let Some(id) = &off.params.request_id
            {
                self.unanswered.give_up_place(id);
            }
            let JsonRpcMessage::Request(request) = message else {
                if self.greeted {
                    return Some(message);
                }
                // Answers to questions nobody asked and news from somebody who has not greeted are
                // passed over.
                continue;
            };
            if !self.unanswered.take(&request.id, place) {
                let error = ErrorData::invalid_request("the id is that of another request", None);
                self.refuse(error, None);
                continue;
            }
            if self.greeted {
                return Some(JsonRpcMessage::Request(request));
            }
            match &request.request {
                ClientRequest::InitializeRequest(_) => {
                    self.greeted = true;
                    return Some(JsonRpcMessage::Request(request));
                }
                ClientRequest::PingRequest(_) => return Some(JsonRpcMessage::Request(request)),
                early => {
                    let method = early.method().to_owned();
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
                    let error = ServerJsonRpcMessage::error(error, Some(request.id));
                    self.send(error).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// How many bytes it has as JSON.
fn size(item: &TxJsonRpcMessage<RoleServer>) -> u32 {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written takes no room.
    let _counted = serde_json::to_writer(&mut count, item);
    u32::try_from(count.0).unwrap_or(u32::MAX)
}
