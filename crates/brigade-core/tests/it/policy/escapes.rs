//! Lines with which agents got around the allow rules of Claude Code, Codex and Gemini CLI, and their relatives. Each
//! test says where the escape is known from.

use super::{Ruling, all_allowed, check, none_allowed};

const ECHO: &[&str] = &["allow echo *"];
const GIT: &[&str] = &["allow git *"];
const CARGO: &[&str] = &["allow cargo test *"];

/// Finding 14: a program that the agent wrote, named like an allowed program or like a shell. Known from Codex, which
/// compared only the last part of the program's path.
#[test]
fn finding_14_a_program_elsewhere_is_another_program() {
    none_allowed(
        CARGO,
        &[
            "./bash -lc 'cargo test x'",
            "/tmp/bash -lc 'cargo test x'",
            "bin/sh -c 'cargo test x'",
            "../sh -c 'cargo test x'",
            "/usr/bin/../../tmp/sh -c 'cargo test'",
            "./cargo test",
            "../cargo test",
            "/tmp/cargo test",
            "/usr/bin/cargo test",
            "bin/cargo test x",
            "'./cargo' test",
            ".\\/cargo test",
            "~/cargo test",
            "$PWD/cargo test",
        ],
    );
    all_allowed(
        CARGO,
        &[
            "cargo test",
            "cargo test x",
            "'cargo' \"test\" x",
            "c\\argo test",
            "bash -lc 'cargo test x'",
            "/bin/bash -lc 'cargo test x'",
            "/usr/bin/bash -c 'cargo test x'",
            "/bin/sh -c 'cargo test x && cargo test y'",
            "zsh -lc 'cargo test x'",
        ],
    );
    // A rule can name a path; it allows only that path.
    check(&["allow ./x.sh *"], "./x.sh a", Ruling::Allowed);
    check(&["allow ./x.sh *"], "x.sh a", Ruling::Waits);
    check(&["allow ./bin/* --help"], "./bin/tool --help", Ruling::Allowed);
    check(&["allow ./bin/* --help"], "./bin/../../tool --help", Ruling::Waits);
    check(&["allow *"], "ls -l", Ruling::Allowed);
    check(&["allow *"], "./ls -l", Ruling::Waits);
}

/// Known from Claude Code, Gemini CLI and Kimi: the pattern was compared with the beginning of the whole line.
#[test]
fn a_second_command_is_not_allowed() {
    none_allowed(
        ECHO,
        &[
            "echo x && ls",
            "echo x || ls",
            "echo x; ls",
            "echo x;ls",
            "echo x | ls",
            "echo x |ls",
            "echo x|&ls",
            "echo x & ls",
            "echo x&ls",
            "echo x\nls",
            "echo x\n\n\tls",
            "echo x;\nls",
            "ls; echo x",
            "ls && echo x",
            "ls | echo x",
            "! ls",
            "echo x && ! ls",
            "echo x | cat >protected.txt",
            "echo \"a\"; ls \"b\"",
            "echo 'a'\\''b'; ls",
            "echo \"\\\"; ls; echo \\\"\"; ls",
            "cd /tmp && python3 script.py",
        ],
    );
    all_allowed(
        ECHO,
        &[
            "echo x && echo y",
            "echo x | echo y; echo z &",
            "echo x &&\n  echo y",
            "echo ';' '&&' \"|\" \\; \\&",
            "echo 'x\ny'",
            "! echo x",
            "echo \"\\\"; ls; echo \\\"\"",
            "echo x;",
            "\n echo x\n",
        ],
    );
    let long = "echo x; ".repeat(60);
    check(ECHO, &long, Ruling::Allowed);
    check(ECHO, &(long + "ls"), Ruling::Waits);
}

/// Known from Claude Code (backquotes and `$IFS`), Gemini CLI (process substitution) and others.
#[test]
fn substitutions_are_not_allowed() {
    none_allowed(
        ECHO,
        &[
            "echo $(ls)",
            "echo `ls`",
            "echo \"$(ls)\"",
            "echo \"`ls`\"",
            "echo \"a $(ls) b\"",
            "echo <(ls)",
            "echo >(ls)",
            "echo x > >(ls)",
            "echo x < <(ls)",
            "echo $((a[$(ls)]))",
            "echo $[1+1]",
            "echo $x",
            "echo \"$x\"",
            "echo ${x}",
            "echo ${x:-$(ls)}",
            "echo ${x@P}",
            "echo ${!x}",
            "echo${IFS}ls",
            "echo $IFS",
            "echo $'\\x6c\\x73'",
            "$'echo' x",
            "echo $\"x\"",
            "$(echo ls)",
            "`ls`",
            "${SHELL} -c ls",
            "$0 -c ls",
            "echo x$",
            "echo $",
        ],
    );
    all_allowed(ECHO, &["echo '$(ls)' '`ls`' '$x' \\$x \"\\$(ls) \\`ls\\`\"", "echo 'a$'"]);
}

