//! Checks whether the streams exist and have the settings that brigade needs.
//!
//! ```no_run
//! use brigade_core::store::StoreError;
//! use brigade_nats::NatsOptions;
//! use brigade_nats::health::check_health;
//!
//! async fn print(options: &NatsOptions) -> Result<(), StoreError> {
//!     println!("{:?}", check_health(options).await?);
//!     Ok(())
//! }
//! ```

use std::time::Duration;

use async_nats::jetstream::stream::{Config, Info, StorageType};
use brigade_core::store::StoreError;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::identity::CredentialRole;
use crate::layout::Stream;
use crate::options::{NatsOptions, StreamSettings};
use crate::streams;

const DOING: &str = "inspect the streams";

/// State of a NATS server.
#[derive(Clone, Debug)]
pub struct Health {
    /// The server's version.
    pub version: String,
    /// Whether the server is part of a cluster.
    pub is_cluster: bool,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Size of the largest message that the server accepts, in bytes.
    pub max_payload: usize,
    /// How far this host's clock is ahead of the server's clock; zero if unknown.
    pub ahead: SignedDuration,
    /// State of the streams; `None` if the credentials do not allow inspecting them.
    pub streams: Option<Vec<StreamHealth>>,
}

/// State of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamHealth {
    /// The stream's name.
    pub name: String,
    /// Problems found.
    pub problems: Vec<HealthProblem>,
}

/// A problem with a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthProblem {
    /// The stream does not exist.
    Missing,
    /// The named setting has the wrong value.
    Setting(&'static str),
    /// The stream has no leader, so writes fail.
    Leaderless,
    /// The replica on the named server is offline or behind.
    Replica(String),
    /// The stream has too few replicas to survive the loss of a server.
    Few {
        /// Number of replicas.
        replicas: usize,
    },
}

/// Inspects a NATS server and its streams, without changing them.
pub async fn check_health(options: &NatsOptions) -> Result<Health, StoreError> {
    let connection = NatsConnection::open(options).await?;
    let info = connection.client.server_info();
    let mut health = Health {
        version: info.version,
        is_cluster: info.cluster.is_some(),
        is_tls: info.tls_required || options.requires_tls(),
        max_payload: info.max_payload,
        ahead: SignedDuration::ZERO,
        streams: None,
    };
    if connection.identity.role != CredentialRole::Admin {
        return Ok(health);
    }
    let map = if connection.has_streams().await? { connection.shard_map().await? } else { None };
    let shards = map.map_or(options.settings.shards, |map| map.total());
    let mut found = Vec::new();
    for shard in 0..shards {
        for stream in Stream::ALL {
            let name = stream.name(shard);
            let asked = Timestamp::now();
            let answer = connection.stream_info(&name, DOING).await?;
            health.ahead = clock_lead(&answer, asked).unwrap_or(health.ahead);
            let problems = find_problems(stream, shard, &answer, health.is_cluster)?;
            found.push(StreamHealth { name, problems });
        }
    }
    health.streams = Some(found);
    Ok(health)
}

/// Returns how far this host's clock is ahead of the server's clock. Assumes that the server read its clock
/// halfway between the request and the answer.
fn clock_lead(answer: &Value, asked: Timestamp) -> Option<SignedDuration> {
    let server_time: Timestamp = answer.get("ts")?.as_str()?.parse().ok()?;
    let answered = Timestamp::now();
    let between = asked.checked_add(answered.duration_since(asked) / 2).ok()?;
    Some(between.duration_since(server_time))
}

