//! Why a connection to the NATS servers failed, in terms that a user can act on.
//!
//! ```
//! use brigade_nats::connect_error::ConnectFailure;
//!
//! let away = ConnectFailure::Unreachable { servers: "nats://a:4222".into(), why: "connection refused".into() };
//! assert!(!away.is_final(), "a server that is down may come back");
//! let wrong = ConnectFailure::NotNats { server: "nats://a:22".into(), greeting: "SSH-2.0".into() };
//! assert!(wrong.is_final());
//! ```

use std::path::PathBuf;

use brigade_core::store::StoreError;
use jiff::Timestamp;
use thiserror::Error;

use crate::identity::IdentityError;

/// The operation in the [`StoreError`] of a failed connection.
const DOING: &str = "connect to the NATS server";

/// The credentials that a client used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedCredentials {
    /// The credentials file.
    pub file: PathBuf,
    /// The holder of the credentials, such as "the credentials of alice in team demo".
    pub holder: String,
    /// When they expire; `None` if they do not expire.
    pub until: Option<Timestamp>,
}

/// Why a connection to the NATS servers failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// No server accepted the connection.
    #[error("no server answers at {servers}: {why}")]
    Unreachable {
        /// The addresses.
        servers: String,
        /// The error of the operating system.
        why: String,
    },
    /// A program accepts the connection, but does not send the first line of a NATS server.
    #[error("a program accepts connections at {server}, but does not answer like a NATS server")]
    Silent {
        /// The address.
        server: String,
    },
    /// Another kind of server listens at the address.
    #[error("the program at {server} is not a NATS server: it sends {greeting:?}")]
    NotNats {
        /// The address.
        server: String,
        /// The start of what the server sent.
        greeting: String,
    },
    /// The client wants TLS, and the server does not use it.
    #[error("the NATS server at {server} does not use TLS")]
    PlainServer {
        /// The address.
        server: String,
        /// The CA file, which makes the client use TLS.
        ca: Option<PathBuf>,
    },
    /// The client knows no CA that signed the certificate of the server.
    #[error("the certificate of {server} is signed by an unknown CA")]
    UnknownCa {
        /// The address.
        server: String,
        /// The CA file that the client used; `None` if it used the system's certificates.
        ca: Option<PathBuf>,
    },
    /// The certificate of the server is not valid.
    #[error("the certificate of {server} is not valid: {why}")]
    ServerCertificate {
        /// The address.
        server: String,
        /// The defect.
        why: String,
    },
    /// The server refused the client's certificate, or wants one.
    #[error("{server} wants a certificate of the client: {why}")]
    ClientCertificate {
        /// The address.
        server: String,
        /// The server's alert.
        why: String,
    },
    /// The certificate files of the client cannot be used.
    #[error("cannot use the certificate files: {why}")]
    CertificateFiles {
        /// The defect.
        why: String,
    },
    /// The credentials file of the client cannot be used.
    #[error("cannot use the credentials file {}: {why}", file.display())]
    CredentialsFile {
        /// The file.
        file: PathBuf,
        /// The defect.
        why: String,
    },
    /// The server wants credentials, and the client has none.
    #[error("the NATS server at {servers} wants credentials")]
    NoCredentials {
        /// The addresses.
        servers: String,
    },
    /// The server refused credentials that have expired.
    #[error("{} expired {}", credentials.holder, time(credentials.until))]
    Expired {
        /// The credentials.
        credentials: UsedCredentials,
    },
    /// The server refused credentials that have not expired.
    #[error("the NATS server refused {}, which {}", credentials.holder, validity(credentials.until))]
    Refused {
        /// The credentials.
        credentials: UsedCredentials,
    },
}

impl ConnectFailure {
    /// Returns whether trying again is pointless: the address, the certificates or the credentials are wrong.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Unreachable { .. } | Self::Silent { .. })
    }

    /// Returns the failure that is the source of a store's error, if any.
    pub fn find(error: &StoreError) -> Option<&Self> {
        match error {
            StoreError::Engine { source, .. } => source.downcast_ref(),
            _ => None,
        }
    }
}

impl From<ConnectFailure> for StoreError {
    fn from(failure: ConnectFailure) -> Self {
        Self::Engine { doing: DOING.into(), source: Box::new(failure) }
    }
}

impl From<IdentityError> for ConnectFailure {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Read { path: file, source } => {
                Self::CredentialsFile { file, why: source.to_string() }
            }
            IdentityError::Form { path: file, what } => {
                Self::CredentialsFile { file, why: what.to_owned() }
            }
        }
    }
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!("on {}", at.strftime("%Y-%m-%d at %H:%M:%S UTC")))
}

fn validity(until: Option<Timestamp>) -> String {
    match until {
        None => "do not expire".to_owned(),
        Some(until) => {
            format!("expire only {}", time(Some(until)))
        }
    }
}
