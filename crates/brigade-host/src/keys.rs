//! The keys with which native teammates verify messages from their lead. Each key is in a file that only the
//! file's owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::clock::Clock;
use brigade_core::signature::{NoRandomness, NotALeadKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_wire::name::MemberName;
use thiserror::Error;
use uuid::Uuid;

/// The keys of the members of one team.
#[derive(Clone, Debug)]
pub struct KeyRing {
    dir: PathBuf,
}

/// An error from reading or creating a key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The key file cannot be read or written.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The key file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// Other users can read the key file.
    #[error("other users can read the key {}; remove it, and brigade creates a new one", .path.display())]
    Exposed {
        /// The key file.
        path: PathBuf,
    },
    /// The file does not contain a key.
    #[error("{} is not a key; remove it, and brigade creates a new one", .path.display())]
    Broken {
        /// The key file.
        path: PathBuf,
        /// Why the contents are not a key.
        source: NotALeadKey,
    },
    /// The system provides no random numbers.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl KeyRing {
    /// Creates a key ring for the members whose folders are in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the member's key. Creates the key if the member has none.
    pub fn key(&self, member: &MemberName, clock: &dyn Clock) -> Result<SigningKey, KeyError> {
        if let Some(key) = self.find(member)? {
            return Ok(key);
        }
        let made = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
        let key = SigningKey::generate(made)?;
        self.save(member, &key)?;
        // If another process saved a key for this member first, return that key.
        Ok(self.find(member)?.unwrap_or(key))
    }

    fn path(&self, member: &MemberName) -> PathBuf {
        self.dir.join(member.as_str()).join("key")
    }

    fn find(&self, member: &MemberName) -> Result<Option<SigningKey>, KeyError> {
        let path = self.path(member);
        let failed = |doing| {
            let path = path.clone();
            move |source| KeyError::Io { doing, path, source }
        };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read")(error)),
        };
        let mode = fs::metadata(&path).map_err(failed("read"))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path });
        }
        let key = SigningKey::from_bytes(&bytes);
        key.map(Some).map_err(|source| KeyError::Broken { path, source })
    }

    /// Saves a key atomically, unless the member already has a key.
    fn save(&self, member: &MemberName, key: &SigningKey) -> Result<(), KeyError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| KeyError::Io { doing, path, source }
        };
        let dir = self.dir.join(member.as_str());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(failed("create", &dir))?;
        let draft = dir.join(format!("key.{}", Uuid::new_v4()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let mut file = file.map_err(failed("create", &draft))?;
        let written = file.write_all(&key.to_bytes()).and_then(|()| file.sync_all());
        let path = self.path(member);
        let linked = written.and_then(|()| match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
        let removed = fs::remove_file(&draft);
        linked.and(removed).map_err(failed("write", &path))
    }
}

impl Signer for KeyRing {
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Option<String> {
        match self.find(to) {
            Ok(key) => key?.sign(message),
            Err(error) => {
                tracing::warn!(member = %to, %error, "cannot sign the message");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brigade_core::clock::SystemClock;

    use super::*;

    fn ring(dir: &tempfile::TempDir) -> KeyRing {
        KeyRing::new(dir.path().to_owned())
    }

    #[test]
    fn a_key_is_created_once_per_member_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let (bob, alice) = ("bob".parse().unwrap(), "alice".parse().unwrap());
        let key = ring.key(&bob, &SystemClock).unwrap();
        assert_eq!(ring.key(&bob, &SystemClock).unwrap().verify_key(), key.verify_key());
        assert_ne!(ring.key(&alice, &SystemClock).unwrap().verify_key(), key.verify_key());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = dir.path().join("bob");
        assert_eq!((mode(&ring.path(&bob)), mode(&folder)), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_key_readable_by_other_users_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let bob = "bob".parse().unwrap();
        ring.key(&bob, &SystemClock).unwrap();
        fs::set_permissions(ring.path(&bob), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(ring.key(&bob, &SystemClock), Err(KeyError::Exposed { .. })));
    }

    #[test]
    fn concurrent_creators_get_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let bob: MemberName = "bob".parse().unwrap();
        let keys = std::thread::scope(|scope| {
            let make = || ring.key(&bob, &SystemClock).unwrap().verify_key();
            let makers: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
}
