//! Arguments with which common programs run other programs, or write files that the command does not name as its
//! purpose.
//!
//! A `*` in a rule does not cover these arguments: the rule must contain them literally. The table cannot be
//! complete. It contains the arguments that are known to have defeated the rules of coding agents, and their
//! relatives.

use super::word::Word;

/// The dangerous arguments of some programs.
struct Danger {
    programs: &'static [&'static str],
    /// Letters of short options, alone or together with others: `-o`, `-xo`, `-oFILE`.
    short: &'static str,
    /// Long options. One that begins with `--` can be abbreviated.
    long: &'static [&'static str],
    /// Whole arguments, such as subcommands.
    words: &'static [&'static str],
    /// The beginning of an argument.
    starts: &'static [&'static str],
    /// Text in an argument, in lower case.
    texts: &'static [&'static str],
}

const NONE: Danger =
    Danger { programs: &[], short: "", long: &[], words: &[], starts: &[], texts: &[] };

const DANGERS: &[Danger] = &[
    Danger {
        programs: &["find", "gfind"],
        long: &[
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-delete",
            "-fls",
            "-fprint",
            "-fprint0",
            "-fprintf",
            "-files0-from",
        ],
        ..NONE
    },
    Danger { programs: &["fd", "fdfind"], short: "xX", long: &["--exec", "--exec-batch"], ..NONE },
    Danger {
        programs: &["rg"],
        short: "z",
        long: &["--pre", "--hostname-bin", "--search-zip"],
        ..NONE
    },
    Danger { programs: &["ag", "ack"], long: &["--pager", "--ackrc"], ..NONE },
    Danger { programs: &["bat", "batcat"], long: &["--pager", "--paging"], ..NONE },
    Danger {
        programs: &["sort", "gsort"],
        short: "oT",
        long: &["--output", "--compress-program", "--temporary-directory", "--files0-from"],
        ..NONE
    },
    Danger { programs: &["shuf", "tree"], short: "o", long: &["--output"], ..NONE },
    Danger { programs: &["split", "gsplit"], long: &["--filter"], ..NONE },
    Danger {
        programs: &["tar", "bsdtar", "gtar"],
        short: "CFIP",
        long: &[
            "--absolute-names",
            "--checkpoint-action",
            "--directory",
            "--info-script",
            "--new-volume-script",
            "--one-top-level",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
        ..NONE
    },
    Danger { programs: &["zip"], short: "T", long: &["--unzip-command", "--test"], ..NONE },
    Danger {
        programs: &["rsync"],
        short: "eM",
        long: &["--rsh", "--rsync-path", "--remote-option", "--config", "--dparam"],
        ..NONE
    },
    Danger { programs: &["ssh", "scp", "sftp", "ssh-keygen", "ssh-add"], short: "DEFISo", ..NONE },
    Danger {
        programs: &["man", "apropos", "whatis"],
        short: "BCHPTXZl",
        long: &[
            "--browser",
            "--config-file",
            "--html",
            "--local-file",
            "--pager",
            "--preprocessor",
            "--troff-device",
            "--gxditview",
            "--ditroff",
        ],
        ..NONE
    },
    Danger {
        programs: &["less", "more", "most"],
        short: "koO",
        long: &["--lesskey-content", "--lesskey-file", "--lesskey-src", "--log-file", "--LOG-FILE"],
        starts: &["+"],
        ..NONE
    },
    Danger {
        programs: &["ex", "nvim", "vi", "view", "vim", "vimdiff"],
        short: "cSsuUwWi",
        long: &["--cmd", "--startuptime", "--listen"],
        starts: &["+"],
        ..NONE
    },
    Danger {
        programs: &["jq", "gojq", "jaq"],
        short: "fL",
        long: &["--from-file", "--library-path", "--rawfile", "--slurpfile", "--argfile"],
        texts: &["system"],
        ..NONE
    },
    Danger {
        programs: &["curl"],
        short: "oOKTDc",
        long: &[
            "--config",
            "--cookie-jar",
            "--dump-header",
            "--engine",
            "--etag-save",
            "--libcurl",
            "--output",
            "--output-dir",
            "--remote-name",
            "--remote-name-all",
            "--stderr",
            "--trace",
            "--trace-ascii",
            "--upload-file",
        ],
        ..NONE
    },
    Danger {
        programs: &["wget", "wget2"],
        short: "OoaPei",
        long: &[
            "--append-output",
            "--body-file",
            "--config",
            "--directory-prefix",
            "--execute",
            "--output-document",
            "--output-file",
            "--post-file",
            "--save-cookies",
            "--use-askpass",
        ],
        ..NONE
    },
    Danger { programs: &["tcpdump"], short: "wzZ", long: &["--postrotate-command"], ..NONE },
    Danger {
        programs: &["go"],
        long: &[
            "-C",
            "-asmflags",
            "-exec",
            "-gccgoflags",
            "-gcflags",
            "-ldflags",
            "-modfile",
            "-overlay",
            "-pkgdir",
            "-toolexec",
            "-vettool",
        ],
        words: &["-w"],
        ..NONE
    },
    Danger {
        programs: &["cargo"],
        short: "CZ",
        long: &[
            "--config",
            "--manifest-path",
            "--target-dir",
            "--artifact-dir",
            "--out-dir",
            "--lockfile-path",
        ],
        starts: &["+"],
        ..NONE
    },
    Danger {
        programs: &["npm", "pnpm", "yarn", "bun", "npx"],
        short: "C",
        long: &[
            "--call",
            "--cwd",
            "--dir",
            "--editor",
            "--git",
            "--globalconfig",
            "--node-options",
            "--prefix",
            "--script-shell",
            "--shell",
            "--userconfig",
            "--use-yarnrc",
            "--viewer",
        ],
        words: &["config", "dlx", "edit", "exec", "explore", "plugin", "set", "set-script", "x"],
        ..NONE
    },
    Danger {
        programs: &["make", "gmake", "just", "ninja"],
        short: "CEIdf",
        long: &[
            "--directory",
            "--eval",
            "--file",
            "--include-dir",
            "--justfile",
            "--makefile",
            "--shell",
            "--shell-arg",
            "--working-directory",
            "--chooser",
        ],
        texts: &["="],
        ..NONE
    },
    Danger { programs: &["cmake"], short: "CEP", ..NONE },
    Danger { programs: &["ctest"], short: "S", long: &["--script", "--build-and-test"], ..NONE },
    Danger {
        programs: &["gradle", "gradlew"],
        short: "Ibpcg",
        long: &[
            "--init-script",
            "--build-file",
            "--project-dir",
            "--settings-file",
            "--gradle-user-home",
        ],
        ..NONE
    },
    Danger {
        programs: &["mvn"],
        short: "fs",
        long: &["--file", "--settings", "--global-settings"],
        ..NONE
    },
    Danger { programs: &["pytest"], short: "pc", long: &["--rootdir", "--override-ini"], ..NONE },
    Danger {
        programs: &["cc", "gcc", "g++", "c++", "clang", "clang++"],
        starts: &["-wrapper", "-fplugin", "-specs", "--specs", "-B", "@", "-fuse-ld"],
        ..NONE
    },
    Danger {
        programs: &["rustc", "rustdoc"],
        short: "C",
        long: &["--codegen"],
        starts: &["@"],
        ..NONE
    },
    Danger {
        programs: &["latex", "lualatex", "pdflatex", "pdftex", "tex", "xelatex"],
        long: &["-shell-escape", "-enable-write18", "-output-directory"],
        ..NONE
    },
    Danger {
        programs: &["openssl"],
        long: &["-config", "-engine", "-provider", "-provider-path"],
        words: &["engine"],
        ..NONE
    },
    Danger {
        programs: &["sqlite3"],
        long: &["-cmd", "-init"],
        texts: &[
            ".shell",
            ".system",
            ".load",
            ".once",
            ".output",
            ".excel",
            "load_extension",
            "writefile",
            "readfile",
            "edit(",
        ],
        ..NONE
    },
    Danger {
        programs: &["psql", "mysql", "mariadb"],
        short: "foL",
        long: &["--file", "--output", "--log-file", "--pager", "--tee", "--init-command"],
        texts: &["\\!", "\\o", "\\g", "\\w", "program"],
        ..NONE
    },
    Danger {
        programs: &["nmap"],
        long: &["--script", "--interactive", "--datadir", "--servicedb"],
        ..NONE
    },
    Danger {
        programs: &["fzf", "sk"],
        long: &["--preview", "--bind", "--listen", "--cmd"],
        ..NONE
    },
    Danger {
        programs: &["patch"],
        short: "deor",
        long: &["--directory", "--ed", "--output", "--reject-file"],
        ..NONE
    },
    Danger { programs: &["file"], short: "Cm", long: &["--compile", "--magic-file"], ..NONE },
    Danger { programs: &["date"], short: "sf", long: &["--set", "--file"], ..NONE },
    Danger { programs: &["gh", "glab"], words: &["alias", "config", "ext", "extension"], ..NONE },
    Danger { programs: &["ip"], words: &["exec", "netns"], short: "b", long: &["-batch"], ..NONE },
    // In a shell, these evaluate text such as `a[$(id)]` in their arguments.
    Danger { programs: &["[", "printf", "test"], short: "v", texts: &["$", "`"], ..NONE },
    Danger { programs: &["kill", "type"], texts: &["$", "`"], ..NONE },
];

/// Returns whether the table has dangerous arguments of a program.
pub(super) fn is_listed(program: &str) -> bool {
    DANGERS.iter().any(|danger| danger.programs.contains(&program))
}

/// Returns the positions of the dangerous arguments of a program. The program has position 0.
pub(super) fn dangerous(program: &str, words: &[Word]) -> Vec<usize> {
    let danger = DANGERS.iter().find(|danger| danger.programs.contains(&program));
    let arguments = words.iter().enumerate().skip(1);
    arguments
        .filter(|(at, word)| danger.is_some_and(|danger| danger.covers(*at, word)))
        .map(|(at, _)| at)
        .collect()
}

impl Danger {
    fn covers(&self, at: usize, word: &Word) -> bool {
        let text = word.text();
        // `tar xfC` has its options without a dash.
        let dashless = at == 1 && self.programs.contains(&"tar");
        let cluster = match text.strip_prefix('-') {
            Some(cluster) if !cluster.starts_with('-') => Some(cluster),
            None if dashless => Some(text),
            _ => None,
        };
        cluster.is_some_and(|cluster| cluster.contains(|letter| self.short.contains(letter)))
            || self.long.iter().any(|option| is_option(text, option))
            || self.words.contains(&text)
            || self.starts.iter().any(|start| text.starts_with(start))
            || self.texts.iter().any(|part| text.to_ascii_lowercase().contains(part))
    }
}

/// Returns whether an argument is this long option, with or without a value. An option that begins with `--` can be
/// abbreviated; one that begins with a single dash can also be written with two.
pub(super) fn is_option(text: &str, option: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    if option.starts_with("--") {
        return name.len() > 2 && option.starts_with(name);
    }
    name == option || name.strip_prefix('-') == Some(option)
}
