//! Which store a command uses, if several sources name one.
//!
//! The option comes before the environment variable, the variable before a trusted `brigade.toml`, and the file before
//! the default of the user's configuration.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{HostError, Trouble};
use crate::location::{Location, NatsServers, StoreAddress, StoreAddressError};
use crate::profile::{Profiles, StoreName, StoreProfile};
use crate::variables;

/// The value of `--store`: an address, or the name of a store in the user's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// An address.
    Address(StoreAddress),
    /// A store in the user's configuration.
    Named(StoreName),
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Named(name) => name.fmt(f),
        }
    }
}

impl FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(StoreAddressError::Form) => match text.parse() {
                Ok(name) => Ok(Self::Named(name)),
                Err(_) => Err(format!(
                    "{}; or the name of a store (see `brigade store list`)",
                    StoreAddressError::Form
                )),
            },
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A file that an option and an environment variable can name.
#[derive(Clone, Debug, Default)]
pub struct GivenPath {
    /// The value of the option.
    pub option: Option<PathBuf>,
    /// The value of the variable.
    pub variable: Option<PathBuf>,
}

impl GivenPath {
    /// Returns the path. The profile that the user chose with the option comes before the variable, because the
    /// variable may belong to another server.
    fn choose(self, profile: Option<PathBuf>, is_option: bool) -> Option<PathBuf> {
        let (first, second) =
            if is_option { (profile, self.variable) } else { (self.variable, profile) };
        self.option.or(first).or(second)
    }
}

/// Everything that names a store, or a file for connecting to it.
#[derive(Debug)]
pub struct StoreSources<'s> {
    /// The value of `--store`.
    pub option: Option<StoreChoice>,
    /// The value of `BRIGADE_STORE`.
    pub variable: Option<StoreChoice>,
    /// The store and the credentials in a trusted `brigade.toml`.
    pub team_file: Option<(StoreAddress, Option<PathBuf>)>,
    /// The stores in the user's configuration.
    pub profiles: &'s Profiles,
    /// Whether the default of the configuration applies. It does not for programs that other programs start.
    pub uses_default: bool,
    /// The credentials.
    pub creds: GivenPath,
    /// The CA certificate.
    pub ca: GivenPath,
    /// The client's certificate.
    pub cert: GivenPath,
    /// The key of the client's certificate.
    pub key: GivenPath,
}

impl StoreSources<'_> {
    /// Returns the store to use.
    pub fn resolve(self) -> Result<Location, HostError> {
        let is_option = self.option.is_some();
        let named = self.option.or(self.variable);
        let default = || match self.profiles.default_name() {
            Some(name) if self.uses_default => StoreChoice::Named(name.clone()),
            _ => StoreChoice::Address(StoreAddress::Files),
        };
        let (choice, file_creds, is_file) = match (named, self.team_file) {
            (Some(choice), _) => (choice, None, false),
            (None, Some((address, creds))) => (StoreChoice::Address(address), creds, true),
            (None, None) => (default(), None, false),
        };
        let (servers, profile) = match choice {
            StoreChoice::Address(StoreAddress::Files) => return Ok(Location::Files),
            StoreChoice::Address(StoreAddress::Servers(servers)) => (servers, None),
            StoreChoice::Named(name) => {
                let profile = self.profiles.get(&name)?;
                (profile.servers().map_err(HostError::usage)?, Some(profile.clone()))
            }
        };
        let (ca, creds) =
            profile.map_or((None, None), |StoreProfile { ca, creds, .. }| (ca, creds));
        let creds = if is_file {
            team_file_creds(self.creds, file_creds)?
        } else {
            self.creds.choose(creds, is_option)
        };
        let client = match (self.cert.choose(None, is_option), self.key.choose(None, is_option)) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(HostError::usage(Trouble::HalfClient)),
        };
        let ca = self.ca.choose(ca, is_option);
        Ok(Location::Nats(NatsServers { servers, creds, ca, client }))
    }
}

