//! Telling the running servers what an account is now.

use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::OrgError;
use super::folder::Folder;
use crate::options::Options;

/// Where servers take what the operator says of an account.
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
/// How long a server has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pushed {
    /// Its name.
    pub server: String,
    /// The account.
    pub account: String,
    /// Whether it has taken it.
    pub taken: bool,
    /// In its words.
    pub said: String,
}

/// Why the servers do not know.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The keys for it are not there.
    #[error(transparent)]
    Org(#[from] OrgError),
    /// There is no way to them.
    #[error("cannot reach the servers")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// They do not answer as servers of this operator do.
    #[error("no server answered within {} s", PATIENCE.as_secs())]
    Silent,
}

/// Tells the servers what the accounts of all organisations are now, and gives what each answered. Whoever
/// was revoked is cut off by them.
pub async fn push(
    folder: &Folder,
    options: &Options,
    now: jiff::Timestamp,
) -> Result<Vec<Pushed>, PushError> {
    let client = login(folder, options, now).await?;
    let mut pushed = Vec::new();
    for (_, jwt) in folder.accounts()? {
        pushed.append(&mut ask(&client, jwt, folder.cluster().nodes.len()).await?);
    }
    if pushed.is_empty() { Err(PushError::Silent) } else { Ok(pushed) }
}

async fn login(
    folder: &Folder,
    options: &Options,
    now: jiff::Timestamp,
) -> Result<Client, PushError> {
    let (jwt, key) = folder.system_user(now)?;
    let key = std::sync::Arc::new(key);
    let mut connect = ConnectOptions::with_jwt(jwt, move |nonce| {
        let key = std::sync::Arc::clone(&key);
        async move { key.sign(&nonce).map_err(async_nats::AuthError::new) }
    });
    connect = connect.connection_timeout(PATIENCE).name("brigade org");
    if let Some(ca) = &options.ca {
        connect = connect.add_root_certificates(ca.clone());
    }
    if let Some((cert, key)) = &options.client_cert {
        connect = connect.add_client_certificate(cert.clone(), key.clone());
    }
    let servers = &options.servers;
    connect.connect(servers).await.map_err(|error| PushError::Unreachable(error.into()))
}

#[derive(Deserialize)]
struct Answer {
    server: Named,
    data: Option<Outcome>,
    error: Option<Outcome>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    account: String,
    #[serde(default, alias = "description")]
    message: String,
}

/// Every server takes it by itself and says so.
async fn ask(client: &Client, jwt: String, servers: usize) -> Result<Vec<Pushed>, PushError> {
    let unreachable =
        |error: Box<dyn std::error::Error + Send + Sync>| PushError::Unreachable(error);
    let inbox = client.new_inbox();
    let answers = client.subscribe(inbox.clone()).await;
    let mut answers = answers.map_err(|error| unreachable(error.into()))?.take(servers);
    let asked = client.publish_with_reply(UPDATE, inbox, jwt.into()).await;
    asked.map_err(|error| unreachable(error.into()))?;
    let mut pushed = Vec::new();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while let Ok(Some(message)) = tokio::time::timeout_at(deadline, answers.next()).await {
        let Ok(answer) = serde_json::from_slice::<Answer>(&message.payload) else { continue };
        let taken = answer.error.is_none();
        let Some(outcome) = answer.error.or(answer.data) else { continue };
        let (server, account, said) = (answer.server.name, outcome.account, outcome.message);
        pushed.push(Pushed { server, account, taken, said });
    }
    Ok(pushed)
}
