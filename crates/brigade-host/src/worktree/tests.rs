//! Worktrees in real repositories, also hostile ones.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;

/// A repository with one commit, and a folder for worktrees.
struct TestRepository {
    home: tempfile::TempDir,
    dir: PathBuf,
}

impl TestRepository {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("repository");
        let repository = Self { home, dir };
        repository.create("repository");
        repository
    }

    /// Creates another repository with one commit.
    fn create(&self, name: &str) -> PathBuf {
        let dir = self.home.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("file"), "one").unwrap();
        std::fs::write(dir.join(".gitignore"), "*.ignored\n").unwrap();
        git(&dir, &["init", "--quiet", "--initial-branch=main"]);
        commit(&dir);
        dir
    }

    fn worktree_in(&self, repository: &Path, name: &str) -> Worktree {
        let worktrees = self.home.path().join("worktrees");
        let (team, name) = ("demo".parse().unwrap(), name.parse().unwrap());
        Worktree::new(&worktrees, repository, &team, &name)
    }

    fn worktree(&self, name: &str) -> Worktree {
        let worktree = self.worktree_in(&self.dir, name);
        worktree.make(&self.dir).unwrap();
        worktree
    }
}

/// Runs git without any protection, as a person or an agent would.
fn git(dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let done = git.arg("-C").arg(dir).args(identity).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn commit(dir: &Path) {
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "-m", "t"]);
}

#[test]
fn the_diff_shows_a_change_made_in_the_second_of_the_checkout() {
    let repository = TestRepository::new();
    for name in ["alice", "bob", "carl"] {
        let worktree = repository.worktree_in(&repository.dir, name);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let fraction = Duration::from_nanos(now.subsec_nanos().into());
        std::thread::sleep(Duration::from_secs(1) - fraction);
        worktree.make(&repository.dir).unwrap();
        // The new content has the same length, so the size of the file does not show the change.
        std::fs::write(worktree.dir.join("file"), "two").unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let diff = worktree.diff(DiffFormat::Patch, &[]).unwrap();
        assert!(diff.contains("+two"), "{diff}");
    }
}

/// Members of the same name in two repositories have two worktrees.
#[test]
fn a_worktree_belongs_to_its_repository() {
    let repository = TestRepository::new();
    let other = repository.create("other");
    std::fs::write(other.join("only-in-other"), "").unwrap();
    commit(&other);
    let first = repository.worktree("bob");
    let second = repository.worktree_in(&other, "bob");
    assert!(!second.exists());
    second.make(&other).unwrap();
    assert_ne!(first.dir, second.dir);
    assert!(second.dir.join("only-in-other").exists());
    assert_eq!(repository.worktree_in(&other, "bob").dir, second.dir);
    assert_eq!(repository.worktree_in(&repository.dir, "bob").dir, first.dir);
    assert_eq!(first.remove(IgnoredFiles::Keep).unwrap(), Removed::Wholly);
    assert_eq!(repository.worktree_in(&other, "bob").dir, second.dir);
    assert_eq!(second.remove(IgnoredFiles::Keep).unwrap(), Removed::Wholly);
}

/// A process died after it had removed the worktree.
#[test]
fn an_interrupted_removal_is_completed() {
    let repository = TestRepository::new();
    let worktree = repository.worktree("bob");
    git(&repository.dir, &["worktree", "remove", &worktree.dir.to_string_lossy()]);
    assert!(worktree.has_branch());
    assert_eq!(worktree.remove(IgnoredFiles::Keep).unwrap(), Removed::None);
    assert!(!worktree.has_branch());
    assert!(!worktree.dir.parent().unwrap().exists());
}

