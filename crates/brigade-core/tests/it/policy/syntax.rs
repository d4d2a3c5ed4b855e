//! More lines with which agents got around allow rules: programs and shell commands that run other commands, and
//! parts of the shell language whose meaning depends on the shell.

use super::{Ruling, all_allowed, check, none_allowed};

const ECHO: &[&str] = &["allow echo *"];

/// Known from Claude Code and Gemini CLI: a program that runs the command in its arguments hid that command.
#[test]
fn programs_that_run_others_are_not_allowed() {
    let any = &["allow *", "allow ls *"];
    none_allowed(
        any,
        &[
            "env ls",
            "env -S 'ls -l'",
            "env A=1 ls",
            "/usr/bin/env ls",
            "sudo ls",
            "doas ls",
            "su -c ls",
            "xargs ls",
            "find . | xargs ls",
            "nohup ls",
            "time ls",
            "timeout 5 ls",
            "nice ls",
            "stdbuf -o0 ls",
            "setsid ls",
            "watch ls",
            "strace ls",
            "script -c ls",
            "parallel ls",
            "flock x ls",
            "unshare ls",
            "busybox ls",
            "command ls",
            "builtin echo",
            "exec ls",
            "eval ls",
            "eval 'ls'",
            "source x",
            ". x",
            "coproc ls",
            "noglob ls",
            "nocorrect ls",
            "- ls",
            "sh x",
            "bash x",
            "bash -ic ls",
            "bash -lic ls",
            "sh -s",
            "bash --rcfile x -c ls",
            "bash -c ls x",
            "zsh -c ls x",
            "fish -c ls",
            "bash -lc 'bash -c ls'",
            "\\eval ls",
            "'env' ls",
            "systemd-run ls",
            "gdb x",
            "expect x",
            "at now",
            "hyperfine ls",
            "tmux new ls",
        ],
    );
    // Only a rule without `*` allows a script for a shell.
    check(&["allow bash ci/test.sh"], "bash ci/test.sh", Ruling::Allowed);
    check(&["allow bash ci/test.sh"], "bash ci/test.sh x", Ruling::Waits);
    check(&["allow bash *"], "bash ci/test.sh", Ruling::Waits);
}

/// Known from reviews of other agents' rules: one command of a line changed what the next one means.
#[test]
fn commands_that_change_the_shell_are_not_allowed() {
    let any = &["allow *", "allow cargo *", "allow alias *", "allow hash *"];
    none_allowed(
        any,
        &[
            "alias cargo=ls",
            "alias c=curl; c x",
            "hash -p ./evil cargo; cargo test",
            "export PATH=.",
            "export PATH=. && cargo test",
            "declare -x PATH=.",
            "typeset PATH=.",
            "readonly PATH=.",
            "read PATH",
            "printf -v PATH .",
            "set -x",
            "shopt -s expand_aliases",
            "setopt aliases",
            "trap ls EXIT",
            "enable -f ./x.so y",
            "mapfile -C ls x",
            "complete -C ls x",
            "bind -x ls",
            "history -a x",
            "fc -e ls",
            "let 'a[$(ls)]'",
            "test -v 'a[$(ls)]'",
            "[ -v 'a[$(ls)]' ]",
            "[ 1 -eq 'a[$(ls)]' ]",
            "unset x",
            "zmodload zsh/net/tcp",
            "zf_rm x",
            "emulate sh -c ls",
            "autoload x",
            "pushd /",
            "popd",
            "jobs -x ls",
            "r",
        ],
    );
}

/// Known from Codex and others: compound commands and functions.
#[test]
fn compound_commands_are_not_allowed() {
    none_allowed(
        &["allow *", "allow echo *"],
        &[
            "(echo x)",
            "{ echo x; }",
            "if echo x; then ls; fi",
            "while echo x; do ls; done",
            "for i in a; do ls; done",
            "for i in a\ndo ls\ndone",
            "case x in x) ls;; esac",
            "until ls; do ls; done",
            "select x in a; do ls; done",
            "echo() { ls; }; echo",
            "function echo { ls; }",
            "echo () ls",
            "[[ x ]]",
            "[[ x && y ]]",
            "((1))",
            "echo x; }",
            "echo x )",
            "repeat 3 ls",
            "foreach x (a) ls; end",
            "then ls",
            "do ls",
            "! ! ls",
        ],
    );
}

/// Known from Claude Code: brace, tilde, history and `=` expansion; an unquoted pattern that expands to an option.
#[test]
fn expansions_of_words_are_not_allowed() {
    none_allowed(
        &["allow *", "allow ls *", "allow cargo *"],
        &[
            "{cat,.env}",
            "ls {a,b}",
            "ls {1..3}",
            "ls a{b",
            "ls ~",
            "ls ~root",
            "ls --x=~/y",
            "ls a:~/b",
            "ls !!",
            "ls !$",
            "ls \"!!\"",
            "!ls",
            "^ls^rm",
            "ls ^x",
            "=ls",
            "ls =ls",
            "/bin/l? x",
            "l[s] x",
            "l* x",
            "ls *",
            "ls *.rs",
            "ls -*",
            "ls --x=*",
            "ls ?x",
            "ls [a]b",
            "%1",
            "ls #x",
            "ls # 'x",
            "#x\nls",
        ],
    );
    all_allowed(
        &["allow ls *", "allow git *"],
        &[
            "ls src/*.rs",
            "ls ./*",
            "ls a?",
            "ls a[bc]d",
            "ls '*'",
            "ls \\*",
            "ls \"{a,b}\"",
            "git show HEAD~3",
            "git show HEAD^",
            "ls a#b",
            "ls '~'",
            "ls a~",
            "ls 'x!'",
            "ls x=y",
        ],
    );
}

/// Known from Claude Code: control characters, line continuations and blanks that only one side takes for blanks.
#[test]
fn hidden_characters_are_not_allowed() {
    none_allowed(
        ECHO,
        &[
            "bash -lc 'echo x\rls'",
            "bash -lc 'echo x'\r",
            "bash\u{a0}-lc 'echo x'",
            "bash -lc 'echo \u{200b}x'",
            "echo x\rls",
            "echo x\r\nls",
            "echo x\0ls",
            "echo \u{1b}[2Jx",
            "echo x\u{7f}",
            "echo x\u{b}ls",
            "echo\u{a0}x",
            "echo x\u{2028}ls",
            "echo x\u{3000}ls",
            "echo x\u{85}ls",
            "echo \u{200b}x",
            "echo \u{202e}x",
            "echo \u{feff}x",
            "echo x\\\nls",
            "ec\\\nho x",
            "echo \"x\\\nls\"",
            "echo x\\",
            "echo 'x",
            "echo \"x",
            "echo \"x\\",
            "\u{a0}echo x",
            "echo \u{e0041}x",
            "echo 'a\u{200d}b'",
        ],
    );
    all_allowed(ECHO, &["echo\tx", "  echo   x  ", "echo é 日本 ✨ “x”", "echo \"a\\nb\" '\\'"]);
}
