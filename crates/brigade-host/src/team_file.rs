//! `brigade.toml`: a whole team in one file.
//!
//! [`read`] gives the team with everything filled in, or all that is wrong with the file, each mistake
//! with its place.

mod board;
mod form;
#[cfg(test)]
mod laws;
mod mistake;
mod prompt;
mod resolve;
mod shape;
pub mod starter;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use brigade_wire::name::TeamName;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

pub use self::board::graph;
pub use self::form::schema;
pub use self::mistake::Mistake;
use self::mistake::Mistakes;
use self::shape::Shape as _;
use crate::error::HostError;
use crate::location::Address;
use crate::spec::TeamSpec;
use brigade_core::text::plain;

/// The file's name.
pub const NAME: &str = "brigade.toml";

/// The longest file, in bytes.
const LONGEST: u64 = 1 << 20;

/// How many mistakes are told at once.
const TOLD: usize = 20;

/// Why there is no team in a file.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("there is no {NAME} here or in any folder above")]
    Nowhere,
    #[error("{path} is somebody else's, and is not used unasked")]
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

impl From<FileError> for HostError {
    fn from(error: FileError) -> Self {
        if let FileError::Foreign { path } = &error {
            let hint =
                format!("look at it; `brigade up --file {}` uses it all the same", path.display());
            return Self::failed(error).hint(hint);
        }
        let hint = match &error {
            FileError::Nowhere => Some("`brigade new` writes a first one"),
            FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("`brigade new` writes a first one")
            }
            FileError::Mistakes { .. } => Some("nothing was started; mend the file and try again"),
            _ => None,
        };
        hint.into_iter().fold(Self::failed(error), Self::hint)
    }
}

/// All mistakes, below a line that counts them.
fn told(path: &Path, mistakes: &[Mistake]) -> String {
    let path = path.display();
    let count = mistakes.len();
    let mut text = match count {
        1 => format!("{path} has a mistake"),
        _ => format!("{path} has {count} mistakes"),
    };
    for mistake in mistakes.iter().take(TOLD) {
        let Mistake { line, column, message, .. } = mistake;
        let message = plain(message);
        let _infallible = write!(text, "\n\n{path}:{line}:{column}: {message}\n{mistake}");
    }
    if count > TOLD {
        let _infallible = write!(text, "\n\nand {} more", count - TOLD);
    }
    text.push('\n');
    text
}

/// The file of the team that is worked on here: the one of this folder, or of the nearest above. It says which
/// programs are started, so it is not one that somebody else put into a folder that everybody may write to.
pub fn find(dir: &Path) -> Result<PathBuf, FileError> {
    let mut paths = dir.ancestors().map(|dir| dir.join(NAME));
    let path = paths.find(|path| path.exists()).ok_or(FileError::Nowhere)?;
    match is_foreign(&path) {
        Ok(false) => Ok(path),
        Ok(true) => Err(FileError::Foreign { path }),
        Err(source) => Err(FileError::Io { path, source }),
    }
}

/// The same, as short as a person would write it.
pub fn find_short(dir: &Path) -> Result<PathBuf, FileError> {
    let path = find(dir)?;
    Ok(path.strip_prefix(dir).map_or(path.clone(), Path::to_owned))
}

fn is_foreign(path: &Path) -> io::Result<bool> {
    let me = rustix::process::geteuid().as_raw();
    let folder = fs::metadata(path.parent().unwrap_or(path))?.uid();
    // Of a link, whose it is as well as whose what it leads to is.
    let owners = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
    Ok(owners.into_iter().any(|owner| is_strangers(owner, folder, me)))
}

/// Whether a file is neither ours, nor root's, nor of who owns the folder that it is in.
fn is_strangers(owner: u32, folder: u32, me: u32) -> bool {
    ![me, 0, folder].contains(&owner)
}

/// The team that the file of this folder is about, if there is one that says so.
pub fn team_of(dir: &Path) -> Option<TeamName> {
    let text = text(&find(dir).ok()?).ok()?;
    let (document, _) = DeTable::parse_recoverable(&text);
    document.get_ref().get("team")?.get_ref().as_str()?.parse().ok()
}

/// The team a file tells of. Paths in it are seen from the folder it is in.
pub fn read(path: &Path) -> Result<TeamSpec, FileError> {
    let text = text(path)?;
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let root = absolute.parent().unwrap_or(Path::new("/"));
    parse(&text, root).map_err(|mistakes| FileError::Mistakes { path: path.to_owned(), mistakes })
}

/// Where the team of a file lives, and the credentials for it, if the file says so. Of a file that says
/// nothing of it nothing else is looked at, be it right or wrong.
pub fn location(path: &Path) -> Result<Option<(Address, Option<PathBuf>)>, FileError> {
    let text = match text(path) {
        Ok(text) if text.lines().any(|line| line.trim_start().starts_with("store")) => text,
        // Who has to read it says what is wrong with it.
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

/// The same of a text.
fn parse(text: &str, root: &Path) -> Result<TeamSpec, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        // A file that ends too early has its mistake at its end.
        let span = error.span().unwrap_or(text.len()..text.len());
        mistakes.add(&span, error.message());
    }
    // What could be saved of a file that is not TOML is not what its author wrote.
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
    // Opening a pipe would wait for its other end.
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

    /// In a folder that everybody may write to, anybody could say what is started.
    #[test]
    fn a_strangers_file_is_not_ours_to_use() {
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
