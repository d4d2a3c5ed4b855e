//! Where the teams live: in files of this host, or in an engine on the network.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use brigade_core::store::Store;
#[cfg(feature = "nats")]
use brigade_core::store::StoreError;
use brigade_files::folder_key;
use brigade_wire::name::{MemberName, TeamName};
use thiserror::Error;

use crate::error::HostError;
#[cfg(not(feature = "nats"))]
use crate::error::Trouble;
use crate::progress::{Progress, Report};
use crate::variables as env;

/// The port of an engine that does not name one.
const PORT: u16 = 4222;
/// After this long without an answer from the server the person is told.
#[cfg(feature = "nats")]
const SLOW: std::time::Duration = std::time::Duration::from_secs(1);
/// The word for the files of this host.
const FILES: &str = "files";

/// Where the teams live, as it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// In Claude Code's folder.
    Files,
    /// In an engine: its servers, `nats://host:port` or `tls://host:port`.
    Servers(Vec<String>),
}

/// Why that is not where teams live.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    #[error("use `files`, nats://HOST:PORT or tls://HOST:PORT, several with a comma between them")]
    Form,
    #[error("a name or a password in an address can be seen by everybody; use --creds FILE")]
    Secret,
    #[error("{0:?} is not a host and a port")]
    Host(String),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == FILES {
            return Ok(Self::Files);
        }
        text.split(',')
            .map(|server| server_address(server.trim()))
            .collect::<Result<_, _>>()
            .map(Self::Servers)
    }
}

fn server_address(text: &str) -> Result<String, AddressError> {
    let (scheme, rest) = text.split_once("://").ok_or(AddressError::Form)?;
    if !matches!(scheme, "nats" | "tls") {
        return Err(AddressError::Form);
    }
    if rest.contains('@') {
        return Err(AddressError::Secret);
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let wrong = || AddressError::Host(rest.to_owned());
    // The address of an IPv6 host stands in brackets, for it has colons itself.
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (format!("[{host}]"), None),
        Some((host, port)) => {
            (format!("[{host}]"), Some(port.strip_prefix(':').ok_or_else(wrong)?))
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (rest.to_owned(), None),
        },
    };
    let port = port.map_or(Ok(PORT), str::parse).map_err(|_| wrong())?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if bare.is_empty() || !bare.chars().all(letter) || (bare.contains(':') && bare == host) {
        return Err(wrong());
    }
    Ok(format!("{scheme}://{}:{port}", host.to_lowercase()))
}

/// An engine, and who one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsServers {
    pub servers: Vec<String>,
    /// The credentials of the seat.
    pub creds: Option<PathBuf>,
    /// Who vouches for the servers, if not those the system trusts.
    pub ca: Option<PathBuf>,
    /// The certificate and the key by which the servers know this client.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Where the teams live, with everything that is needed to get there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// In Claude Code's folder on this host.
    #[default]
    Files,
    /// In an engine on the network.
    Nats(NatsServers),
}

impl Location {
    /// The engine, if they live in one.
    pub fn engine(&self) -> Option<&NatsServers> {
        match self {
            Self::Files => None,
            Self::Nats(engine) => Some(engine),
        }
    }

    /// The variables that say the same to a program of ours. Credentials are told by their path alone.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Self::Nats(engine) = self else { return vec![(env::STORE, FILES.into())] };
        let mut said: Vec<(&'static str, OsString)> =
            vec![(env::STORE, engine.servers.join(",").into())];
        let (cert, key) = engine.client.clone().unzip();
        for (name, path) in [
            (env::CREDS, &engine.creds),
            (env::CA, &engine.ca),
            (env::CERT, &cert),
            (env::KEY, &key),
        ] {
            said.extend(path.clone().map(|path| (name, path.into_os_string())));
        }
        said
    }

