//! Backs up all streams into files, and restores them into an empty NATS server.
//!
//! A backup is a folder with one snapshot per stream, in the server's format, and a manifest. The manifest is
//! written last and holds a checksum of every file, so a backup with a manifest is complete and can be verified.
//! The backup takes one snapshot after the other. Each snapshot includes all messages that were acknowledged
//! before the backup began, and possibly later ones.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use brigade_core::clock::Timestamp;
//! use brigade_nats::NatsOptions;
//! use brigade_nats::backup::{BackupError, backup, check};
//!
//! async fn save(options: &NatsOptions) -> Result<(), BackupError> {
//!     let dir = Path::new("/backup/monday");
//!     backup(options, dir, Timestamp::now()).await?;
//!     check(dir).map(drop)
//! }
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brigade_core::store::StoreError;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::connection::NatsConnection;
use crate::error::NatsError;
use crate::layout::Stream;
use crate::options::NatsOptions;
use crate::stream_metrics::{LONG_TIMEOUT, StreamInfo, StreamState};

/// The number of the server's error if not enough servers of a cluster are online for a stream.
const NO_PLACE: &str = "error code 10005)";
/// How long to wait for the servers of a cluster that has just been started.
const PLACED_WITHIN: Duration = Duration::from_secs(30);
const PLACE_INTERVAL: Duration = Duration::from_millis(200);

/// Version of the backup format.
const VERSION: u32 = 1;
/// The manifest file. It exists only in a complete backup.
const MANIFEST: &str = "manifest.json";
/// Status in the server's last message if the snapshot is complete.
const END: u16 = 204;
/// Size in bytes of the pieces in which a snapshot is received and sent.
const CHUNK: usize = 256 * 1024;

/// The description of a backup, stored as `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the backup format.
    pub version: u32,
    /// When the backup began.
    pub at: Timestamp,
    /// Version of the NATS server.
    pub server: String,
    /// Number of shards.
    pub shards: u16,
    /// The streams, in the order in which to restore them.
    pub streams: Vec<SavedStream>,
}

/// A stream in a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedStream {
    /// The stream's name.
    pub name: String,
    /// The stream's settings, as the server describes them.
    pub config: Value,
    /// Number, size and range of the stream's messages when the snapshot began.
    pub state: StreamState,
    /// The snapshot; `None` if the messages are short-lived. A stream without a snapshot is restored empty.
    pub file: Option<Snapshot>,
}

/// A snapshot file of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The file's name in the folder.
    pub name: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

/// A restored stream.
#[derive(Clone, Debug, Serialize)]
pub struct Restored {
    /// The stream's name.
    pub name: String,
    /// Number of messages in the stream.
    pub messages: u64,
    /// Sequence of the last message.
    pub last_seq: u64,
    /// Number of messages that were not restored because they are older than the stream's retention period.
    pub too_old: u64,
}

/// Why a backup or restore failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The NATS server failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file system failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder for the backup is not empty.
    #[error("{} is not empty; choose an empty or new folder for the backup", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to back up.
    #[error("this NATS server has no streams of brigade")]
    NoStreams,
    /// The folder is not a backup, or the backup did not finish.
    #[error("{} is not a complete backup: {MANIFEST} is missing", path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// The backup has another format.
    #[error("this backup has format {found}; this version of brigade reads format {VERSION}")]
    Version {
        /// The backup's format.
        found: u32,
    },
    /// A file of the backup is damaged.
    #[error("{} is damaged: it does not match the manifest", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The server already has streams.
    #[error("the stream {name} already exists; restore into an empty NATS server")]
    StreamExists {
        /// The stream.
        name: String,
    },
    /// The restored stream differs from the backup.
    #[error(
        "after the restore {name} has {found} messages up to sequence {last}, but should have {saved} up to {upto}"
    )]
    Differs {
        /// The stream.
        name: String,
        /// Messages found.
        found: u64,
        /// Sequence of the last message found.
        last: u64,
        /// Messages saved.
        saved: u64,
        /// Sequence of the last message saved.
        upto: u64,
    },
}

