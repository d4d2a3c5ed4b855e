//! Everything in the engine as files, and back into an empty one.
//!
//! A backup is a folder: the snapshot of each stream as the server makes it, and a manifest that is
//! written last. Who finds a manifest finds the files it names, and can tell whether they are whole.
//! The snapshots are taken one after the other, so each holds all that was acknowledged before the
//! backup began, and some of what came meanwhile.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use brigade_core::clock::Timestamp;
//! use brigade_nats::Options;
//! use brigade_nats::backup::{BackupError, backup, check};
//!
//! async fn keep(options: &Options) -> Result<(), BackupError> {
//!     let dir = Path::new("/backup/monday");
//!     backup(options, dir, Timestamp::now()).await?;
//!     check(dir).map(drop)
//! }
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_core::store::StoreError;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::engine::Engine;
use crate::error::Trouble;
use crate::layout::Stream;
use crate::measures::{Info, LONG, State};
use crate::options::Options;

/// The form of the folder.
const VERSION: u32 = 1;
/// What tells that a folder is a backup.
const MANIFEST: &str = "manifest.json";
/// The status of the last message of a snapshot that is whole.
const END: u16 = 204;
/// How much is asked for, or given, at once.
const CHUNK: usize = 256 * 1024;

/// What a backup holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the folder.
    pub version: u32,
    /// When it was begun.
    pub at: Timestamp,
    /// The version of the server it was taken from.
    pub server: String,
    /// Over how many shards the teams are spread.
    pub shards: u16,
    /// Its streams, in the order in which they are restored.
    pub streams: Vec<Saved>,
}

/// A stream in a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// Its settings, as the server writes them.
    pub config: Value,
    /// What the server said was in it when the snapshot was begun.
    pub state: State,
    /// The snapshot; `None` for what is of the moment, and is made empty again.
    pub file: Option<Snapshot>,
}

/// A file of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of what it holds.
    pub sha256: String,
}

/// A stream that was restored.
#[derive(Clone, Debug, Serialize)]
pub struct Restored {
    /// Its name.
    pub name: String,
    /// How many messages are in it.
    pub messages: u64,
    /// The number of its last message.
    pub last_seq: u64,
    /// How many messages of the backup are older than the stream keeps them, and gone.
    pub too_old: u64,
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The engine did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file system did not.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There is something there already.
    #[error("{} is not empty; a backup goes into a folder of its own", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to back up.
    #[error("brigade has no streams in this engine")]
    NoStreams,
    /// The folder is no backup, or one that did not get to its end.
    #[error("{} is no whole backup: it has no {MANIFEST}", path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// It was made by a later brigade.
    #[error("this backup has form {found}; this brigade reads form {VERSION}")]
    Version {
        /// Its form.
        found: u32,
    },
    /// A file of it is not what it was.
    #[error("{} is not what the manifest says", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The engine is not empty.
    #[error("there is a stream {name} already; a backup is restored into an empty engine")]
    StreamExists {
        /// Which.
        name: String,
    },
    /// What was restored is not what was saved.
    #[error(
        "{name} has {found} messages up to number {last} after the restore, and should have {saved} up to {upto}"
    )]
    Differs {
        /// Which stream.
        name: String,
        /// Messages found.
        found: u64,
        /// Their last number.
        last: u64,
        /// Messages saved.
        saved: u64,
        /// Their last number.
        upto: u64,
    },
}

/// Saves every stream of the engine into a folder that is empty, or not there yet.
pub async fn backup(options: &Options, dir: &Path, at: Timestamp) -> Result<Manifest, BackupError> {
    let engine = Engine::open(options).await?;
    if !engine.has_streams().await? {
        return Err(BackupError::NoStreams);
    }
    let layout = engine.layout().await?.ok_or(BackupError::NoStreams)?;
    let failed = |doing| move |source| BackupError::Io { doing, path: dir.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make"))?;
    if fs::read_dir(dir).map_err(failed("read"))?.next().is_some() {
        return Err(BackupError::NotEmpty { path: dir.to_owned() });
    }
    let mut streams = Vec::new();
    // The shards backwards: the stream that tells of the layout is the last to be restored.
    for shard in (0..layout.shards).rev() {
        for stream in Stream::ALL {
            streams.push(engine.save(stream, &stream.name(shard), dir).await?);
        }
    }
    let server = engine.client.server_info().version;
    let manifest = Manifest { version: VERSION, at, server, shards: layout.shards, streams };
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    let draft = dir.join("manifest.part");
    let mut file = create(&draft)?;
    let done = file.write_all(&text).and_then(|()| file.sync_all());
    done.and_then(|()| fs::rename(&draft, dir.join(MANIFEST))).map_err(failed("write into"))?;
    Ok(manifest)
}

/// Puts a backup into an engine that has no streams of brigade's. If it does not succeed, what it made
/// is taken away again.
pub async fn restore(options: &Options, dir: &Path) -> Result<Vec<Restored>, BackupError> {
    let manifest = check(dir)?;
    let engine = Engine::open(options).await?;
    for saved in &manifest.streams {
        if engine.info(&saved.name).await?.is_some() {
            return Err(BackupError::StreamExists { name: saved.name.clone() });
        }
    }
    let mut restored = Vec::new();
    for saved in &manifest.streams {
        match engine.bring_back(saved, dir, options.settings.replicas).await {
            Ok(done) => restored.push(done),
            Err(error) => {
                for saved in &manifest.streams {
                    engine.drop_stream(&saved.name).await;
                }
                return Err(error);
            }
        }
    }
    Ok(restored)
}

/// Looks whether a backup is whole.
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

/// A new file that only its owner can read: it holds everybody's mail.
fn create(path: &Path) -> Result<File, BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|source| BackupError::Io { doing: "make", path: path.to_owned(), source })
}

