//! The MCP transport on standard input and output, with checks that the SDK lacks.

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
/// - answers "method not found" to requests before initialization. Claude Code starts with `server/discover` and
///   continues only after this plain error. The SDK would instead demand fields of a later protocol version;
/// - reports when an answer was written, so that the messages in the answer can be marked as read;
/// - rejects a request if another open request has the same id. The SDK would answer only one of the two requests,
///   and the messages in the other answer would be marked as read without being delivered;
/// - limits the number of open requests. Above the SDK's own limit, the SDK mixes up answers and keeps all of them
///   in memory;
/// - accepts no requests while the client leaves too many answers unread;
/// - answers an invalid line with an error. The SDK would ignore such a line.
pub(super) struct GuardedTransport<T: Transport<RoleServer>> {
    inner: T,
    rejected: mpsc::Receiver<RejectedLine>,
    /// The background task that writes an error answer.
    error_answer: Option<JoinHandle<Result<(), T::Error>>>,
    initialized: bool,
    read_marks: ReadMarks,
    open_requests: OpenRequests,
    permits: Arc<Semaphore>,
    unwritten_room: Arc<Semaphore>,
}

/// The maximum number of open requests, half of the SDK's own limit.
const MAX_OPEN_REQUESTS: usize = 32;
/// The maximum total size, in bytes, of answers that the client has not read yet.
const MAX_UNWRITTEN: u32 = 16 << 20;

/// The requests that are not answered yet, each with its permit. A cancelled request returns its permit, but its
/// id stays reserved, because the SDK may still answer the request, and that answer must not match a newer
/// request.
#[derive(Clone, Default)]
struct OpenRequests(Arc<Mutex<HashMap<RequestId, Option<OwnedSemaphorePermit>>>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<OwnedSemaphorePermit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a request id. Returns whether the id was free.
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

    /// Answers a request with an error. A separate task writes the answer, because the SDK drops the `receive`
    /// future when the SDK itself has something to send.
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
        // If less room is left than the answer needs, take all that is left, because the request was already
        // accepted.
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
        // The SDK may drop this future while the future waits for a permit or a message. Before initialization
        // this function also sends messages, but the SDK does not drop the future then.
        loop {
            if let Some(error_answer) = &mut self.error_answer {
                // Ignore a failed write: later writes will fail, too, and the SDK notices those.
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
                // Before initialization, ignore notifications and unexpected answers.
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

/// Returns the size of a message as JSON, in bytes.
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
