//! A git worktree for each member that wants one: a folder of its own, on a branch of its own, of the
//! repository its team works in.
//!
//! They stand in brigade's own folder. One with work in it that is nowhere else is never removed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;

use crate::error::{HostError, Trouble};

/// A member's worktree.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// The repository: a folder in it.
    repository: PathBuf,
    /// Where the worktree stands.
    pub dir: PathBuf,
    pub branch: String,
}

/// How a worktree's branch stands to what the repository has checked out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Distance {
    pub branch: String,
    /// Commits that only the branch has.
    pub ahead: usize,
    /// Commits that it does not have.
    pub behind: usize,
    /// Files that were changed and not committed.
    pub changed: usize,
}

/// What became of a worktree that is no longer needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// There was none.
    None,
    /// Nothing had come of it, and nothing is left of it.
    Wholly,
    /// It was removed; its branch has commits and stays.
    BranchStays,
    /// It has changes that are not committed, and stays.
    Stays,
    /// Git cannot look at it, so it stays.
    Unclear,
}

impl Worktree {
    /// The worktree of a member, there or not.
    pub fn of(worktrees: &Path, repository: &Path, team: &TeamName, name: &MemberName) -> Self {
        Self {
            repository: repository.to_owned(),
            dir: worktrees.join(team.as_str()).join(name.as_str()),
            branch: format!("brigade/{team}/{name}"),
        }
    }

    /// The worktree that stands in a folder of ours, if its repository is still to be found.
    pub fn at(dir: &Path, team: &str, name: &str) -> Option<Self> {
        let link = std::fs::read_to_string(dir.join(".git")).ok()?;
        let its = PathBuf::from(link.trim().strip_prefix("gitdir:")?.trim());
        // <repository>/.git/worktrees/<name>
        let repository = its.ancestors().nth(3).filter(|repository| repository.is_dir())?;
        let branch = format!("brigade/{team}/{name}");
        Some(Self { repository: repository.to_owned(), dir: dir.to_owned(), branch })
    }

    /// Sees to it that it is there; the folder in it that is `cwd` in the repository.
    pub fn make(&self, cwd: &Path) -> Result<PathBuf, HostError> {
        let top = git(&self.repository, &["rev-parse", "--show-toplevel"])?;
        let inside = cwd.canonicalize().ok();
        let inside = inside.as_deref().unwrap_or(cwd).strip_prefix(&top).map(Path::to_owned);
        if !self.is_there() {
            if let Some(parent) = self.dir.parent() {
                std::fs::create_dir_all(parent).map_err(|source| {
                    let doing = format!("make the folder {}", parent.display());
                    HostError::failed(Trouble::Io { doing, source })
                })?;
            }
            // What a worktree that somebody deleted by hand left behind is in the way of a new one.
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

    /// Whether it is there.
    pub fn is_there(&self) -> bool {
        self.dir.join(".git").exists()
    }

    fn has_branch(&self) -> bool {
        let branch = format!("refs/heads/{}", self.branch);
        git(&self.repository, &["rev-parse", "--verify", "--quiet", &branch]).is_ok()
    }

    /// How far it is from what the repository has checked out.
    pub fn distance(&self) -> Result<Distance, HostError> {
        let range = format!("HEAD...{}", self.branch);
        let counts = git(&self.repository, &["rev-list", "--left-right", "--count", &range])?;
        let mut counts = counts.split_whitespace().map(|count| count.parse().unwrap_or_default());
        let behind = counts.next().unwrap_or_default();
        let ahead = counts.next().unwrap_or_default();
        let changed = git(&self.dir, &["status", "--porcelain"])?.lines().count();
        Ok(Distance { branch: self.branch.clone(), ahead, behind, changed })
    }

    /// What the member changed since it branched off, committed or not. New files count.
    pub fn diff(&self, color: bool, stat: bool) -> Result<String, HostError> {
        let base = git(&self.repository, &["merge-base", "HEAD", &self.branch])?;
        // A list of files of our own, with the new ones in it: the member's stays as it is.
        let index =
            git(&self.dir, &["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        let ours = PathBuf::from(format!("{index}.brigade-{}", std::process::id()));
        let copied = std::fs::copy(&index, &ours);
        copied.map_err(|source| {
            let doing = format!("copy {index}");
            HostError::failed(Trouble::Io { doing, source })
        })?;
        let shown = self.diff_with(&ours, &base, color, stat);
        let _gone = std::fs::remove_file(&ours);
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

    /// Removes it, unless that would lose work.
    pub fn remove(&self) -> Result<Removed, HostError> {
        if !self.is_there() {
            return Ok(Removed::None);
        }
        let distance = self.distance()?;
        if distance.changed > 0 {
            return Ok(Removed::Stays);
        }
        let dir = self.dir.as_os_str();
        // Without force: git refuses, too, where there is something to lose.
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

/// Says why no branch can be made where somebody is to work, if none can.
pub fn can_branch(dir: &Path) -> Result<(), HostError> {
    let lack = if git(dir, &["rev-parse", "--show-toplevel"]).is_err() {
        "is in no git repository"
    } else if git(dir, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
        "is in a git repository without a commit"
    } else {
        return Ok(());
    };
    let error = HostError::failed(Trouble::NoCommit { dir: dir.to_owned(), lack });
    Err(error.hint("`git commit` something there first, or leave out `worktree = true`"))
}

/// What git says, less the line break at its end.
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
    // Of a git that brigade may have been started by.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    if let Some(index) = index {
        git.env("GIT_INDEX_FILE", index);
    }
    let done = git
        .output()
        .map_err(|source| HostError::failed(Trouble::Io { doing: "run git".to_owned(), source }))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let error = HostError::failed(Trouble::Git { said });
    Err(error.hint(format!("in {}", dir.display())))
}