#[test]
fn removal_loses_no_work() {
    let repository = TestRepository::new();
    let check = |name: &str, prepare: &dyn Fn(&Path), expected: Removed| {
        let worktree = repository.worktree(name);
        prepare(&worktree.dir);
        assert_eq!(worktree.remove(IgnoredFiles::Keep).unwrap(), expected, "{name}");
    };
    let write = |file: &'static str| move |dir: &Path| std::fs::write(dir.join(file), "x").unwrap();
    check("unchanged", &|_| {}, Removed::Wholly);
    check("changed", &write("file"), Removed::Stays);
    check("untracked", &write("new"), Removed::Stays);
    check(
        "hidden",
        &|dir| {
            git(dir, &["config", "status.showUntrackedFiles", "no"]);
            write("new")(dir);
        },
        Removed::Stays,
    );
    check("ignored", &write("a.ignored"), Removed::Ignored(vec!["a.ignored".to_owned()]));
    check(
        "committed",
        &|dir| {
            write("new")(dir);
            commit(dir);
        },
        Removed::BranchStays,
    );
    let unfinished = |dir: &Path| {
        let git_dir = git(dir, &["rev-parse", "--absolute-git-dir"]);
        std::fs::write(Path::new(&git_dir).join("MERGE_HEAD"), "").unwrap();
    };
    check("unfinished", &unfinished, Removed::Unfinished);
    let detached = repository.worktree("detached");
    git(&detached.dir, &["checkout", "--quiet", "--detach"]);
    write("other")(&detached.dir);
    commit(&detached.dir);
    let head = git(&detached.dir, &["rev-parse", "HEAD"]);
    let removed = detached.remove(IgnoredFiles::Keep).unwrap();
    let Removed::NewBranch(branch) = removed else { panic!("{removed:?}") };
    assert_eq!(git(&repository.dir, &["rev-parse", &branch]), head);
    assert!(!detached.dir.exists());
    // A commit that was checked out earlier exists only in the log of the worktree.
    let earlier = repository.worktree("earlier");
    git(&earlier.dir, &["checkout", "--quiet", "--detach"]);
    write("earlier")(&earlier.dir);
    commit(&earlier.dir);
    let head = git(&earlier.dir, &["rev-parse", "HEAD"]);
    git(&earlier.dir, &["checkout", "--quiet", &earlier.branch]);
    let removed = earlier.remove(IgnoredFiles::Keep).unwrap();
    let Removed::NewBranch(branch) = removed else { panic!("{removed:?}") };
    assert_eq!(git(&repository.dir, &["rev-parse", &branch]), head);
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let edit = |dir: &Path| {
            git(dir, &["update-index", flag, "file"]);
            write("file")(dir);
        };
        check(flag.trim_start_matches('-'), &edit, Removed::Stays);
    }
    let discarded = repository.worktree("discarded");
    write("a.ignored")(&discarded.dir);
    assert_eq!(discarded.remove(IgnoredFiles::Discard).unwrap(), Removed::Wholly);
}

/// Configuration that makes git run a program, as `KEY=VALUE`. `RUN` stands for a program that creates a file.
const HOSTILE: &str = "
core.fsmonitor=RUN
core.hooksPath=HOOKS
core.pager=RUN
core.editor=RUN
core.askPass=RUN
core.sshCommand=RUN
core.gitProxy=RUN
core.alternateRefsCommand=RUN
credential.helper=!RUN
diff.external=RUN
diff.evil.command=RUN
diff.evil.textconv=RUN
filter.evil.clean=RUN
filter.evil.smudge=RUN
filter.evil.process=RUN
filter.evil.required=true
merge.evil.driver=RUN
sequence.editor=RUN
interactive.diffFilter=RUN
gpg.program=RUN
gpg.ssh.program=RUN
commit.gpgSign=true
tag.gpgSign=true
log.showSignature=true
pager.status=RUN
pager.diff=RUN
uploadpack.packObjectsHook=RUN
alias.status=!RUN
alias.diff=!RUN
submodule.recurse=true
hook.evil.command=RUN
hook.evil.event=reference-transaction
";

const HOOKS: [&str; 8] = [
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "fsmonitor-watchman",
    "post-rewrite",
    "pre-auto-gc",
];

/// The program, the hooks and the marker file of an attack.
struct Attack {
    program: PathBuf,
    hooks: PathBuf,
    marker: PathBuf,
}

