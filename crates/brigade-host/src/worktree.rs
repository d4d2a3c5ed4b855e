//! Git worktrees of members. A worktree is a separate folder, on a separate branch, of the team's repository.
//!
//! Worktrees are in brigade's state folder. A worktree with work that exists nowhere else is never removed.

mod diff;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use brigade_wire::name::{MemberName, TeamName};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use self::diff::DiffFormat;
use crate::error::{HostError, Trouble, failed};
use crate::git::Repository;

/// A member's worktree.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// A folder in the original repository.
    repository: PathBuf,
    /// The folder of the worktree.
    pub dir: PathBuf,
    /// The branch of the worktree.
    pub branch: String,
}

/// How a worktree's branch differs from the commit that is checked out in the original repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BranchDistance {
    /// The branch of the worktree.
    pub branch: String,
    /// The number of commits that are only on the branch.
    pub ahead: usize,
    /// The number of commits that are missing from the branch.
    pub behind: usize,
    /// The number of files in the worktree with uncommitted changes.
    pub changed: usize,
}

/// The content of a worktree that exists nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OnlyHere {
    /// Files with uncommitted changes, and new files.
    changed: usize,
    /// Files and folders that git ignores.
    ignored: Vec<String>,
}

/// The result of removing a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// There was no worktree.
    None,
    /// The worktree was removed, and its branch too, because the branch had no commits of its own.
    Wholly,
    /// The worktree was removed, but its branch was kept because the branch has commits of its own.
    BranchStays,
    /// The worktree was removed. Some of its commits were on no branch, so these new branches were created for them.
    NewBranch(String),
    /// The worktree was kept because it has uncommitted changes.
    Stays,
    /// The worktree was kept because a merge, a rebase or a similar operation is not finished.
    Unfinished,
    /// The worktree was kept because of these files, which git ignores.
    Ignored(Vec<String>),
    /// The worktree was kept because git cannot read it.
    Unclear,
}

/// Whether to remove files that git ignores together with a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFiles {
    /// Keep a worktree that contains ignored files.
    Keep,
    /// Remove ignored files.
    Discard,
}

/// The file in git's data about a worktree that says why the worktree is locked.
const LOCKED: &str = "locked";
/// The content of [`LOCKED`] while git creates the worktree.
const INITIALIZING: &str = "initializing";

/// How many entries of a worktree's log are checked for commits that are on no branch.
const MAX_LOG: usize = 200;

/// Files in git's data about a worktree that exist while an operation is not finished.
const UNFINISHED: [&str; 7] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

impl Worktree {
    /// Returns the worktree of a member. The worktree might not exist yet. If a member of the same name has a
    /// worktree of another repository, this worktree has another folder.
    pub fn new(worktrees: &Path, repository: &Path, team: &TeamName, name: &MemberName) -> Self {
        let team_dir = worktrees.join(team.as_str());
        let mut worktree = Self {
            repository: repository.to_owned(),
            dir: team_dir.join(name.as_str()),
            branch: format!("brigade/{team}/{name}"),
        };
        if team_dir.exists()
            && let Ok(common) = worktree.common_dir()
        {
            // `@` is not allowed in the names of members.
            let hash = Sha256::digest(common.as_os_str().as_encoded_bytes());
            let hash = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>();
            let marked_dir = team_dir.join(format!("{name}@{hash}"));
            // If git was killed, the folder may be empty and unknown to git.
            let is_taken = has_entries(&worktree.dir) && worktree.git_dir_in(&common).is_none();
            if is_taken || marked_dir.exists() {
                worktree.dir = marked_dir;
            }
        }
        worktree
    }

    /// Returns the worktree in an existing folder, or `None` if the original repository is gone.
    pub fn from_folder(dir: &Path, team: &str, folder_name: &str) -> Option<Self> {
        let link = std::fs::read_to_string(dir.join(".git")).ok()?;
        let git_dir = PathBuf::from(link.trim().strip_prefix("gitdir:")?.trim());
        // `git_dir` is `<repository>/.git/worktrees/<name>`.
        let repository = git_dir.ancestors().nth(3).filter(|repository| repository.is_dir())?;
        let name = folder_name.split('@').next().unwrap_or(folder_name);
        let branch = format!("brigade/{team}/{name}");
        let worktree = Self { repository: repository.to_owned(), dir: dir.to_owned(), branch };
        worktree.exists().then_some(worktree)
    }

