//! Determines where the teams are stored, from the command line, the environment, a `brigade.toml` or the user's
//! configuration.

use std::path::{Path, PathBuf};

use brigade_core::text::one_line;
use brigade_host::location::{Location, StoreAddress};
use brigade_host::profile::Profiles;
use brigade_host::store_choice::{GivenPath, StoreChoice, StoreSources};
use brigade_host::team_file;
use brigade_host::trust::StoreSetting;

use crate::cli::GlobalArgs;
use crate::context::{trust, variable};
use crate::error::{CliError, CliTrouble, failed};
use crate::{env, output};

/// Which `brigade.toml` may name the store of the teams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TeamFileSource<'l> {
    /// No file, and no default of the user's configuration: another program started this command.
    Ignored,
    /// No file, because it names no store.
    WithoutStore,
    /// The file in the current folder or in the nearest parent folder.
    CurrentFolder,
    /// The same file. If the user does not trust it, it is ignored without a note.
    CurrentFolderIfTrusted,
    /// The file at this path.
    File(&'l Path),
}

/// Returns the store that is named on the command line, else in the environment, else in a `brigade.toml`, else as the
/// default in the user's configuration.
pub(crate) fn location(
    global: &GlobalArgs,
    source: TeamFileSource<'_>,
) -> Result<Location, CliError> {
    let (option, variable) = named_store(global)?;
    let is_named = option.is_some() || variable.is_some();
    let path = |option: &Option<PathBuf>, name| -> Result<GivenPath, CliError> {
        let option = option.clone().map(absolute).transpose()?;
        let variable = env::read(name).map(|path| absolute(path.into())).transpose()?;
        Ok(GivenPath { option, variable })
    };
    StoreSources {
        option,
        variable,
        team_file: if is_named { None } else { in_team_file(source)? },
        profiles: &profiles_if_any()?,
        uses_default: !matches!(source, TeamFileSource::Ignored),
        creds: path(&global.creds, env::CREDS)?,
        ca: path(&global.ca, env::CA)?,
        cert: path(&global.cert, env::CERT)?,
        key: path(&global.key, env::KEY)?,
    }
    .resolve()
}

/// The name of the user's configuration in brigade's configuration folder.
pub(crate) const CONFIG_FILE: &str = "config.toml";

/// Returns the stores that are named on the command line and in the environment.
pub(crate) fn named_store(
    global: &GlobalArgs,
) -> Result<(Option<StoreChoice>, Option<StoreChoice>), CliError> {
    Ok((global.store.clone(), variable(env::STORE, str::parse)?))
}

/// Reads the stores in the user's configuration.
pub(crate) fn profiles() -> Result<Profiles, CliError> {
    let dir = env::config_dir().ok_or_else(|| CliError::failed(CliTrouble::NoHome))?;
    Profiles::read(&dir.join(CONFIG_FILE))
}

/// Reads the stores in the user's configuration. Without a home directory there are none.
fn profiles_if_any() -> Result<Profiles, CliError> {
    env::config_dir().map_or_else(|| Ok(Profiles::default()), |_| profiles())
}

/// Returns the store and the credentials that the `brigade.toml` names. If the user does not trust the file, prints a
/// note and returns `None`.
fn in_team_file(
    source: TeamFileSource<'_>,
) -> Result<Option<(StoreAddress, Option<PathBuf>)>, CliError> {
    let file = match source {
        TeamFileSource::Ignored | TeamFileSource::WithoutStore => None,
        TeamFileSource::CurrentFolder | TeamFileSource::CurrentFolderIfTrusted => {
            std::env::current_dir().ok().and_then(|dir| team_file::find(&dir).ok())
        }
        TeamFileSource::File(file) => Some(file.to_owned()),
    };
    let Some(file) = file else { return Ok(None) };
    match trust()?.store(&file)? {
        StoreSetting::Absent => Ok(None),
        StoreSetting::Named(address, creds) => Ok(Some((address, creds))),
        StoreSetting::Ignored(_) if matches!(source, TeamFileSource::CurrentFolderIfTrusted) => {
            Ok(None)
        }
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

/// Returns the absolute form of a path.
pub(crate) fn absolute(path: PathBuf) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|source| failed("find the current folder", source))
}
