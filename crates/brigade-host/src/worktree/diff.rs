//! The diff of a worktree.

use std::path::Path;

use super::Worktree;
use crate::error::{HostError, failed};
use crate::git::Repository;

/// How to show the changes in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    /// The changed lines.
    Patch,
    /// The names of changed files, and the number of changed lines.
    Stat,
    /// Only the names of changed files.
    NameOnly,
}

impl Worktree {
    /// Returns the diff of all changes since the branch was created. Includes uncommitted changes and new files. Of a
    /// submodule, it includes which commit is checked out, but no uncommitted changes: to find these, git would start
    /// a process in the submodule, and that process would run the programs in the submodule's configuration.
    ///
    /// With `paths`, returns only the changes in these files and folders, which are relative to the worktree.
    pub fn diff(&self, format: DiffFormat, paths: &[String]) -> Result<String, HostError> {
        let git_dir = self.existing_git_dir()?;
        let base = self.original().line(&["merge-base", "HEAD", &self.branch])?;
        // Add new files to a copy of the index, so that the member's index is not changed.
        let index = git_dir.join("index");
        let index_copy = git_dir.join(format!("index.brigade-{}", std::process::id()));
        let copied = copy_with_mtime(&index, &index_copy);
        copied.map_err(|source| failed(format!("copy {}", index.display()), source))?;
        let with_copy =
            Repository::Worktree { dir: &self.dir, git_dir: &git_dir, index: Some(&index_copy) };
        let shown = add_new_files(&with_copy).and_then(|()| {
            let mut args = vec!["diff", "--color=never", "--no-ext-diff", "--no-textconv"];
            args.extend(["--ignore-submodules=dirty", "--submodule=short"]);
            args.extend(match format {
                DiffFormat::Patch => None,
                DiffFormat::Stat => Some("--stat"),
                DiffFormat::NameOnly => Some("--name-only"),
            });
            // After `--`, git takes no argument for an option.
            args.extend([base.as_str(), "--"]);
            args.extend(paths.iter().map(String::as_str));
            with_copy.run(&args)
        });
        let _removed = std::fs::remove_file(&index_copy);
        shown
    }
}

/// Adds the names of new files to the index. Does not use `git add .`, which starts `git status` in every submodule.
fn add_new_files(repository: &Repository<'_>) -> Result<(), HostError> {
    let add = ["add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
    // A repository in the worktree is listed with a slash at the end. Git cannot add it if it has no commit, and then
    // adds nothing; the second attempt leaves out all of these. Git also adds nothing if a file was deleted since it
    // was listed.
    let mut added = Ok(());
    for with_repositories in [true, false] {
        let list = ["ls-files", "-z", "--others", "--exclude-standard"];
        let mut names = repository.run_with(&list, b"")?;
        if !with_repositories {
            let mut files: Vec<&[u8]> = names.split_inclusive(|byte| *byte == 0).collect();
            files.retain(|name| !name.ends_with(b"/\0"));
            names = files.concat();
        }
        if names.is_empty() {
            return Ok(());
        }
        added = repository.run_with(&add, &names).map(|_| ());
        if added.is_ok() {
            break;
        }
    }
    added
}

/// Copies a git index with its modification time. Git compares the content of a file only if the file is not older
/// than the index. If the copy were newer, git would miss changes that were made in the same second as the index.
fn copy_with_mtime(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}