    /// Creates the worktree if it does not exist. Returns the folder in the worktree that corresponds to `cwd` in
    /// the original repository. Fails if the branch does not have that folder.
    pub fn make(&self, cwd: &Path) -> Result<PathBuf, HostError> {
        let original = self.original();
        let top = original.line(&["rev-parse", "--show-toplevel"])?;
        let inside = path_inside(Path::new(&top), cwd);
        self.remove_half_made()?;
        if !self.exists() {
            if let Some(parent) = self.dir.parent() {
                std::fs::create_dir_all(parent).map_err(|source| {
                    failed(format!("create the folder {}", parent.display()), source)
                })?;
            }
            check_filters(Path::new(&top))?;
            // If a person deleted the folder by hand, git still lists the worktree and refuses to add it again.
            original.run(&["worktree", "prune"])?;
            let (dir, branch) = (self.dir.as_os_str(), OsStr::new(&self.branch));
            let add = [OsStr::new("worktree"), OsStr::new("add")];
            let args = if self.has_branch() {
                [&add[..], &[dir, branch]].concat()
            } else {
                [&add[..], &[OsStr::new("-b"), branch, dir]].concat()
            };
            original.run(&args)?;
        }
        let folder = self.dir.join(&inside);
        if !folder.is_dir() {
            let branch = self.branch.clone();
            let error = HostError::failed(Trouble::NotInWorktree { folder: inside, branch });
            return Err(error.hint("commit the folder, or start the member without a worktree"));
        }
        Ok(folder)
    }

    /// Returns the folder in the worktree that corresponds to `cwd` in the original repository.
    pub fn folder(&self, cwd: &Path) -> Result<PathBuf, HostError> {
        let top = self.original().line(&["rev-parse", "--show-toplevel"])?;
        Ok(self.dir.join(path_inside(Path::new(&top), cwd)))
    }

