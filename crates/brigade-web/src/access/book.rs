//! The file with the digests of tokens, login links and sessions.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Secret, TokenKind, digest};

/// How long a login link can be used.
const LINK_LIFETIME: Duration = Duration::from_mins(10);
/// How long a browser stays logged in.
const SESSION_LIFETIME: Duration = Duration::from_hours(24 * 30);
/// The longest name of a token.
const MAX_NAME: usize = 40;
/// The file in brigade's folder for the web server.
const FILE: &str = "access.json";

/// The tokens, login links and sessions of a person.
#[derive(Clone, Debug)]
pub struct AccessBook {
    dir: PathBuf,
}

/// Why a token, a link or a session cannot be added or read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum AccessError {
    #[error("cannot {doing} {}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a file of brigade, or damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("there is already a token {name}")]
    Exists { name: String },
    #[error("there is no token {name}")]
    NoToken { name: String },
    #[error("the name of a token has 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`")]
    BadName,
    #[error("the system has no random numbers")]
    NoRandomness,
}

/// The rights of a request, and the name that the journal records with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessGrant {
    /// The name of the token or of the login link.
    pub name: String,
    /// The rights.
    pub kind: TokenKind,
    /// The value that a browser has to repeat in each change; `None` for tokens of programs.
    pub csrf: Option<String>,
}

/// A token, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRecord {
    /// The name that the person gave to the token.
    pub name: String,
    /// The rights of the token.
    pub kind: TokenKind,
    /// When the token was added.
    pub created: Timestamp,
    /// When a link or a session ends. Tokens do not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    #[serde(rename = "sha256")]
    #[schemars(skip)]
    digest: String,
}

/// A new secret with its record.
#[derive(Clone, Debug)]
pub struct IssuedSecret {
    /// The secret, which is not stored.
    pub secret: Secret,
    /// Its record.
    pub record: TokenRecord,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct BookFile {
    #[serde(default)]
    tokens: Vec<TokenRecord>,
    #[serde(default)]
    links: Vec<TokenRecord>,
    #[serde(default)]
    sessions: Vec<TokenRecord>,
}

impl AccessBook {
    /// Returns the book in brigade's own folder.
    pub fn of_state_dir(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("web") }
    }

    /// Adds a token.
    pub fn add(
        &self,
        name: &str,
        kind: TokenKind,
        now: Timestamp,
    ) -> Result<IssuedSecret, AccessError> {
        check_name(name)?;
        self.change(now, |book| {
            if book.tokens.iter().any(|token| token.name == name) {
                return Err(AccessError::Exists { name: name.to_owned() });
            }
            issue(&mut book.tokens, name, kind, now, None)
        })
    }

    /// Lists the tokens and the sessions of browsers that are logged in.
    pub fn list(&self, now: Timestamp) -> Result<Vec<TokenRecord>, AccessError> {
        let book = self.read()?;
        let sessions = book.sessions.into_iter().filter(|session| is_valid(session, now));
        Ok(book.tokens.into_iter().chain(sessions).collect())
    }

    /// Removes the token, and the links and sessions of this name.
    pub fn revoke(&self, name: &str, now: Timestamp) -> Result<(), AccessError> {
        self.change(now, |book| {
            let mut removed = false;
            for records in [&mut book.tokens, &mut book.links, &mut book.sessions] {
                let before = records.len();
                records.retain(|record| record.name != name);
                removed |= records.len() < before;
            }
            if removed { Ok(()) } else { Err(AccessError::NoToken { name: name.to_owned() }) }
        })
    }

    /// Adds a link with which a browser can log in once.
    pub fn add_link(
        &self,
        name: &str,
        kind: TokenKind,
        now: Timestamp,
    ) -> Result<IssuedSecret, AccessError> {
        check_name(name)?;
        let expires = now + LINK_LIFETIME;
        self.change(now, |book| issue(&mut book.links, name, kind, now, Some(expires)))
    }

