//! More arguments with which common programs run other programs or write files, by kind of program.

use super::{Ruling, all_allowed, check, none_allowed};

const ANY: &[&str] = &["allow *"];

/// A client of a database has commands of its own, also abbreviated ones, and some of them start a shell.
#[test]
fn database_clients_that_run_programs_wait() {
    none_allowed(
        ANY,
        &[
            "sqlite3 x.db '.sh ls'",
            "sqlite3 x.db '.sy ls'",
            "sqlite3 x.db '.system ls'",
            "sqlite3 x.db '.read \"|ls\"'",
            "sqlite3 x.db '.import \"|ls\" t'",
            "sqlite3 x.db '.import |ls t'",
            "sqlite3 x.db ' .sh ls'",
            "sqlite3 x.db 'select 1;\n.sh ls'",
            "sqlite3 x.db .dump",
            "sqlite3 x.db < s.sql",
            "sqlite3 -batch x.db < s.sql",
            "sqlite3 x.db 'select `a`'",
            "psql -c '\\! ls'",
            "psql -c '\\copy t to program ls'",
            "psql -c '\\i x'",
            "psql < s.sql",
            "mysql -e 'system ls'",
            "mysql -e '\\! ls'",
            "mysql -e 'source x'",
            "mysql --plugin-dir=. x",
            "mysql --plugin-dir . x",
            "mysql --default-auth=x",
            "mysql --init-command=x",
            "mysql --defaults-file=x",
            "mysql --defaults-extra-file=x",
            "mariadb < s.sql",
            "cat s.sql | sqlite3 x.db",
            "echo x | psql",
            "echo x | mysql y 2>&1",
            "mysql --plugin_dir=. x",
            "mysqldump --plugin-dir=. x",
            "mysqldump --result-file=x y",
            "mysqldump -r x y",
            "pg_dump -f x y",
        ],
    );
    all_allowed(
        ANY,
        &[
            "sqlite3 x.db 'select 1'",
            "sqlite3 -json x.db 'select a.b from c'",
            "psql -c 'select 1'",
            "mysql -e 'select 1' x",
        ],
    );
    // A redirection is harmless for a program that only reads text.
    check(ANY, "cat < s.sql", Ruling::Allowed);
    check(&["allow sqlite3 x.db .dump"], "sqlite3 x.db .dump", Ruling::Allowed);
}

#[test]
fn compilers_and_linkers_that_load_code_wait() {
    none_allowed(
        ANY,
        &[
            "gcc m.c -Wl,-plugin,./p.so",
            "gcc m.c -Wl,--plugin=./p.so",
            "gcc -Wl,-dynamic-linker,./x m.c",
            "gcc --prefix=./pre/ m.c",
            "gcc --prefix ./pre/ m.c",
            "gcc -Xlinker -plugin m.c",
            "gcc -B./pre m.c",
            "clang --ld-path=./x m.c",
            "clang -Xclang -load m.c",
            "clang -fpass-plugin=x m.c",
            "clang -fplugin=x m.c",
            "clang -mllvm -load=x m.c",
            "clang --config=x m.c",
            "cc -fplugin=x m.c",
            "gcc-13 -fplugin=x m.c",
            "clang++-17.0 -fplugin=x m.c",
            "aarch64-linux-gnu-gcc-13 -wrapper ls m.c",
            "ld -plugin ./p.so x.o",
            "ld --plugin=./p.so x.o",
            "nm --plugin ./p.so x",
            "nm --plugin=./p.so x",
            "ar --plugin ./p.so r x.a",
            "ranlib --plugin=./p.so x.a",
            "objdump --plugin=./p.so x",
            "strip --plugin=./p.so x",
            "objcopy --plugin=./p.so x",
            "size --plugin=./p.so x",
            "rustc --extern x=./evil.so y",
            "rustc -Clinker=ls x",
            "install -s --strip-program=./x a b",
            "install --strip-p=./x a b",
            "mypy --python-executable=./x y",
            "mypy --config-file x y",
            "pylint --load-plugins=x y",
            "pylint --init-hook=x y",
            "eslint --config x y",
            "eslint --rulesdir x y",
            "eslint --resolve-plugins-relative-to x y",
            "pandoc --filter ./x y",
            "pandoc -F ./x y",
            "pandoc --lua-filter=x y",
            "pandoc --pdf-engine=./x y",
            "pandoc -o x y",
            "pandoc -t ./x.lua y",
        ],
    );
    all_allowed(
        ANY,
        &[
            "gcc -Wall -O2 m.c",
            "clang -c m.c",
            "nm x",
            "objdump -d x",
            "mypy src",
            "pandoc x.md",
            "strip x",
        ],
    );
}