/// What the server says when a snapshot begins.
#[derive(Deserialize)]
struct Begins {
    config: Value,
    state: State,
}

#[derive(Deserialize)]
struct Deliver {
    deliver_subject: String,
}

impl Engine {
    async fn save(&self, stream: Stream, name: &str, dir: &Path) -> Result<Saved, BackupError> {
        let doing = format!("take a snapshot of {name}");
        if stream == Stream::Live {
            let info = self.info(name).await?.ok_or(BackupError::NoStreams)?;
            let (config, state) = (info.config, State::default());
            return Ok(Saved { name: name.to_owned(), config, state, file: None });
        }
        let broken = |error: &dyn std::fmt::Display| Trouble::Said(error.to_string()).doing(&doing);
        let inbox = self.client.new_inbox();
        let mut pieces = self.client.subscribe(inbox.clone()).await.map_err(|e| broken(&e))?;
        let api = format!("$JS.API.STREAM.SNAPSHOT.{name}");
        let body = json!({ "deliver_subject": inbox, "no_consumers": true, "chunk_size": CHUNK });
        let begins: Begins = self.command(&api, &body, &doing).await?;

        let file_name = format!("{name}.tar.s2");
        let path = dir.join(&file_name);
        let mut file = create(&path)?;
        let failed = |source| BackupError::Io { doing: "write", path: path.clone(), source };
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        loop {
            let piece = tokio::time::timeout(LONG, pieces.next()).await;
            let Ok(Some(piece)) = piece else {
                return Err(broken(&"the server stopped in the middle of it").into());
            };
            if piece.payload.is_empty() {
                // The end; a snapshot that broke off says so here.
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
        Ok(Saved { name: name.to_owned(), config: begins.config, state: begins.state, file })
    }

    async fn bring_back(
        &self,
        saved: &Saved,
        dir: &Path,
        replicas: Option<usize>,
    ) -> Result<Restored, BackupError> {
        let Saved { name, state, .. } = saved;
        let doing = format!("restore the stream {name}");
        let mut config = saved.config.clone();
        let is_cluster = self.client.server_info().cluster.is_some();
        // What stood on three servers goes onto one, where there is one.
        let replicas = replicas.map(|replicas| json!(replicas));
        let replicas = replicas.or_else(|| (!is_cluster).then(|| json!(1)));
        if let (Some(config), Some(replicas)) = (config.as_object_mut(), replicas) {
            config.insert("num_replicas".into(), replicas);
        }
        let Some(snapshot) = &saved.file else {
            let api = format!("$JS.API.STREAM.CREATE.{name}");
            let made: Info = self.command(&api, &config, &doing).await?;
            return Ok(Restored::of(name, &made.state, 0));
        };
        let api = format!("$JS.API.STREAM.RESTORE.{name}");
        let body = json!({ "config": config, "state": state });
        let Deliver { deliver_subject } = self.command(&api, &body, &doing).await?;
        let path = dir.join(&snapshot.name);
        let failed = |source| BackupError::Io { doing: "read", path: path.clone(), source };
        let mut file = File::open(&path).map_err(failed)?;
        let mut piece = vec![0; CHUNK];
        let made: Info = loop {
            let length = file.read(&mut piece).map_err(failed)?;
            let bytes = piece.get(..length).unwrap_or_default();
            let answer = self.deliver(deliver_subject.clone(), bytes.to_vec(), &doing).await?;
            if length == 0 {
                break self.understood(&answer, &doing)?;
            }
            if !answer.is_empty() {
                // Between the pieces only what goes wrong is told.
                let _none: Value = self.understood(&answer, &doing)?;
            }
        };
        let missing = state.messages.saturating_sub(made.state.messages);
        let differs = made.state.last_seq < state.last_seq
            || (missing > 0 && !is_older(state.first_ts, &config));
        if differs {
            return Err(BackupError::Differs {
                name: name.clone(),
                found: made.state.messages,
                last: made.state.last_seq,
                saved: state.messages,
                upto: state.last_seq,
            });
        }
        // Until then the one that was given it may be the only one that has it.
        self.on_every_server(name).await?;
        Ok(Restored::of(name, &made.state, missing))
    }

    /// Takes a stream away that was not there before.
    async fn drop_stream(&self, name: &str) {
        let api = format!("$JS.API.STREAM.DELETE.{name}");
        // It may not have got so far.
        let _not_there: Result<Value, _> = self.command(&api, &json!({}), "take it back").await;
    }
}

impl Restored {
    fn of(name: &str, state: &State, too_old: u64) -> Self {
        let State { messages, last_seq, .. } = *state;
        Self { name: name.to_owned(), messages, last_seq, too_old }
    }
}

/// Whether the first message of a stream is older than it is kept.
fn is_older(first: Option<Timestamp>, config: &Value) -> bool {
    let age = config.get("max_age").and_then(Value::as_u64).unwrap_or_default();
    let age = Duration::from_nanos(age);
    let (Some(first), false) = (first, age.is_zero()) else { return false };
    Timestamp::now().duration_since(first).unsigned_abs() >= age
}
