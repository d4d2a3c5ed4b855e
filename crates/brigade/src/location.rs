//! Where the teams are stored: what the command line, the environment or a `brigade.toml` name.

use std::path::{Path, PathBuf};

use brigade_host::location::{Location, NatsServers, StoreAddress};
use brigade_host::team_file;

use crate::cli::GlobalArgs;
use crate::context::variable;
use crate::env;
use crate::error::{CliError, CliTrouble, failed};

/// Whether a `brigade.toml` may say where the teams live.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TeamFileSource<'l> {
    /// None.
    Ignored,
    /// The file of the current folder, or of the nearest folder above it.
    CurrentFolder,
    /// This one.
    File(&'l Path),
}

/// The store named on the command line, else in the environment, else in a `brigade.toml`.
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
    // A server that a repository's file chose could reuse credentials that it receives, so it does not get those
    // of the environment.
    let creds = match (&global.creds, creds) {
        (None, creds) if !is_named => {
            if creds.is_none() && env::read(env::CREDS).is_some() {
                let error = CliError::usage(CliTrouble::CredsForAFile);
                return Err(error.hint(format!(
                    "say where it is yourself, with `--store` or {}, or the credentials with `--creds`",
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

/// The store and the credentials that the file names.
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