/// Known from Claude Code: a here-document hid the command after it.
#[test]
fn here_documents_are_not_allowed() {
    none_allowed(
        &["allow cat *"],
        &[
            "cat <<EOF | ls\nEOF",
            "cat <<'EOF' | ls\nEOF",
            "cat <<EOF\n$(ls)\nEOF",
            "cat <<-EOF\nx\nEOF",
            "cat <<< x",
            "cat <<<$(ls)",
            "cat <<\\EOF\nEOF\nls",
        ],
    );
}

/// Known from Claude Code and Gemini CLI: an allowed command wrote files by redirection. A file that is written can be
/// the shell's start-up file.
#[test]
fn writing_redirections_are_not_allowed() {
    none_allowed(
        ECHO,
        &[
            "echo x > y",
            "echo x >y",
            "echo x>y",
            "echo x >> y",
            "echo x >| y",
            "echo x >! y",
            "echo x <> y",
            "echo x 2> y",
            "echo x 2>>y",
            "echo x &> y",
            "echo x &>/dev/null",
            "echo x &>/dev/null ls",
            "echo x >& y",
            "echo x >&y",
            "echo x 10> y",
            "echo x {fd}> y",
            "echo x > /etc/passwd",
            "echo x > ~/.bashrc",
            "echo x >/dev/tcp/host/80",
            "echo x > $y",
            "echo x > *",
            "> y echo x",
            "> y",
            "echo x >",
            "echo x 2>&1y",
            "echo x 2>&",
            "echo x >&2-",
        ],
    );
    all_allowed(
        ECHO,
        &[
            "echo x > /dev/null",
            "echo x >/dev/null 2>&1",
            "echo x 2>/dev/null",
            "echo x 2>&1 | echo y",
            "echo x >&2",
            "echo x 2>&-",
            ">/dev/null echo x",
            "echo 'a>b' \">\" \\>",
        ],
    );
}

/// Known from other agents: files outside the folder were read by redirection. `zsh` runs a program for a redirection
/// without a command.
#[test]
fn reading_redirections_stay_in_the_folder() {
    none_allowed(
        &["allow cat *"],
        &[
            "cat < /etc/passwd",
            "cat </etc/passwd",
            "cat < ../x",
            "cat < a/../../x",
            "cat < ~/x",
            "cat < /project/../etc/passwd",
            "cat < /dev/tcp/host/80",
            "cat < $x",
            "cat < *",
            "< x",
            "<x",
            "cat<x",
            "cat f<1-5>/dev/null",
            "cat <1-5>x",
            "exec 3<.env",
        ],
    );
    all_allowed(
        &["allow cat *"],
        &[
            "cat < x",
            "cat <a/b",
            "cat < /project/x",
            "cat < /dev/null",
            "cat 0< x",
            "<x cat",
            "cat < 'a b'",
        ],
    );
}

