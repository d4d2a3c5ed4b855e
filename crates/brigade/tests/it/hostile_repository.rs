//! Findings 2, 9 and 16: a hostile repository. The user has cloned it and runs brigade in it, but has not trusted its
//! `brigade.toml`. Nothing may run, connect, or be read outside the repository.

mod attempts;

use std::fs::{self, Permissions};
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};

use self::attempts::ATTEMPTS;
use self::attempts::Says::{Error, NotTrusted};
use crate::env::{CliEnv, Outcome};
use crate::trust::untrusting;

/// A command that takes longer probably waits for a pipe.
const LIMIT: Duration = Duration::from_secs(60);

const SECRET: &str = "the-secret-of-the-user";

/// A repository in `work`, with traps around it.
struct Repository {
    cli: CliEnv,
    server: TcpListener,
    /// Reports that a file in `outside` was opened.
    opened: OwnedFd,
}

impl Repository {
    fn new() -> Self {
        let cli = untrusting();
        cli.write("outside/secret", SECRET);
        cli.write("outside/folder/file", SECRET);
        pipe(&cli.path("outside/pipe"));
        let run = format!("#!/bin/sh\necho \"$0\" >> {}\n", cli.path("ran").display());
        cli.write("work/run.sh", &run);
        fs::set_permissions(cli.path("work/run.sh"), Permissions::from_mode(0o755)).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let opened = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let watched = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
        for folder in ["outside", "outside/folder"] {
            inotify::add_watch(&opened, cli.path(folder), watched).unwrap();
        }
        Self { cli, server, opened }
    }

    /// Writes brigade.toml. `SERVER` in the text becomes the address of the server.
    fn file(&self, text: &str) {
        let address = self.server.local_addr().unwrap().to_string();
        self.cli.write("work/brigade.toml", &text.replace("SERVER", &address));
    }

    fn link(&self, name: &str, target: &str) {
        symlink(target, self.cli.path("work").join(name)).unwrap();
    }

    /// Runs a command. Fails if it does not end.
    fn run(&self, args: &[&str]) -> Outcome {
        let mut command = self.cli.command(args);
        // Members and worktrees need programs.
        command.env("PATH", std::env::var_os("PATH").unwrap());
        self.run_command(command, args)
    }

    fn run_command(&self, mut command: Command, args: &[&str]) -> Outcome {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let read = std::thread::spawn(move || {
            let mut text = Vec::new();
            err.read_to_end(&mut text).unwrap();
            text
        });
        let began = Instant::now();
        let waiting = std::thread::spawn(move || {
            let mut text = Vec::new();
            out.read_to_end(&mut text).unwrap();
            text
        });
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("{args:?} does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = child.wait().unwrap();
        let (stdout, stderr) = (waiting.join().unwrap(), read.join().unwrap());
        self.cli.outcome(&std::process::Output { status, stdout, stderr })
    }

    /// Returns what happened that must not happen.
    fn damage(&self) -> Vec<&'static str> {
        let mut damage = Vec::new();
        if self.cli.path("ran").exists() {
            damage.push("a program ran");
        }
        if self.server.accept().is_ok() {
            damage.push("brigade connected");
        }
        let mut buffer = [MaybeUninit::uninit(); 4096];
        if inotify::Reader::new(&self.opened, &mut buffer).next().is_ok() {
            damage.push("a file outside was opened");
        }
        if self.cli.path("state/brigade/trust").exists() {
            damage.push("the file is trusted");
        }
        let host = self.cli.path("state/brigade/host");
        if fs::read_dir(host).is_ok_and(|mut stores| stores.next().is_some()) {
            damage.push("a team was started");
        }
        damage
    }
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

const COMMANDS: &[&[&str]] = &[
    &[],
    &["status"],
    &["send", "bob", "hi"],
    &["inbox"],
    &["mcp"],
    &["doctor"],
    &["diff", "m"],
    &["log"],
    &["down", "--now"],
    &["resume"],
    &["new"],
    &["up", "--check"],
    &["up", "--check", "--json"],
    &["trust"],
    &["trust", "--json"],
    &["up"],
    &["up", "--json", "--until-done"],
];

#[test]
fn finding_16_a_hostile_repository_does_nothing_without_a_yes() {
    assert!(ATTEMPTS.len() >= 40);
    for (name, says, make) in ATTEMPTS {
        let it = Repository::new();
        make(&it);
        for args in COMMANDS {
            let outcome = it.run(args);
            let mut damage = it.damage();
            if damage == ["a file outside was opened"] {
                // Perhaps by another program, for example a search through all temporary files. Brigade would open
                // it every time.
                let _same_outcome = it.run(args);
                damage = it.damage();
            }
            assert_eq!(damage, Vec::<&str>::new(), "{name}: {args:?}: {outcome}");
            let text = outcome.to_string();
            assert!(!text.contains(SECRET) && !text.contains('\u{1b}'), "{name}: {args:?}: {text}");
            assert!(!matches!(outcome.code, None | Some(70)), "{name}: {args:?}: {text}");
        }
        let (up, trust) = (it.run(&["up"]), it.run(&["trust"]));
        match says {
            NotTrusted(shown) => {
                assert!(up.stderr.contains("is not trusted") && up.code == Some(1), "{name}: {up}");
                assert!(up.stderr.contains("nothing was started"), "{name}: {up}");
                assert!(trust.stdout.contains(shown) && trust.code == Some(2), "{name}: {trust}");
            }
            Error(why) => {
                assert!(up.stderr.contains(why) && up.code == Some(1), "{name}: {up}");
                assert!(trust.stderr.contains(why) && trust.code == Some(1), "{name}: {trust}");
            }
        }
        let file = it.cli.path("work/brigade.toml");
        let is_short = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() < 1 << 20);
        let text = if is_short { fs::read(&file).unwrap() } else { Vec::new() };
        let text = String::from_utf8_lossy(&text);
        let names_store = text.contains("127.0.0.1") || text.contains("creds =");
        let status = it.run(&["status"]);
        let says_so = status.stderr.contains("so brigade does not use its `store` and `creds`");
        assert_eq!(says_so, names_store, "{name}: {status}");
    }
}