/// Saves every stream into a folder, which must be empty or missing.
pub async fn backup(
    options: &NatsOptions,
    dir: &Path,
    at: Timestamp,
) -> Result<Manifest, BackupError> {
    let connection = NatsConnection::open(options).await?;
    if !connection.has_streams().await? {
        return Err(BackupError::NoStreams);
    }
    let shards = connection.shard_map().await?.ok_or(BackupError::NoStreams)?.total();
    let failed = |doing| move |source| BackupError::Io { doing, path: dir.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create"))?;
    if fs::read_dir(dir).map_err(failed("read"))?.next().is_some() {
        return Err(BackupError::NotEmpty { path: dir.to_owned() });
    }
    let mut streams = Vec::new();
    // A restore keeps this order. Shard 0 is last, because it contains the map of shards, which must be restored last.
    for shard in (0..shards).rev() {
        for stream in Stream::ALL {
            streams.push(connection.save(stream, &stream.name(shard), dir).await?);
        }
    }
    let server = connection.client.server_info().version;
    let manifest = Manifest { version: VERSION, at, server, shards, streams };
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    let part = dir.join("manifest.part");
    let mut file = create(&part)?;
    let done = file.write_all(&text).and_then(|()| file.sync_all());
    done.and_then(|()| fs::rename(&part, dir.join(MANIFEST))).map_err(failed("write into"))?;
    Ok(manifest)
}

/// Restores a backup into a NATS server that has no streams of brigade. If a stream cannot be restored, deletes
/// all streams that were already restored.
pub async fn restore(options: &NatsOptions, dir: &Path) -> Result<Vec<Restored>, BackupError> {
    let manifest = check(dir)?;
    let connection = NatsConnection::open(options).await?;
    for saved in &manifest.streams {
        if connection.info(&saved.name).await?.is_some() {
            return Err(BackupError::StreamExists { name: saved.name.clone() });
        }
    }
    let mut restored = Vec::new();
    for saved in &manifest.streams {
        match connection.restore_stream(saved, dir, options.settings.replicas).await {
            Ok(done) => restored.push(done),
            Err(error) => {
                for saved in &manifest.streams {
                    connection.drop_stream(&saved.name).await;
                }
                return Err(error);
            }
        }
    }
    Ok(restored)
}

/// Checks that a backup is complete and undamaged.
pub fn check(dir: &Path) -> Result<Manifest, BackupError> {
    let failed = |doing| move |source| BackupError::Io { doing, path: dir.to_owned(), source };
    let text = match fs::read(dir.join(MANIFEST)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::NoManifest { path: dir.to_owned() });
        }
        read => read.map_err(failed("read"))?,
    };
    let changed = |name: &str| BackupError::Changed { path: dir.join(name) };
    let version: Value = serde_json::from_slice(&text).map_err(|_| changed(MANIFEST))?;
    let version = version.get("version").and_then(Value::as_u64).unwrap_or_default();
    if version != u64::from(VERSION) {
        return Err(BackupError::Version { found: u32::try_from(version).unwrap_or(u32::MAX) });
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| changed(MANIFEST))?;
    for snapshot in manifest.streams.iter().filter_map(|saved| saved.file.as_ref()) {
        let mut file = File::open(dir.join(&snapshot.name)).map_err(failed("read from"))?;
        let mut hash = Sha256::new();
        let bytes = io::copy(&mut file, &mut hash).map_err(failed("read from"))?;
        if (bytes, HEXLOWER.encode(&hash.finalize())) != (snapshot.bytes, snapshot.sha256.clone()) {
            return Err(changed(&snapshot.name));
        }
    }
    Ok(manifest)
}

/// Creates a file that only its owner can read, because a backup holds the mail of all members.
fn create(path: &Path) -> Result<File, BackupError> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    created.map_err(|source| BackupError::Io { doing: "create", path: path.to_owned(), source })
}

/// The server's answer to a snapshot request, sent before the snapshot itself.
#[derive(Deserialize)]
struct SnapshotStart {
    config: Value,
    state: StreamState,
}

#[derive(Deserialize)]
struct RestoreTarget {
    deliver_subject: String,
}

impl NatsConnection {
    async fn save(
        &self,
        stream: Stream,
        name: &str,
        dir: &Path,
    ) -> Result<SavedStream, BackupError> {
        let doing = format!("take a snapshot of {name}");
        if stream == Stream::Live {
            let info = self.info(name).await?.ok_or(BackupError::NoStreams)?;
            let (config, state) = (info.config, StreamState::default());
            return Ok(SavedStream { name: name.to_owned(), config, state, file: None });
        }
        let broken = |error: &dyn std::fmt::Display| {
            NatsError::Server(error.to_string()).while_doing(&doing)
        };
        let inbox = self.client.new_inbox();
        let mut pieces = self.client.subscribe(inbox.clone()).await.map_err(|e| broken(&e))?;
        let api = format!("$JS.API.STREAM.SNAPSHOT.{name}");
        let body = json!({ "deliver_subject": inbox, "no_consumers": true, "chunk_size": CHUNK });
        let start: SnapshotStart = self.command(&api, &body, &doing).await?;

        let file_name = format!("{name}.tar.s2");
        let path = dir.join(&file_name);
        let mut file = create(&path)?;
        let failed = |source| BackupError::Io { doing: "write", path: path.clone(), source };
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        loop {
            let piece = tokio::time::timeout(LONG_TIMEOUT, pieces.next()).await;
            let Ok(Some(piece)) = piece else {
                return Err(broken(&"the server stopped before the end of the snapshot").into());
            };
            if piece.payload.is_empty() {
                // An empty message ends the snapshot. The status tells whether the snapshot is complete.
                if piece.status.is_some_and(|status| status.as_u16() != END) {
                    return Err(broken(&piece.description.unwrap_or_default()).into());
                }
                break;
            }
            file.write_all(&piece.payload).map_err(failed)?;
            hash.update(&piece.payload);
            bytes += piece.payload.len() as u64;
            if let Some(reply) = piece.reply {
                self.client.publish(reply, Bytes::new()).await.map_err(|e| broken(&e))?;
            }
        }
        file.sync_all().map_err(failed)?;
        let sha256 = HEXLOWER.encode(&hash.finalize());
        let file = Some(Snapshot { name: file_name, bytes, sha256 });
        Ok(SavedStream { name: name.to_owned(), config: start.config, state: start.state, file })
    }