    /// Cleans up after a `git worktree add` that was killed. Git marks a worktree as locked while it creates it, and writes
    /// the index last. Without an index, files are missing or incomplete: removes the worktree, so that it is created
    /// again. The branch stays.
    fn remove_half_made(&self) -> Result<(), HostError> {
        let Some(git_dir) = self.initializing_git_dir()? else { return Ok(()) };
        let remove = |path: &Path, removed: std::io::Result<()>| match removed {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(format!("remove {}", path.display()), source))
            }
            _ => Ok(()),
        };
        if !git_dir.join("index").exists() && self.dir.exists() {
            if self.has_only_files_of_git(&git_dir)? {
                remove(&self.dir, std::fs::remove_dir_all(&self.dir))?;
            } else {
                self.move_aside()?;
            }
        }
        // Git lists a locked worktree even if its folder is gone.
        let lock = git_dir.join(LOCKED);
        remove(&lock, std::fs::remove_file(&lock))
    }

    /// Returns git's data about the worktree if git was killed while it created the worktree.
    fn initializing_git_dir(&self) -> Result<Option<PathBuf>, HostError> {
        let Ok(entries) = std::fs::read_dir(self.common_dir()?.join("worktrees")) else {
            return Ok(None);
        };
        let same = |path: &Path| match (path.canonicalize(), self.dir.canonicalize()) {
            (Ok(path), Ok(dir)) => path == dir,
            _ => path == self.dir,
        };
        let is_ours = |git_dir: &PathBuf| {
            let read = |file| std::fs::read_to_string(git_dir.join(file)).unwrap_or_default();
            let linked = git_dir.join(read("gitdir").trim_end());
            read(LOCKED).trim_end() == INITIALIZING && linked.parent().is_some_and(same)
        };
        Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).find(is_ours))
    }

    /// Returns whether every file in a worktree without an index is as in the commit. Agents of earlier versions of
    /// brigade may have changed some.
    fn has_only_files_of_git(&self, git_dir: &Path) -> Result<bool, HostError> {
        let index = git_dir.join(format!("index.brigade-{}", std::process::id()));
        let inside = Repository::Worktree { dir: &self.dir, git_dir, index: Some(&index) };
        let status = inside.run(&["read-tree", "HEAD"]).and_then(|_| {
            let mut status = vec!["status", "--porcelain", "-z", "--untracked-files=all"];
            status.extend(["--ignored=matching", "--ignore-submodules=all"]);
            inside.run(&status)
        });
        let _removed = std::fs::remove_file(&index);
        // If git was killed very early, there is no commit yet.
        let Ok(status) = status else { return Ok(!has_entries_beside_git(&self.dir)) };
        Ok(status.split('\0').all(|entry| entry.is_empty() || entry.starts_with(" D ")))
    }

    /// Renames the folder of the worktree to a name that no member can have.
    fn move_aside(&self) -> Result<(), HostError> {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside =
            (1..).map(|number| self.dir.with_file_name(format!("{name}@incomplete-{number}")));
        let Some(aside) = { aside }.find(|path| !path.exists()) else { return Ok(()) };
        tracing::warn!(to = %aside.display(), "moved an incomplete worktree");
        std::fs::rename(&self.dir, &aside)
            .map_err(|source| failed(format!("move {}", self.dir.display()), source))
    }

    /// Returns whether the worktree exists and belongs to the original repository.
    pub fn exists(&self) -> bool {
        self.git_dir().is_some()
    }

    fn original(&self) -> Repository<'_> {
        Repository::Containing(&self.repository)
    }

    /// Returns the folder that all worktrees of the original repository share. It identifies the repository.
    fn common_dir(&self) -> Result<PathBuf, HostError> {
        let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        self.original().line(&common).map(PathBuf::from)
    }

    /// Returns git's data about the worktree, in the original repository. The file `.git` in the worktree also names
    /// that folder, but an agent can change the file.
    fn git_dir(&self) -> Option<PathBuf> {
        if !self.dir.is_dir() {
            return None;
        }
        self.git_dir_in(&self.common_dir().ok()?)
    }

    fn git_dir_in(&self, common: &Path) -> Option<PathBuf> {
        let dir = self.dir.canonicalize().ok()?;
        let is_ours = |git_dir: &PathBuf| {
            let link = std::fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
            // The path may be relative to git's data.
            let linked = git_dir.join(link.trim_end());
            let linked = linked.parent().and_then(|dir| dir.canonicalize().ok());
            linked.as_ref() == Some(&dir)
        };
        let entries = std::fs::read_dir(common.join("worktrees")).ok()?;
        entries.filter_map(Result::ok).map(|entry| entry.path()).find(is_ours)
    }

    /// Returns whether the branch of the worktree exists.
    pub fn has_branch(&self) -> bool {
        let branch = format!("refs/heads/{}", self.branch);
        self.original().line(&["rev-parse", "--verify", "--quiet", &branch]).is_ok()
    }

    fn existing_git_dir(&self) -> Result<PathBuf, HostError> {
        self.git_dir().ok_or_else(|| {
            let dir = self.dir.clone();
            HostError::failed(Trouble::NotAWorktree { dir })
        })
    }

    /// Compares the worktree's branch with the commit that is checked out in the original repository.
    pub fn distance(&self) -> Result<BranchDistance, HostError> {
        let git_dir = self.existing_git_dir()?;
        let range = format!("HEAD...{}", self.branch);
        let counts = self.original().line(&["rev-list", "--left-right", "--count", &range])?;
        let mut counts = counts.split_whitespace().map(|count| count.parse().unwrap_or_default());
        let behind = counts.next().unwrap_or_default();
        let ahead = counts.next().unwrap_or_default();
        let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all"];
        let changed = self.inside(&git_dir).line(&status)?.lines().count();
        Ok(BranchDistance { branch: self.branch.clone(), ahead, behind, changed })
    }

    fn inside<'p>(&'p self, git_dir: &'p Path) -> Repository<'p> {
        Repository::Worktree { dir: &self.dir, git_dir, index: None }
    }

    /// Removes the worktree, unless work would be lost.
    pub fn remove(&self, ignored: IgnoredFiles) -> Result<Removed, HostError> {
        let Some(git_dir) = self.git_dir() else {
            if self.dir.exists() {
                return Ok(Removed::Unclear);
            }
            // A process may have died after it removed the worktree.
            self.remove_branch()?;
            return Ok(Removed::None);
        };
        if UNFINISHED.iter().any(|file| git_dir.join(file).exists()) {
            return Ok(Removed::Unfinished);
        }
        let only_here = self.only_here(&git_dir)?;
        if only_here.changed > 0 {
            return Ok(Removed::Stays);
        }
        if ignored == IgnoredFiles::Keep && !only_here.ignored.is_empty() {
            return Ok(Removed::Ignored(only_here.ignored));
        }
        let new_branch = self.keep_commits(&git_dir)?;
        let dir = self.dir.as_os_str();
        // Do not use `--force`: without it, git itself refuses to remove a worktree that has uncommitted work.
        let remove = [OsStr::new("worktree"), OsStr::new("remove"), dir];
        self.original().run_for(&[self.inside(&git_dir)], &remove)?;
        if let Some(branch) = new_branch {
            return Ok(Removed::NewBranch(branch));
        }
        Ok(if self.remove_branch()? { Removed::Wholly } else { Removed::BranchStays })
    }

    /// Removes the branch of the worktree, and the folder for the team's worktrees if it is empty. Returns false if the
    /// branch has commits of its own, and keeps the branch.
    fn remove_branch(&self) -> Result<bool, HostError> {
        if let Some(parent) = self.dir.parent() {
            let _others_there = std::fs::remove_dir(parent);
        }
        if !self.has_branch() {
            return Ok(true);
        }
        let ahead = format!("HEAD..{}", self.branch);
        if self.original().line(&["rev-list", "--count", &ahead])? != "0" {
            return Ok(false);
        }
        self.original().run(&["branch", "-d", &self.branch])?;
        Ok(true)
    }

    fn only_here(&self, git_dir: &Path) -> Result<OnlyHere, HostError> {
        let inside = self.inside(git_dir);
        let mut only_here = OnlyHere::default();
        // Git does not compare files that the index marks as unchanged or as not checked out.
        for entry in inside.run(&["ls-files", "-v", "-z"])?.split('\0') {
            let Some((mark, path)) = entry.split_once(' ') else { continue };
            let is_marked = mark == "S" || mark.chars().all(|mark| mark.is_ascii_lowercase());
            only_here.changed += usize::from(is_marked && self.dir.join(path).exists());
        }
        let mut status = vec!["status", "--porcelain", "-z", "--untracked-files=all"];
        status.extend(["--ignored=matching", "--ignore-submodules=all"]);
        let status = inside.run(&status)?;
        for entry in status.split('\0').filter(|entry| !entry.is_empty()) {
            match entry.strip_prefix("!! ") {
                Some(path) => only_here.ignored.push(path.to_owned()),
                None => only_here.changed += 1,
            }
        }
        Ok(only_here)
    }

    /// Creates a branch for each commit of the worktree that is on no branch and has no tag. Returns the new branches.
    fn keep_commits(&self, git_dir: &Path) -> Result<Option<String>, HostError> {
        let inside = self.inside(git_dir);
        let mut lost = String::new();
        for commit in self.own_commits(git_dir)? {
            let new =
                ["rev-list", "--count", &commit, "--not", "--branches", "--tags", "--remotes"];
            // A commit in the log of the worktree may have been deleted long ago.
            if inside.line(&new).is_ok_and(|count| count != "0") {
                let short: String = commit.chars().take(12).collect();
                let branch = format!("{}-{short}", self.branch);
                self.original().run(&["branch", &branch, &commit])?;
                lost = if lost.is_empty() { branch } else { format!("{lost}, {branch}") };
            }
        }
        Ok(Some(lost).filter(|lost| !lost.is_empty()))
    }

    /// Returns the commits that only git's data about the worktree names: the checked-out commit, refs of the
    /// worktree, and commits that were checked out earlier, latest first.
    fn own_commits(&self, git_dir: &Path) -> Result<Vec<String>, HostError> {
        let inside = self.inside(git_dir);
        let mut commits = vec![inside.line(&["rev-parse", "HEAD"])?];
        let refs = ["for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/rewritten"];
        commits.extend(inside.line(&refs)?.lines().map(str::to_owned));
        let log = std::fs::read_to_string(git_dir.join("logs/HEAD")).unwrap_or_default();
        let ids = log.lines().rev().filter_map(|line| line.split(' ').nth(1));
        commits.extend(ids.take(MAX_LOG).map(str::to_owned));
        let mut seen = std::collections::HashSet::new();
        commits.retain(|commit| {
            commit.chars().all(|digit| digit.is_ascii_hexdigit()) && seen.insert(commit.clone())
        });
        Ok(commits)
    }
}

