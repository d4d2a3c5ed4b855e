//! `brigade.toml`: the definition of a team in one file.
//!
//! [`read`] returns the team with all defaults filled in, or every mistake in the file with its position.

mod board;
mod form;
#[cfg(test)]
mod laws;
mod mistake;
mod prompt;
mod resolve;
mod shape;
pub(crate) mod starter;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use brigade_wire::name::TeamName;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

pub(crate) use self::board::graph;
pub(crate) use self::form::schema;
pub(crate) use self::mistake::Mistake;
use self::mistake::Mistakes;
use self::shape::Shape as _;
use crate::error::CliError;
use crate::home::Address;
use crate::host::spec::TeamSpec;
use crate::output;

/// The file's name.
pub(crate) const NAME: &str = "brigade.toml";

/// Maximum size of the file in bytes.
const LONGEST: u64 = 1 << 20;

/// Maximum number of mistakes to print.
const TOLD: usize = 20;

/// Why the team in a file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("there is no {NAME} in this folder or its parents")]
    Nowhere,
    #[error("{path} belongs to another user and is not used automatically")]
    Foreign { path: PathBuf },
    #[error("cannot read {path}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is not a file")]
    NotAFile { path: PathBuf },
    #[error("{path} is longer than 1 MiB")]
    TooLong { path: PathBuf },
    #[error("{path} is not UTF-8")]
    NotText { path: PathBuf },
    #[error("{}", told(path, mistakes))]
    Mistakes { path: PathBuf, mistakes: Vec<Mistake> },
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        if let FileError::Foreign { path } = &error {
            let hint =
                format!("check its content; `brigade up --file {}` uses it anyway", path.display());
            return Self::failed(error).hint(hint);
        }
        let hint = match &error {
            FileError::Nowhere => Some("`brigade new` writes a starter file"),
            FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("`brigade new` writes a starter file")
            }
            FileError::Mistakes { .. } => {
                Some("nothing was started; correct the file and try again")
            }
            _ => None,
        };
        hint.into_iter().fold(Self::failed(error), Self::hint)
    }
}

/// Formats the mistakes below a line with their number.
fn told(path: &Path, mistakes: &[Mistake]) -> String {
    let path = path.display();
    let count = mistakes.len();
    let mut text = match count {
        1 => format!("{path} has a mistake"),
        _ => format!("{path} has {count} mistakes"),
    };
    for mistake in mistakes.iter().take(TOLD) {
        let Mistake { line, column, message, .. } = mistake;
        let message = output::plain(message);
        let _infallible = write!(text, "\n\n{path}:{line}:{column}: {message}\n{mistake}");
    }
    if count > TOLD {
        let _infallible = write!(text, "\n\nand {} more", count - TOLD);
    }
    text.push('\n');
    text
}

/// Finds the team file in this folder or its nearest parent. The file decides which programs are started, so a file
/// that another user put into a shared folder is refused.
pub(crate) fn find(dir: &Path) -> Result<PathBuf, FileError> {
    let mut paths = dir.ancestors().map(|dir| dir.join(NAME));
    let path = paths.find(|path| path.exists()).ok_or(FileError::Nowhere)?;
    match is_foreign(&path) {
        Ok(false) => Ok(path),
        Ok(true) => Err(FileError::Foreign { path }),
        Err(source) => Err(FileError::Io { path, source }),
    }
}

fn is_foreign(path: &Path) -> io::Result<bool> {
    let me = rustix::process::geteuid().as_raw();
    let folder = fs::metadata(path.parent().unwrap_or(path))?.uid();
    // For a link, check the owner of the link and of its target.
    let owners = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
    Ok(owners.into_iter().any(|owner| is_strangers(owner, folder, me)))
}

/// Whether a file belongs neither to the current user, nor to root, nor to the owner of its folder.
fn is_strangers(owner: u32, folder: u32, me: u32) -> bool {
    ![me, 0, folder].contains(&owner)
}

/// The team name in the file for the current folder, if any.
pub(crate) fn here() -> Option<TeamName> {
    let text = text(&find(&std::env::current_dir().ok()?).ok()?).ok()?;
    let (document, _) = DeTable::parse_recoverable(&text);
    document.get_ref().get("team")?.get_ref().as_str()?.parse().ok()
}

/// Reads the team from a file. Paths in it are relative to its folder.
pub(crate) fn read(path: &Path) -> Result<TeamSpec, FileError> {
    let text = text(path)?;
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let root = absolute.parent().unwrap_or(Path::new("/"));
    parse(&text, root).map_err(|mistakes| FileError::Mistakes { path: path.to_owned(), mistakes })
}

/// The store and credentials that a file sets, if any. If it sets no store, the rest of the file is not checked.
pub(crate) fn home(path: &Path) -> Result<Option<(Address, Option<PathBuf>)>, FileError> {
    let text = match text(path) {
        Ok(text) if text.lines().any(|line| line.trim_start().starts_with("store")) => text,
        // Commands that need the whole file report its mistakes.
        _ => return Ok(None),
    };
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let root = absolute.parent().unwrap_or(Path::new("/"));
    let mut mistakes = Mistakes::default();
    let (document, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        mistakes.add(&error.span().unwrap_or(text.len()..text.len()), error.message());
    }
    let mut said = document.into_inner();
    let store = said.remove("store").and_then(|value| Address::read(value, &mut mistakes));
    let creds = said.remove("creds").and_then(|value| form::Words::read(value, &mut mistakes));
    if !mistakes.is_empty() {
        let mistakes = mistakes.placed(&text);
        return Err(FileError::Mistakes { path: path.to_owned(), mistakes });
    }
    Ok(store.map(|store| (store, creds.map(|creds| root.join(creds.0)))))
}

/// Parses the text of a team file.
fn parse(text: &str, root: &Path) -> Result<TeamSpec, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        // If the file ends too early, the mistake is at its end.
        let span = error.span().unwrap_or(text.len()..text.len());
        mistakes.add(&span, error.message());
    }
    // Do not interpret the recovered parts of invalid TOML: they may not be what the author wrote.
    if !mistakes.is_empty() {
        return Err(mistakes.placed(text));
    }
    let span = document.span();
    let document = toml::Spanned::new(span, DeValue::Table(document.into_inner()));
    let file = form::File::read(document, &mut mistakes);
    let team = file.and_then(|file| resolve::team(&file, root, &mut mistakes));
    match team {
        Some(team) if mistakes.is_empty() => Ok(team),
        _ => Err(mistakes.placed(text)),
    }
}

fn text(path: &Path) -> Result<String, FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    // Opening a named pipe would block.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(FileError::TooLong { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a shared folder, any user could otherwise decide which programs are started.
    #[test]
    fn files_of_other_users_are_refused() {
        let (me, root, folders, stranger) = (1000, 0, 2000, 3000);
        assert!(is_strangers(stranger, root, me));
        assert!(is_strangers(stranger, me, me));
        for trusted in [me, root, folders] {
            assert!(!is_strangers(trusted, folders, me), "{trusted}");
        }
        let here = std::env::temp_dir().join(format!("brigade-file-{}", std::process::id()));
        fs::create_dir_all(&here).unwrap();
        fs::write(here.join(NAME), "").unwrap();
        assert_eq!(find(&here).unwrap(), here.join(NAME));
        fs::remove_dir_all(here).unwrap();
    }
}
