//! Reads `brigade.toml`, the file that describes a team.
//!
//! [`read`] returns the team with defaults filled in, or all mistakes in the file with their positions.

mod mistake;
mod prompt;
#[cfg(test)]
mod property_tests;
mod references;
mod regular_file;
mod resolve;
pub mod starter;
mod tables;
mod tasks;
pub mod templates;
mod toml_value;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use brigade_wire::name::{MemberName, TeamName};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use self::mistake::Mistake;
use self::mistake::Mistakes;
pub(crate) use self::prompt::read_prompt_file;
pub use self::references::{OutsidePath, OutsidePaths, PathKey};
use self::references::{References, ReferredPath};
use self::regular_file::ReadError;
pub use self::tables::schema;
pub use self::tasks::graph;
use self::toml_value::TomlValue as _;
use crate::error::HostError;
use crate::location::StoreAddress;
use crate::spec::TeamSpec;
use brigade_core::text::plain;

/// The name of a team file.
pub const NAME: &str = "brigade.toml";

/// The maximum size of a team file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// The maximum number of mistakes shown in one error message.
const MAX_MISTAKES_SHOWN: usize = 20;

/// Why a team file cannot be used.
#[derive(Debug, Error)]
pub enum TeamFileError {
    /// Neither the current folder nor any folder above it has a team file.
    #[error("there is no {NAME} here or in any folder above")]
    Nowhere,
    /// The team file belongs to another user.
    #[error("{path} belongs to another user and is not used by default")]
    Foreign {
        /// The path of the team file.
        path: PathBuf,
    },
    /// The team file cannot be read.
    #[error("cannot read {path}")]
    Io {
        /// The path of the team file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The path is not a regular file but a folder, a pipe or the like.
    #[error("{path} is not a file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The team file is too long.
    #[error("{path} is longer than 1 MiB")]
    TooLong {
        /// The path of the team file.
        path: PathBuf,
    },
    /// The team file is not UTF-8.
    #[error("{path} is not UTF-8")]
    NotText {
        /// The path of the team file.
        path: PathBuf,
    },
    /// The content of the team file is invalid.
    #[error("{}", mistakes_text(path, mistakes))]
    Mistakes {
        /// The path of the team file.
        path: PathBuf,
        /// All mistakes, sorted by their position in the file.
        mistakes: Vec<Mistake>,
    },
}

impl From<TeamFileError> for HostError {
    fn from(error: TeamFileError) -> Self {
        if let TeamFileError::Foreign { path } = &error {
            let hint =
                format!("read it first; `brigade up --file {}` uses it anyway", path.display());
            return Self::failed(error).hint(hint);
        }
        let hint = match &error {
            TeamFileError::Nowhere => Some("`brigade new` writes one"),
            TeamFileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("`brigade new` writes one")
            }
            TeamFileError::Mistakes { .. } => {
                Some("nothing was started; fix the file and try again")
            }
            _ => None,
        };
        hint.into_iter().fold(Self::failed(error), Self::hint)
    }
}

/// Renders a line with the number of mistakes, then the mistakes.
fn mistakes_text(path: &Path, mistakes: &[Mistake]) -> String {
    let path = path.display();
    let count = mistakes.len();
    let mut text = match count {
        1 => format!("{path} has a mistake"),
        _ => format!("{path} has {count} mistakes"),
    };
    for mistake in mistakes.iter().take(MAX_MISTAKES_SHOWN) {
        let Mistake { line, column, message, .. } = mistake;
        let message = plain(message);
        let _infallible = write!(text, "\n\n{path}:{line}:{column}: {message}\n{mistake}");
    }
    if count > MAX_MISTAKES_SHOWN {
        let _infallible = write!(text, "\n\nand {} more", count - MAX_MISTAKES_SHOWN);
    }
    text.push('\n');
    text
}

/// Finds the team file in `dir` or in the nearest folder above. Fails if another user put the file into a shared
/// folder, because the file names programs to start.
pub fn find(dir: &Path) -> Result<PathBuf, TeamFileError> {
    let mut paths = dir.ancestors().map(|dir| dir.join(NAME));
    let path = paths.find(|path| path.exists()).ok_or(TeamFileError::Nowhere)?;
    match is_foreign(&path) {
        Ok(false) => Ok(path),
        Ok(true) => Err(TeamFileError::Foreign { path }),
        Err(source) => Err(TeamFileError::Io { path, source }),
    }
}