/// Returns the credentials for a server that only a `brigade.toml` names. The user may have trusted the file without
/// thinking of the credentials in the environment, so brigade does not send those to the server.
fn team_file_creds(
    given: GivenPath,
    in_file: Option<PathBuf>,
) -> Result<Option<PathBuf>, HostError> {
    if given.option.is_none() && in_file.is_none() && given.variable.is_some() {
        let error = HostError::usage(Trouble::CredsForAFile);
        return Err(error.hint(format!(
            "name the server with `--store` or {}, or the credentials with `--creds`",
            variables::STORE
        )));
    }
    Ok(given.option.or(in_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Option<StoreChoice> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    fn profiles(default: &str) -> (tempfile::TempDir, Profiles) {
        let dir = tempfile::tempdir().unwrap();
        let mut profiles = Profiles::read(&dir.path().join("config.toml")).unwrap();
        for name in ["office", "home"] {
            let profile = StoreProfile {
                url: format!("tls://{name}:1"),
                ca: Some(format!("/{name}/ca").into()),
                creds: Some(format!("/{name}/creds").into()),
            };
            profiles.add(name.parse().unwrap(), profile).unwrap();
        }
        if !default.is_empty() {
            profiles.set_default(Some(&default.parse().unwrap())).unwrap();
        }
        (dir, profiles)
    }

    /// Resolves a store from `[option, variable, brigade.toml, default]`, with credentials in the variable or not.
    fn resolve(names: [&str; 4], creds_variable: &str) -> Result<String, HostError> {
        let [option, variable, file, default] = names;
        let (_dir, profiles) = profiles(default);
        let file = (!file.is_empty()).then(|| (file.parse().unwrap(), None));
        let variable_path = (!creds_variable.is_empty()).then(|| creds_variable.into());
        let sources = StoreSources {
            option: choice(option),
            variable: choice(variable),
            team_file: file,
            profiles: &profiles,
            uses_default: true,
            creds: GivenPath { option: None, variable: variable_path },
            ca: GivenPath::default(),
            cert: GivenPath::default(),
            key: GivenPath::default(),
        };
        let options = sources.resolve()?.options();
        let options: Vec<String> =
            options.iter().map(|option| option.to_string_lossy().into_owned()).collect();
        Ok(options.join(" "))
    }

    #[test]
    fn the_option_comes_before_the_variable_the_file_and_the_default() {
        let check = |names, creds, expected: &str| {
            assert_eq!(resolve(names, creds).unwrap(), expected, "{names:?} {creds}");
        };
        let home = "--store tls://home:1 --creds /home/creds --ca /home/ca";
        let office = "--store tls://office:1 --creds /office/creds --ca /office/ca";
        check(["", "", "", ""], "", "--store files");
        check(["", "", "", "office"], "", office);
        check(["", "", "nats://f:1", "office"], "", "--store nats://f:1");
        check(["", "home", "nats://f:1", "office"], "", home);
        check(["office", "home", "nats://f:1", ""], "", office);
        check(["files", "home", "nats://f:1", "office"], "", "--store files");
        check(["", "files", "nats://f:1", "office"], "", "--store files");
        check(["nats://o:1", "home", "", "office"], "/v", "--store nats://o:1 --creds /v");
        // Credentials in the variable may belong to another server than the one chosen with the option.
        check(["office", "", "", ""], "/v", office);
        check(["", "office", "", ""], "/v", "--store tls://office:1 --creds /v --ca /office/ca");
        assert!(resolve(["", "", "nats://f:1", ""], "/v").is_err());
        assert!(resolve(["nowhere", "", "", ""], "").is_err());
    }

    #[test]
    fn a_value_is_an_address_or_a_name() {
        assert_eq!(choice("files"), Some(StoreChoice::Address(StoreAddress::Files)));
        assert!(matches!(choice("nats://a"), Some(StoreChoice::Address(_))));
        assert!(matches!(choice("office"), Some(StoreChoice::Named(_))));
        for text in ["redis://a", "nats://me:secret@a", "a b"] {
            assert!(text.parse::<StoreChoice>().is_err(), "{text}");
        }
    }
}