/// Known from Codex, Gemini CLI and Claude Code: variables before a program change what it runs.
#[test]
fn assignments_are_not_allowed() {
    none_allowed(
        GIT,
        &[
            "PATH=. git log",
            "LD_PRELOAD=./x.so git log",
            "DYLD_INSERT_LIBRARIES=x git log",
            "BASH_ENV=./x git log",
            "ENV=x git log",
            "IFS=x git log",
            "PS4='$(ls)' git log",
            "PROMPT_COMMAND=ls git log",
            "SHELLOPTS=xtrace git log",
            "GIT_EXTERNAL_DIFF=./x git diff",
            "GIT_SSH_COMMAND=ls git fetch",
            "GIT_PAGER=ls git log",
            "PAGER=ls git log",
            "EDITOR=./x git commit",
            "A=1 git log",
            "A= git log",
            "A='1' B=2 git log",
            "A=1; git log",
            "PATH=.\ngit log",
            "A+=1 git log",
            "a[1]=2 git log",
            "a=(1) git log",
            "\"A\"=1 git log",
        ],
    );
    // A rule can contain the assignment.
    let rules = &["allow RUST_BACKTRACE=1 cargo test *", "allow A=x* b"];
    check(rules, "RUST_BACKTRACE=1 cargo test x", Ruling::Allowed);
    check(rules, "RUST_BACKTRACE='1' cargo test x", Ruling::Allowed);
    check(rules, "RUST_BACKTRACE=2 cargo test x", Ruling::Waits);
    check(rules, "RUST_BACKTRACE=1 A=2 cargo test x", Ruling::Waits);
    check(rules, "cargo test x", Ruling::Waits);
    check(rules, "A=xy b", Ruling::Allowed);
    check(rules, "A=y b", Ruling::Waits);
}

/// Known from Claude Code: `cd` led to another folder, where another program or configuration was used.
#[test]
fn cd_stays_in_the_folder() {
    let rules = &["allow cd *", "allow ls *"];
    none_allowed(
        rules,
        &[
            "cd / && ls",
            "cd .. && ls",
            "cd a/../.. && ls",
            "cd /etc; ls",
            "cd && ls",
            "cd - && ls",
            "cd ~ && ls",
            "cd a b && ls",
            "cd -P / && ls",
            "cd /project/.. && ls",
            "cd /worker && ls",
            "cd '' && ls",
            "cd a* && ls",
            "pushd a && ls",
            "chdir a && ls",
        ],
    );
    all_allowed(rules, &["cd sub && ls", "cd /project && ls", "cd ./a; ls", "cd 'a b'"]);
    check(rules, "cd /project/a/../b && ls", Ruling::Waits);
    check(&["allow ls *"], "cd sub && ls", Ruling::Waits);
}

/// A `*` inside a word stays in that word, and does not lead out of the folder that the rule names.
#[test]
fn a_star_stays_in_its_word() {
    let rules =
        &["allow rm build/*", "allow cat * README.md", "allow git log *", "allow npm run test:*"];
    none_allowed(
        rules,
        &[
            "rm build/x y",
            "rm build/x /etc/passwd",
            "rm build/../x",
            "rm build/..",
            "rm build",
            "rm -rf build/x",
            "cat a b README.md",
            "cat README.md",
            "git log ../x",
            "git log a/../../x",
            "git",
            "git logs",
            "npm run test:a b",
            "npm run testa",
            "rm b*ld/x",
            "rm build/*/../../x",
            "git l?g",
        ],
    );
    all_allowed(
        rules,
        &[
            "rm build/x",
            "rm build/a/b",
            "rm build/*.o",
            "rm 'build/a b'",
            "cat a README.md",
            "git log",
            "git log -3 x",
            "npm run test:a",
            "git log main..x",
            "rm build/[ab].o",
        ],
    );
    check(&["allow rm ../*"], "rm ../x", Ruling::Allowed);
    check(CARGO, "cargo te*t", Ruling::Waits);
    check(&["allow x *"], "x ./... main..topic", Ruling::Allowed);
    none_allowed(
        &["allow x *"],
        &["x ..", "x ../y", "x a/..", "x -I../y", "x --dir=..", "x --dir=../y", "x a:..", "x -I.."],
    );
    // A file name pattern can expand to `..`, in `dash` and in older versions of `bash`.
    none_allowed(
        &["allow rm build/*", "allow x *", "allow y a*"],
        &[
            "rm build/.?/secret",
            "rm build/.[.]/secret",
            "rm build/.*",
            "rm build/a/.*/x",
            "rm build/.[!a]",
            "rm build/.?",
            "x a/.*",
            "x ./.?/y",
            "x .?",
            "x -Ia/.?",
            "y a/.?/../x",
        ],
    );
    all_allowed(
        &["allow rm build/*", "allow x *"],
        &[
            "rm build/.a",
            "rm build/a.*",
            "rm build/a?/b",
            "x a/b.*",
            "x ./*.rs",
            "x -n...",
            "x a..",
        ],
    );
    check(&["allow git commit -m '*'"], "git commit -m '*'", Ruling::Allowed);
    check(&["allow git commit -m '*'"], "git commit -m x", Ruling::Waits);
}
