//! Accepts connections and serves them, with limits.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

/// The most open connections.
const MAX_CONNECTIONS: usize = 2_048;
/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;
/// How long to wait after the system refused a connection, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the server accepts connections.
#[derive(Debug)]
pub enum WebListener {
    /// On an address of this host.
    Tcp(TcpListener),
    /// On a socket file, for a proxy.
    Unix(UnixListener),
}

/// Serves connections until the task is dropped.
pub(crate) async fn serve(listener: WebListener, router: Router) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let service = router.clone();
        let accepted = match &listener {
            WebListener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                let _kept_default = stream.set_nodelay(true);
                tokio::spawn(async move {
                    connection(stream, service).await;
                    drop(permit);
                });
            }),
            WebListener::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                tokio::spawn(async move {
                    connection(stream, service).await;
                    drop(permit);
                });
            }),
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