/// Fails with a reason if no branch can be created in the repository that contains `dir`.
pub fn check_can_branch(dir: &Path) -> Result<(), HostError> {
    let repository = Repository::Containing(dir);
    let reason = if repository.run(&["rev-parse", "--show-toplevel"]).is_err() {
        "is not in a git repository"
    } else if repository.run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
        "is in a git repository without a commit"
    } else {
        return check_filters(Path::new(&repository.line(&["rev-parse", "--show-toplevel"])?));
    };
    let error = HostError::failed(Trouble::NoCommit { dir: dir.to_owned(), reason });
    Err(error.hint("create a commit there first, or remove `worktree = true`"))
}

/// Fails if a worktree of the repository would have wrong content, because its files use filters that brigade does not run.
fn check_filters(top: &Path) -> Result<(), HostError> {
    let filters = Repository::Containing(top).disabled_filters()?;
    let Some(first) = filters.first() else { return Ok(()) };
    let hint = format!(
        "brigade runs no program that a repository configures; if you trust the filter, configure it for yourself: \
         `git config --global filter.{first}.smudge …`, and likewise clean, process and required"
    );
    let error = HostError::failed(Trouble::DisabledFilters { dir: top.to_owned(), filters });
    Err(error.hint(hint).hint("or remove `worktree = true`"))
}

/// Returns the path of `cwd` relative to the top folder of its repository; an empty path if it is not in the repository.
fn path_inside(top: &Path, cwd: &Path) -> PathBuf {
    let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    real.strip_prefix(top).map(Path::to_owned).unwrap_or_default()
}

/// Returns whether a folder contains anything.
fn has_entries(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns whether a folder contains anything beside git's link.
fn has_entries_beside_git(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.into_iter().any(|entry| entry.file_name() != ".git")
}

#[cfg(test)]
mod tests;
