//! The keys by which native teammates know their lead, one file each, for nobody else to read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::clock::Clock;
use brigade_core::signature::{NoRandomness, NotAKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_wire::name::MemberName;
use thiserror::Error;
use uuid::Uuid;

/// The keys of one team's members.
#[derive(Clone, Debug)]
pub struct KeyRing {
    dir: PathBuf,
}

/// Why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    #[error("cannot {doing} {}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("others can read the key {}; remove it, and a new one is made", .path.display())]
    Exposed { path: PathBuf },
    #[error("{} holds no key; remove it, and a new one is made", .path.display())]
    Broken { path: PathBuf, source: NotAKey },
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl KeyRing {
    /// The keys of the members whose folders are in this one.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The member's key; a new one if it has none.
    pub fn of(&self, member: &MemberName, clock: &dyn Clock) -> Result<SigningKey, KeyError> {
        if let Some(key) = self.find(member)? {
            return Ok(key);
        }
        let made = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
        let key = SigningKey::make(made)?;
        self.keep(member, &key)?;
        // Somebody else may have been faster, and then that is the key.
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
        let mode = fs::metadata(&path).map_err(failed("look at"))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path });
        }
        let key = SigningKey::from_bytes(&bytes);
        key.map(Some).map_err(|source| KeyError::Broken { path, source })
    }

    /// Puts a key where it belongs, whole, unless there is one.
    fn keep(&self, member: &MemberName, key: &SigningKey) -> Result<(), KeyError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| KeyError::Io { doing, path, source }
        };
        let dir = self.dir.join(member.as_str());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(failed("make", &dir))?;
        let draft = dir.join(format!("key.{}", Uuid::new_v4()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let mut file = file.map_err(failed("make", &draft))?;
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
                tracing::warn!(member = %to, %error, "not signed");
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
    fn a_key_is_made_once_and_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let (bob, alice) = ("bob".parse().unwrap(), "alice".parse().unwrap());
        let key = ring.of(&bob, &SystemClock).unwrap();
        assert_eq!(ring.of(&bob, &SystemClock).unwrap().verify_key(), key.verify_key());
        assert_ne!(ring.of(&alice, &SystemClock).unwrap().verify_key(), key.verify_key());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = dir.path().join("bob");
        assert_eq!((mode(&ring.path(&bob)), mode(&folder)), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_key_that_others_could_have_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let bob = "bob".parse().unwrap();
        ring.of(&bob, &SystemClock).unwrap();
        fs::set_permissions(ring.path(&bob), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(ring.of(&bob, &SystemClock), Err(KeyError::Exposed { .. })));
    }

    #[test]
    fn of_many_who_make_a_key_all_have_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let bob: MemberName = "bob".parse().unwrap();
        let keys = std::thread::scope(|scope| {
            let make = || ring.of(&bob, &SystemClock).unwrap().verify_key();
            let makers: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
}