    /// The options that say the same.
    pub fn options(&self) -> Vec<OsString> {
        let option = |name: &str| match name {
            env::CREDS => "--creds",
            env::CA => "--ca",
            env::CERT => "--cert",
            env::KEY => "--key",
            _ => "--store",
        };
        let said = self.variables().into_iter();
        said.flat_map(|(name, value)| [option(name).into(), value]).collect()
    }

    /// A word for it and for this folder of Claude Code's, by which what runs on this host is kept
    /// apart from what runs for teams that live elsewhere.
    pub fn key(&self, claude_dir: &Path) -> String {
        let files = folder_key(claude_dir);
        match self {
            Self::Files => files,
            Self::Nats(engine) => {
                let mut servers: Vec<&str> = engine
                    .servers
                    .iter()
                    .filter_map(|server| Some(server.split_once("://")?.1))
                    .collect();
                servers.sort_unstable();
                folder_key(Path::new(&format!("{files} {}", servers.join(","))))
            }
        }
    }
}

impl NatsServers {
    /// Opens it; `lasts` if nobody waits for the program that does, and it is to bear with a host that
    /// is cut off for a while.
    #[cfg(feature = "nats")]
    pub async fn open(&self, lasts: bool, report: Report<'_>) -> Result<Arc<dyn Store>, HostError> {
        let patience =
            if lasts { brigade_nats::Patience::Long } else { brigade_nats::Patience::Short };
        let options = brigade_nats::Options { patience, ..self.words() };
        let mut connecting = std::pin::pin!(brigade_nats::NatsStore::connect(options));
        let store = match tokio::time::timeout(SLOW, connecting.as_mut()).await {
            Ok(store) => store,
            Err(_) => {
                report(Progress::WaitingForServer(self.servers.clone()));
                connecting.await
            }
        };
        Ok(Arc::new(store.map_err(|error| self.hinted(error))?))
    }

    /// Whether the credentials are good for the lead's seat.
    #[cfg(feature = "nats")]
    pub fn may_lead(&self) -> bool {
        use brigade_nats::identity::Role;
        let identity = self.creds.as_deref().map(brigade_nats::Identity::from_creds);
        !matches!(identity, Some(Ok(identity)) if identity.role == Role::Member)
    }

    #[cfg(not(feature = "nats"))]
    pub fn may_lead(&self) -> bool {
        false
    }

    /// The team and the member that the credentials are of, if they are of one.
    #[cfg(feature = "nats")]
    pub fn seat(&self) -> Option<(TeamName, Option<MemberName>)> {
        let identity = brigade_nats::Identity::from_creds(self.creds.as_deref()?).ok()?;
        let mut members = identity.members;
        let only = members.pop().filter(|_| members.is_empty());
        Some((identity.team?, only))
    }

    #[cfg(not(feature = "nats"))]
    pub fn seat(&self) -> Option<(TeamName, Option<MemberName>)> {
        None
    }

    /// How it is.
    #[cfg(feature = "nats")]
    pub async fn measures(&self) -> Result<brigade_nats::measures::Measures, HostError> {
        let store = brigade_nats::NatsStore::connect(self.words()).await?;
        Ok(store.measures().await?)
    }

    /// What its crate calls it.
    #[cfg(feature = "nats")]
    pub fn words(&self) -> brigade_nats::Options {
        brigade_nats::Options {
            servers: self.servers.clone(),
            creds: self.creds.clone(),
            ca: self.ca.clone(),
            client_cert: self.client.clone(),
            ..brigade_nats::Options::default()
        }
    }

    /// For whom the credentials speak; nobody in particular where they speak for all, or there are none.
    #[cfg(feature = "nats")]
    pub fn speaks_for(&self) -> Result<Vec<MemberName>, HostError> {
        let Some(creds) = &self.creds else { return Ok(Vec::new()) };
        let identity = brigade_nats::Identity::from_creds(creds).map_err(HostError::failed)?;
        Ok(identity.members)
    }

