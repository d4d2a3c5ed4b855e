//! Arguments with which allowed programs run other programs or write files. A `*` does not cover them.

use super::{Ruling, all_allowed, check, none_allowed};

const ANY: &[&str] = &["allow *"];

/// Known from Claude Code, Codex, and servers that run commands for models: options of search tools.
#[test]
fn search_tools_that_run_programs_wait() {
    none_allowed(
        ANY,
        &[
            "find . -exec ls '{}' +",
            "find . -execdir ls ';'",
            "find . -ok ls ';'",
            "find . -delete",
            "find . -fprint x",
            "find . -fprintf x %p",
            "find . -fls x",
            "find . -files0-from x",
            "fd x -x ls",
            "fd x -X ls",
            "fd --exec ls",
            "fd --exec=ls",
            "rg --pre ls x",
            "rg --pre=ls x",
            "rg --pr=ls x",
            "rg -z x",
            "rg -iz x",
            "rg --hostname-bin=ls x",
            "rg --search-zip x",
            "ag --pager=ls x",
            "sort --compress-program=ls x",
            "sort --compress-program ls x",
            "sort --com=ls x",
            "sort -o y x",
            "sort -oy x",
            "sort -uo y x",
            "sort --output=y x",
            "sort -T /tmp x",
            "uniq a b",
            "tree -o x",
            "shuf -o x y",
            "split --filter=ls x",
            "jq -f x",
            "jq --from-file x",
            "bat --pager=ls x",
            "fzf --preview ls",
        ],
    );
    all_allowed(
        ANY,
        &[
            "find . -name x",
            "rg -n x",
            "sort -u x",
            "uniq x",
            "uniq -c",
            "jq . x",
            "fd x",
            "tree -L 2",
            "grep -rn x .",
        ],
    );
}

/// Known from Codex and Claude Code: options and subcommands of git.
#[test]
fn git_options_that_run_programs_wait() {
    none_allowed(
        &["allow git *"],
        &[
            "git -c core.pager=ls log",
            "git -ccore.pager=ls log",
            "git -C /tmp log",
            "git -p log",
            "git --exec-path=. log",
            "git --exec-path . log",
            "git --git-dir=x log",
            "git --git-d=x log",
            "git --work-tree=x status",
            "git --config-env=a=b log",
            "git --namespace=x log",
            "git --paginate log",
            "git config core.pager ls",
            "git config alias.x '!ls'",
            "git log --output=x",
            "git log --outpu=x",
            "git diff --output x",
            "git diff --ext-diff",
            "git show --textconv",
            "git grep -Ols x",
            "git grep -iO x",
            "git grep --open-files-in-pager=ls x",
            "git grep --open=ls x",
            "git rebase -x ls main",
            "git rebase --exec ls main",
            "git bisect run ls",
            "git submodule foreach ls",
            "git fetch --upload-pack=ls x",
            "git fetch --upload-pa=ls x",
            "git clone -u ls x",
            "git clone -c a=b x",
            "git clone --config a=b x",
            "git clone --template=x y",
            "git ls-remote --upload-pack ls x",
            "git ls-remote 'ext::sh -c ls'",
            "git clone ext::ls",
            "git push --receive-pack=ls x",
            "git push --exec=ls x",
            "git archive --remote=x",
            "git archive -o x HEAD",
            "git difftool -x ls",
            "git mergetool",
            "git filter-branch x",
            "git hook run x",
            "git blame --contents x y",
            "git format-patch -o x HEAD",
            "git help log",
        ],
    );
    all_allowed(
        &["allow git *"],
        &[
            "git",
            "git status",
            "git log -3 --oneline",
            "git diff HEAD~1 -- src",
            "git switch -c x",
            "git add -u",
            "git push -u origin x",
            "git commit -m 'a; b'",
            "git branch --list",
            "git --version",
            "git checkout -b x",
            "git show HEAD:x",
            "git grep -n x",
            "git stash",
        ],
    );
    check(&["allow git -C sub status"], "git -C sub status", Ruling::Allowed);
    check(&["allow git config --get *"], "git config --get user.name", Ruling::Allowed);
    check(&["allow git log *"], "git log --output=x", Ruling::Waits);
}

/// Known from Claude Code: `sed` and `awk` programs run commands and write files.
#[test]
fn scripts_of_other_languages_wait() {
    none_allowed(
        ANY,
        &[
            "sed -i s/a/b/ x",
            "sed -i.bak s/a/b/ x",
            "sed -ni p x",
            "sed --in-place s/a/b/ x",
            "sed --in s/a/b/ x",
            "sed -I x y",
            "sed -f x y",
            "sed 1e x",
            "sed 's/a/ls/e' x",
            "sed 'w y' x",
            "sed 's/a/b/w y' x",
            "sed -n '1e ls' x",
            "sed -e p -e 'w y' x",
            "sed 'r /etc/passwd' x",
            "sed 's/a/b/;w y' x",
            "awk 'BEGIN{system(\"ls\")}'",
            "awk '{print | \"ls\"}' x",
            "awk '{print > \"y\"}' x",
            "awk '\"ls\" | getline' x",
            "awk -f x y",
            "awk '@load \"x\"' y",
            "gawk -i inplace x y",
            "awk 'BEGIN{x=1; system(\"ls\")}'",
            "jq 'system' x",
        ],
    );
    all_allowed(
        ANY,
        &[
            "sed -n 1,10p x",
            "sed -n '5p' x",
            "sed s/a/b/g x",
            "sed -E 's|a|b|' x y",
            "sed -e s/a/b/ -e 3d x",
            "awk '{print $1}' x",
            "awk -F: '{print $1}' x",
        ],
    );
    check(&["allow sed -i *"], "sed -i s/a/b/ x", Ruling::Allowed);
    check(&["allow sed -i *"], "sed -i 1e x", Ruling::Waits);
}

