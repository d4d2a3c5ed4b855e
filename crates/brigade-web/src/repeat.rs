//! Changes that a client sends again with the same `Idempotency-Key` are made once.
//!
//! The key is stored before the change, and the response after it. If the server is killed in between, the effect is not known: the
//! next request with the key gets an error, and the client has to read the state.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::access::digest;
use crate::problem::{Problem, ProblemKind};
use crate::reply::Reply;

/// The longest key.
const MAX_KEY: usize = 200;
/// How long a response is kept.
const LIFETIME: Duration = Duration::from_hours(24);

/// The responses to changes with a key.
#[derive(Clone, Debug)]
pub(crate) struct RepeatedChanges {
    dir: PathBuf,
}

/// The stored state of a key.
#[derive(Debug, Serialize, Deserialize)]
struct KeyRecord {
    /// Distinguishes the change from others.
    change: String,
    /// The response; `None` while the change is being made.
    response: Option<(u16, String)>,
}

/// A change that is being made. If it is dropped without a response, the effect is not known.
#[derive(Debug)]
pub(crate) struct BegunChange {
    path: PathBuf,
    change: String,
}

/// The handling of a change that has a key.
#[derive(Debug)]
pub(crate) enum KeyedChange {
    /// Make the change, and store its response.
    New(BegunChange),
    /// Send this response.
    Done(Reply),
}

impl RepeatedChanges {
    pub(crate) fn of_state_dir(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("web/changes") }
    }

    /// Begins a change. `token` is the name of the client's token, `change` its method, path and content.
    pub(crate) fn begin(
        &self,
        token: &str,
        key: &str,
        change: &str,
    ) -> Result<KeyedChange, Problem> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(Problem::invalid(format!("a key has 1 to {MAX_KEY} characters")));
        }
        let failed = |error: io::Error| {
            Problem::new(ProblemKind::Failed, format!("cannot store the key: {error}"))
        };
        let change = digest(change);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
        let path = self.dir.join(format!("{}.json", digest(&format!("{token}\n{key}"))));
        let begun = KeyRecord { change: change.clone(), response: None };
        // Only one of several requests at the same time can create the file.
        match write_new(&path, &begun) {
            Ok(()) => return Ok(KeyedChange::New(BegunChange { path, change })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let stored = fs::read(&path).map_err(failed)?;
        let conflict = |detail: &str| Problem::new(ProblemKind::Conflict, detail);
        let stored: KeyRecord = serde_json::from_slice(&stored)
            .map_err(|_| conflict("a change with this key has begun; its effect is not known"))?;
        if stored.change != change {
            return Err(conflict("the key was used for another change"));
        }
        let Some((status, body)) = stored.response else {
            return Err(conflict("a change with this key has begun; its effect is not known")
                .hint("read the state, then repeat the change with another key if it is missing"));
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        Ok(KeyedChange::Done(Reply::stored(status, body.into_bytes())))
    }

    /// Removes the responses that are too old to be asked for.
    pub(crate) fn remove_old(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| now.duration_since(changed).ok());
            if age.is_some_and(|age| age > LIFETIME) {
                let _removed_or_next_time = fs::remove_file(entry.path());
            }
        }
    }
}

impl BegunChange {
    /// Stores the response. A change that was refused had no effect, so its key can be used again.
    pub(crate) fn end(self, result: &Result<Reply, Problem>) {
        let stored = match result {
            Err(problem) if problem.status < 500 => fs::remove_file(&self.path),
            // The effect of a failure is not known.
            Err(_) => Ok(()),
            Ok(reply) => {
                let body = String::from_utf8_lossy(reply.body()).into_owned();
                let response = Some((reply.status().as_u16(), body));
                let record = KeyRecord { change: self.change, response };
                let temp = self.path.with_extension("tmp");
                write_new(&temp, &record).and_then(|()| fs::rename(&temp, &self.path))
            }
        };
        if let Err(error) = stored {
            tracing::warn!(%error, "cannot store the response of a change");
        }
    }
}

fn write_new(path: &Path, record: &KeyRecord) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        _dir: tempfile::TempDir,
        changes: RepeatedChanges,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let changes = RepeatedChanges::of_state_dir(dir.path());
        Fixture { _dir: dir, changes }
    }

    fn begun(changes: &RepeatedChanges, key: &str) -> BegunChange {
        match changes.begin("t", key, "POST /x {}").unwrap() {
            KeyedChange::New(begun) => begun,
            KeyedChange::Done(_) => panic!("the change was made before"),
        }
    }

    #[test]
    fn a_repeated_change_gets_the_first_response() {
        let Fixture { _dir, changes } = fixture();
        let reply = Reply::bytes(b"{\"n\":1}".to_vec()).created();
        begun(&changes, "k").end(&Ok(reply));
        let KeyedChange::Done(reply) = changes.begin("t", "k", "POST /x {}").unwrap() else {
            panic!("the change would be made twice");
        };
        assert_eq!((reply.status().as_u16(), reply.body()), (201, b"{\"n\":1}".as_slice()));
        let other = changes.begin("t", "k", "POST /y {}").unwrap_err();
        assert_eq!(other.status, 409);
        // Other tokens and other keys have their own changes.
        assert!(matches!(changes.begin("u", "k", "POST /x {}"), Ok(KeyedChange::New(_))));
        assert!(matches!(changes.begin("t", "l", "POST /x {}"), Ok(KeyedChange::New(_))));
    }

    #[test]
    fn a_change_with_an_unknown_effect_is_not_made_again() {
        let Fixture { _dir, changes } = fixture();
        drop(begun(&changes, "killed"));
        assert_eq!(changes.begin("t", "killed", "POST /x {}").unwrap_err().status, 409);
        begun(&changes, "failed").end(&Err(Problem::new(ProblemKind::Failed, "disk")));
        assert_eq!(changes.begin("t", "failed", "POST /x {}").unwrap_err().status, 409);
    }

    #[test]
    fn a_refused_change_can_be_made_later() {
        let Fixture { _dir, changes } = fixture();
        begun(&changes, "k").end(&Err(Problem::invalid("no")));
        begun(&changes, "k");
    }

    #[test]
    fn old_responses_are_removed() {
        let Fixture { _dir, changes } = fixture();
        begun(&changes, "k").end(&Ok(Reply::bytes(b"1".to_vec())));
        changes.remove_old(SystemTime::now());
        assert!(matches!(changes.begin("t", "k", "POST /x {}"), Ok(KeyedChange::Done(_))));
        changes.remove_old(SystemTime::now() + LIFETIME + Duration::from_secs(1));
        begun(&changes, "k");
    }
}