fn find_problems(
    stream: Stream,
    shard: u16,
    answer: &Value,
    is_cluster: bool,
) -> Result<Vec<HealthProblem>, StoreError> {
    if let Some(error) = answer.get("error") {
        let description = error.get("description").and_then(Value::as_str).unwrap_or_default();
        return match error.get("code").and_then(Value::as_u64) {
            Some(404) => Ok(vec![HealthProblem::Missing]),
            _ => Err(NatsError::Server(description.to_owned()).while_doing(DOING)),
        };
    }
    let info: Info = serde_json::from_value(answer.clone())
        .map_err(|error| NatsError::Malformed(error.to_string()).while_doing(DOING))?;
    let replicas = info.config.num_replicas;
    // Accept any retention, because each organisation chooses its retention.
    let settings = StreamSettings { retention: info.config.max_age, ..StreamSettings::default() };
    let wanted = streams::config(stream, shard, &settings, replicas);
    let mut found: Vec<HealthProblem> =
        differences(&info.config, &wanted).into_iter().map(HealthProblem::Setting).collect();
    if is_cluster && replicas < 3 {
        found.push(HealthProblem::Few { replicas });
    }
    if let Some(cluster) = info.cluster.filter(|_| replicas > 1) {
        if cluster.leader.as_deref().unwrap_or_default().is_empty() {
            found.push(HealthProblem::Leaderless);
        }
        for peer in cluster.replicas.iter().filter(|peer| peer.offline || !peer.current) {
            found.push(HealthProblem::Replica(peer.name.clone()));
        }
    }
    Ok(found)
}

/// Returns the settings in which `is` differs from `wanted`, by their names in the server's API.
fn differences(is: &Config, wanted: &Config) -> Vec<&'static str> {
    let subjects = |config: &Config| {
        let mut subjects = config.subjects.clone();
        subjects.sort();
        subjects
    };
    let storage = |config: &Config| matches!(config.storage, StorageType::Memory);
    let republish = |config: &Config| {
        config.republish.as_ref().map(|republish| {
            (republish.source.clone(), republish.destination.clone(), republish.headers_only)
        })
    };
    // Earlier versions of brigade created streams without a limit that is never reached.
    let kept = |config: &Config| {
        let limit = config.max_messages_per_subject;
        (1..streams::NEVER_REACHED).contains(&limit).then_some(limit)
    };
    let checks = [
        ("subjects", subjects(is) == subjects(wanted)),
        ("storage", storage(is) == storage(wanted)),
        ("max_msgs_per_subject", kept(is) == kept(wanted)),
        ("max_age", (is.max_age == Duration::ZERO) == (wanted.max_age == Duration::ZERO)),
        ("duplicate_window", is.duplicate_window >= wanted.duplicate_window),
        ("allow_direct", is.allow_direct == wanted.allow_direct),
        ("allow_rollup_hdrs", is.allow_rollup == wanted.allow_rollup),
        ("allow_msg_ttl", is.allow_message_ttl == wanted.allow_message_ttl),
        ("republish", republish(is) == republish(wanted)),
    ];
    checks.into_iter().filter(|(_, is_right)| !is_right).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_was_changed_is_named() {
        let wanted = streams::config(Stream::Board, 0, &StreamSettings::default(), 1);
        assert_eq!(differences(&wanted, &wanted), Vec::<&str>::new());
        let republish = Config { republish: None, ..wanted.clone() };
        assert_eq!(differences(&republish, &wanted), ["republish"]);
        let subjects = Config { subjects: vec!["bd.1.>".into()], ..wanted.clone() };
        let both = Config { allow_direct: false, ..subjects };
        assert_eq!(differences(&both, &wanted), ["subjects", "allow_direct"]);
        let fewer = Config { max_messages_per_subject: 1, ..wanted.clone() };
        assert_eq!(differences(&fewer, &wanted), ["max_msgs_per_subject"]);
    }

    #[test]
    fn mail_streams_of_earlier_versions_are_right() {
        let wanted = streams::config(Stream::Mail, 0, &StreamSettings::default(), 1);
        let earlier = Config { max_messages_per_subject: -1, ..wanted.clone() };
        assert_eq!(differences(&earlier, &wanted), Vec::<&str>::new());
    }

    #[test]
    fn a_stream_that_is_not_there_is_missing() {
        let answer = serde_json::json!({ "error": { "code": 404, "err_code": 10059 } });
        let found = find_problems(Stream::Mail, 0, &answer, false).unwrap();
        assert_eq!(found, [HealthProblem::Missing]);
    }
}
