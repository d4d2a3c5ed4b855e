//! The team files that the user trusts.
//!
//! A `brigade.toml` names programs to run, folders and files to use, and a server to connect to. A repository may
//! contain one. Until the user has agreed, brigade starts nothing from the file, connects to no server that it names,
//! and touches no path outside its folder.
//!
//! The user trusts a file once for each path and content. The content includes the prompt files in the folder of the
//! team file, and the list of paths outside the folder. It does not include programs, or the content of files outside
//! the folder.
//!
//! ```text
//! <state>/trust/<SHA-256 of the path>.<SHA-256 of the content>     the path and the team, as JSON
//! ```
//!
//! Each agreement is a file of its own, so two processes can record agreements at the same time.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use brigade_wire::name::TeamName;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{HostError, Trouble, file_failed};
use crate::location::StoreAddress;
use crate::spec::TeamSpec;
use crate::team_file::{self, OutsidePaths, TeamFile, TeamFileError};
use crate::variables;

/// Whether the user trusts a team file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustState {
    /// The user trusts the file as it is.
    Trusted,
    /// The user trusts an earlier content of the file.
    Changed,
    /// The user has not trusted this file.
    Unknown,
}

/// A team file that was trusted once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The path of the file.
    pub file: PathBuf,
    /// The name of the team in the file.
    pub team: TeamName,
}

/// A team file that the user trusts. Only [`Trust::read`] creates it.
#[derive(Clone, Debug)]
pub struct TrustedTeamFile {
    file: TeamFile,
}

impl TrustedTeamFile {
    /// Returns the path of the file. The folder has no symbolic links.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the team that the file describes.
    pub fn spec(&self) -> &TeamSpec {
        &self.file.spec
    }
}

/// The `store` and `creds` of a team file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSetting {
    /// The file names no store, or it cannot be read.
    Absent,
    /// The store, and the credentials file.
    Named(StoreAddress, Option<PathBuf>),
    /// The file names a store, but it is not used, for this reason.
    Ignored(&'static str),
}

/// Determines which team files are used without asking the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustPolicy {
    /// The files that the user trusted.
    Recorded,
    /// All files.
    All,
}

/// The record of trusted team files.
#[derive(Clone, Debug)]
pub struct Trust {
    dir: PathBuf,
    policy: TrustPolicy,
    is_agent: bool,
}

impl Trust {
    /// Opens the record in brigade's state folder. `is_agent` says that an agent runs the command, not a person. An
    /// agent may use only the files that a person trusted, because it can write team files itself.
    pub fn new(state_dir: &Path, policy: TrustPolicy, is_agent: bool) -> Self {
        let policy = if is_agent { TrustPolicy::Recorded } else { policy };
        Self { dir: state_dir.join("trust"), policy, is_agent }
    }

    /// Returns whether the user trusts this file.
    pub fn state(&self, file: &TeamFile) -> Result<TrustState, HostError> {
        if self.policy == TrustPolicy::All || self.entry_path(file).exists() {
            return Ok(TrustState::Trusted);
        }
        let is_known = !self.entries_of(&file.path)?.is_empty();
        Ok(if is_known { TrustState::Changed } else { TrustState::Unknown })
    }

    /// Reads a team file. Fails if the user does not trust it.
    pub fn read(&self, path: &Path) -> Result<TrustedTeamFile, HostError> {
        let file = team_file::read(path, OutsidePaths::Skip)?;
        self.check(path, &file)?;
        if file.outside.is_empty() {
            return Ok(TrustedTeamFile { file });
        }
        let file = team_file::read(path, OutsidePaths::Use)?;
        // The file may have changed between both reads.
        self.check(path, &file)?;
        Ok(TrustedTeamFile { file })
    }

    fn check(&self, path: &Path, file: &TeamFile) -> Result<(), HostError> {
        let shown = path.to_owned();
        let error = match self.state(file)? {
            TrustState::Trusted => return Ok(()),
            TrustState::Changed => Trouble::FileChanged { path: shown },
            TrustState::Unknown => Trouble::Untrusted { path: shown },
        };
        Err(HostError::failed(error)
            .hint(format!(
                "nothing was started; `brigade trust {}` shows what the file would do, and asks",
                path.display()
            ))
            .hint(format!(
                "in a script that may run every team file, set {}=all",
                variables::TRUST
            )))
    }

