//! Implements [`Store`] on NATS JetStream.

mod board;
mod history;
mod locate;
mod mail;
mod notes;
mod teams;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_core::event::RefusedEvents;
use brigade_core::store::{RetryStats, Store, StoreError};
use brigade_wire::name::TeamName;

use crate::connection::NatsConnection;
use crate::identity::CredentialRole;
use crate::mailbox::MailboxCache;
use crate::options::NatsOptions;
use crate::roster::Roster;
use crate::shard_map::ShardMap;
use crate::watch_generations::WatchGenerations;

/// How long this process assumes that a team exists without asking the server again. During this time,
/// the process may accept a message to a deleted team.
const EXISTENCE_CACHE_TIME: Duration = Duration::from_secs(2);

/// A store on NATS JetStream.
#[derive(Debug)]
pub struct NatsStore {
    pub(crate) connection: Arc<NatsConnection>,
    /// The shards of the teams, as this process last read them.
    map: Mutex<ShardMap>,
    /// The watched mailboxes, each with its current watch generation.
    generations: Arc<WatchGenerations>,
    rosters: Mutex<HashMap<TeamName, Roster>>,
    incarnations: Mutex<HashMap<TeamName, (String, Instant)>>,
    mailboxes: Arc<MailboxCache>,
    /// Events that readers ignored because their authors may not record them.
    pub(crate) refused: Arc<RefusedEvents>,
}

impl NatsStore {
    /// Connects to the NATS server. If the streams are missing and the credentials allow it, creates the streams.
    pub async fn connect(options: NatsOptions) -> Result<Self, StoreError> {
        let connection = NatsConnection::open(&options).await?;
        let map = if connection.identity.role == CredentialRole::Admin {
            // Check first that the streams exist. The server does not answer a read from a missing stream, so the
            // read would time out.
            let found =
                if connection.has_streams().await? { connection.shard_map().await? } else { None };
            match found {
                Some(map) => map,
                None => connection.create_streams(&options.settings).await?,
            }
        } else {
            ShardMap::hashed(connection.identity.settings.shards)
        };
        Ok(Self {
            connection: Arc::new(connection),
            map: Mutex::new(map),
            generations: Arc::default(),
            rosters: Mutex::default(),
            incarnations: Mutex::default(),
            mailboxes: Arc::default(),
            refused: Arc::default(),
        })
    }

    fn remember(&self, team: &TeamName, roster: &Roster) {
        locked(&self.rosters).insert(team.clone(), roster.clone());
        match roster.incarnation() {
            Some(incarnation) => {
                locked(&self.incarnations)
                    .insert(team.clone(), (incarnation.to_owned(), Instant::now()));
            }
            None => drop(locked(&self.incarnations).remove(team)),
        }
    }

    /// Returns the team's current incarnation.
    async fn incarnation(&self, team: &TeamName) -> Result<String, StoreError> {
        if let Some((incarnation, at)) = locked(&self.incarnations).get(team)
            && at.elapsed() < EXISTENCE_CACHE_TIME
        {
            return Ok(incarnation.clone());
        }
        let roster = self.roster(team).await?;
        roster
            .incarnation()
            .map(str::to_owned)
            .ok_or_else(|| StoreError::NoTeam { team: team.clone() })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for NatsStore {
    fn retry_stats(&self) -> Option<RetryStats> {
        Some(self.connection.counters.retry_stats())
    }

    fn connection_error(&self) -> Option<String> {
        self.connection.error()
    }
}
