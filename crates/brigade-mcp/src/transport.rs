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

use crate::framing::RejectedLine;
use crate::read_marks::ReadMarks;

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
pub(super) struct GuardedTransport<T: Transport<RoleServer>> {
    inner: T,
    rejected: mpsc::Receiver<RejectedLine>,
    /// An error answer of this transport that is being written.
    error_answer: Option<JoinHandle<Result<(), T::Error>>>,
    initialized: bool,
    read_marks: ReadMarks,
    open_requests: OpenRequests,
    permits: Arc<Semaphore>,
    unwritten_room: Arc<Semaphore>,
}

/// Maximum number of open requests; the SDK has room for twice as many.
const MAX_OPEN_REQUESTS: usize = 32;
/// Maximum size in bytes of answers kept for a client that does not read them.
const MAX_UNWRITTEN: u32 = 16 << 20;

/// Requests without an answer, each with its permit. A cancelled request gives its permit back but keeps its id
/// reserved: its answer may still be produced and must not match a newer request.
#[derive(Clone, Default)]
struct OpenRequests(Arc<Mutex<HashMap<RequestId, Option<OwnedSemaphorePermit>>>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<OwnedSemaphorePermit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the id. Returns whether it was free.
    fn reserve(&self, id: &RequestId, permit: OwnedSemaphorePermit) -> bool {
        let mut requests = self.lock();
        let free = !requests.contains_key(id);
        if free {
            requests.insert(id.clone(), Some(permit));
        }
        free
    }

    fn release_permit(&self, id: &RequestId) {
        if let Some(permit) = self.lock().get_mut(id) {
            *permit = None;
        }
    }
}

impl<T: Transport<RoleServer>> GuardedTransport<T> {
    pub(super) fn new(
        inner: T,
        rejected: mpsc::Receiver<RejectedLine>,
        read_marks: ReadMarks,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_OPEN_REQUESTS));
        let unwritten_room = Arc::new(Semaphore::new(MAX_UNWRITTEN as usize));
        let open_requests = OpenRequests::default();
        let (initialized, error_answer) = (false, None);
        Self {
            inner,
            rejected,
            error_answer,
            initialized,
            read_marks,
            open_requests,
            permits,
            unwritten_room,
        }
    }

    /// Answers with an error. A separate task writes it, because the SDK drops `receive` when it has something
    /// to send.
    fn answer_with_error(&mut self, error: ErrorData, id: Option<RequestId>) {
        let error_answer = self.send(ServerJsonRpcMessage::error(error, id));
        self.error_answer = Some(tokio::spawn(error_answer));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for GuardedTransport<T> {
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
            self.open_requests.release_permit(call);
        }
        // If too little room is left, take what there is: the request was accepted while there was room.
        let left = u32::try_from(self.unwritten_room.available_permits()).unwrap_or(MAX_UNWRITTEN);
        let room = size(&item).min(left);
        let room = Arc::clone(&self.unwritten_room).try_acquire_many_owned(room).ok();
        let (read_marks, open_requests) = (self.read_marks.clone(), self.open_requests.clone());
        let send = self.inner.send(item);
        async move {
            send.await?;
            drop(room);
            if let Some(call) = answers {
                open_requests.lock().remove(&call);
                read_marks.written(&call).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // Cancel-safe while waiting for a permit or a message. Before initialization it also sends, but then the
        // SDK does not drop it.
        loop {
            if let Some(error_answer) = &mut self.error_answer {
                // If the write fails, later writes fail too, and the SDK notices.
                let _written = error_answer.await;
                self.error_answer = None;
            }
            drop(self.unwritten_room.acquire().await.ok()?);
            let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
            let message = tokio::select! {
                biased;
                Some(RejectedLine { id, error }) = self.rejected.recv() => {
                    let id = id.filter(|id| !self.open_requests.lock().contains_key(id));
                    self.answer_with_error(error, id);
                    continue;
                }
                message = self.inner.receive() => message?,
            };
            if let JsonRpcMessage::Notification(message) = &message
                && let ClientNotification::CancelledNotification(cancelled) = &message.notification
                && let Some(id) = &cancelled.params.request_id
            {
                self.open_requests.release_permit(id);
            }
            let JsonRpcMessage::Request(request) = message else {
                if self.initialized {
                    return Some(message);
                }
                // Ignore notifications and unexpected answers before initialization.
                continue;
            };
            if !self.open_requests.reserve(&request.id, permit) {
                let error = ErrorData::invalid_request("another open request has this id", None);
                self.answer_with_error(error, None);
                continue;
            }
            if self.initialized {
                return Some(JsonRpcMessage::Request(request));
            }
            match &request.request {
                ClientRequest::InitializeRequest(_) => {
                    self.initialized = true;
                    return Some(JsonRpcMessage::Request(request));
                }
                ClientRequest::PingRequest(_) => return Some(JsonRpcMessage::Request(request)),
                other => {
                    let method = other.method().to_owned();
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
    struct ByteCount(usize);
    impl io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    // A message that cannot be serialized counts as empty.
    let _counted = serde_json::to_writer(&mut count, item);
    u32::try_from(count.0).unwrap_or(u32::MAX)
}