/// Like [`find`], but returns a path relative to `dir` if the file is in `dir`.
pub fn find_short(dir: &Path) -> Result<PathBuf, TeamFileError> {
    let path = find(dir)?;
    Ok(path.strip_prefix(dir).map_or(path.clone(), Path::to_owned))
}

fn is_foreign(path: &Path) -> io::Result<bool> {
    let me = rustix::process::geteuid().as_raw();
    let folder = fs::metadata(path.parent().unwrap_or(path))?.uid();
    // If the path is a symbolic link, check both the owner of the link and the owner of its target.
    let owners = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
    Ok(owners.into_iter().any(|owner| is_untrusted(owner, folder, me)))
}

/// Returns whether the owner of a file is neither this user, nor root, nor the owner of the file's folder.
fn is_untrusted(owner: u32, folder: u32, me: u32) -> bool {
    ![me, 0, folder].contains(&owner)
}

/// A valid team file, with defaults filled in.
#[derive(Clone, Debug)]
pub struct TeamFile {
    /// The path of the file. The folder is absolute and has no symbolic links.
    pub path: PathBuf,
    /// The team that the file describes.
    pub spec: TeamSpec,
    /// Where the file stores the team.
    pub store: Option<StoreAddress>,
    /// The credentials file for the NATS server.
    pub creds: Option<PathBuf>,
    /// The prompt files, as written in the file.
    pub prompt_files: Vec<PathBuf>,
    /// The members whose prompt is in the file itself.
    pub inline_prompts: Vec<MemberName>,
    /// The files and folders outside the folder of the file.
    pub outside: Vec<OutsidePath>,
    /// Identifies the content of the file and of the prompt files in its folder, and the paths outside the folder.
    pub(crate) digest: [u8; 32],
}

/// Returns the name of the team in a team file. Does not check the rest of the file.
pub fn team_name(path: &Path) -> Result<Option<TeamName>, TeamFileError> {
    let text = text(path)?;
    let document = root_keys(&text);
    let name = document.get_ref().get("team").and_then(|name| name.get_ref().as_str());
    Ok(name.and_then(|name| name.parse().ok()))
}

/// Returns whether a team file names a store or credentials, even if the file has mistakes.
pub(crate) fn names_store(path: &Path) -> bool {
    let Ok(text) = text(path) else { return false };
    let document = root_keys(&text);
    ["store", "creds"].into_iter().any(|key| document.get_ref().contains_key(key))
}

/// Reads a team file. Relative paths in the file are relative to the folder of the file.
pub fn read(path: &Path, outside: OutsidePaths) -> Result<TeamFile, TeamFileError> {
    let text = text(path)?;
    let failed = |source| TeamFileError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let root = absolute.parent().unwrap_or(Path::new("/"));
    let file = parse(&text, root, outside)
        .map_err(|mistakes| TeamFileError::Mistakes { path: path.to_owned(), mistakes })?;
    Ok(TeamFile { path: identity(path), ..file })
}