    /// Returns the `store` and `creds` of a team file, if the user trusts the file.
    pub fn store(&self, path: &Path) -> Result<StoreSetting, HostError> {
        // Almost no file names a store, and reading a file completely costs more for each member in it.
        if !team_file::names_store(path) {
            return Ok(StoreSetting::Absent);
        }
        let file = match team_file::read(path, OutsidePaths::Skip) {
            Ok(file) => file,
            Err(error @ TeamFileError::Mistakes { .. }) => {
                return match self.policy {
                    TrustPolicy::All => Err(error.into()),
                    TrustPolicy::Recorded => Ok(StoreSetting::Ignored("has mistakes")),
                };
            }
            // A command that needs the team file reports why the file cannot be read.
            Err(_) => return Ok(StoreSetting::Absent),
        };
        let Some(store) = file.store.clone() else { return Ok(StoreSetting::Absent) };
        Ok(match self.state(&file)? {
            TrustState::Trusted => StoreSetting::Named(store, file.creds),
            TrustState::Changed => StoreSetting::Ignored("has changed since you trusted it"),
            TrustState::Unknown => StoreSetting::Ignored("is not trusted"),
        })
    }

    /// Records that the user trusts this file. Fails if the file refers to paths outside its folder and the user has
    /// not accepted them. Only a person can trust a file.
    pub fn add(&self, file: &TeamFile, accepts_outside: bool) -> Result<(), HostError> {
        if self.is_agent {
            let error = HostError::failed(Trouble::TrustByAgent);
            return Err(error.hint("run `brigade trust` in a terminal that no agent uses"));
        }
        if !file.outside.is_empty() && !accepts_outside {
            let count = file.outside.len();
            let error = HostError::failed(Trouble::OutsideNotAccepted { count });
            return Err(error.hint("`brigade trust --yes --outside` accepts them"));
        }
        let entry = TrustEntry { file: file.path.clone(), team: file.spec.team.clone() };
        let path = self.entry_path(file);
        let temp = path.with_file_name(format!("{}.tmp", std::process::id()));
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            let mut options = OpenOptions::new();
            let mut new =
                options.write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
            new.write_all(&serde_json::to_vec(&entry)?)?;
            fs::rename(&temp, &path)
        };
        write().map_err(|source| file_failed("write", &path, source))
    }

    /// Forgets that the user trusted the file at this path, with any content. Returns whether it was trusted.
    pub fn remove(&self, path: &Path) -> Result<bool, HostError> {
        let entries = self.entries_of(&team_file::identity(path))?;
        for entry in &entries {
            match fs::remove_file(entry) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_failed("remove", entry, error));
                }
                _ => {}
            }
        }
        Ok(!entries.is_empty())
    }

    /// Returns the files that were trusted, sorted by path.
    pub fn list(&self) -> Result<Vec<TrustEntry>, HostError> {
        let mut entries: Vec<TrustEntry> = Vec::new();
        for path in self.entry_paths("")? {
            let bytes = fs::read(&path).map_err(|source| file_failed("read", &path, source))?;
            // An entry that cannot be read still counts for `state`, but there is nothing to list.
            entries.extend(serde_json::from_slice::<TrustEntry>(&bytes).ok());
        }
        entries.sort_by(|a, b| a.file.cmp(&b.file));
        entries.dedup_by(|a, b| a.file == b.file);
        Ok(entries)
    }

    fn entry_path(&self, file: &TeamFile) -> PathBuf {
        self.dir.join(format!("{}.{}", path_key(&file.path), hex(&file.digest)))
    }

    fn entries_of(&self, path: &Path) -> Result<Vec<PathBuf>, HostError> {
        self.entry_paths(&format!("{}.", path_key(path)))
    }

    /// Returns the paths of the entries whose names start with `prefix`.
    fn entry_paths(&self, prefix: &str) -> Result<Vec<PathBuf>, HostError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(file_failed("read", &self.dir, source)),
        };
        let is_entry = |name: &str| name.starts_with(prefix) && !name.ends_with(".tmp");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths
            .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_entry))
            .collect())
    }
}

