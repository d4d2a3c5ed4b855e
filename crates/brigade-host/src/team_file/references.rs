//! The files and folders that a team file refers to, and whether they are in the folder of the team file.
//!
//! A repository can contain symbolic links to any place. This module follows them itself and stops at the first step
//! that leaves the folder, so that nothing outside is touched before the user agrees.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use brigade_wire::name::MemberName;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The maximum number of symbolic links in a path. Linux has the same limit.
const MAX_LINKS: usize = 40;

/// The maximum size of all prompt files of a team together, in bytes. Every command in the folder reads them.
const MAX_PROMPT_FILES_SIZE: usize = 16 << 20;

/// Whether to use the files and folders outside the folder of a team file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsidePaths {
    /// Check that they exist, and read prompt files.
    Use,
    /// Do not touch them. A member whose prompt file is outside has no prompt.
    Skip,
}

/// A key of a team file whose value is a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKey {
    /// `creds`
    Creds,
    /// `dir`
    Dir,
    /// `prompt-file`
    PromptFile,
}

impl fmt::Display for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creds => "creds",
            Self::Dir => "dir",
            Self::PromptFile => "prompt-file",
        })
    }
}

/// A path outside the folder of a team file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutsidePath {
    /// The path. Symbolic links in the folder of the team file are resolved.
    pub path: PathBuf,
    /// The key that names the path.
    pub key: PathKey,
    /// The members that use the path. Empty for `creds`.
    pub members: Vec<MemberName>,
}

/// A path in a team file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReferredPath {
    /// In the folder of the team file, without symbolic links.
    Inside(PathBuf),
    Outside(PathBuf),
}

/// Collects what a team file refers to.
#[derive(Debug)]
pub(super) struct References {
    /// The folder of the team file, as the user wrote it.
    root: PathBuf,
    /// The same folder without symbolic links.
    real_root: PathBuf,
    pub(super) policy: OutsidePaths,
    outside: BTreeMap<(PathKey, PathBuf), Vec<MemberName>>,
    /// The prompt files, as written in the team file.
    pub(super) prompt_files: Vec<PathBuf>,
    /// The members whose prompt is in the team file itself.
    pub(super) inline_prompts: Vec<MemberName>,
    prompt_size: usize,
    hash: Sha256,
}

impl References {
    pub(super) fn new(root: &Path, text: &str, policy: OutsidePaths) -> Self {
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut references = Self {
            root: root.to_owned(),
            real_root,
            policy,
            outside: BTreeMap::new(),
            prompt_files: Vec::new(),
            inline_prompts: Vec::new(),
            prompt_size: 0,
            hash: Sha256::new(),
        };
        references.add_to_hash(b"file", text.as_bytes());
        references
    }

    /// Returns where a path in the team file leads.
    pub(super) fn resolve(
        &mut self,
        key: PathKey,
        member: Option<&MemberName>,
        path: &Path,
    ) -> ReferredPath {
        let relative = match path.strip_prefix(&self.root) {
            Ok(relative) if path.is_absolute() => relative,
            _ => path,
        };
        let resolved = follow(&self.real_root, relative);
        if let ReferredPath::Outside(path) = &resolved {
            self.add_outside(key, member, path);
        }
        resolved
    }

    fn add_outside(&mut self, key: PathKey, member: Option<&MemberName>, path: &Path) {
        let members = self.outside.entry((key, path.to_owned())).or_default();
        members.extend(member.cloned());
        self.add_to_hash(b"outside", key.to_string().as_bytes());
        self.add_to_hash(b"path", path.as_os_str().as_encoded_bytes());
    }

    /// Returns the paths outside the folder.
    pub(super) fn outside(&self) -> Vec<OutsidePath> {
        let outside = |((key, path), members): (&(PathKey, PathBuf), &Vec<MemberName>)| {
            OutsidePath { path: path.clone(), key: *key, members: members.clone() }
        };
        self.outside.iter().map(outside).collect()
    }

    /// Adds the content of a prompt file in the folder to the digest.
    pub(super) fn add_prompt(&mut self, content: &[u8]) {
        self.add_to_hash(b"prompt", content);
        self.prompt_size += content.len();
    }

    /// Returns whether the prompt files so far are longer than the maximum.
    pub(super) fn has_too_many_prompts(&self) -> bool {
        self.prompt_size > MAX_PROMPT_FILES_SIZE
    }

    /// Adds a value to the digest. The lengths make the result unambiguous.
    fn add_to_hash(&mut self, kind: &[u8], value: &[u8]) {
        for part in [kind, value] {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part);
        }
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

/// Follows the symbolic links in `path`, which is relative to `root` or absolute. Reads no link outside `root`.
fn follow(root: &Path, path: &Path) -> ReferredPath {
    let mut at = root.to_owned();
    let mut rest = components(path);
    let mut links = 0;
    while let Some(step) = rest.pop_front() {
        if step == "/" {
            // An absolute path may lead back into the folder.
            let target: PathBuf = std::iter::once(step).chain(rest).collect();
            let Ok(relative) = target.strip_prefix(root) else {
                return ReferredPath::Outside(target);
            };
            at = root.to_owned();
            rest = components(relative);
            continue;
        }
        if step == ".." {
            if at == root {
                at.pop();
                at.extend(rest);
                return ReferredPath::Outside(at);
            }
            at.pop();
            continue;
        }
        at.push(step);
        if let Ok(target) = std::fs::read_link(&at) {
            links += 1;
            if links > MAX_LINKS {
                return ReferredPath::Outside(at);
            }
            at.pop();
            let mut steps = components(&target);
            steps.append(&mut rest);
            rest = steps;
        }
    }
    ReferredPath::Inside(at)
}

fn components(path: &Path) -> VecDeque<OsString> {
    let steps = path.components().filter(|step| !matches!(step, Component::CurDir));
    steps.map(|step| step.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_only_inside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("repository");
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        std::fs::write(root.join("sub/p.md"), "x").unwrap();
        symlink("sub", root.join("link")).unwrap();
        symlink("../../outside", root.join("sub/out")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink(root.join("sub"), root.join("absolute")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let inside = |path: &str, to: &str| {
            assert_eq!(follow(&root, Path::new(path)), ReferredPath::Inside(root.join(to)));
        };
        inside("sub/p.md", "sub/p.md");
        inside("./sub/./deep/..", "sub");
        inside("link/p.md", "sub/p.md");
        inside("absolute/p.md", "sub/p.md");
        inside("missing/p.md", "missing/p.md");
        inside(root.join("sub").to_str().unwrap(), "sub");
        let outside = |path: &str, to: PathBuf| {
            assert_eq!(follow(&root, Path::new(path)), ReferredPath::Outside(to), "{path}");
        };
        let parent = root.parent().unwrap();
        outside("..", parent.to_owned());
        outside("../x/y", parent.join("x/y"));
        outside("sub/out/key", parent.join("outside/key"));
        outside("link/out", parent.join("outside"));
        outside("etc/passwd", "/etc/passwd".into());
        outside("/", "/".into());
        outside("/etc/passwd", "/etc/passwd".into());
        // This way leads back, but only if `..` is no symbolic link.
        outside("../repository/sub", parent.join("repository/sub"));
        outside("round", root.join("round"));
    }
}
