//! The HTTP server. It listens on the loopback interface.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Collected, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::endpoint::{self, Outage};
use crate::record::{ModelRequestLog, RequestLogLine};
use crate::wire::ResponseBody;

type HttpBody = Either<Full<Bytes>, Channel<Bytes>>;

/// A listening server.
#[derive(Debug)]
pub struct ModelServer {
    listener: TcpListener,
    state: Arc<ServerState>,
}

/// The files that the server writes and reads.
#[derive(Default)]
pub struct ServerOptions {
    /// The log. The server writes one [`RequestLogLine`] per line.
    pub log: Option<Box<dyn Write + Send>>,
    /// A folder in which the server saves the body of each request, for debugging.
    pub bodies: Option<PathBuf>,
    /// A file that contains an [`Outage`]. While the file exists, model requests fail.
    pub outage: Option<PathBuf>,
}

/// State that all connections share.
struct ServerState {
    log: Mutex<Option<Box<dyn Write + Send>>>,
    bodies: Option<PathBuf>,
    outage: Option<PathBuf>,
    requests: AtomicU64,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ServerState").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Listens on this port of the loopback interface; 0 chooses a free port.
    pub async fn bind(port: u16, options: ServerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let ServerOptions { log, bodies, outage } = options;
        let state =
            ServerState { log: Mutex::new(log), bodies, outage, requests: AtomicU64::new(0) };
        Ok(Self { listener, state: Arc::new(state) })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests until the future is dropped.
    pub async fn run(self) -> io::Result<()> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            tokio::spawn(serve(stream, Arc::clone(&self.state)));
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<ServerState>) {
    let service = service_fn(|request| state.answer(request));
    // Ignore errors: tests kill their clients, which closes connections.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl ServerState {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<HttpBody>, Infallible> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let (head, body) = request.into_parts();
        let (method, path) = (head.method.as_str(), head.uri.path());
        if head.headers.contains_key(CONTENT_ENCODING) {
            self.log_request(number, method, path, 415, None);
            return Ok(plain_text(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "compressed bodies are not supported",
            ));
        }
        let Ok(body) = body.collect().await.map(Collected::to_bytes) else {
            self.log_request(number, method, path, 400, None);
            return Ok(plain_text(StatusCode::BAD_REQUEST, "incomplete body"));
        };
        let id = Uuid::new_v4().simple().to_string();
        let mut answer = endpoint::answer(method, path, &body, &id);
        if answer.asked.is_some()
            && let Some(outage) = self.outage()
        {
            answer = outage.replace(answer);
        }
        self.save_body(number, &body);
        self.log_request(number, method, path, answer.status, answer.asked);
        let status =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(match answer.body {
            ResponseBody::Json(value) => {
                tokio::time::sleep(answer.wait).await;
                with_type(status, "application/json", Either::Left(Full::from(value.to_string())))
            }
            ResponseBody::Stream(events) => {
                // Send the headers immediately, so that the client does not time out during a long wait.
                let (mut sender, channel) = Channel::new(1);
                tokio::spawn(async move {
                    tokio::time::sleep(answer.wait).await;
                    for event in events {
                        if sender.send_data(Bytes::from(event.text())).await.is_err() {
                            return;
                        }
                        tokio::time::sleep(answer.pace).await;
                    }
                });
                with_type(status, "text/event-stream", Either::Right(channel))
            }
        })
    }

    /// Logs a request. Called before the answer is sent, so that a client that has the answer finds the request in
    /// the log.
    fn log_request(
        &self,
        number: u64,
        method: &str,
        path: &str,
        status: u16,
        asked: Option<ModelRequestLog>,
    ) {
        let (method, path) = (method.to_owned(), path.to_owned());
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let record = RequestLogLine { number, at, method, path, status, asked };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(log), Ok(mut line)) = (log.as_mut(), serde_json::to_vec(&record)) {
            line.push(b'\n');
            // Ignore errors: there is nowhere to report them, and the test will fail because the line is missing.
            let _ = log.write_all(&line).and_then(|()| log.flush());
        }
    }

    /// Reads the current outage. An outage file that cannot be parsed also makes requests fail, so that the
    /// mistake is noticed.
    fn outage(&self) -> Option<Outage> {
        let text = std::fs::read(self.outage.as_ref()?).ok()?;
        Some(serde_json::from_slice(&text).unwrap_or_else(|error| Outage {
            status: 501,
            body: serde_json::json!({ "error": { "message": format!("invalid outage file: {error}") } }),
        }))
    }

    fn save_body(&self, number: u64, body: &[u8]) {
        if let Some(folder) = &self.bodies {
            let _ = std::fs::write(folder.join(format!("{number:04}.json")), body);
        }
    }
}

fn plain_text(status: StatusCode, text: &'static str) -> Response<HttpBody> {
    with_type(status, "text/plain", Either::Left(Full::from(text)))
}

fn with_type(status: StatusCode, content_type: &'static str, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
