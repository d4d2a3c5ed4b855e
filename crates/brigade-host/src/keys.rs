//! The keys with which native teammates verify messages from their lead. Each key is in a file that only the
//! file's owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brigade_core::clock::{Clock, Timestamp, wire_time};
use brigade_core::signature::{KeyAhead, KeyTime, NoRandomness, NotALeadKey, Signer, SigningKey};
use brigade_core::store::Outgoing;
use brigade_wire::name::MemberName;
use thiserror::Error;
use uuid::Uuid;

use crate::leftovers;

/// The name of a member's key file.
const KEY: &str = "key";

/// The keys of the members of one team.
#[derive(Clone, Debug)]
pub struct KeyRing {
    dir: PathBuf,
    /// Where to look for the key of a member that has none in `dir`.
    other_dir: Option<PathBuf>,
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
        Self { dir, other_dir: None }
    }

    /// Returns this key ring with the keys of another one added. If a member has a key in both, the key of this one counts.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { other_dir: Some(other.dir), ..self }
    }

    /// Returns the key of a member that brigade runs. Creates the key if the member has none.
    ///
    /// The key has no time, so the member accepts the lead's messages whatever the clock says. Call this only while
    /// the member's program is not running.
    pub fn member_key(&self, member: &MemberName) -> Result<SigningKey, KeyError> {
        let key = self.find_or_create(member, KeyTime::Any)?;
        if key.time() == KeyTime::Any {
            return Ok(key);
        }
        let key = key.with_time(KeyTime::Any);
        self.replace(member, &key)?;
        Ok(key)
    }

    /// Returns the key of a member that Claude Code runs, with a time that is not later than now. Creates the key if
    /// the member has none. Also returns the previous time of the key, if that was ahead of the clock.
    ///
    /// Claude Code rejects messages that are older than the key. Call this only while the member's program is not
    /// running.
    pub fn native_key(
        &self,
        member: &MemberName,
        clock: &dyn Clock,
    ) -> Result<(SigningKey, Option<Timestamp>), KeyError> {
        let now = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
        let key = self.find_or_create(member, KeyTime::Made(now))?;
        let ahead = match key.time() {
            KeyTime::Made(made) if made <= now => return Ok((key, None)),
            KeyTime::Made(made) => i64::try_from(made).ok(),
            KeyTime::Any => None,
        };
        let key = key.with_time(KeyTime::Made(now));
        self.replace(member, &key)?;
        Ok((key, ahead.and_then(|millis| Timestamp::from_millisecond(millis).ok())))
    }

    /// If the member would reject a message sent now, because its key is ahead of the clock, returns the time of the
    /// key.
    pub fn ahead(&self, member: &MemberName, clock: &dyn Clock) -> Option<Timestamp> {
        self.find(member).ok().flatten()?.is_ahead_of(&wire_time(clock.now()))
    }

    fn find_or_create(&self, member: &MemberName, time: KeyTime) -> Result<SigningKey, KeyError> {
        if let Some(key) = self.find(member)? {
            return Ok(key);
        }
        let key = SigningKey::generate(time)?;
        self.save(member, &key)?;
        // If another process saved a key for this member first, return that key.
        Ok(self.find(member)?.unwrap_or(key))
    }

    fn path(&self, member: &MemberName) -> PathBuf {
        self.dir.join(member.as_str()).join(KEY)
    }

    fn find(&self, member: &MemberName) -> Result<Option<SigningKey>, KeyError> {
        match (Self::read(self.path(member))?, &self.other_dir) {
            (None, Some(dir)) => Self::read(dir.join(member.as_str()).join(KEY)),
            (key, _) => Ok(key),
        }
    }

    fn read(path: PathBuf) -> Result<Option<SigningKey>, KeyError> {
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
        self.write(member, key, |draft, path| match fs::hard_link(draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::remove_file(draft),
            linked => linked.and_then(|()| fs::remove_file(draft)),
        })
    }

    /// Replaces the member's key atomically.
    fn replace(&self, member: &MemberName, key: &SigningKey) -> Result<(), KeyError> {
        self.write(member, key, |draft, path| fs::rename(draft, path))
    }

    /// Writes a key to a temporary file, and lets `put` move that file to its place.
    fn write(
        &self,
        member: &MemberName,
        key: &SigningKey,
        put: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), KeyError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| KeyError::Io { doing, path, source }
        };
        let dir = self.dir.join(member.as_str());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(failed("create", &dir))?;
        leftovers::sweep(&dir);
        // Several threads of this process may write a key of this member.
        let draft = leftovers::temp(&dir.join(format!("key.{}.new", Uuid::new_v4())));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let mut file = file.map_err(failed("create", &draft))?;
        let written = file.write_all(&key.to_bytes()).and_then(|()| file.sync_all());
        let path = self.path(member);
        let put = written.and_then(|()| put(&draft, &path));
        if put.is_err() {
            let _best_effort = fs::remove_file(&draft);
        }
        put.map_err(failed("write", &path))
    }
}