    /// Uses up a login link. Returns the session that replaces it, or `None` if there is no such link.
    pub fn log_in(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Result<Option<IssuedSecret>, AccessError> {
        let wanted = digest(secret);
        // Do not write for guesses.
        if !self.read()?.links.iter().any(|link| link.digest == wanted) {
            return Ok(None);
        }
        self.change(now, |book| {
            let Some(at) = book.links.iter().position(|link| link.digest == wanted) else {
                return Ok(None);
            };
            let link = book.links.remove(at);
            let expires = now + SESSION_LIFETIME;
            issue(&mut book.sessions, &link.name, link.kind, now, Some(expires)).map(Some)
        })
    }

    /// Ends the session with this secret.
    pub fn log_out(&self, secret: &str, now: Timestamp) -> Result<(), AccessError> {
        let ended = digest(secret);
        self.change(now, |book| {
            book.sessions.retain(|session| session.digest != ended);
            Ok(())
        })
    }

    /// Returns what a program with this token may do.
    pub fn token(&self, secret: &str) -> Result<Option<AccessGrant>, AccessError> {
        let wanted = digest(secret);
        let found = self.read()?.tokens.into_iter().find(|token| token.digest == wanted);
        Ok(found.map(|token| AccessGrant { name: token.name, kind: token.kind, csrf: None }))
    }

    /// Returns what a browser with this session may do.
    pub fn session(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Result<Option<AccessGrant>, AccessError> {
        let wanted = digest(secret);
        let mut sessions = self.read()?.sessions.into_iter();
        let found = sessions.find(|session| session.digest == wanted && is_valid(session, now));
        // The page learns this value, but not the secret in the cookie.
        let csrf = Some(digest(&format!("csrf {secret}")));
        Ok(found.map(|session| AccessGrant { name: session.name, kind: session.kind, csrf }))
    }

    fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    fn read(&self) -> Result<BookFile, AccessError> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BookFile::default()),
            Err(source) => return Err(AccessError::File { doing: "read", path, source }),
        };
        serde_json::from_slice(&bytes).map_err(|source| AccessError::Damaged { path, source })
    }

    /// Changes the file while no other process changes it. After a crash, the file is either the old or the new one. Removes what has
    /// expired.
    fn change<T>(
        &self,
        now: Timestamp,
        change: impl FnOnce(&mut BookFile) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let path = self.path();
        let failed = |source| AccessError::File { doing: "write", path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
        let lock = File::open(&self.dir).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut book = self.read()?;
        book.links.retain(|link| is_valid(link, now));
        book.sessions.retain(|session| is_valid(session, now));
        let done = change(&mut book)?;
        let temp = self.dir.join("access.tmp");
        let write = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
            file.write_all(&serde_json::to_vec_pretty(&book)?)?;
            file.sync_all()?;
            fs::rename(&temp, &path)?;
            lock.sync_all()
        };
        write().map_err(failed)?;
        Ok(done)
    }
}

fn issue(
    records: &mut Vec<TokenRecord>,
    name: &str,
    kind: TokenKind,
    created: Timestamp,
    expires: Option<Timestamp>,
) -> Result<IssuedSecret, AccessError> {
    let secret = Secret::random()?;
    let digest = digest(secret.expose());
    let record = TokenRecord { name: name.to_owned(), kind, created, expires, digest };
    records.push(record.clone());
    Ok(IssuedSecret { secret, record })
}

fn is_valid(record: &TokenRecord, now: Timestamp) -> bool {
    record.expires.is_none_or(|expires| now < expires)
}