/// Known from Claude Code (`man`, pagers), and from lists of programs with which a restricted shell can be left.
#[test]
fn pagers_editors_and_archives_that_run_programs_wait() {
    none_allowed(
        ANY,
        &[
            "man -P ls x",
            "man -Pls x",
            "man --pager=ls x",
            "man --html=ls x",
            "man -Hls x",
            "man -C x y",
            "man --htm=ls x",
            "less '+!ls' x",
            "less +x y",
            "less -k x y",
            "less -o x y",
            "vim -c ':x' y",
            "vim +x y",
            "vi --cmd x",
            "view -S x",
            "tar --checkpoint-action=exec=ls -cf x y",
            "tar --checkpoint-act exec=ls -cf x y",
            "tar --to-command=ls -xf x",
            "tar -I ls -xf x",
            "tar xIf ls x",
            "tar xfC x /tmp",
            "tar -xf x -C /tmp",
            "tar -xPf x",
            "tar --use-compress-program=ls -xf x",
            "tar --rsh-command=ls -xf x",
            "tar -F ls -cf x y",
            "zip -T x y",
            "zip x y -TT ls",
            "zip --unzip-command=ls x y",
            "rsync -e ls x y",
            "rsync -ave ls x y",
            "rsync --rsh=ls x y",
            "rsync --rsync-path=ls x y",
            "ssh -o ProxyCommand=ls x",
            "ssh -oProxyCommand=ls x",
            "ssh -F x y",
            "scp -S ls x y",
            "sftp -D ls",
            "tcpdump -z ls -w x",
            "curl -o x y",
            "curl -sSo x y",
            "curl -K x",
            "curl --output x y",
            "wget -O x y",
            "wget --use-askpass=ls x",
            "wget -e x y",
            "patch -e x",
        ],
    );
    all_allowed(
        ANY,
        &[
            "man ls",
            "less x",
            "tar -tf x",
            "tar tf x",
            "curl -sS x",
            "rsync -av x y",
            "ssh host ls",
        ],
    );
}

/// Known from Claude Code and Codex: options of build tools.
#[test]
fn build_tools_that_run_other_programs_wait() {
    none_allowed(
        ANY,
        &[
            "go test -exec ls ./...",
            "go test --exec=ls ./...",
            "go build -toolexec=ls x",
            "go vet -vettool=ls",
            "go build -ldflags=x",
            "go env -w x",
            "cargo --config x test",
            "cargo test --config=x",
            "cargo test --manifest-path /tmp/Cargo.toml",
            "cargo -C /tmp test",
            "cargo +x test",
            "npm --script-shell=ls test",
            "npm exec ls",
            "npm x ls",
            "npm config set x",
            "npm --prefix /tmp test",
            "yarn dlx x",
            "yarn plugin x",
            "make -f x",
            "make -C /tmp",
            "make SHELL=./x",
            "make --eval=x",
            "make CC=ls",
            "gcc -wrapper ls x",
            "gcc -fplugin=x y",
            "gcc @x",
            "rustc -C linker=ls x",
            "pdflatex --shell-escape x",
            "openssl engine x",
            "sqlite3 x '.shell ls'",
            "sqlite3 -cmd '.shell ls' x",
            "psql -c '\\! ls'",
            "cmake -P x",
            "cmake -E ls",
            "gh alias set x",
            "gh extension exec x",
            "nmap --script x",
            "ip netns exec x ls",
            "pytest -p x",
            "gradle -I x",
        ],
    );
    all_allowed(
        ANY,
        &[
            "go test ./...",
            "cargo test -p x -- --nocapture",
            "npm test",
            "npm run build",
            "make -j8 all",
            "gcc -O2 x.c",
            "pytest -x -q",
            "printf '%s' x",
            "test -f x",
            "[ -f x ]",
            "true",
            ":",
        ],
    );
    check(&["allow make CC=clang *"], "make CC=clang all", Ruling::Allowed);
    check(&["allow cargo test --config x *"], "cargo test --config x --lib", Ruling::Allowed);
}

/// An agent chooses the names of files, so a pattern for file names can expand to a subcommand, a script or a second
/// file.
#[test]
fn patterns_that_can_expand_to_dangerous_arguments_wait() {
    none_allowed(
        ANY,
        &[
            "git c* alias.x '!ls'",
            "git log c*",
            "npm e* ls",
            "awk src/* x",
            "uniq src/*",
            "sed src/* x",
            "tar x*",
        ],
    );
    all_allowed(
        ANY,
        &["git add src/*.rs", "cargo test src/*", "find src/* -name x", "ls a*", "cat a*"],
    );
}
