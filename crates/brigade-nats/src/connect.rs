//! Connects to the NATS servers, waits for servers that are away, and finds out why a connection failed.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use async_nats::rustls::{self, AlertDescription, CertificateError};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, ServerError};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::connect_error::{ConnectFailure, UsedCredentials};
use crate::options::NatsOptions;

/// How long to wait between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long to wait for what a server sends first.
const GREETING_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of a foreign greeting to show.
const SHOWN_GREETING: usize = 40;
/// The first word of every NATS server.
const NATS_GREETING: &[u8] = b"INFO ";

/// Connects. While no server can be reached, tries again until the time limit in the options is over. An address,
/// certificates or credentials that cannot work fail at once.
pub(crate) async fn connect(
    connect: &ConnectOptions,
    options: &NatsOptions,
    credentials: Option<&UsedCredentials>,
) -> Result<Client, ConnectFailure> {
    let began = Instant::now();
    loop {
        let failure = match connect.clone().connect(options.servers.as_slice()).await {
            Ok(client) => return Ok(client),
            Err(error) => diagnose_all(&error, connect, options, credentials).await,
        };
        if failure.is_final() || began.elapsed() + RETRY_PAUSE > options.connect_wait {
            return Err(failure);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Finds out why no server of the list could be used. The client library reports only its last attempt, so each
/// server is asked again. A server that is only away makes the whole failure temporary.
async fn diagnose_all(
    error: &ConnectError,
    connect: &ConnectOptions,
    options: &NatsOptions,
    credentials: Option<&UsedCredentials>,
) -> ConnectFailure {
    let [_, _, ..] = options.servers.as_slice() else {
        let server = options.servers.first().map(String::as_str).unwrap_or_default();
        return diagnose(error, server, options, credentials).await;
    };
    let mut last = None;
    for server in &options.servers {
        let failure = match connect.clone().connect(server.as_str()).await {
            // The server is back: the next attempt uses it.
            Ok(_) => unreachable(options, "the connection was lost"),
            Err(error) => diagnose(&error, server, options, credentials).await,
        };
        if !failure.is_final() {
            return match failure {
                ConnectFailure::Unreachable { why, .. } => unreachable(options, why),
                other => other,
            };
        }
        last = Some(failure);
    }
    last.unwrap_or_else(|| unreachable(options, "no address"))
}

fn unreachable(options: &NatsOptions, why: impl Into<String>) -> ConnectFailure {
    ConnectFailure::Unreachable { servers: options.servers.join(", "), why: why.into() }
}

/// Finds out why one server could not be used.
async fn diagnose(
    error: &ConnectError,
    server: &str,
    options: &NatsOptions,
    credentials: Option<&UsedCredentials>,
) -> ConnectFailure {
    let why = || error.source().map_or_else(|| error.to_string(), ToString::to_string);
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            return refused(server, credentials);
        }
        ConnectErrorKind::Tls => {
            let why = unreadable_certificate(options).unwrap_or_else(why);
            return ConnectFailure::CertificateFiles { why };
        }
        ConnectErrorKind::Dns => {
            return ConnectFailure::Unreachable {
                servers: server.to_owned(),
                why: format!("cannot resolve the host name: {}", why()),
            };
        }
        _ => {}
    }
    if let Some(ServerError::Other(text)) = error.source().and_then(|e| e.downcast_ref())
        && text.to_lowercase().contains("authentication")
        && !text.to_lowercase().contains("timeout")
    {
        return refused(server, credentials);
    }
    if let Some(tls) = tls_error(error) {
        return diagnose_tls(tls, server, options);
    }
    match greeting(server).await {
        // The client library reports a time limit without saying what it waited for. The second attempt knows.
        Greeting::Unreachable(why) => {
            ConnectFailure::Unreachable { servers: server.to_owned(), why }
        }
        Greeting::Nats => ConnectFailure::Unreachable { servers: server.to_owned(), why: why() },
        Greeting::Silent => ConnectFailure::Silent { server: server.to_owned() },
        Greeting::Other(greeting) => {
            ConnectFailure::NotNats { server: server.to_owned(), greeting }
        }
    }
}

/// Returns the first certificate file that cannot be read, with the reason. The client library does not name the file.
fn unreadable_certificate(options: &NatsOptions) -> Option<String> {
    let (cert, key) = options.client_cert.as_ref().map(|(cert, key)| (cert, key)).unzip();
    [options.ca.as_ref(), cert, key].into_iter().flatten().find_map(|path| {
        let error = std::fs::File::open(path).err()?;
        Some(format!("{}: {error}", path.display()))
    })
}

fn refused(server: &str, credentials: Option<&UsedCredentials>) -> ConnectFailure {
    let Some(credentials) = credentials.cloned() else {
        return ConnectFailure::NoCredentials { servers: server.to_owned() };
    };
    if credentials.until.is_some_and(|until| until <= Timestamp::now()) {
        ConnectFailure::Expired { credentials }
    } else {
        ConnectFailure::Refused { credentials }
    }
}

/// Returns the TLS error inside an error of the client library.
fn tls_error(error: &ConnectError) -> Option<&rustls::Error> {
    let io = error.source()?.downcast_ref::<io::Error>()?;
    io.get_ref()?.downcast_ref()
}

fn diagnose_tls(error: &rustls::Error, server: &str, options: &NatsOptions) -> ConnectFailure {
    let server = server.to_owned();
    let ca = options.ca.clone();
    match error {
        // The signature is bad if the client knows another CA of the same name.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => ConnectFailure::UnknownCa { server, ca },
        rustls::Error::InvalidCertificate(why) => {
            ConnectFailure::ServerCertificate { server, why: why.to_string() }
        }
        // The server answered the start of the TLS handshake with text.
        rustls::Error::InvalidMessage(_) => ConnectFailure::PlainServer { server, ca },
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::HandshakeFailure),
        ) => ConnectFailure::ClientCertificate { server, why: format!("{alert:?}") },
        other => ConnectFailure::ServerCertificate { server, why: other.to_string() },
    }
}

/// The first data that a server sends.
enum Greeting {
    Unreachable(String),
    Nats,
    Silent,
    Other(String),
}

/// Connects without the client library, and reads what the server sends first.
async fn greeting(server: &str) -> Greeting {
    let address = server.split_once("://").map_or(server, |(_, address)| address);
    let mut stream = match timeout(GREETING_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Greeting::Unreachable(error.to_string()),
        Err(_) => return Greeting::Unreachable("the connection timed out".to_owned()),
    };
    let mut bytes = [0; 64];
    for message in [&b""[..], b"PING\r\n\r\n"] {
        // Servers of other protocols, such as HTTP, answer only after a line of the client.
        if stream.write_all(message).await.is_err() {
            return Greeting::Silent;
        }
        match timeout(GREETING_TIMEOUT, stream.read(&mut bytes)).await {
            Ok(Ok(0) | Err(_)) => return Greeting::Silent,
            Ok(Ok(length)) => return classify(bytes.get(..length).unwrap_or_default()),
            Err(_) => {}
        }
    }
    Greeting::Silent
}

fn classify(bytes: &[u8]) -> Greeting {
    if bytes.starts_with(NATS_GREETING) {
        return Greeting::Nats;
    }
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().next().unwrap_or_default();
    Greeting::Other(line.chars().take(SHOWN_GREETING).collect())
}
