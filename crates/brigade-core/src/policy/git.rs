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

/// Subcommands that run programs in their arguments, or set what other subcommands run.
const SUBCOMMANDS: &[&str] = &[
    "config",
    "credential",
    "daemon",
    "difftool",
    "filter-branch",
    "for-each-repo",
    "help",
    "hook",
    "instaweb",
    "maintenance",
    "mergetool",
    "send-email",
    "shell",
    "submodule",
    "upload-pack",
    "receive-pack",
    "remote-ext",
    "p4",
    "svn",
    "cvsimport",
    "web--browse",
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
                SUBCOMMANDS.contains(&text)
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
