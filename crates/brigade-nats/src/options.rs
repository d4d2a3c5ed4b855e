//! How to connect to a NATS server, and how to create the streams.
//!
//! ```
//! use brigade_nats::{NatsOptions, RetryLimit, StreamSettings};
//!
//! let options = NatsOptions {
//!     servers: vec!["tls://nats.example.org:4222".to_owned()],
//!     creds: Some("bob.creds".into()),
//!     settings: StreamSettings { replicas: Some(3), ..StreamSettings::default() },
//!     patience: RetryLimit::Long,
//!     ..NatsOptions::default()
//! };
//! assert_eq!(options.settings.shards, 1);
//! ```

use std::path::PathBuf;
use std::time::Duration;

use crate::layout::RETENTION;

/// How to connect to the NATS server.
#[derive(Clone, Debug, Default)]
pub struct NatsOptions {
    /// The servers, each as `nats://host:port` or `tls://host:port`.
    pub servers: Vec<String>,
    /// The credentials file. Without one, the server must accept unauthenticated clients.
    pub creds: Option<PathBuf>,
    /// CA certificate file for TLS, if the servers' CA is not in the system's trust store.
    pub ca: Option<PathBuf>,
    /// Files with the client's certificate and key, if the servers require them.
    pub client_cert: Option<(PathBuf, PathBuf)>,
    /// The settings for the streams, used only if the streams do not exist yet.
    pub settings: StreamSettings,
    /// How long to retry a request while the server does not answer.
    pub patience: RetryLimit,
    /// How long to wait, before the first connection, for servers that cannot be reached.
    pub connect_wait: Duration,
}

impl NatsOptions {
    /// Returns whether the client accepts only encrypted connections.
    pub(crate) fn requires_tls(&self) -> bool {
        let is_tls = |server: &String| server.starts_with("tls://");
        self.ca.is_some() || self.client_cert.is_some() || self.servers.iter().all(is_tls)
    }
}

/// How long to retry while the server does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RetryLimit {
    /// 20 seconds, which is longer than a leader election. For commands whose user is waiting.
    #[default]
    Short,
    /// 10 minutes, so that a process survives a network failure. For background processes.
    Long,
    /// The time that the user chose.
    Exactly(Duration),
}

impl RetryLimit {
    /// Returns the limit as a duration.
    pub fn duration(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(20),
            Self::Long => Duration::from_secs(10 * 60),
            Self::Exactly(limit) => limit,
        }
    }
}

/// Settings for creating the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// Number of shards among which the teams are distributed: 1, 4 or 16. More can be added later.
    pub shards: u16,
    /// Number of replicas per stream; `None` means three in a cluster, and one on a single server.
    pub replicas: Option<usize>,
    /// How long mail is kept.
    pub retention: Duration,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self { shards: 1, replicas: None, retention: RETENTION }
    }
}
