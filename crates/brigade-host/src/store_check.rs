//! Checks what works with a store on NATS servers: the connection, the credentials, the team and the streams.

use std::path::PathBuf;
use std::time::Duration;

use brigade_core::mail::MAX_TEXT_BYTES;
use brigade_core::store::TeamStore as _;
use brigade_nats::health::{self, Health, HealthProblem};
use brigade_nats::identity::CredentialRole;
use brigade_nats::{Identity, NatsOptions, NatsStore, RetryLimit};
use brigade_wire::name::TeamName;

use crate::error::HostError;
use crate::location::{NatsServers, ServerWait};

/// How long to retry a request. Longer than the server needs, shorter than a user who only checks wants to wait.
const RETRY: Duration = Duration::from_secs(5);

/// The hint for a server that refuses long messages.
pub const PAYLOAD_ADVICE: &str = "set max_payload to 8MB in the configuration of every server";

/// Returns why the server refuses long messages; `None` if it accepts the longest message that brigade sends. JSON
/// escapes can double the size of a text.
pub fn payload_problem(health: &Health) -> Option<String> {
    let max = health.max_payload;
    (max < 2 * MAX_TEXT_BYTES)
        .then(|| format!("the server accepts messages of at most {max} bytes"))
}

/// The result of checking a store.
#[derive(Debug)]
pub struct StoreCheck {
    /// The state of the server and its streams.
    pub health: Health,
    /// The credentials file, and whose credentials it contains; `None` without credentials.
    pub credentials: Option<(PathBuf, Identity)>,
    /// The team in the credentials, and whether it exists.
    pub team: Option<(TeamName, bool)>,
}

impl StoreCheck {
    /// Connects to the servers and checks what works.
    pub async fn run(servers: &NatsServers, wait: ServerWait) -> Result<Self, HostError> {
        let options = NatsOptions {
            connect_wait: wait.connect,
            patience: RetryLimit::Exactly(wait.retry.unwrap_or_default().max(RETRY)),
            ..servers.store_options()
        };
        let health = health::check_health(&options).await?;
        let credentials = match &servers.creds {
            Some(file) => {
                Some((file.clone(), Identity::from_creds(file).map_err(HostError::failed)?))
            }
            None => None,
        };
        let team = credentials.as_ref().and_then(|(_, identity)| identity.team.clone());
        let team = match team {
            Some(team) => {
                let exists = NatsStore::connect(options).await?.team(&team).await?.is_some();
                Some((team, exists))
            }
            None => None,
        };
        Ok(Self { health, credentials, team })
    }

    /// Returns what the credentials permit, as verb phrases.
    pub fn rights(&self) -> Vec<&'static str> {
        let Some((_, identity)) = &self.credentials else {
            return vec!["do everything, under any name"];
        };
        match identity.role {
            CredentialRole::Admin => vec!["do everything in the organisation"],
            CredentialRole::Member => {
                vec!["send and read mail as these members", "use the team's board"]
            }
            CredentialRole::Lead => {
                let mut rights = vec![
                    "send and read mail as these members",
                    "use the team's board",
                    "manage the roster",
                ];
                rights.extend(identity.answers.then_some("answer requests"));
                rights
            }
        }
    }

    /// Returns whether the streams do not exist yet. The first command of an admin creates them.
    pub fn is_new(&self) -> bool {
        let is_missing = |problems: &[HealthProblem]| problems == [HealthProblem::Missing];
        let streams = self.health.streams.as_deref().unwrap_or_default();
        !streams.is_empty() && streams.iter().all(|stream| is_missing(&stream.problems))
    }

    /// Returns whether nothing has to be changed on the server.
    pub fn is_good(&self) -> bool {
        let has_good_streams = self.is_new() || self.bad_streams().is_empty();
        has_good_streams && payload_problem(&self.health).is_none()
    }

    /// Returns the names of the streams that have problems.
    pub fn bad_streams(&self) -> Vec<&str> {
        let streams = self.health.streams.as_deref().unwrap_or_default().iter();
        let bad = streams.filter(|stream| !stream.problems.is_empty());
        bad.map(|stream| stream.name.as_str()).collect()
    }
}
