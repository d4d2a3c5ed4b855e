//! Git worktrees of members. A worktree is a separate folder, on a separate branch, of the team's repository.
//!
//! Worktrees are in brigade's state folder. A worktree with work that exists nowhere else is never removed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;

use crate::error::{HostError, Trouble, failed};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BranchDistance {
    /// The branch of the worktree.
    pub branch: String,
    /// The number of commits that are only on the branch.
    pub ahead: usize,
    /// The number of commits that are missing on the branch.
    pub behind: usize,
    /// The number of files in the worktree with uncommitted changes.
    pub changed: usize,
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
    /// The worktree was kept because it has uncommitted changes.
    Stays,
    /// The worktree was kept because git cannot read it.
    Unclear,
}

impl Worktree {
    /// Returns the worktree of a member. The worktree may not exist yet.
    pub fn new(worktrees: &Path, repository: &Path, team: &TeamName, name: &MemberName) -> Self {
        Self {
            repository: repository.to_owned(),
            dir: worktrees.join(team.as_str()).join(name.as_str()),
            branch: format!("brigade/{team}/{name}"),
        }
    }

    /// Returns the worktree in an existing folder, or `None` if the original repository is gone.
    pub fn from_folder(dir: &Path, team: &str, name: &str) -> Option<Self> {
        let link = std::fs::read_to_string(dir.join(".git")).ok()?;
        let git_dir = PathBuf::from(link.trim().strip_prefix("gitdir:")?.trim());
        // `git_dir` is `<repository>/.git/worktrees/<name>`.
        let repository = git_dir.ancestors().nth(3).filter(|repository| repository.is_dir())?;
        let branch = format!("brigade/{team}/{name}");
        Some(Self { repository: repository.to_owned(), dir: dir.to_owned(), branch })
    }

    /// Creates the worktree if it does not exist. Returns the folder in the worktree that corresponds to `cwd` in
    /// the original repository.
    pub fn make(&self, cwd: &Path) -> Result<PathBuf, HostError> {
        let top = git(&self.repository, &["rev-parse", "--show-toplevel"])?;
        let inside = cwd.canonicalize().ok();
        let inside = inside.as_deref().unwrap_or(cwd).strip_prefix(&top).map(Path::to_owned);
        if !self.exists() {
            if let Some(parent) = self.dir.parent() {
                std::fs::create_dir_all(parent).map_err(|source| {
                    failed(format!("create the folder {}", parent.display()), source)
                })?;
            }
            // If a person deleted the folder by hand, git still lists the worktree and refuses to add it again.
            git(&self.repository, &["worktree", "prune"])?;
            let dir = self.dir.as_os_str();
            if self.has_branch() {
                run(
                    &self.repository,
                    &["worktree".as_ref(), "add".as_ref(), dir, self.branch.as_ref()],
                )?;
            } else {
                let args: [&OsStr; 5] =
                    ["worktree".as_ref(), "add".as_ref(), "-b".as_ref(), self.branch.as_ref(), dir];
                run(&self.repository, &args)?;
            }
        }
        Ok(self.dir.join(inside.unwrap_or_default()))
    }

    /// Returns whether the worktree exists.
    pub fn exists(&self) -> bool {
        self.dir.join(".git").exists()
    }

    fn has_branch(&self) -> bool {
        let branch = format!("refs/heads/{}", self.branch);
        git(&self.repository, &["rev-parse", "--verify", "--quiet", &branch]).is_ok()
    }

    /// Compares the worktree's branch with the commit that is checked out in the original repository.
    pub fn distance(&self) -> Result<BranchDistance, HostError> {
        let range = format!("HEAD...{}", self.branch);
        let counts = git(&self.repository, &["rev-list", "--left-right", "--count", &range])?;
        let mut counts = counts.split_whitespace().map(|count| count.parse().unwrap_or_default());
        let behind = counts.next().unwrap_or_default();
        let ahead = counts.next().unwrap_or_default();
        let changed = git(&self.dir, &["status", "--porcelain"])?.lines().count();
        Ok(BranchDistance { branch: self.branch.clone(), ahead, behind, changed })
    }

