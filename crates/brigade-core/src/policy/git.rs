//! The arguments with which git runs programs, uses another repository, or writes files.

use super::options::is_option;
use super::word::Word;

/// Options before the subcommand. With them, git reads another configuration or another repository, and either can
/// name programs.
const GLOBAL: &[&str] = &[
    "--attr-source",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--namespace",
    "--paginate",
    "--super-prefix",
    "--work-tree",
];

/// The subcommands that a `*` covers. Others run programs in their arguments, set what other subcommands run, write
/// outside the folder, or are unknown here: aliases of the repository, and programs named `git-…`.
const KNOWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "merge-tree",
    "mv",
    "name-rev",
    "notes",
    "patch-id",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "switch",
    "symbolic-ref",
    "tag",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
];

/// Options of subcommands.
const OPTIONS: &[&str] = &[
    "--config",
    "--contents",
    "--exec",
    "--ext-diff",
    "--filters",
    "--extcmd",
    "--open-files-in-pager",
    "--output",
    "--output-directory",
    "--prefix",
    "--receive-pack",
    "--remote",
    "--separate-git-dir",
    "--template",
    "--textconv",
    "--upload-pack",
];

/// Returns the positions of the dangerous arguments of a git command.
pub(super) fn dangerous(words: &[Word]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut subcommand = "";
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        let is_dangerous = if subcommand.is_empty() {
            if text.starts_with('-') {
                // `-c` sets a configuration value, `-C` changes the folder, `-p` runs the pager.
                text.starts_with("-c")
                    || text.starts_with("-C")
                    || text == "-p"
                    || GLOBAL.iter().any(|option| is_option(text, option))
            } else {
                subcommand = text;
                !KNOWN.contains(&text)
            }
        } else {
            is_dangerous_in(subcommand, text)
        };
        if is_dangerous {
            found.push(at);
        }
    }
    found
}

fn is_dangerous_in(subcommand: &str, text: &str) -> bool {
    let short = match subcommand {
        "grep" => "O",
        "rebase" => "x",
        "clone" => "cu",
        "archive" | "format-patch" => "o",
        _ => "",
    };
    let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
    cluster.is_some_and(|cluster| cluster.contains(|letter| short.contains(letter)))
        || OPTIONS.iter().any(|option| is_option(text, option))
        // `ext::sh -c …` as the address of a repository is a command.
        || text.contains("ext::")
        || (subcommand == "bisect" && text == "run")
}