impl Attack {
    fn new(home: &Path) -> Self {
        let (program, hooks) = (home.join("evil.sh"), home.join("hooks"));
        let marker = home.join("it-ran");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", marker.display());
        std::fs::create_dir(&hooks).unwrap();
        let hook_files = HOOKS.map(|hook| hooks.join(hook));
        for file in hook_files.iter().chain([&program]) {
            std::fs::write(file, &script).unwrap();
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { program, hooks, marker }
    }

    fn configure(&self, dir: &Path) {
        for line in HOSTILE.lines().filter(|line| !line.is_empty()) {
            let (key, value) = line.split_once('=').unwrap();
            let value = value.replace("RUN", &self.program.display().to_string());
            let value = value.replace("HOOKS", &self.hooks.display().to_string());
            git(dir, &["config", key, &value]);
        }
    }

    fn take(&self) -> String {
        let ran = std::fs::read_to_string(&self.marker).unwrap_or_default();
        let _absent = std::fs::remove_file(&self.marker);
        ran
    }
}

#[test]
fn a_hostile_repository_runs_nothing() {
    let repository = TestRepository::new();
    let attack = Attack::new(repository.home.path());
    std::fs::write(repository.dir.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n")
        .unwrap();
    commit(&repository.dir);
    let worktree = repository.worktree("bob");
    attack.configure(&repository.dir);
    // Names of drivers that are hard to pass on, and a remote that fetches missing objects with a program.
    let program = attack.program.display();
    let config = repository.dir.join(".git/config");
    let mut text = std::fs::read(&config).unwrap();
    for name in [&b"x=y"[..], b"\xff"] {
        text.extend([b"[filter \"", name, b"\"]\n"].concat());
        text.extend(format!("clean = {program}\n").bytes());
    }
    let remote = format!(
        "[remote \"o\"]\npromisor = true\nurl = ext::{program}\n[protocol \"ext\"]\nallow = always\n"
    );
    text.extend(remote.bytes());
    std::fs::write(&config, text).unwrap();
    let attributes = repository.dir.join(".git/info/attributes");
    std::fs::create_dir_all(attributes.parent().unwrap()).unwrap();
    std::fs::write(attributes, b"a* filter=x=y\nb* filter=\xff\n").unwrap();
    for file in ["a", "b"] {
        std::fs::write(worktree.dir.join(file), "x").unwrap();
    }
    assert_eq!(worktree.distance().unwrap().changed, 2);
    assert!(worktree.diff(DiffFormat::Patch, &[]).unwrap().contains("+x"));
    for file in ["a", "b"] {
        std::fs::remove_file(worktree.dir.join(file)).unwrap();
    }
    let missing = repository.dir.join(".git/refs/heads/brigade/demo/gone");
    std::fs::write(missing, "1111111111111111111111111111111111111111\n").unwrap();
    let gone = repository.worktree_in(&repository.dir, "gone");
    assert!(gone.make(&repository.dir).is_err());
    let new = repository.worktree_in(&repository.dir, "new");
    let refused = new.make(&repository.dir).unwrap_err().to_string();
    assert!(
        refused.contains("use the filter evil, which only this repository configures"),
        "{refused}"
    );
    std::fs::write(worktree.dir.join("file"), "two").unwrap();
    assert_eq!(worktree.distance().unwrap().changed, 1);
    assert!(worktree.diff(DiffFormat::Patch, &[]).unwrap().contains("+two"));
    assert!(worktree.diff(DiffFormat::Stat, &[]).unwrap().contains("file"));
    assert_eq!(worktree.remove(IgnoredFiles::Discard).unwrap(), Removed::Stays);
    std::fs::write(worktree.dir.join("file"), "one").unwrap();
    worktree.remove(IgnoredFiles::Discard).unwrap();
    assert!(check_can_branch(&repository.dir).is_err());
    assert_eq!(attack.take(), "");
    // The same configuration runs programs without the protection.
    let mut plain = Command::new("git");
    plain.arg("-C").arg(&repository.dir).args(["status", "--porcelain"]).output().unwrap();
    assert!(attack.take().contains("evil.sh"));
}

/// The configuration of a repository inside the worktree does not belong to the outer repository, so the overrides for
/// the outer one do not disable it.
#[test]
fn a_hostile_submodule_runs_nothing() {
    let repository = TestRepository::new();
    let attack = Attack::new(repository.home.path());
    let submodule = |dir: &Path| {
        std::fs::create_dir(dir).unwrap();
        git(dir, &["init", "--quiet"]);
        std::fs::write(dir.join("a"), "one").unwrap();
        commit(dir);
    };
    let turn_hostile = |dir: &Path| {
        attack.configure(dir);
        std::fs::write(dir.join(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();
        // The new content has the same length, so git compares the content, after the filter.
        std::fs::write(dir.join("a"), "two").unwrap();
    };
    let worktree = repository.worktree("bob");
    let (known, moved) = (worktree.dir.join("known"), worktree.dir.join("moved"));
    submodule(&known);
    submodule(&moved);
    commit(&worktree.dir);
    git(&moved, &["commit", "--quiet", "--allow-empty", "-m", "t"]);
    let head = git(&moved, &["rev-parse", "HEAD"]);
    let untracked = worktree.dir.join("untracked");
    submodule(&untracked);
    let untracked_head = git(&untracked, &["rev-parse", "HEAD"]);
    for dir in [&known, &moved, &untracked] {
        turn_hostile(dir);
    }
    std::fs::write(worktree.dir.join("new"), "three").unwrap();
    let diff = worktree.diff(DiffFormat::Patch, &[]).unwrap();
    for line in ["+three", &format!("+Subproject commit {head}")] {
        assert!(diff.contains(line), "{line}: {diff}");
    }
    assert!(diff.contains(&format!("+Subproject commit {untracked_head}")), "{diff}");
    assert!(worktree.diff(DiffFormat::Stat, &[]).unwrap().contains("moved"));
    // Git cannot add a repository without a commit.
    let empty = worktree.dir.join("empty");
    std::fs::create_dir(&empty).unwrap();
    git(&empty, &["init", "--quiet"]);
    assert!(worktree.diff(DiffFormat::Patch, &[]).unwrap().contains("+three"));
    worktree.distance().unwrap();
    assert_eq!(worktree.remove(IgnoredFiles::Discard).unwrap(), Removed::Stays);
    assert_eq!(attack.take(), "");
    // A plain `git add` runs the programs.
    Command::new("git").arg("-C").arg(&worktree.dir).args(["add", "."]).output().unwrap();
    assert!(attack.take().contains("evil.sh"));
}

/// An agent replaces the file `.git` of its worktree with a repository of its own.
#[test]
fn a_replaced_git_folder_in_a_worktree_is_not_read() {
    let repository = TestRepository::new();
    let attack = Attack::new(repository.home.path());
    let worktree = repository.worktree("bob");
    std::fs::write(worktree.dir.join("file"), "two").unwrap();
    std::fs::remove_file(worktree.dir.join(".git")).unwrap();
    git(&worktree.dir, &["init", "--quiet"]);
    attack.configure(&worktree.dir);
    assert_eq!(worktree.distance().unwrap().changed, 1);
    assert!(worktree.diff(DiffFormat::Patch, &[]).unwrap().contains("+two"));
    assert_eq!(worktree.remove(IgnoredFiles::Discard).unwrap(), Removed::Stays);
    assert_eq!(attack.take(), "");
}

/// `git worktree add` was killed: git's lock is still there, and the index and files may be missing.
#[test]
fn a_half_made_worktree_is_made_again() {
    let repository = TestRepository::new();
    let bob = repository.worktree("bob");
    let git_dir = repository.dir.join(".git/worktrees/bob");
    let lock = || std::fs::write(git_dir.join("locked"), "initializing\n").unwrap();
    let check = |what: &str| {
        assert_eq!(bob.make(&repository.dir).unwrap(), bob.dir, "{what}");
        assert_eq!(std::fs::read_to_string(bob.dir.join("file")).unwrap(), "one", "{what}");
        assert_eq!(git(&bob.dir, &["status", "--porcelain"]), "", "{what}");
        assert_eq!(git(&bob.dir, &["branch", "--show-current"]), "brigade/demo/bob", "{what}");
        assert!(!git_dir.join("locked").exists(), "{what}");
    };
    lock();
    std::fs::remove_file(git_dir.join("index")).unwrap();
    std::fs::remove_file(bob.dir.join("file")).unwrap();
    check("killed while it wrote the files");
    lock();
    std::fs::remove_dir_all(&bob.dir).unwrap();
    check("killed before it created the folder");
    lock();
    std::fs::remove_dir_all(&bob.dir).unwrap();
    std::fs::create_dir(&bob.dir).unwrap();
    std::fs::remove_file(git_dir.join("index")).unwrap();
    check("killed before it wrote a file");
}

/// An agent may have worked in a half-made worktree.
#[test]
fn work_in_a_half_made_worktree_is_kept() {
    let repository = TestRepository::new();
    let bob = repository.worktree("bob");
    let git_dir = repository.dir.join(".git/worktrees/bob");
    let lock = || std::fs::write(git_dir.join("locked"), "initializing").unwrap();
    lock();
    std::fs::write(bob.dir.join("file"), "two").unwrap();
    bob.make(&repository.dir).unwrap();
    assert_eq!(std::fs::read_to_string(bob.dir.join("file")).unwrap(), "two");
    lock();
    std::fs::remove_file(git_dir.join("index")).unwrap();
    std::fs::write(bob.dir.join("new"), "").unwrap();
    bob.make(&repository.dir).unwrap();
    assert_eq!(std::fs::read_to_string(bob.dir.join("file")).unwrap(), "one");
    let aside = bob.dir.with_file_name("bob@incomplete-1");
    assert_eq!(std::fs::read_to_string(aside.join("file")).unwrap(), "two");
    assert!(aside.join("new").exists());
}

/// With git-crypt, or after `git lfs install --local`, a worktree without the filter would have wrong files.
#[test]
fn a_repository_whose_own_filter_is_in_use_gets_no_worktree() {
    let repository = TestRepository::new();
    let dir = &repository.dir;
    git(dir, &["config", "filter.git-crypt.smudge", "tr a-z A-Z"]);
    git(dir, &["config", "filter.git-crypt.clean", "tr A-Z a-z"]);
    // No file uses the filter.
    check_can_branch(dir).unwrap();
    std::fs::write(dir.join(".gitattributes"), "*.secret filter=git-crypt\n").unwrap();
    std::fs::create_dir(dir.join("below")).unwrap();
    std::fs::write(dir.join("below/x.secret"), "SECRET").unwrap();
    commit(dir);
    let bob = repository.worktree_in(dir, "bob");
    for refused in [bob.make(&dir.join("below")).map(drop), check_can_branch(&dir.join("below"))] {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("use the filter git-crypt, which only this repository"),
            "{refused}"
        );
    }
    assert!(!bob.dir.exists());
    // An empty setting of another filter, and a filter without programs, do not matter.
    git(dir, &["config", "--remove-section", "filter.git-crypt"]);
    git(dir, &["config", "filter.git-crypt.required", "false"]);
    bob.make(dir).unwrap();
}

/// Git creates only committed folders. Without this error, the agent's program would seem to be missing.
#[test]
fn a_folder_that_is_not_committed_is_named() {
    let repository = TestRepository::new();
    let folder = repository.dir.join("src");
    std::fs::create_dir(&folder).unwrap();
    let bob = repository.worktree("bob");
    let error = bob.make(&folder).unwrap_err();
    assert!(error.to_string().contains("of the worktree has no folder src"), "{error}");
    std::fs::write(folder.join("lib.rs"), "").unwrap();
    commit(&repository.dir);
    git(&bob.dir, &["merge", "--quiet", "main"]);
    assert_eq!(bob.make(&folder).unwrap(), bob.dir.join("src"));
}