    /// Returns the diff of all changes since the branch was created, committed or not, including new files.
    pub fn diff(&self, color: bool, stat: bool) -> Result<String, HostError> {
        let base = git(&self.repository, &["merge-base", "HEAD", &self.branch])?;
        // Add new files to a copy of the index, so that the member's index is not changed.
        let index =
            git(&self.dir, &["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        let index_copy = PathBuf::from(format!("{index}.brigade-{}", std::process::id()));
        let copied = copy_with_mtime(index.as_ref(), &index_copy);
        copied.map_err(|source| failed(format!("copy {index}"), source))?;
        let shown = self.diff_with(&index_copy, &base, color, stat);
        let _removed = std::fs::remove_file(&index_copy);
        shown
    }

    fn diff_with(
        &self,
        index: &Path,
        base: &str,
        color: bool,
        stat: bool,
    ) -> Result<String, HostError> {
        run_with(Some(index), &self.dir, &["add", "--intent-to-add", "."].map(OsStr::new))?;
        let color = if color { "--color=always" } else { "--color=never" };
        let mut args = vec!["diff", color];
        if stat {
            args.push("--stat");
        }
        args.push(base);
        let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
        run_with(Some(index), &self.dir, &args)
    }

    /// Removes the worktree, unless work would be lost.
    pub fn remove(&self) -> Result<Removed, HostError> {
        if !self.exists() {
            return Ok(Removed::None);
        }
        let distance = self.distance()?;
        if distance.changed > 0 {
            return Ok(Removed::Stays);
        }
        let dir = self.dir.as_os_str();
        // Do not use `--force`: without it, git also refuses to remove a worktree with uncommitted work.
        run(&self.repository, &["worktree".as_ref(), "remove".as_ref(), dir])?;
        if let Some(parent) = self.dir.parent() {
            let _others_there = std::fs::remove_dir(parent);
        }
        if distance.ahead > 0 {
            return Ok(Removed::BranchStays);
        }
        git(&self.repository, &["branch", "-d", &self.branch])?;
        Ok(Removed::Wholly)
    }
}

/// Fails with a reason if no branch can be created in the repository that contains `dir`.
pub fn check_can_branch(dir: &Path) -> Result<(), HostError> {
    let reason = if git(dir, &["rev-parse", "--show-toplevel"]).is_err() {
        "is not in a git repository"
    } else if git(dir, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
        "is in a git repository without a commit"
    } else {
        return Ok(());
    };
    let error = HostError::failed(Trouble::NoCommit { dir: dir.to_owned(), reason });
    Err(error.hint("create a commit there first, or remove `worktree = true`"))
}

/// Runs git and returns its output without the final line break.
/// Copies a git index with its modification time. Git compares the content of a file only if the file is not older than
/// the index. If the copy were newer, git would miss a change made in the second in which the index was written.
fn copy_with_mtime(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}

fn git(dir: &Path, args: &[&str]) -> Result<String, HostError> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    Ok(run(dir, &args)?.trim_end_matches('\n').to_owned())
}

fn run(dir: &Path, args: &[&OsStr]) -> Result<String, HostError> {
    run_with(None, dir, args)
}

fn run_with(index: Option<&Path>, dir: &Path, args: &[&OsStr]) -> Result<String, HostError> {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(args).stdin(Stdio::null());
    // These variables are set if git started brigade, for example in a hook, and point to the wrong repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    if let Some(index) = index {
        git.env("GIT_INDEX_FILE", index);
    }
    let done = git.output().map_err(|source| failed("run git", source))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let error = HostError::failed(Trouble::Git { said: stderr });
    Err(error.hint(format!("in {}", dir.display())))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_diff_shows_a_change_made_in_the_second_of_the_checkout() {
        let home = tempfile::tempdir().unwrap();
        let repository = home.path().join("repository");
        std::fs::create_dir(&repository).unwrap();
        std::fs::write(repository.join("file"), "one").unwrap();
        git(&repository, &["init", "--quiet"]).unwrap();
        git(&repository, &["add", "."]).unwrap();
        let commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "t"];
        git(&repository, &commit).unwrap();
        for name in ["alice", "bob", "carl"] {
            let (team, name) = ("demo".parse().unwrap(), name.parse().unwrap());
            let worktree = Worktree::new(home.path(), &repository, &team, &name);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let fraction = Duration::from_nanos(now.subsec_nanos().into());
            std::thread::sleep(Duration::from_secs(1) - fraction);
            worktree.make(&repository).unwrap();
            // The content has the same length as before.
            std::fs::write(worktree.dir.join("file"), "two").unwrap();
            std::thread::sleep(Duration::from_secs(1));
            let diff = worktree.diff(false, false).unwrap();
            assert!(diff.contains("+two"), "{diff}");
        }
    }
}