fn check_name(name: &str) -> Result<(), AccessError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(AccessError::BadName),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        book: AccessBook,
        now: Timestamp,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let book = AccessBook::of_state_dir(dir.path());
        Fixture { dir, book, now: "2026-01-01T00:00:00Z".parse().unwrap() }
    }

    #[test]
    fn a_token_works_until_it_is_revoked() {
        let Fixture { dir: _dir, book, now } = fixture();
        let issued = book.add("phone", TokenKind::ApproveOnly, now).unwrap();
        let secret = issued.secret.expose();
        let grant = AccessGrant { name: "phone".into(), kind: TokenKind::ApproveOnly, csrf: None };
        assert_eq!(book.token(secret).unwrap(), Some(grant));
        assert_eq!(book.token("other").unwrap(), None);
        assert_eq!(book.session(secret, now).unwrap(), None, "a token is no session");
        assert_eq!(book.log_in(secret, now).unwrap().map(|issued| issued.record), None);
        assert_eq!(book.list(now).unwrap(), std::slice::from_ref(&issued.record));
        assert!(matches!(book.add("phone", TokenKind::Full, now), Err(AccessError::Exists { .. })));
        book.revoke("phone", now).unwrap();
        assert_eq!(book.token(secret).unwrap(), None);
        assert!(matches!(book.revoke("phone", now), Err(AccessError::NoToken { .. })));
    }

    #[test]
    fn a_link_works_once_and_for_ten_minutes() {
        let Fixture { dir: _dir, book, now } = fixture();
        let link = book.add_link("browser", TokenKind::Full, now).unwrap();
        let secret = link.secret.expose();
        assert_eq!(book.token(secret).unwrap(), None, "a link is no token");
        let session = book.log_in(secret, now).unwrap().unwrap();
        assert!(book.log_in(secret, now).unwrap().is_none());
        let grant = book.session(session.secret.expose(), now).unwrap().unwrap();
        assert_eq!((grant.name.as_str(), grant.kind), ("browser", TokenKind::Full));
        assert!(grant.csrf.is_some_and(|csrf| csrf != session.secret.expose()));
        let late = book.add_link("browser", TokenKind::Full, now).unwrap();
        assert!(book.log_in(late.secret.expose(), now + LINK_LIFETIME).unwrap().is_none());
        let end = now + SESSION_LIFETIME;
        assert_eq!(book.session(session.secret.expose(), end).unwrap(), None);
    }

    #[test]
    fn a_revoked_name_ends_its_sessions_and_a_log_out_ends_one() {
        let Fixture { dir: _dir, book, now } = fixture();
        let open = |name: &str| {
            let link = book.add_link(name, TokenKind::Full, now).unwrap();
            book.log_in(link.secret.expose(), now).unwrap().unwrap().secret
        };
        let (one, two, other) = (open("sofa"), open("sofa"), open("desk"));
        let works = |secret: &Secret| book.session(secret.expose(), now).unwrap().is_some();
        book.log_out(one.expose(), now).unwrap();
        assert_eq!([&one, &two, &other].map(works), [false, true, true]);
        book.revoke("sofa", now).unwrap();
        assert_eq!([&one, &two, &other].map(works), [false, false, true]);
    }

    #[test]
    fn the_file_has_no_secret_and_only_the_person_reads_it() {
        let Fixture { dir, book, now } = fixture();
        let token = book.add("phone", TokenKind::Full, now).unwrap().secret;
        let link = book.add_link("browser", TokenKind::Full, now).unwrap().secret;
        let path = dir.path().join("web/access.json");
        let text = fs::read_to_string(&path).unwrap();
        for secret in [token, link] {
            assert!(!text.contains(secret.expose()));
            assert!(text.contains(&digest(secret.expose())));
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&dir.path().join("web"))), (0o600, 0o700));
    }

    #[test]
    fn a_damaged_file_gives_no_access() {
        let Fixture { dir, book, now } = fixture();
        let secret = book.add("phone", TokenKind::Full, now).unwrap().secret;
        fs::write(dir.path().join("web/access.json"), "{\"tokens\":").unwrap();
        assert!(matches!(book.token(secret.expose()), Err(AccessError::Damaged { .. })));
        assert!(matches!(
            book.add("other", TokenKind::Full, now),
            Err(AccessError::Damaged { .. })
        ));
    }

    #[test]
    fn names_are_plain_words() {
        let Fixture { dir: _dir, book, now } = fixture();
        for (name, is_accepted) in [
            ("phone", true),
            ("my-phone_2.0", true),
            ("", false),
            ("a b", false),
            ("é", false),
            ("a\n", false),
            (&"x".repeat(41), false),
        ] {
            let result = book.add(name, TokenKind::ReadOnly, now);
            assert_eq!(result.is_ok(), is_accepted, "{name:?}");
        }
    }
}
