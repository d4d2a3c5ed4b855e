//! The user's configuration: the named stores, with their certificates and credentials, and how much history to keep.
//!
//! ```toml
//! default = "work"
//!
//! [history]
//! keep = "90d"
//!
//! [stores.work]
//! url = "tls://nats.example.org:4222"
//! ca = "/home/me/ca.pem"
//! creds = "/home/me/alice.creds"
//! ```
//!
//! The file contains paths, and no secrets. It still is readable only by its owner, because it tells which
//! credentials belong to which server.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use brigade_wire::name::TeamName;
use serde::{Deserialize, Serialize};

use crate::error::{HostError, Trouble, file_failed};
use crate::history::Keep;
use crate::location::{StoreAddress, StoreAddressError};
use crate::suggest;

/// The longest name of a store.
const MAX_NAME: usize = 64;
/// The first line of the file.
const HEADER: &str = "# Written by `brigade store` and `brigade history`. They replace the whole file, so comments are lost.\n";

/// The name of a store in the user's configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StoreName(String);

impl StoreName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name for a store with the credentials of a team in an organisation. The organisation's first team gets
    /// the name of the organisation. Credentials are for one team, so each other team needs a store of its own.
    pub fn for_team(
        organisation: &TeamName,
        first: Option<&TeamName>,
        team: &TeamName,
    ) -> Result<Self, HostError> {
        let name = match first {
            Some(first) if first != team => format!("{organisation}-{team}"),
            _ => organisation.to_string(),
        };
        name.parse().map_err(HostError::usage)
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StoreName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.len() <= MAX_NAME
            && text.chars().all(is_allowed);
        match text {
            "files" => Err("`files` always means the files of this host; choose another name"),
            text if is_name => Ok(Self(text.to_owned())),
            _ => Err("a name has only letters, digits, hyphens, underscores and dots"),
        }
    }
}

impl TryFrom<String> for StoreName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<StoreName> for String {
    fn from(name: StoreName) -> Self {
        name.0
    }
}

/// A store on NATS servers, as the user has configured it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreProfile {
    /// The addresses of the servers, separated by commas.
    pub url: String,
    /// The CA certificate file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The credentials file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds: Option<PathBuf>,
}

