//! Sends updated accounts to the running servers.

use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::OrgError;
use super::folder::Folder;
use crate::connect;
use crate::connect_error::{ConnectFailure, UsedCredentials};
use crate::options::NatsOptions;

/// The subject on which servers accept account JWTs.
const UPDATE_SUBJECT: &str = "$SYS.REQ.CLAIMS.UPDATE";
/// How long to wait for the servers' answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// A server's answer to the update of one account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpdateResult {
    /// The server's name.
    pub server: String,
    /// The account's public key.
    pub account: String,
    /// Whether the server accepted the update.
    pub taken: bool,
    /// The server's message.
    pub said: String,
}

/// Why the servers were not updated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The operator's keys could not be read.
    #[error(transparent)]
    Org(#[from] OrgError),
    /// The connection failed.
    #[error("cannot connect to the servers")]
    Connect(#[source] ConnectFailure),
    /// The connection was lost.
    #[error("cannot reach the servers")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No server of this operator answered.
    #[error("no server answered within {} s", ANSWER_TIMEOUT.as_secs())]
    Silent,
}

/// Sends the current accounts of all organisations to the servers. Returns the servers' answers. The servers
/// disconnect clients whose credentials were revoked.
pub async fn push(
    folder: &Folder,
    options: &NatsOptions,
    now: jiff::Timestamp,
) -> Result<Vec<UpdateResult>, PushError> {
    let client = login(folder, options, now).await?;
    let mut pushed = Vec::new();
    for (_, jwt) in folder.accounts()? {
        pushed.append(&mut push_account(&client, jwt, folder.cluster().nodes.len()).await?);
    }
    if pushed.is_empty() { Err(PushError::Silent) } else { Ok(pushed) }
}

async fn login(
    folder: &Folder,
    options: &NatsOptions,
    now: jiff::Timestamp,
) -> Result<Client, PushError> {
    let (jwt, key) = folder.system_user(now)?;
    let key = std::sync::Arc::new(key);
    let mut connect = ConnectOptions::with_jwt(jwt, move |nonce| {
        let key = std::sync::Arc::clone(&key);
        async move { key.sign(&nonce).map_err(async_nats::AuthError::new) }
    });
    connect = connect.connection_timeout(ANSWER_TIMEOUT).name("brigade org");
    if let Some(ca) = &options.ca {
        connect = connect.add_root_certificates(ca.clone());
    }
    if let Some((cert, key)) = &options.client_cert {
        connect = connect.add_client_certificate(cert.clone(), key.clone());
    }
    let credentials = UsedCredentials {
        file: folder.dir().to_owned(),
        holder: "the keys of this operator".to_owned(),
        until: None,
    };
    connect::connect(&connect, options, Some(&credentials)).await.map_err(PushError::Connect)
}

#[derive(Deserialize)]
struct UpdateAnswer {
    server: ServerName,
    data: Option<UpdateOutcome>,
    error: Option<UpdateOutcome>,
}

#[derive(Deserialize)]
struct ServerName {
    name: String,
}

#[derive(Deserialize)]
struct UpdateOutcome {
    #[serde(default)]
    account: String,
    #[serde(default, alias = "description")]
    message: String,
}

/// Sends one account to the servers. Every server stores the account and sends its own answer.
async fn push_account(
    client: &Client,
    jwt: String,
    servers: usize,
) -> Result<Vec<UpdateResult>, PushError> {
    let unreachable =
        |error: Box<dyn std::error::Error + Send + Sync>| PushError::Unreachable(error);
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await;
    let mut answers = answers.map_err(|error| unreachable(error.into()))?.take(servers);
    let asked = client.publish_with_reply(UPDATE_SUBJECT, inbox, jwt.into()).await;
    asked.map_err(|error| unreachable(error.into()))?;
    let mut pushed = Vec::new();
    let deadline = tokio::time::Instant::now() + ANSWER_TIMEOUT;
    while let Ok(Some(message)) = tokio::time::timeout_at(deadline, answers.next()).await {
        let Ok(answer) = serde_json::from_slice::<UpdateAnswer>(&message.payload) else { continue };
        let taken = answer.error.is_none();
        let Some(outcome) = answer.error.or(answer.data) else { continue };
        let (server, account, said) = (answer.server.name, outcome.account, outcome.message);
        pushed.push(UpdateResult { server, account, taken, said });
    }
    Ok(pushed)
}
