//! Determines where the teams are stored, from the command line, the environment or a `brigade.toml`.

use std::path::{Path, PathBuf};

use brigade_core::text::one_line;
use brigade_host::location::{Location, NatsServers, StoreAddress};
use brigade_host::team_file;
use brigade_host::trust::StoreSetting;

use crate::cli::GlobalArgs;
use crate::context::{trust, variable};
use crate::error::{CliError, CliTrouble, failed};
use crate::{env, output};

/// Which `brigade.toml` may name the store of the teams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TeamFileSource<'l> {
    /// No file.
    Ignored,
    /// The file in the current folder or in the nearest parent folder.
    CurrentFolder,
    /// The file at this path.
    File(&'l Path),
}

/// Returns the store that is named on the command line, else in the environment, else in a `brigade.toml`.
pub(crate) fn location(
    global: &GlobalArgs,
    source: TeamFileSource<'_>,
) -> Result<Location, CliError> {
    let named = named_store(global)?;
    let is_named = named.is_some();
    let (address, creds) = match named {
        Some(address) => (address, None),
        None => in_team_file(source)?.unwrap_or((StoreAddress::Files, None)),
    };
    let StoreAddress::Servers(servers) = address else { return Ok(Location::Files) };
    let path = |given: &Option<PathBuf>, name| {
        let path = given.clone().or_else(|| env::read(name).map(PathBuf::from));
        path.map(absolute).transpose()
    };
    let client = match (path(&global.cert, env::CERT)?, path(&global.key, env::KEY)?) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        _ => return Err(CliError::usage(CliTrouble::HalfClient)),
    };
    // The user may have trusted the file without thinking of the credentials in the environment, so brigade does not
    // send them to a server that only the file names.
    let creds = match (&global.creds, creds) {
        (None, creds) if !is_named => {
            if creds.is_none() && env::read(env::CREDS).is_some() {
                let error = CliError::usage(CliTrouble::CredsForAFile);
                return Err(error.hint(format!(
                    "name the server with `--store` or {}, or the credentials with `--creds`",
                    env::STORE
                )));
            }
            creds
        }
        (given, creds) => path(given, env::CREDS)?.or(creds),
    };
    let ca = path(&global.ca, env::CA)?;
    Ok(Location::Nats(NatsServers { servers, creds, ca, client }))
}

/// Returns the store that is named on the command line or in the environment.
pub(crate) fn named_store(global: &GlobalArgs) -> Result<Option<StoreAddress>, CliError> {
    match &global.store {
        Some(address) => Ok(Some(address.clone())),
        None => variable(env::STORE, str::parse),
    }
}

/// Returns the store and the credentials that the `brigade.toml` names. If the user does not trust the file, prints a
/// note and returns `None`.
fn in_team_file(
    source: TeamFileSource<'_>,
) -> Result<Option<(StoreAddress, Option<PathBuf>)>, CliError> {
    let file = match source {
        TeamFileSource::Ignored => None,
        TeamFileSource::CurrentFolder => {
            std::env::current_dir().ok().and_then(|dir| team_file::find(&dir).ok())
        }
        TeamFileSource::File(file) => Some(file.to_owned()),
    };
    let Some(file) = file else { return Ok(None) };
    match trust()?.store(&file)? {
        StoreSetting::Absent => Ok(None),
        StoreSetting::Named(address, creds) => Ok(Some((address, creds))),
        StoreSetting::Ignored(reason) => {
            output::note(&format!(
                "{} {reason}, so brigade does not use its `store` and `creds`; `brigade trust` shows \
                 what the file would do",
                one_line(&file.to_string_lossy())
            ));
            Ok(None)
        }
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|source| failed("find the current folder", source))
}