impl Signer for KeyRing {
    fn sign(&self, to: &MemberName, message: &Outgoing) -> Result<Option<String>, KeyAhead> {
        match self.find(to) {
            Ok(None) => Ok(None),
            Ok(Some(key)) => match key.is_ahead_of(&message.timestamp) {
                Some(made) => Err(KeyAhead { to: to.clone(), made }),
                None => Ok(key.sign(message)),
            },
            Err(error) => {
                tracing::warn!(member = %to, %error, "cannot sign the message");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brigade_core::signature::LeadKey;
    use brigade_core::wire::inbox::with_message;
    use jiff::SignedDuration;

    use super::*;

    /// A clock that stands still.
    #[derive(Debug)]
    struct FixedClock(Timestamp);

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    fn ring(dir: &tempfile::TempDir) -> KeyRing {
        KeyRing::new(dir.path().to_owned())
    }

    /// Returns whether a member with this key accepts a message that the lead sends now.
    fn accepts(ring: &KeyRing, member: &MemberName, key: &SigningKey, now: Timestamp) -> bool {
        let message = Outgoing {
            msg_id: "an id".into(),
            from: "team-lead".into(),
            text: "an order".into(),
            summary: None,
            timestamp: wire_time(now),
            color: None,
            msg_v: Some(1),
            lead_sig: None,
            team_created: 0,
        };
        let Ok(lead_sig) = ring.sign(member, &message) else { return false };
        let entry = serde_json::to_vec(&Outgoing { lead_sig, ..message }.to_inbox_entry()).unwrap();
        let known: LeadKey = key.verify_key().parse().unwrap();
        with_message(&entry, |message| known.verifies(&message.unwrap())).unwrap()
    }

    #[test]
    fn a_key_is_created_once_per_member_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let (bob, alice) = ("bob".parse().unwrap(), "alice".parse().unwrap());
        let key = ring.member_key(&bob).unwrap();
        assert_eq!(ring.member_key(&bob).unwrap().verify_key(), key.verify_key());
        assert_ne!(ring.member_key(&alice).unwrap().verify_key(), key.verify_key());
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
        ring.member_key(&bob).unwrap();
        fs::set_permissions(ring.path(&bob), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(ring.member_key(&bob), Err(KeyError::Exposed { .. })));
    }

    #[test]
    fn concurrent_creators_get_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let ring = ring(&dir);
        let bob: MemberName = "bob".parse().unwrap();
        let keys = std::thread::scope(|scope| {
            let make = || ring.member_key(&bob).unwrap().verify_key();
            let makers: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    /// Finding 26: the lead keeps its authority when the clock is set forward or back.
    #[test]
    fn finding_26_a_member_accepts_its_lead_after_the_clock_was_changed() {
        let (hour, day) = (SignedDuration::from_hours(1), SignedDuration::from_hours(24));
        let now: Timestamp = "2026-11-14T12:00:00Z".parse().unwrap();
        let bob: MemberName = "bob".parse().unwrap();
        for made in [now - day, now - hour, now, now + hour, now + day] {
            let dir = tempfile::tempdir().unwrap();
            let ring = ring(&dir);
            let (native, ahead) = ring.native_key(&bob, &FixedClock(made)).unwrap();
            assert_eq!(ahead, None);
            // Claude Code rejects what is older than its key, so nothing may claim that it was sent.
            assert_eq!(accepts(&ring, &bob, &native, now), made <= now, "{made}");
            assert_eq!(ring.ahead(&bob, &FixedClock(now)), (made > now).then_some(made));
            // When the member starts again, its key has a time that is not ahead of the clock.
            let (native, ahead) = ring.native_key(&bob, &FixedClock(now)).unwrap();
            assert_eq!(ahead, (made > now).then_some(made));
            assert!(accepts(&ring, &bob, &native, now), "{made}");
            // For a member that brigade runs, the key has no time.
            let key = ring.member_key(&bob).unwrap();
            assert_eq!(key.time(), KeyTime::Any);
            for sent in [now - day, now - hour, now, now + hour, now + day] {
                assert!(accepts(&ring, &bob, &key, sent), "{made} {sent}");
            }
        }
    }
}