    /// Nobody, with this program.
    #[cfg(not(feature = "nats"))]
    pub fn speaks_for(&self) -> Result<Vec<MemberName>, HostError> {
        Ok(Vec::new())
    }

    /// Where it is looked for, beside what came of it.
    #[cfg(feature = "nats")]
    fn hinted(&self, error: StoreError) -> HostError {
        let error = HostError::failed(error);
        if !error.is_unreachable() {
            return error;
        }
        let why = std::error::Error::source(&*error.source).map(ToString::to_string);
        let why = why.unwrap_or_default().to_lowercase();
        // A server that does not know whoever calls says so; what does not answer, nothing.
        if !why.contains("authorization") {
            let servers = self.servers.join(", ");
            return error
                .hint(format!("is the server running at {servers}, and reachable from here?"));
        }
        match &self.creds {
            Some(creds) => error.hint(format!(
                "the credentials are those in {}; who runs the engine may have taken them back, or not yet said \
                 `brigade org apply`",
                creds.display()
            )),
            None => error.hint("no credentials were given; --creds FILE names them"),
        }
    }

    /// Nobody can, with this program.
    #[cfg(not(feature = "nats"))]
    pub async fn open(&self, _: bool, _: Report<'_>) -> Result<Arc<dyn Store>, HostError> {
        let error = HostError::failed(Trouble::NoEngine { servers: self.servers.join(", ") });
        Err(error.hint("install one built with the feature `nats`, which is on by default"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Result<String, AddressError> {
        match text.parse()? {
            Address::Files => Ok(FILES.to_owned()),
            Address::Servers(servers) => Ok(servers.join(" ")),
        }
    }

    #[test]
    fn an_address_is_files_or_servers() {
        let good = |text: &str, read: &str| assert_eq!(servers(text).as_deref(), Ok(read));
        good("files", "files");
        good("nats://a", "nats://a:4222");
        good("nats://A.example:4333/", "nats://a.example:4333");
        good("nats://a:1, tls://b:2", "nats://a:1 tls://b:2");
        good("nats://[::1]:4222", "nats://[::1]:4222");
        good("tls://[::1]", "tls://[::1]:4222");
        let bad = |text: &str, error| assert_eq!(servers(text), Err(error), "{text}");
        for text in ["", "file", "a:4222", "http://a", "nats://a,b"] {
            bad(text, AddressError::Form);
        }
        bad("nats://user:secret@a", AddressError::Secret);
        for host in ["", ":4222", "a:b", "a:99999", "::1", "a b", "a/b", "a?x=1", "[::1]x"] {
            bad(&format!("nats://{host}"), AddressError::Host(host.to_owned()));
        }
    }

    fn engine(servers: &[&str]) -> Location {
        let servers = servers.iter().map(|&server| server.to_owned()).collect();
        Location::Nats(NatsServers { servers, creds: Some("/c".into()), ..NatsServers::default() })
    }

    #[test]
    fn each_home_has_its_own_key() {
        let key = |home: &Location| home.key(Path::new("/nowhere"));
        let (ab, ba) =
            (engine(&["nats://a:1", "tls://b:1"]), engine(&["nats://b:1", "nats://a:1"]));
        assert_eq!(key(&Location::Files), folder_key(Path::new("/nowhere")));
        assert_eq!(key(&ab), key(&ba));
        assert_ne!(key(&ab), key(&Location::Files));
        assert_ne!(key(&ab), key(&engine(&["nats://a:1"])));
        assert_ne!(ab.key(Path::new("/nowhere")), ab.key(Path::new("/elsewhere")));
    }

    #[test]
    fn what_is_handed_on_names_files_and_never_their_contents() {
        let words = |home: &Location| {
            let words: Vec<String> =
                home.options().iter().map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ")
        };
        assert_eq!(words(&Location::Files), "--store files");
        assert_eq!(words(&engine(&["nats://a:1"])), "--store nats://a:1 --creds /c");
    }
}
