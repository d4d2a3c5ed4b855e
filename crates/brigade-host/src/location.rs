//! Where teams are stored: in files on this host, or on NATS servers.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::store::Store;
use brigade_files::claude_dir_key;
use brigade_wire::name::{MemberName, TeamName};
use thiserror::Error;

use crate::error::HostError;
#[cfg(not(feature = "nats"))]
use crate::error::Trouble;
#[cfg(feature = "nats")]
use crate::progress::Progress;
use crate::progress::ReportProgress;
use crate::variables as env;

/// The port of a NATS server whose address names no port.
const DEFAULT_PORT: u16 = 4222;
/// If the NATS server does not answer within this time, brigade reports that it is waiting.
#[cfg(feature = "nats")]
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// The value of `--store` for a store in files on this host.
const FILES: &str = "files";

/// The parsed value of `--store`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// In Claude Code's folder.
    Files,
    /// On NATS servers: `nats://host:port` or `tls://host:port`.
    Servers(Vec<String>),
}

/// Why a value of `--store` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreAddressError {
    /// The value is neither `files` nor a list of server addresses.
    #[error("use `files`, nats://HOST:PORT or tls://HOST:PORT; separate several servers by commas")]
    Form,
    /// The value contains a user name or a password.
    #[error("other users can see a name or password in an address; use --creds FILE")]
    Secret,
    /// The host or the port is invalid.
    #[error("{0:?} is not a host and a port")]
    Host(String),
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => f.write_str(FILES),
            Self::Servers(servers) => f.write_str(&servers.join(",")),
        }
    }
}

impl FromStr for StoreAddress {
    type Err = StoreAddressError;

    fn from_str(text: &str) -> Result<Self, StoreAddressError> {
        if text == FILES {
            return Ok(Self::Files);
        }
        text.split(',')
            .map(|server| server_address(server.trim()))
            .collect::<Result<_, _>>()
            .map(Self::Servers)
    }
}

fn server_address(text: &str) -> Result<String, StoreAddressError> {
    let (scheme, rest) = text.split_once("://").ok_or(StoreAddressError::Form)?;
    if !matches!(scheme, "nats" | "tls") {
        return Err(StoreAddressError::Form);
    }
    if rest.contains('@') {
        return Err(StoreAddressError::Secret);
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let invalid = || StoreAddressError::Host(rest.to_owned());
    // An IPv6 address is in brackets, because it contains colons.
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (format!("[{host}]"), None),
        Some((host, port)) => {
            (format!("[{host}]"), Some(port.strip_prefix(':').ok_or_else(invalid)?))
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (rest.to_owned(), None),
        },
    };
    let port = port.map_or(Ok(DEFAULT_PORT), str::parse).map_err(|_| invalid())?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if bare.is_empty() || !bare.chars().all(is_allowed) || (bare.contains(':') && bare == host) {
        return Err(invalid());
    }
    Ok(format!("{scheme}://{}:{port}", host.to_lowercase()))
}

/// How long to wait for NATS servers that do not answer. A server that refuses the connection for good, for example
/// because of the credentials, is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerWait {
    /// How long to wait for the first connection.
    pub connect: Duration,
    /// How long to retry a request after the first connection; `None` for the default of the process.
    pub retry: Option<Duration>,
}

impl ServerWait {
    /// How long a command waits for the first connection, unless the user says otherwise.
    pub const DEFAULT: Duration = Duration::from_secs(20);
    /// Does not wait for the first connection.
    pub const NONE: Self = Self { connect: Duration::ZERO, retry: None };
}

/// NATS servers, and the files needed for connecting to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsServers {
    /// The addresses of the servers.
    pub servers: Vec<String>,
    /// The credentials file.
    pub creds: Option<PathBuf>,
    /// The CA certificate file. If `None`, the system's certificates are used.
    pub ca: Option<PathBuf>,
    /// The files with the client certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Where teams are stored, and everything needed for connecting to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// In Claude Code's folder on this host.
    #[default]
    Files,
    /// On NATS servers.
    Nats(NatsServers),
}