/// Returns the path that identifies a team file: its folder is absolute and has no symbolic links.
pub fn identity(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (absolute.parent().map(Path::canonicalize), absolute.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

/// Parses the text of a team file that is in the folder `root`.
fn parse(text: &str, root: &Path, outside: OutsidePaths) -> Result<TeamFile, Vec<Mistake>> {
    let (document, mut mistakes) = parse_toml(text);
    // Do not use what the parser recovered from invalid TOML, which might not be what the author meant.
    if !mistakes.is_empty() {
        return Err(mistakes.placed(text));
    }
    let span = document.span();
    let document = Spanned::new(span, DeValue::Table(document.into_inner()));
    let mut references = References::new(root, text, outside);
    let file = tables::File::read(document, &mut mistakes);
    let spec =
        file.as_ref().and_then(|file| resolve::team(file, root, &mut references, &mut mistakes));
    let (Some(file), Some(spec), true) = (file, spec, mistakes.is_empty()) else {
        return Err(mistakes.placed(text));
    };
    let creds = file.creds.get().map(|creds| {
        match references.resolve(PathKey::Creds, None, Path::new(&creds.0)) {
            ReferredPath::Inside(path) | ReferredPath::Outside(path) => path,
        }
    });
    Ok(TeamFile {
        path: root.join(NAME),
        spec,
        store: file.store.get().cloned(),
        creds,
        digest: references.digest(),
        outside: references.outside(),
        prompt_files: references.prompt_files,
        inline_prompts: references.inline_prompts,
    })
}

/// Parses the keys that are in no table. Parses the tables only if necessary, because every command needs these keys, and a
/// large team has many tables.
fn root_keys(text: &str) -> Spanned<DeTable<'_>> {
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let before = text.split_inclusive('\n').take_while(|line| !is_header(line)).map(str::len).sum();
    let (root, tables) = text.split_at_checked(before).unwrap_or((text, ""));
    let (document, errors) = DeTable::parse_recoverable(root);
    // A line with a bracket may be part of an array or a text. Then the value in front of it has no end, which is an error.
    let mut headers = tables.lines().filter(is_header);
    if errors.is_empty() && !headers.any(|line| line.contains("store") || line.contains("creds")) {
        return document;
    }
    DeTable::parse_recoverable(text).0
}

fn parse_toml(text: &str) -> (Spanned<DeTable<'_>>, Mistakes) {
    let mut mistakes = Mistakes::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        // An error without a position means that the file ends too early, so report the end of the file.
        let span = error.span().unwrap_or(text.len()..text.len());
        mistakes.add(&span, error.message());
    }
    (document, mistakes)
}

fn text(path: &Path) -> Result<String, TeamFileError> {
    let path = path.to_owned();
    let bytes = match regular_file::read(&path, MAX_FILE_SIZE) {
        Ok(bytes) => bytes,
        Err(ReadError::Io(source)) => return Err(TeamFileError::Io { path, source }),
        Err(ReadError::NotAFile) => return Err(TeamFileError::NotAFile { path }),
        Err(ReadError::TooLong) => return Err(TeamFileError::TooLong { path }),
    };
    String::from_utf8(bytes).map_err(|_| TeamFileError::NotText { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_outside_of_tables_are_the_same_without_parsing_the_tables() {
        for text in [
            "",
            "team = \"demo\"\n[members.bob]\nagent = \"codex\"\n",
            "team = \"demo\"\nlist = [\n[1],\n]\nstore = \"files\"\n[members.bob]\n",
            "text = \"\"\"\n[members.bob]\n\"\"\"\nteam = \"demo\"\n[members.eve]\n",
            "team = \"demo\"\n[members.bob]\nstore = \"files\"\n",
            "team = \"demo\"\n[store]\n",
            "team = \"demo\"\n  [[ \"creds\" ]]\n",
            "[members.bob]\nagent = \n[\n",
            "team = \n[members.bob]\nteam = \"bob\"\n",
        ] {
            let (quick, whole) = (root_keys(text), DeTable::parse_recoverable(text).0);
            for key in ["team", "store", "creds"] {
                let value = |document: &Spanned<DeTable<'_>>| {
                    document.get_ref().get(key).map(|value| format!("{:?}", value.get_ref()))
                };
                assert_eq!(value(&quick), value(&whole), "{key} in {text:?}");
            }
        }
    }

    /// Without this check, any user could put a team file into a shared folder and make brigade run programs.
    #[test]
    fn a_file_of_an_untrusted_user_is_refused() {
        let (me, root, folders, stranger) = (1000, 0, 2000, 3000);
        assert!(is_untrusted(stranger, root, me));
        assert!(is_untrusted(stranger, me, me));
        for trusted in [me, root, folders] {
            assert!(!is_untrusted(trusted, folders, me), "{trusted}");
        }
        let here = std::env::temp_dir().join(format!("brigade-file-{}", std::process::id()));
        fs::create_dir_all(&here).unwrap();
        fs::write(here.join(NAME), "").unwrap();
        assert_eq!(find(&here).unwrap(), here.join(NAME));
        fs::remove_dir_all(here).unwrap();
    }
}
