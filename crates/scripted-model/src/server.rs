//! The model on a port of loopback.

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
use crate::record::{Asked, Record};
use crate::wire::Body;

type Sent = Either<Full<Bytes>, Channel<Bytes>>;

/// A model that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    desk: Arc<Desk>,
}

/// Where the server writes what happens, and looks whether it is to answer.
#[derive(Default)]
pub struct Books {
    /// Gets one [`Record`] a line.
    pub log: Option<Box<dyn Write + Send>>,
    /// A folder that gets the body of each request, for whoever wants to see one whole.
    pub bodies: Option<PathBuf>,
    /// A file that holds an [`Outage`] while there is one.
    pub outage: Option<PathBuf>,
}

/// What the connections share.
struct Desk {
    log: Mutex<Option<Box<dyn Write + Send>>>,
    bodies: Option<PathBuf>,
    outage: Option<PathBuf>,
    requests: AtomicU64,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Desk").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on this port of loopback, on any free one if it is 0.
    pub async fn bind(port: u16, books: Books) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let Books { log, bodies, outage } = books;
        let desk = Desk { log: Mutex::new(log), bodies, outage, requests: AtomicU64::new(0) };
        Ok(Self { listener, desk: Arc::new(desk) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers for as long as it is polled.
    pub async fn run(self) -> io::Result<()> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            tokio::spawn(serve(stream, Arc::clone(&self.desk)));
        }
    }
}

async fn serve(stream: TcpStream, desk: Arc<Desk>) {
    let service = service_fn(|request| desk.answer(request));
    // A client that goes away in the middle is no failure: being killed is what a test does to it.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Desk {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Sent>, Infallible> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let (head, body) = request.into_parts();
        let (method, path) = (head.method.as_str(), head.uri.path());
        if head.headers.contains_key(CONTENT_ENCODING) {
            self.note(number, method, path, 415, None);
            return Ok(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a compressed body"));
        }
        let Ok(body) = body.collect().await.map(Collected::to_bytes) else {
            self.note(number, method, path, 400, None);
            return Ok(text(StatusCode::BAD_REQUEST, "half a body"));
        };
        let id = Uuid::new_v4().simple().to_string();
        let mut answer = endpoint::answer(method, path, &body, &id);
        if answer.asked.is_some()
            && let Some(outage) = self.outage()
        {
            answer = outage.instead_of(answer);
        }
        self.keep(number, &body);
        self.note(number, method, path, answer.status, answer.asked);
        let status =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(match answer.body {
            Body::Json(value) => {
                tokio::time::sleep(answer.wait).await;
                with_type(status, "application/json", Either::Left(Full::from(value.to_string())))
            }
            Body::Stream(events) => {
                // The head goes out at once, so that a long wait is not taken for a dead server.
                let (mut sender, channel) = Channel::new(1);
                tokio::spawn(async move {
                    tokio::time::sleep(answer.wait).await;
                    for event in events {
                        if sender.send_data(Bytes::from(event.text())).await.is_err() {
                            return;
                        }
                    }
                });
                with_type(status, "text/event-stream", Either::Right(channel))
            }
        })
    }

    /// Writes what happened before it is answered, so that whoever has an answer finds it in the log.
    fn note(&self, number: u64, method: &str, path: &str, status: u16, asked: Option<Asked>) {
        let (method, path) = (method.to_owned(), path.to_owned());
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let record = Record { number, at, method, path, status, asked };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(log), Ok(mut line)) = (log.as_mut(), serde_json::to_vec(&record)) {
            line.push(b'\n');
            // Nobody is left to be told that a log cannot be written; its reader will miss the line.
            let _ = log.write_all(&line).and_then(|()| log.flush());
        }
    }

    /// What is wrong with the model just now. A file that cannot be understood is an outage of its own, so
    /// that whoever wrote it notices.
    fn outage(&self) -> Option<Outage> {
        let text = std::fs::read(self.outage.as_ref()?).ok()?;
        Some(serde_json::from_slice(&text).unwrap_or_else(|error| Outage {
            status: 501,
            body: serde_json::json!({ "error": { "message": format!("no outage: {error}") } }),
        }))
    }

    fn keep(&self, number: u64, body: &[u8]) {
        if let Some(folder) = &self.bodies {
            let _ = std::fs::write(folder.join(format!("{number:04}.json")), body);
        }
    }
}

fn text(status: StatusCode, words: &'static str) -> Response<Sent> {
    with_type(status, "text/plain", Either::Left(Full::from(words)))
}

fn with_type(status: StatusCode, content_type: &'static str, body: Sent) -> Response<Sent> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