impl Location {
    /// Returns the NATS servers if teams are stored on NATS servers.
    pub fn nats(&self) -> Option<&NatsServers> {
        match self {
            Self::Files => None,
            Self::Nats(servers) => Some(servers),
        }
    }

    /// Returns the environment variables that tell a child process this location. They contain the path of the
    /// credentials file, never the credentials.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Self::Nats(nats) = self else { return vec![(env::STORE, FILES.into())] };
        let mut variables: Vec<(&'static str, OsString)> =
            vec![(env::STORE, nats.servers.join(",").into())];
        let (cert, key) = nats.client.clone().unzip();
        for (name, path) in
            [(env::CREDS, &nats.creds), (env::CA, &nats.ca), (env::CERT, &cert), (env::KEY, &key)]
        {
            variables.extend(path.clone().map(|path| (name, path.into_os_string())));
        }
        variables
    }

    /// Returns the command-line options that select this location.
    pub fn options(&self) -> Vec<OsString> {
        let option = |name: &str| match name {
            env::CREDS => "--creds",
            env::CA => "--ca",
            env::CERT => "--cert",
            env::KEY => "--key",
            _ => "--store",
        };
        let variables = self.variables().into_iter();
        variables.flat_map(|(name, value)| [option(name).into(), value]).collect()
    }

    /// Returns a key that is unique for this location and this Claude Code folder. This host has one registry
    /// per key.
    pub fn key(&self, claude_dir: &Path) -> String {
        let files = claude_dir_key(claude_dir);
        match self {
            Self::Files => files,
            Self::Nats(nats) => {
                let mut servers: Vec<&str> = nats
                    .servers
                    .iter()
                    .filter_map(|server| Some(server.split_once("://")?.1))
                    .collect();
                servers.sort_unstable();
                claude_dir_key(Path::new(&format!("{files} {}", servers.join(","))))
            }
        }
    }
}

impl NatsServers {
    /// Connects to the servers and opens the store. If `lasts` is true, a lost connection is retried for a long
    /// time. Background processes set `lasts`, because no person waits for their result.
    #[cfg(feature = "nats")]
    pub async fn open(
        &self,
        lasts: bool,
        wait: ServerWait,
        report: ReportProgress<'_>,
    ) -> Result<Arc<dyn Store>, HostError> {
        use brigade_nats::RetryLimit;
        let patience = match wait.retry {
            _ if lasts => RetryLimit::Long,
            Some(limit) => RetryLimit::Exactly(limit),
            None => RetryLimit::Short,
        };
        let options = brigade_nats::NatsOptions {
            patience,
            connect_wait: wait.connect,
            ..self.store_options()
        };
        let mut connecting = std::pin::pin!(brigade_nats::NatsStore::connect(options));
        let store = match tokio::time::timeout(SLOW_AFTER, connecting.as_mut()).await {
            Ok(store) => store,
            Err(_) => {
                report(Progress::WaitingForServer(self.servers.clone(), wait.connect));
                connecting.await
            }
        };
        Ok(Arc::new(store?))
    }

    /// Returns whether the credentials allow the caller to act as the lead.
    #[cfg(feature = "nats")]
    pub fn may_lead(&self) -> bool {
        use brigade_nats::identity::CredentialRole;
        let identity = self.creds.as_deref().map(brigade_nats::Identity::from_creds);
        !matches!(identity, Some(Ok(identity)) if identity.role == CredentialRole::Member)
    }

