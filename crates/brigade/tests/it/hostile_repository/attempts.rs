//! The hostile repositories. Each is a function that writes files.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{Repository, SECRET, pipe};

/// The text that `brigade up` must print about a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    /// The file is not trusted. `brigade trust` prints this text.
    NotTrusted(&'static str),
    /// The file cannot be used. The error contains this text.
    Error(&'static str),
}
use Says::{Error, NotTrusted};

pub(super) type Attempt = (&'static str, Says, fn(&Repository));

/// A member of a team file.
macro_rules! member {
    ($keys:literal) => {
        concat!("team = \"demo\"\n[members.m]\nagent = \"codex\"\n", $keys, "\n")
    };
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    ("a server", NotTrusted("nats://127.0.0.1"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\n");
    }),
    ("a server with TLS", NotTrusted("tls://127.0.0.1"), |it| {
        it.file("team = \"demo\"\nstore = \"tls://SERVER\"\n");
    }),
    ("several servers", NotTrusted("nats://127.0.0.1"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER, nats://SERVER\"\n");
    }),
    ("a server and credentials inside", NotTrusted("credentials in <root>/work/my.creds"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\ncreds = \"my.creds\"\n");
        it.cli.write("work/my.creds", SECRET);
    }),
    ("a server and the user's credentials", NotTrusted("<root>/outside/secret (creds)"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\ncreds = \"../outside/secret\"\n");
    }),
    ("credentials behind a link", NotTrusted("<root>/outside/secret (creds)"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\ncreds = \"my.creds\"\n");
        it.link("my.creds", "../outside/secret");
    }),
    ("credentials that are a pipe", NotTrusted("<root>/outside/pipe (creds)"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\ncreds = \"../outside/pipe\"\n");
    }),
    ("a quoted key", NotTrusted("nats://127.0.0.1"), |it| {
        it.file("team = \"demo\"\n\"store\" = \"nats://SERVER\"\n");
    }),
    ("an escaped key", NotTrusted("nats://127.0.0.1"), |it| {
        it.file("team = \"demo\"\n\"\\u0073tore\" = \"nats://SERVER\"\n");
    }),
    ("a server in a file with mistakes", Error("has a mistake"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\nx = 1\n");
    }),
    ("a server in a damaged file", Error("mistake"), |it| {
        it.file("team = \"demo\"\nstore = \"nats://SERVER\"\n[[[\n");
    }),
    ("a CA certificate", Error("has a mistake"), |it| {
        it.file("team = \"demo\"\nstore = \"tls://SERVER\"\nca = \"../outside/secret\"\n");
    }),
    ("credentials without a server", Error("credentials without a NATS server"), |it| {
        it.file("team = \"demo\"\ncreds = \"../outside/secret\"\n");
    }),
    ("a program", NotTrusted("runs ./run.sh as codex"), |it| {
        it.file(member!("program = \"run.sh\""));
    }),
    ("a program outside", NotTrusted("/bin/sh as codex"), |it| {
        it.file(member!("program = \"/bin/sh\""));
    }),
    ("a program for all members", NotTrusted("runs ./run.sh as codex"), |it| {
        it.file(
            "team = \"demo\"\n[defaults]\nagent = \"codex\"\nprogram = \"run.sh\"\n[members.m]\n",
        );
    }),
    ("a command", NotTrusted("runs acp:./run.sh --acp"), |it| {
        it.file("team = \"demo\"\n[members.m]\nagent = \"acp:./run.sh --acp\"\n");
    }),
    ("a command for the lead", NotTrusted("runs acp:./run.sh"), |it| {
        it.file("team = \"demo\"\n[lead]\nagent = \"acp:./run.sh\"\n");
    }),
    ("a shell command", NotTrusted("runs acp:sh -c './run.sh'"), |it| {
        it.file("team = \"demo\"\n[members.m]\nagent = \"acp:sh -c './run.sh'\"\n");
    }),
    ("a lead that answers", NotTrusted("approves the plans and permission requests"), |it| {
        it.file("team = \"demo\"\n[lead]\nagent = \"codex\"\nanswers = \"lead\"\n");
    }),
    ("full access", NotTrusted("may do everything without asking"), |it| {
        it.file(member!("access = \"full\""));
    }),
    ("a rule that allows all", NotTrusted("may run without asking: *"), |it| {
        it.file(member!("allow = [\"*\"]"));
    }),
    ("a rule for every tool", NotTrusted("may run without asking: tool *"), |it| {
        it.file(member!("rules = [{ ruling = \"allow\", tool = \"*\" }]"));
    }),
    ("secret variables", NotTrusted("inherits the environment variables AWS_SECRET"), |it| {
        it.file(member!("env = [\"AWS_SECRET\"]"));
    }),
    ("a member in a window", NotTrusted("runs ./run.sh as codex in a tmux window"), |it| {
        it.file(member!("place = \"tmux\"\nprogram = \"run.sh\""));
    }),
    ("the root folder", NotTrusted("\n  / (dir of m)"), |it| it.file(member!("dir = \"/\""))),
    ("the parent folder", NotTrusted("\n  <root> (dir of m)"), |it| {
        it.file(member!("dir = \"..\""));
    }),
    ("a folder behind a link", NotTrusted("<root>/outside/folder (dir of m)"), |it| {
        it.file(member!("dir = \"sub\""));
        it.link("sub", "../outside/folder");
    }),
    ("a folder behind two links", NotTrusted("<root>/outside/folder (dir of m)"), |it| {
        it.file(member!("dir = \"one/folder\""));
        it.link("one", "two");
        it.link("two", "../outside");
    }),
    ("a folder with a worktree", NotTrusted("<root>/outside/folder (dir of m)"), |it| {
        it.file(member!("dir = \"../outside/folder\"\nworktree = true"));
    }),
    ("a prompt file outside", NotTrusted("<root>/outside/secret (prompt-file of m)"), |it| {
        it.file(member!("prompt-file = \"../outside/secret\""));
    }),
    ("a prompt file behind a link", NotTrusted("<root>/outside/secret (prompt-file of m)"), |it| {
        it.file(member!("prompt-file = \"p.md\""));
        it.link("p.md", "../outside/secret");
    }),
    ("a prompt file in a linked folder", NotTrusted("<root>/outside/secret (prompt-file"), |it| {
        it.file(member!("prompt-file = \"p/secret\""));
        it.link("p", "../outside");
    }),
    ("a prompt file behind an absolute link", NotTrusted("<root>/outside/secret"), |it| {
        it.file(member!("prompt-file = \"p.md\""));
        it.link("p.md", it.cli.path("outside/secret").to_str().unwrap());
    }),
    ("a pipe outside as prompt file", NotTrusted("<root>/outside/pipe"), |it| {
        it.file(member!("prompt-file = \"../outside/pipe\""));
    }),
    ("a pipe as prompt file", Error("is not a file"), |it| {
        it.file(member!("prompt-file = \"p.md\""));
        pipe(&it.cli.path("work/p.md"));
    }),
    ("a device as prompt file", NotTrusted("/dev/zero (prompt-file of m)"), |it| {
        it.file(member!("prompt-file = \"/dev/zero\""));
    }),
    ("standard input as prompt file", NotTrusted("/dev/stdin (prompt-file of m)"), |it| {
        it.file(member!("prompt-file = \"/dev/stdin\""));
    }),
    (
        "variables of the user as prompt",
        NotTrusted("/proc/self/environ (prompt-file of m)"),
        |it| {
            it.file(member!("prompt-file = \"/proc/self/environ\""));
        },
    ),
    ("a link to itself as prompt file", NotTrusted("<root>/work/p.md (prompt-file of m)"), |it| {
        it.file(member!("prompt-file = \"p.md\""));
        it.link("p.md", "p.md");
    }),
    ("a huge prompt file", Error("longer than 1 MiB"), |it| {
        it.file(member!("prompt-file = \"p.md\""));
        fs::File::create(it.cli.path("work/p.md")).unwrap().set_len(1 << 40).unwrap();
    }),
    ("a folder as prompt file", Error("is not a file"), |it| {
        it.file(member!("prompt-file = \".\""));
    }),
    ("a pipe as team file", Error("is not a file"), |it| pipe(&it.cli.path("work/brigade.toml"))),
    ("a link to a pipe as team file", Error("is not a file"), |it| {
        pipe(&it.cli.path("work/p"));
        it.link("brigade.toml", "p");
    }),
    ("a device as team file", Error("is not a file"), |it| it.link("brigade.toml", "/dev/zero")),
    ("a folder as team file", Error("is not a file"), |it| {
        fs::create_dir(it.cli.path("work/brigade.toml")).unwrap();
    }),
    ("a huge team file", Error("longer than 1 MiB"), |it| {
        let file = fs::File::create(it.cli.path("work/brigade.toml")).unwrap();
        file.set_len(1 << 40).unwrap();
    }),
    ("a team file that is not text", Error("is not UTF-8"), |it| {
        fs::write(it.cli.path("work/brigade.toml"), b"team = \"\xff\"").unwrap();
    }),
    ("a deeply nested team file", Error("mistake"), |it| {
        it.file(&format!("x = {}", "[".repeat(100_000)));
    }),
    ("ten thousand members", NotTrusted("m9999"), |it| {
        let members = (0..10_000).map(|number| format!("[members.m{number}]\n"));
        it.file(&format!(
            "team = \"demo\"\ndefaults.agent = \"codex\"\n{}",
            members.collect::<String>()
        ));
    }),
    ("control characters in a command", NotTrusted("runs acp:./run.sh \\u{1b}[2J"), |it| {
        it.file("team = \"demo\"\n[members.m]\nagent = \"acp:./run.sh \\u001b[2J\\u202e\"\n");
    }),
    ("lines in a rule", Error("can never allow a command"), |it| {
        it.file(member!("allow = [\"a\\n\\nOutside this folder: nothing\"]"));
    }),
    ("a team name that is a path", Error("team name must not"), |it| {
        it.file("team = \"../../x\"\n");
    }),
    ("a member with the lead's name", Error("is the lead's own name"), |it| {
        it.file("team = \"demo\"\n[members.team-lead]\nagent = \"acp:./run.sh\"\n");
    }),
    ("git that runs programs", NotTrusted("runs codex"), |it| {
        it.file(member!("worktree = true"));
        hostile_git(it);
    }),
    ("a gitdir elsewhere", NotTrusted("runs codex"), |it| {
        it.file(member!("worktree = true"));
        it.cli.write("work/.git", "gitdir: ../outside/folder\n");
    }),
    ("a record of trust in the repository", NotTrusted("runs ./run.sh"), |it| {
        it.file(member!("program = \"run.sh\""));
        it.cli.write("work/.local/state/brigade/trust/x", "{}");
        it.cli.write("work/state/brigade/trust/x", "{}");
        it.cli.write("work/.env", "BRIGADE_TRUST=all\n");
    }),
];

/// Makes the repository one whose configuration names a program wherever git allows it.
fn hostile_git(it: &Repository) {
    let work = it.cli.path("work");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@x"]).args(args).current_dir(&work);
        assert!(git.env("HOME", it.cli.path("home")).status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "run.sh"]);
    git(&["commit", "-q", "-m", "first"]);
    let run = it.cli.path("work/run.sh");
    let run = run.to_str().unwrap();
    it.cli.write("work/.gitattributes", "* filter=f diff=d merge=m\n");
    for key in
        ["core.fsmonitor", "core.pager", "core.sshCommand", "filter.f.clean", "filter.f.smudge"]
            .into_iter()
            .chain([
                "diff.d.textconv",
                "diff.d.command",
                "merge.m.driver",
                "diff.external",
                "alias.x",
            ])
    {
        git(&["config", key, run]);
    }
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction"] {
        symlink(run, work.join(".git/hooks").join(hook)).unwrap();
    }
}
