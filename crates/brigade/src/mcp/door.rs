//! The transport: standard input and output, with additional checks around the SDK.

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

use super::handed::Handed;
use super::lines::Unusable;

/// A transport that
///
/// - answers "method not found" to requests before initialization. The SDK would demand fields of a later
///   protocol version; Claude Code starts with `server/discover` and continues only after a plain error;
/// - reports when an answer was written, so that the messages in it can be marked read;
/// - rejects a request whose id is still in use. The SDK would answer only one of the two, and the messages in the
///   other answer would be marked read without being delivered;
/// - accepts a limited number of requests at a time. Above its own limit the SDK mixes up answers and keeps
///   all of them in memory;
/// - accepts no requests while the client leaves too many answers unread;
/// - answers lines that are not valid messages, which the SDK ignores.
pub(super) struct Door<T: Transport<RoleServer>> {
    inner: T,
    unusable: mpsc::Receiver<Unusable>,
    /// An error answer of this transport that is being written.
    refusal: Option<JoinHandle<Result<(), T::Error>>>,
    greeted: bool,
    handed: Handed,
    unanswered: Unanswered,
    places: Arc<Semaphore>,
    unwritten: Arc<Semaphore>,
}

/// Maximum number of open requests; the SDK has room for twice as many.
const PLACES: usize = 32;
/// Maximum size in bytes of answers kept for a client that does not read them.
const UNWRITTEN: u32 = 16 << 20;

/// Requests without an answer, each with its permit. A cancelled request gives its permit back but keeps its id
/// reserved: its answer may still be produced and must not match a newer request.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<HashMap<RequestId, Option<OwnedSemaphorePermit>>>>);

impl Unanswered {
    fn held(&self) -> MutexGuard<'_, HashMap<RequestId, Option<OwnedSemaphorePermit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the id. Returns whether it was free.
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

    /// Answers with an error. A separate task writes it, because the SDK drops `receive` when it has something to send.
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
        // If too little room is left, take what there is: the request was accepted while there was room.
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
        // Cancel-safe while waiting for a permit or a message. Before initialization it also sends, but then the
        // SDK does not drop it.
        loop {
            if let Some(refusal) = &mut self.refusal {
                // If the write fails, later writes fail too, and the SDK notices.
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
                // Ignore notifications and unexpected answers before initialization.
                continue;
            };
            if !self.unanswered.take(&request.id, place) {
                let error = ErrorData::invalid_request("another open request has this id", None);
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

/// The size of a message as JSON, in bytes.
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
    // A message that cannot be serialized counts as empty.
    let _counted = serde_json::to_writer(&mut count, item);
    u32::try_from(count.0).unwrap_or(u32::MAX)
}