    /// Sends a command that creates a stream. Shortly after the start of a cluster, its servers do not know yet that the others are
    /// online. The command is repeated until they do.
    async fn place<T: DeserializeOwned>(
        &self,
        api: &str,
        body: &Value,
        doing: &str,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        loop {
            match self.command(api, body, doing).await {
                Err(StoreError::Engine { source, .. })
                    if source.to_string().contains(NO_PLACE) && began.elapsed() < PLACED_WITHIN =>
                {
                    tokio::time::sleep(PLACE_INTERVAL).await;
                }
                result => return result,
            }
        }
    }

    async fn restore_stream(
        &self,
        saved: &SavedStream,
        dir: &Path,
        replicas: Option<usize>,
    ) -> Result<Restored, BackupError> {
        let SavedStream { name, state, .. } = saved;
        let doing = format!("restore the stream {name}");
        let mut config = saved.config.clone();
        let is_cluster = self.client.server_info().cluster.is_some();
        // The backup may come from a cluster. A single server can hold only one replica.
        let replicas = replicas.map(|replicas| json!(replicas));
        let replicas = replicas.or_else(|| (!is_cluster).then(|| json!(1)));
        if let (Some(config), Some(replicas)) = (config.as_object_mut(), replicas) {
            config.insert("num_replicas".into(), replicas);
        }
        let Some(snapshot) = &saved.file else {
            let api = format!("$JS.API.STREAM.CREATE.{name}");
            let restored: StreamInfo = self.place(&api, &config, &doing).await?;
            return Ok(Restored::new(name, &restored.state, 0));
        };
        let api = format!("$JS.API.STREAM.RESTORE.{name}");
        let body = json!({ "config": config, "state": state });
        let RestoreTarget { deliver_subject } = self.place(&api, &body, &doing).await?;
        let path = dir.join(&snapshot.name);
        let failed = |source| BackupError::Io { doing: "read", path: path.clone(), source };
        let mut file = File::open(&path).map_err(failed)?;
        let mut piece = vec![0; CHUNK];
        let restored: StreamInfo = loop {
            let length = file.read(&mut piece).map_err(failed)?;
            let bytes = piece.get(..length).unwrap_or_default();
            let answer = self.send_payload(deliver_subject.clone(), bytes.to_vec(), &doing).await?;
            if length == 0 {
                break self.parse_answer(&answer, &doing)?;
            }
            if !answer.is_empty() {
                // The server's answer to a piece is empty unless there is an error.
                let _no_error: Value = self.parse_answer(&answer, &doing)?;
            }
        };
        let missing = state.messages.saturating_sub(restored.state.messages);
        let differs = restored.state.last_seq < state.last_seq
            || (missing > 0 && !is_older(state.first_ts, &config));
        if differs {
            return Err(BackupError::Differs {
                name: name.clone(),
                found: restored.state.messages,
                last: restored.state.last_seq,
                saved: state.messages,
                upto: state.last_seq,
            });
        }
        // Right after the restore, perhaps only one server has the data. Wait for the others.
        self.wait_for_replicas(name).await?;
        Ok(Restored::new(name, &restored.state, missing))
    }

    /// Deletes a stream after a failed restore.
    async fn drop_stream(&self, name: &str) {
        let api = format!("$JS.API.STREAM.DELETE.{name}");
        // Ignore errors: the restore may have failed before it created this stream.
        let _missing: Result<Value, _> = self.command(&api, &json!({}), "undo the restore").await;
    }
}

impl Restored {
    fn new(name: &str, state: &StreamState, too_old: u64) -> Self {
        let StreamState { messages, last_seq, .. } = *state;
        Self { name: name.to_owned(), messages, last_seq, too_old }
    }
}

/// Whether the first message of a stream is older than the stream's retention period.
fn is_older(first: Option<Timestamp>, config: &Value) -> bool {
    let age = config.get("max_age").and_then(Value::as_u64).unwrap_or_default();
    let age = Duration::from_nanos(age);
    let (Some(first), false) = (first, age.is_zero()) else { return false };
    Timestamp::now().duration_since(first).unsigned_abs() >= age
}