    /// Returns false, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub fn may_lead(&self) -> bool {
        false
    }

    /// Returns the team that the credentials name, and the member if they name exactly one member.
    #[cfg(feature = "nats")]
    pub fn seat(&self) -> Option<(TeamName, Option<MemberName>)> {
        let identity = brigade_nats::Identity::from_creds(self.creds.as_deref()?).ok()?;
        let mut members = identity.members;
        let only = members.pop().filter(|_| members.is_empty());
        Some((identity.team?, only))
    }

    /// Returns `None`, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub fn seat(&self) -> Option<(TeamName, Option<MemberName>)> {
        None
    }

    /// Connects to the servers and returns the size and usage figures of the store.
    #[cfg(feature = "nats")]
    pub async fn measures(&self) -> Result<brigade_nats::stream_metrics::Measures, HostError> {
        let store = brigade_nats::NatsStore::connect(self.store_options()).await?;
        Ok(store.measures().await?)
    }

    /// Returns the options for the NATS store.
    #[cfg(feature = "nats")]
    pub fn store_options(&self) -> brigade_nats::NatsOptions {
        brigade_nats::NatsOptions {
            servers: self.servers.clone(),
            creds: self.creds.clone(),
            ca: self.ca.clone(),
            client_cert: self.client.clone(),
            ..brigade_nats::NatsOptions::default()
        }
    }

    /// Returns the team and an id of the credentials in a file; `None` if the file has no credentials for a team, or cannot be
    /// read. New credentials for the same members have another id. The id is not secret.
    #[cfg(feature = "nats")]
    pub fn credentials_id(file: &Path) -> Option<(TeamName, String)> {
        let identity = brigade_nats::Identity::from_creds(file).ok()?;
        Some((identity.team?, identity.inbox_prefix))
    }

    /// Returns `None`, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub fn credentials_id(_: &Path) -> Option<(TeamName, String)> {
        None
    }

    /// Returns the members that the credentials are limited to. The list is empty if the credentials are for all
    /// members, or if there are no credentials.
    #[cfg(feature = "nats")]
    pub fn speaks_for(&self) -> Result<Vec<MemberName>, HostError> {
        let Some(creds) = &self.creds else { return Ok(Vec::new()) };
        let identity = brigade_nats::Identity::from_creds(creds).map_err(HostError::failed)?;
        Ok(identity.members)
    }

    /// Returns an empty list, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub fn speaks_for(&self) -> Result<Vec<MemberName>, HostError> {
        Ok(Vec::new())
    }

    /// Always fails, because this build has no NATS support.
    #[cfg(not(feature = "nats"))]
    pub async fn open(
        &self,
        _: bool,
        _: ServerWait,
        _: ReportProgress<'_>,
    ) -> Result<Arc<dyn Store>, HostError> {
        let error = HostError::failed(Trouble::NoEngine { servers: self.servers.join(", ") });
        Err(error.hint("install a brigade built with the feature `nats`, which is on by default"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Result<String, StoreAddressError> {
        match text.parse()? {
            StoreAddress::Files => Ok(FILES.to_owned()),
            StoreAddress::Servers(servers) => Ok(servers.join(" ")),
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
            bad(text, StoreAddressError::Form);
        }
        bad("nats://user:secret@a", StoreAddressError::Secret);
        for host in ["", ":4222", "a:b", "a:99999", "::1", "a b", "a/b", "a?x=1", "[::1]x"] {
            bad(&format!("nats://{host}"), StoreAddressError::Host(host.to_owned()));
        }
    }

    fn nats(servers: &[&str]) -> Location {
        let servers = servers.iter().map(|&server| server.to_owned()).collect();
        Location::Nats(NatsServers { servers, creds: Some("/c".into()), ..NatsServers::default() })
    }

    #[test]
    fn each_location_has_its_own_key() {
        let key = |location: &Location| location.key(Path::new("/nowhere"));
        let (ab, ba) = (nats(&["nats://a:1", "tls://b:1"]), nats(&["nats://b:1", "nats://a:1"]));
        assert_eq!(key(&Location::Files), claude_dir_key(Path::new("/nowhere")));
        assert_eq!(key(&ab), key(&ba));
        assert_ne!(key(&ab), key(&Location::Files));
        assert_ne!(key(&ab), key(&nats(&["nats://a:1"])));
        assert_ne!(ab.key(Path::new("/nowhere")), ab.key(Path::new("/elsewhere")));
    }

    #[test]
    fn options_name_files_and_never_contain_their_contents() {
        let options = |location: &Location| {
            let options: Vec<String> = location
                .options()
                .iter()
                .map(|option| option.to_string_lossy().into_owned())
                .collect();
            options.join(" ")
        };
        assert_eq!(options(&Location::Files), "--store files");
        assert_eq!(options(&nats(&["nats://a:1"])), "--store nats://a:1 --creds /c");
    }
}
