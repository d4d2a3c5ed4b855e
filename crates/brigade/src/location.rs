//! Determines where the teams are stored, from the command line, the environment or a `brigade.toml`.

use std::path::{Path, PathBuf};

use brigade_host::location::{Location, NatsServers, StoreAddress};
use brigade_host::team_file;

use crate::cli::GlobalArgs;
use crate::context::variable;
use crate::env;
use crate::error::{CliError, CliTrouble, failed};

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
    let named = match &global.store {
        Some(address) => Some(address.clone()),
        None => variable(env::STORE, str::parse)?,
    };
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
    // A `brigade.toml` may come from a repository that the user does not trust. The server that
    // the file names could misuse credentials, so brigade does not send credentials from the environment to it.
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

/// Returns the store and the credentials that the `brigade.toml` names.
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
    Ok(file.map(|file| team_file::location(&file)).transpose()?.flatten())
}

fn absolute(path: PathBuf) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|source| failed("find the current folder", source))
}
