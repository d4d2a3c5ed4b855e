//! Which engine, and as whom; and how the streams are made.
//!
//! ```
//! use brigade_nats::{Options, Patience, Settings};
//!
//! let options = Options {
//!     servers: vec!["tls://nats.example.org:4222".to_owned()],
//!     creds: Some("bob.creds".into()),
//!     settings: Settings { replicas: Some(3), ..Settings::default() },
//!     patience: Patience::Long,
//!     ..Options::default()
//! };
//! assert_eq!(options.settings.shards, 1);
//! ```

use std::path::PathBuf;
use std::time::Duration;

use crate::layout::RETENTION;

/// Which engine, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where its servers listen: `nats://host:port` or `tls://host:port`, one or more.
    pub servers: Vec<String>,
    /// The credentials of the seat. Without them the engine has to let everybody in.
    pub creds: Option<PathBuf>,
    /// The certificate authority that vouches for the servers, if the system's do not.
    pub ca: Option<PathBuf>,
    /// The certificate and the key by which the servers know this client, where they ask for one.
    pub client_cert: Option<(PathBuf, PathBuf)>,
    /// How the streams are made, should there be none yet.
    pub settings: Settings,
    /// For how long a thing is tried while the engine does not answer.
    pub patience: Patience,
}

/// For how long a thing is tried while the engine does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Patience {
    /// Twenty seconds: longer than an election takes. For who waits for the answer.
    #[default]
    Short,
    /// Ten minutes: a host that is cut off comes back. For what goes on by itself.
    Long,
}

impl Patience {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(20),
            Self::Long => Duration::from_secs(10 * 60),
        }
    }
}

/// How the streams are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Over how many shards the teams are spread: 1, 4 or 16. It cannot be changed later.
    pub shards: u16,
    /// On how many servers everything stands; `None` for three where there is a cluster, else one.
    pub replicas: Option<usize>,
    /// How long mail is kept.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { shards: 1, replicas: None, retention: RETENTION }
    }
}