fn path_key(path: &Path) -> String {
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    struct Folder {
        root: tempfile::TempDir,
    }

    impl Folder {
        fn new(text: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("repository")).unwrap();
            let folder = Self { root };
            folder.write("brigade.toml", text);
            folder
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join("repository").join(name)
        }

        fn trust(&self) -> Trust {
            Trust::new(&self.root.path().join("state"), TrustPolicy::Recorded, false)
        }

        fn file(&self) -> TeamFile {
            team_file::read(&self.path("brigade.toml"), OutsidePaths::Skip).unwrap()
        }

        fn state(&self) -> TrustState {
            self.trust().state(&self.file()).unwrap()
        }
    }

    const TEAM: &str = "team = \"demo\"\n[members.a]\nagent = \"codex\"\nprompt-file = \"a.md\"\n";

    #[test]
    fn trust_covers_the_path_and_the_content() {
        let folder = Folder::new("team = \"demo\"\n");
        assert_eq!(folder.state(), TrustState::Unknown);
        let refused = folder.trust().read(&folder.path("brigade.toml")).unwrap_err();
        assert!(refused.to_string().ends_with("is not trusted"), "{refused}");
        folder.trust().add(&folder.file(), false).unwrap();
        assert_eq!(folder.state(), TrustState::Trusted);
        assert!(folder.trust().read(&folder.path("brigade.toml")).is_ok());
        folder.write("brigade.toml", "team = \"other\"\n");
        assert_eq!(folder.state(), TrustState::Changed);
        // A copy elsewhere is another file.
        folder.write("brigade.toml", "team = \"demo\"\n");
        folder.write("copy.toml", "team = \"demo\"\n");
        let copy = team_file::read(&folder.path("copy.toml"), OutsidePaths::Skip).unwrap();
        assert_eq!(folder.trust().state(&copy).unwrap(), TrustState::Unknown);
        let all = Trust::new(&folder.root.path().join("state"), TrustPolicy::All, false);
        assert_eq!(all.state(&copy).unwrap(), TrustState::Trusted);
        let listed = folder.trust().list().unwrap();
        assert_eq!(
            listed,
            [TrustEntry { file: folder.file().path, team: folder.file().spec.team }]
        );
        assert!(folder.trust().remove(&folder.path("brigade.toml")).unwrap());
        assert!(!folder.trust().remove(&folder.path("brigade.toml")).unwrap());
        assert_eq!(folder.state(), TrustState::Unknown);
    }

    #[test]
    fn trust_covers_prompt_files_in_the_folder() {
        let folder = Folder::new(TEAM);
        folder.write("a.md", "Build");
        folder.trust().add(&folder.file(), false).unwrap();
        folder.write("a.md", "Delete everything");
        assert_eq!(folder.state(), TrustState::Changed);
    }

    #[test]
    fn a_link_to_a_file_outside_needs_a_new_agreement() {
        let folder = Folder::new(TEAM);
        folder.write("a.md", "secret");
        folder.trust().add(&folder.file(), false).unwrap();
        fs::write(folder.root.path().join("key"), "secret").unwrap();
        fs::remove_file(folder.path("a.md")).unwrap();
        symlink("../key", folder.path("a.md")).unwrap();
        assert_eq!(folder.state(), TrustState::Changed);
        let file = folder.file();
        assert_eq!(file.outside.len(), 1);
        assert_eq!(file.spec.members.first().and_then(|member| member.prompt.as_deref()), None);
        assert!(folder.trust().add(&file, false).is_err());
        folder.trust().add(&file, true).unwrap();
        let trusted = folder.trust().read(&folder.path("brigade.toml")).unwrap();
        let prompt = trusted.spec().members.first().and_then(|member| member.prompt.as_deref());
        assert_eq!(prompt, Some("secret"));
    }

    #[test]
    fn only_a_person_trusts_a_file_and_only_the_user_can_read_the_record() {
        let folder = Folder::new("team = \"demo\"\n");
        let state = folder.root.path().join("state");
        let agent = Trust::new(&state, TrustPolicy::Recorded, true);
        assert!(agent.add(&folder.file(), true).is_err());
        assert_eq!(folder.state(), TrustState::Unknown);
        folder.trust().add(&folder.file(), false).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&state.join("trust")), 0o700);
        let entries = folder.trust().entry_paths("").unwrap();
        assert_eq!(entries.iter().map(|path| mode(path)).collect::<Vec<_>>(), [0o600]);
    }
}