#[test]
fn clients_of_services_that_run_programs_wait() {
    none_allowed(
        ANY,
        &[
            "kubectl get pods --kubeconfig=kc",
            "kubectl get pods --kubeconfig kc",
            "kubectl --kubeconfig=kc get pods",
            "kubectl config set-credentials x",
            "kubectl exec x -- ls",
            "kubectl krew install x",
            "kubectl plugin list",
            "kubectl cp a b",
            "helm install x --post-renderer ./x",
            "helm template x --post-renderer=./x",
            "helm plugin install x",
            "helm --kubeconfig=x list",
            "gh repo clone a/b -- -c core.pager=ls",
            "gh repo clone a/b -- --upload-pack=ls",
            "gh repo fork a/b -- -c x=y",
            "gh alias set x '!ls'",
            "gh extension install x",
            "gh config set pager ls",
            "gh ext exec x",
            "hg --config alias.x=!ls log",
            "hg log --config=ui.x=ls",
            "hg --cwd /tmp log",
            "hg -R /tmp log",
            "svn diff --diff-cmd ls",
            "svn diff --diff-cmd=ls",
            "svn merge --diff3-cmd ls",
            "svn commit --editor-cmd ls",
            "svn --config-option x log",
            "svn --config-dir=x log",
            "curl -w '%output{x}' y",
            "curl --write-out '%output{x}' y",
            "curl -w @x y",
            "curl --hsts x y",
            "curl --alt-svc x y",
            "curl --trace-config x y",
            "curl --dump-header x y",
            "curl --cookie-jar=x y",
            "curl --proto-default file --remote-name-all x",
            "curl --ssl-sessions x y",
            "xxd -r a b",
            "xxd a b",
            "ssh-keygen -D ./x.so",
            "ssh-keygen -w ./x.so -t ecdsa-sk",
            "ssh-add -s ./x.so",
            "sftp -b x host",
            "docker --config x ps",
            "docker run -v /:/x y",
            "docker exec x ls",
            "terraform -chdir=/tmp plan",
        ],
    );
    all_allowed(
        ANY,
        &[
            "kubectl get pods",
            "helm list",
            "gh pr list",
            "gh repo clone a/b",
            "hg log",
            "svn log",
            "curl -sS -w '%{http_code}' x",
            "xxd a",
            "xxd -l 16 -s 4 a",
            "docker ps",
        ],
    );
}

#[test]
fn options_in_other_forms_wait() {
    none_allowed(
        ANY,
        &[
            "less '-N+!ls' x",
            "less -N+x y",
            "nvim -l x.lua",
            "nvim -c ':x' y",
            "nvim +x y",
            "vim -S x",
            "vim -es y",
            "vimdiff +x a b",
            "ex x < y",
            "echo x | ed y",
            "m4 x",
            "npm -script-shell=./evil test",
            "npm ---script-shell=./evil test",
            "npm -prefix /tmp test",
            "npm --script_shell=./evil test",
            "npm -node-options=x test",
            "pnpm -C /tmp test",
            "yarn --cwd /tmp test",
        ],
    );
    all_allowed(ANY, &["less -N x", "npm -s test", "npm run build --silent", "vim x"]);
}

/// With `*` right after `git`, only subcommands that are known to run no other program are allowed.
#[test]
fn only_known_subcommands_of_git_are_allowed() {
    none_allowed(
        &["allow git *"],
        &[
            "git merge-index ./evil.sh -a",
            "git merge-one-file x",
            "git checkout-index --prefix=/outside/ -a",
            "git alias-of-the-repository",
            "git ./x",
            "git filter-repo x",
            "git lfs x",
            "git remote-https x",
            "git update-index x",
            "git replace --edit x",
            "git sh-setup",
            "git bisect run ls",
        ],
    );
    all_allowed(
        &["allow git *"],
        &["git status", "git ls-files", "git blame x", "git fetch origin", "git worktree list"],
    );
    // A rule that names the subcommand allows it.
    check(&["allow git lfs *"], "git lfs ls-files", Ruling::Allowed);
    check(&["allow git checkout-index *"], "git checkout-index --prefix=/x/ a", Ruling::Waits);
}
