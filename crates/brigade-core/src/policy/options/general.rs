//! Search tools, archives, editors, pagers, databases and network clients.

use super::{Danger, NONE};

pub(super) const TABLE: &[Danger] = &[
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
    Danger { programs: &["ssh", "scp"], short: "DEFISo", ..NONE },
    Danger { programs: &["sftp"], short: "DFSbo", reads_commands: true, ..NONE },
    Danger { programs: &["ssh-keygen", "ssh-add"], short: "DEFISeosw", ..NONE },
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
        // `+` also begins a command after other letters: `-N+!ls`.
        short: "+koO",
        long: &["--lesskey-content", "--lesskey-file", "--lesskey-src", "--log-file", "--LOG-FILE"],
        starts: &["+"],
        ..NONE
    },
    Danger {
        programs: &["ex", "nvim", "vi", "view", "vim", "vimdiff"],
        short: "cSsuUwWil",
        long: &["--cmd", "--startuptime", "--listen", "--remote", "--server"],
        starts: &["+"],
        reads_commands: true,
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
            "--alt-svc",
            "--config",
            "--cookie-jar",
            "--dump-header",
            "--engine",
            "--etag-save",
            "--hsts",
            "--libcurl",
            "--output",
            "--output-dir",
            "--remote-name",
            "--remote-name-all",
            "--ssl-sessions",
            "--stderr",
            "--trace",
            "--trace-ascii",
            "--trace-config",
            "--unix-socket",
            "--upload-file",
        ],
        starts: &["--expand-", "@"],
        // The format of `-w` can name a file to write, or be in a file.
        texts: &["%output", "w@", "write-out=@"],
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
        programs: &["openssl"],
        long: &["-config", "-engine", "-provider", "-provider-path"],
        words: &["engine"],
        ..NONE
    },
    // The commands of sqlite3 begin with a dot and can be abbreviated. `"|ls"` as a file name is a command.
    Danger {
        programs: &["sqlite3"],
        long: &["-cmd", "-init", "-append", "-zip"],
        starts: &[".", " ", "\t"],
        texts: &["\\", "`", "|", "\n", "load_extension", "writefile", "readfile", "edit("],
        reads_commands: true,
        ..NONE
    },
    Danger {
        programs: &[
            "mariadb",
            "mariadb-dump",
            "mysql",
            "mysqladmin",
            "mysqldump",
            "pg_dump",
            "psql",
        ],
        short: "foLr",
        long: &[
            "--default-auth",
            "--defaults-extra-file",
            "--defaults-file",
            "--file",
            "--init-command",
            "--load-data-local-dir",
            "--log-file",
            "--output",
            "--pager",
            "--plugin-dir",
            "--result-file",
            "--tab",
            "--tee",
        ],
        texts: &["\\", "`", "edit", "pager", "program", "source", "sslkey", "system", "tee "],
        reads_commands: true,
        ..NONE
    },
    // Any of their arguments or input can be a command.
    Danger {
        programs: &["dc", "ed", "gnuplot", "m4"],
        starts: &[""],
        reads_commands: true,
        ..NONE
    },
    Danger {
        programs: &["kubectl", "oc"],
        long: &["--cache-dir", "--kubeconfig", "--profile-output"],
        words: &[
            "attach", "config", "cp", "debug", "edit", "exec", "krew", "plugin", "proxy", "run",
        ],
        ..NONE
    },
    Danger {
        programs: &["helm"],
        long: &["--kubeconfig", "--post-renderer", "--post-renderer-args", "--registry-config"],
        words: &["plugin"],
        ..NONE
    },
    Danger {
        programs: &["docker", "podman"],
        short: "H",
        long: &["--config", "--connection", "--context", "--host", "--module", "--url"],
        words: &["build", "buildx", "compose", "context", "cp", "create", "exec", "plugin", "run"],
        ..NONE
    },
    Danger { programs: &["terraform", "tofu"], long: &["-chdir", "-plugin-dir"], ..NONE },
    Danger {
        programs: &["hg"],
        short: "R",
        long: &["--config", "--config-file", "--cwd", "--debugger", "--repository", "--tool"],
        ..NONE
    },
    Danger {
        programs: &["svn"],
        long: &[
            "--config-dir",
            "--config-option",
            "--diff-cmd",
            "--diff3-cmd",
            "--editor-cmd",
            "--extensions",
        ],
        short: "x",
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
    // The arguments after `--` are arguments of git.
    Danger {
        programs: &["gh", "glab"],
        words: &["--", "alias", "config", "ext", "extension", "extensions"],
        ..NONE
    },
    Danger { programs: &["ip"], words: &["exec", "netns"], short: "b", long: &["-batch"], ..NONE },
    // In a shell, these evaluate text such as `a[$(id)]` in their arguments.
    Danger { programs: &["[", "printf", "test"], short: "v", texts: &["$", "`"], ..NONE },
    Danger { programs: &["kill", "type"], texts: &["$", "`"], ..NONE },
];