impl StoreProfile {
    /// Returns the addresses of the servers.
    pub fn servers(&self) -> Result<Vec<String>, StoreAddressError> {
        match self.url.parse()? {
            StoreAddress::Servers(servers) => Ok(servers),
            StoreAddress::Files => Err(StoreAddressError::Form),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    #[serde(default)]
    default: Option<StoreName>,
    #[serde(default)]
    history: HistorySettings,
    #[serde(default)]
    stores: BTreeMap<StoreName, StoreProfile>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistorySettings {
    #[serde(default)]
    keep: Keep,
}

/// The stores in the user's configuration.
#[derive(Debug, Default)]
pub struct Profiles {
    path: PathBuf,
    file: ProfileFile,
}

impl Profiles {
    /// Reads the configuration file. A file that does not exist has no stores.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(file_failed("read", path, source)),
        };
        let file = toml::from_str(&text).map_err(|error| {
            let path = path.to_owned();
            HostError::failed(Trouble::BadConfig { path, why: error.message().to_owned() }).hint(
                "correct the file, or remove it and add your stores again with `brigade store add`",
            )
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Returns the path of the configuration file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the stores, sorted by name.
    pub fn stores(&self) -> impl Iterator<Item = (&StoreName, &StoreProfile)> {
        self.file.stores.iter()
    }

    /// Returns how much history of each team to keep.
    pub fn keep(&self) -> Keep {
        self.file.history.keep
    }

    /// Sets how much history of each team to keep.
    pub fn set_keep(&mut self, keep: Keep) -> Result<(), HostError> {
        self.file.history.keep = keep;
        self.write()
    }

    /// Returns the name of the default store; `None` if files are the default.
    pub fn default_name(&self) -> Option<&StoreName> {
        self.file.default.as_ref()
    }

    /// Returns the store with this name.
    pub fn get(&self, name: &StoreName) -> Result<&StoreProfile, HostError> {
        self.file.stores.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &StoreName) -> HostError {
        let known: Vec<&str> = self.file.stores.keys().map(StoreName::as_str).collect();
        let error = HostError::usage(Trouble::NoStore { name: name.to_string() });
        if known.is_empty() {
            return error.hint(format!(
                "add it with `brigade store add {name} nats://HOST:PORT`, or give an address instead of a name"
            ));
        }
        let nearest = suggest::nearest(name.as_str(), &known);
        let question = nearest.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
        error.hint(format!("{question}stores: {}", known.join(", ")))
    }

    /// Adds a store, or replaces the store of that name. Returns the store that it replaced.
    pub fn add(
        &mut self,
        name: StoreName,
        profile: StoreProfile,
    ) -> Result<Option<StoreProfile>, HostError> {
        profile.servers().map_err(HostError::usage)?;
        let replaced = self.file.stores.insert(name, profile);
        self.write()?;
        Ok(replaced)
    }

    /// Removes a store. If it was the default, the files of this host become the default. Returns whether it was.
    pub fn remove(&mut self, name: &StoreName) -> Result<bool, HostError> {
        self.get(name)?;
        self.file.stores.remove(name);
        let was_default = self.file.default.take_if(|default| default == name).is_some();
        self.write()?;
        Ok(was_default)
    }

    /// Makes a store the default; with `None`, the files of this host.
    pub fn set_default(&mut self, name: Option<&StoreName>) -> Result<(), HostError> {
        if let Some(name) = name {
            self.get(name)?;
        }
        self.file.default = name.cloned();
        self.write()
    }

    fn write(&self) -> Result<(), HostError> {
        let text = self.render();
        let temp = self.path.with_file_name(format!("config.{}.tmp", std::process::id()));
        let write = || {
            if let Some(dir) = self.path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            }
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temp, &self.path)
        };
        write().map_err(|source| file_failed("write", &self.path, source))
    }

    fn render(&self) -> String {
        // A JSON string is also a TOML string.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = HEADER.to_owned();
        if let Some(name) = &self.file.default {
            let _infallible = writeln!(text, "default = {}", quoted(name.as_str()));
        }
        if self.keep() != Keep::All {
            let _infallible = writeln!(text, "\n[history]\nkeep = \"{}\"", self.keep());
        }
        for (name, profile) in &self.file.stores {
            let _infallible = writeln!(text, "\n[stores.{}]", quoted(name.as_str()));
            let _infallible = writeln!(text, "url = {}", quoted(&profile.url));
            for (key, path) in [("ca", &profile.ca), ("creds", &profile.creds)] {
                if let Some(path) = path {
                    let _infallible = writeln!(text, "{key} = {}", quoted(&path.to_string_lossy()));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn name(text: &str) -> StoreName {
        text.parse().unwrap()
    }

    #[test]
    fn stores_survive_a_rewrite_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("brigade/config.toml");
        let mut profiles = Profiles::read(&path).unwrap();
        let profile = StoreProfile {
            url: "tls://a:4222".into(),
            ca: Some("/a \"b\"\\c.pem".into()),
            creds: None,
        };
        assert_eq!(profiles.add(name("work"), profile.clone()).unwrap(), None);
        assert_eq!(profiles.add(name("work"), profile.clone()).unwrap(), Some(profile.clone()));
        profiles.set_default(Some(&name("work"))).unwrap();
        assert_eq!(profiles.keep(), Keep::All);
        profiles.set_keep(Keep::Days(90)).unwrap();
        let read = Profiles::read(&path).unwrap();
        assert_eq!(read.keep(), Keep::Days(90));
        assert_eq!(read.get(&name("work")).unwrap(), &profile);
        assert_eq!(read.default_name(), Some(&name("work")));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        profiles.set_default(None).unwrap();
        assert_eq!(Profiles::read(&path).unwrap().default_name(), None);
        assert!(profiles.set_default(Some(&name("wrok"))).is_err());
    }

    #[test]
    fn a_removed_store_is_not_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let mut profiles = Profiles::read(&path).unwrap();
        for store in ["home", "work"] {
            let profile = StoreProfile { url: "nats://a:4222".into(), ca: None, creds: None };
            profiles.add(name(store), profile).unwrap();
        }
        profiles.set_default(Some(&name("work"))).unwrap();
        assert!(!profiles.remove(&name("home")).unwrap());
        assert!(profiles.remove(&name("work")).unwrap());
        let read = Profiles::read(&path).unwrap();
        assert_eq!((read.default_name(), read.stores().count()), (None, 0));
        assert!(profiles.remove(&name("work")).is_err());
    }

    #[test]
    fn each_team_of_an_organisation_has_its_own_store() {
        let team = |name: &str| name.parse::<TeamName>().unwrap();
        let store = |first: Option<&str>| {
            let first = first.map(team);
            StoreName::for_team(&team("acme"), first.as_ref(), &team("demo")).unwrap().to_string()
        };
        assert_eq!(store(None), "acme");
        assert_eq!(store(Some("demo")), "acme");
        assert_eq!(store(Some("proj")), "acme-demo");
    }

    #[test]
    fn names_cannot_be_mistaken_for_addresses() {
        for text in ["", "files", "nats://a", "a b", "-x", "a/b", ".."] {
            assert!(text.parse::<StoreName>().is_err(), "{text:?}");
        }
        for text in ["work", "a.b", "host-2_x"] {
            assert!(text.parse::<StoreName>().is_ok(), "{text:?}");
        }
    }

    #[test]
    fn a_file_with_mistakes_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for text in ["default = 1", "[stores.x]\nurl = \"nats://a\"\npassword = \"x\"", "[store"] {
            fs::write(&path, text).unwrap();
            let error = Profiles::read(&path).unwrap_err();
            assert!(error.to_string().contains("config.toml"), "{error}");
        }
    }
}