/// The traps work: after a yes, each of them is sprung.
#[test]
fn after_a_yes_the_same_files_have_an_effect() {
    let it = Repository::new();
    it.file("team = \"demo\"\n[members.m]\nagent = \"acp:./run.sh\"\nprompt-file = \"../outside/secret\"\n");
    let refused = it.run(&["trust", "--yes"]);
    assert!(refused.stderr.contains("1 path outside its folder"), "{refused}");
    assert_eq!(it.damage(), Vec::<&str>::new());
    assert_eq!(it.run(&["trust", "--yes", "--outside"]).code, Some(0));
    let _did_not_start = it.run(&["up"]);
    let sprung = it.damage();
    let _down = it.run(&["down", "--now"]);
    for trap in
        ["a program ran", "a file outside was opened", "the file is trusted", "a team was started"]
    {
        assert!(sprung.contains(&trap), "{trap}: {sprung:?}");
    }
}

/// Files of the repository that `new` replaces may be links to the user's files.
#[test]
fn new_replaces_links_and_not_the_files_behind_them() {
    let it = Repository::new();
    it.link("brigade.toml", "../outside/secret");
    it.link("brigade.schema.json", "../outside/folder/file");
    pipe(&it.cli.path("work/package.json"));
    let refused = it.run(&["new", "--schema"]);
    assert!(refused.stderr.contains("already exists"), "{refused}");
    assert_eq!(it.run(&["new", "--schema", "--force"]).code, Some(0));
    for file in ["outside/secret", "outside/folder/file"] {
        assert_eq!(fs::read_to_string(it.cli.path(file)).unwrap(), SECRET);
    }
    assert!(!it.cli.path("work/brigade.toml").is_symlink());
}

/// The name of a folder comes from the repository, too.
#[test]
fn folder_names_do_not_control_the_terminal() {
    let it = Repository::new();
    let address = it.server.local_addr().unwrap();
    let file = format!("team = \"demo\"\nstore = \"nats://{address}\"\n");
    let folder = "work/a\u{1b}[2J \u{202e}b; c";
    it.cli.write(&format!("{folder}/brigade.toml"), &file);
    for args in COMMANDS.iter().filter(|args| !args.contains(&"--json")) {
        let mut command = it.cli.command(args);
        command.current_dir(it.cli.path(folder));
        let outcome = it.run_command(command, args);
        let text = outcome.to_string();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{args:?}: {text:?}");
        assert_eq!(it.damage(), Vec::<&str>::new(), "{args:?}: {text}");
    }
}

/// A repository that names the team of another project reaches neither its members nor its mail.
#[test]
fn finding_9_a_hostile_repository_does_not_reach_the_team_of_another_project() {
    let it = Repository::new();
    fs::create_dir(it.cli.path("project")).unwrap();
    for args in [&["team", "create", "victim"] as &[&str], &["team", "join", "bob"]] {
        let mut command = it.cli.command(args);
        command.current_dir(it.cli.path("project"));
        let outcome = it.run_command(command, args);
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    for file in
        ["team = \"victim\"\n", "team = \"other\"\n", "team = 7\n", "\u{feff}team = \"victim\"\n"]
    {
        it.file(file);
        for args in [
            &["send", "bob", "hi"] as &[&str],
            &["broadcast", "hi"],
            &["inbox", "bob"],
            &["task", "add", "x"],
            &["team", "delete"],
            &["down", "--now"],
            &["stop", "bob"],
            &["log"],
        ] {
            let outcome = it.run(args);
            assert!(!matches!(outcome.code, None | Some(0)), "{file}: {args:?}: {outcome}");
            assert!(outcome.stderr.contains("hint: "), "{file}: {args:?}: {outcome}");
        }
    }
    let outcome = it.run(&["inbox", "bob", "--team", "victim"]);
    assert_eq!(outcome.code, Some(4), "{outcome}");
}
