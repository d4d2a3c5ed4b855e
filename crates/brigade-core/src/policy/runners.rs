//! Programs whose arguments are another command, and shell commands that change what later commands mean.

/// The shells that an agent may use to run a line: `bash -lc LINE`.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh"];

/// The folders in which a shell is the system's own. A program in any other folder may be a file that an agent wrote.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/run/current-system/sw/bin/"];

/// All shells that run a script.
const SCRIPT_SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "osh", "pwsh", "rbash",
    "sh", "tcsh", "xonsh", "yash", "zsh",
];

/// Programs that run the command in their arguments or their input.
const WRAPPERS: &[&str] = &[
    "arch",
    "at",
    "batch",
    "busybox",
    "bwrap",
    "caffeinate",
    "catchsegv",
    "choom",
    "chpst",
    "chroot",
    "chrt",
    "coproc",
    "crontab",
    "daemonize",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "eatmydata",
    "expect",
    "faketime",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "ld.so",
    "linux32",
    "linux64",
    "lldb",
    "logrotate",
    "ltrace",
    "mosh",
    "newgrp",
    "nice",
    "nocache",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "rlwrap",
    "run-parts",
    "runcon",
    "runuser",
    "script",
    "sem",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "softlimit",
    "ssh-agent",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "torsocks",
    "tsocks",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
];

/// Commands of the shell itself that run other commands, or change what later commands mean. `hash -p ./evil cargo`
/// makes `cargo` another program.
const BUILTINS: &[&str] = &[
    ".",
    "alias",
    "autoload",
    "bg",
    "bind",
    "bindkey",
    "builtin",
    "caller",
    "chdir",
    "command",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "dirs",
    "disable",
    "disown",
    "emulate",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "fg",
    "float",
    "functions",
    "getln",
    "getopts",
    "hash",
    "history",
    "integer",
    "let",
    "limit",
    "local",
    "logout",
    "mapfile",
    "nocorrect",
    "noglob",
    "popd",
    "print",
    "private",
    "pushd",
    "pushln",
    "read",
    "readarray",
    "readonly",
    "rehash",
    "sched",
    "set",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "sysopen",
    "sysread",
    "sysseek",
    "syswrite",
    "trap",
    "ttyctl",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unfunction",
    "unhash",
    "unlimit",
    "unset",
    "unsetopt",
    "vared",
    "wait",
    "whence",
    "zcompile",
    "zcurses",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zprof",
    "zpty",
    "zregexparse",
    "zselect",
    "zsocket",
    "zstyle",
    "zsystem",
    "ztcp",
    "ztie",
];

/// Returns the last part of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns whether a program runs the command in its arguments, or changes what later commands mean. No rule allows
/// such a program.
pub(super) fn is_runner(program: &str) -> bool {
    let name = base_name(program);
    WRAPPERS.contains(&name) || BUILTINS.contains(&name) || name.starts_with("zf_")
}

/// Returns whether a program is a shell. Only a rule without `*` allows a shell.
pub(super) fn is_shell(program: &str) -> bool {
    SCRIPT_SHELLS.contains(&base_name(program))
}

/// Returns whether a program is a shell of the system that an agent may use to run a line: a name without a folder,
/// or a path in a folder of the system.
pub(super) fn is_system_shell(program: &str) -> bool {
    let name = base_name(program);
    let folder = program.strip_suffix(name).unwrap_or_default();
    SHELLS.contains(&name) && (folder.is_empty() || SYSTEM_FOLDERS.contains(&folder))
}
