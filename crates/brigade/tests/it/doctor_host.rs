//! `brigade doctor` on what runs on a host, with a scripted agent in place of a vendor's.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::House;

const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A team that is up; it is taken down with the test.
struct Up(House);

impl Drop for Up {
    fn drop(&mut self) {
        let _none_up = self.0.run(&["down", "--now"]);
    }
}

impl Up {
    fn new() -> Self {
        let house = House::new();
        for dir in ["a", "b"] {
            fs::create_dir_all(house.path(&format!("work/{dir}"))).unwrap();
        }
        let file = format!(
            "team = \"demo\"\n[defaults]\nagent = \"acp:{FAKE}\"\n[members.alice]\ndir = \"a\"\n\
             [members.bob]\ndir = \"b\"\nrestart = \"never\"\n"
        );
        house.write("work/brigade.toml", &file);
        let up = Self(house);
        up.0.done(&["up"]);
        up.until("both members", |up| {
            up.state("alice")["liveness"] == "idle" && up.state("bob")["liveness"] == "idle"
        });
        up
    }

    fn status(&self) -> Value {
        self.0.json(&["status"])[0].clone()
    }

    fn state(&self, name: &str) -> Value {
        let status = self.status();
        status["members"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned().unwrap()
    }

    fn until(&self, what: &str, look: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !look(self) {
            assert!(began.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn kill(pid: &Value) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// The names of the checks that found something, each once, and the exit code.
fn doctor(house: &House, args: &[&str]) -> (Vec<String>, Value) {
    let output = house.command(&[&["doctor", "--json"], args].concat()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!findings.is_empty())));
    let mut names: Vec<String> =
        findings.iter().map(|f| f["check"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    (names, report)
}

/// The word for the Claude Code folder of this house.
fn key(house: &House) -> String {
    let key = fs::read_dir(house.path("state/brigade/files")).unwrap().next().unwrap().unwrap();
    key.file_name().into_string().unwrap()
}

#[test]
fn who_died_with_its_supervisor_comes_back() {
    let up = Up::new();
    assert_eq!(doctor(&up.0, &["--fix"]).0, Vec::<String>::new());
    let alice = up.state("alice")["pid"].clone();
    kill(&up.status()["supervisor"]);
    up.until("its end", |up| up.status()["supervisor"].is_null());
    assert_eq!(doctor(&up.0, &[]).0, ["no-supervisor"]);
    kill(&alice);
    up.until("alice to be dead", |up| up.state("alice")["liveness"] == "dead");
    up.0.done(&["team", "activity", "alice", "active"]);
    assert_eq!(doctor(&up.0, &[]).0, ["stuck-active", "dead-member", "no-supervisor"]);
    let (left, report) = doctor(&up.0, &["--fix"]);
    assert_eq!(left, Vec::<String>::new(), "{report}");
    up.until("another alice", |up| {
        let state = up.state("alice");
        state["liveness"] == "idle" && state["pid"] != alice
    });
    assert_eq!(doctor(&up.0, &[]).0, Vec::<String>::new());
}

#[test]
fn who_was_given_up_is_told_of_and_left_alone() {
    let up = Up::new();
    kill(&up.state("bob")["pid"]);
    up.until("it to be given up", |up| doctor(&up.0, &[]).0 == ["given-up"]);
    let (left, report) = doctor(&up.0, &["--fix"]);
    assert_eq!(left, ["given-up"]);
    assert_eq!(report["fixed"], serde_json::json!([]));
    assert!(report["findings"][0]["remedy"].as_str().unwrap().contains("brigade resume demo"));
    // Its team's folder goes.
    fs::rename(up.0.path("claude/teams/demo"), up.0.path("gone")).unwrap();
    assert_eq!(doctor(&up.0, &[]).0, ["given-up", "team-gone"]);
}

/// A server of tmux that is ended with the test.
struct Server(String);

impl Server {
    fn tmux(&self, args: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.0, "-f", "/dev/null"]).args(args);
        for name in ["TMUX", "TMUX_TMPDIR"] {
            tmux.env_remove(name);
        }
        String::from_utf8(tmux.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_window_of_nobody_is_closed_and_a_persons_own_is_not() {
    let house = House::with_team();
    let server = Server(format!("brigade-{}", key(&house)));
    let play = "sleep 300; : brigade play --team demo --as carl";
    server.tmux(&["new-session", "-d", "-s", "demo", "-n", "carl", play]);
    server.tmux(&["new-window", "-d", "-t", "demo:", "-n", "mine", "sleep 300"]);
    let windows = || server.tmux(&["list-windows", "-a", "-F", "#{window_name}"]);
    assert_eq!(windows(), "carl\nmine\n");
    // Where nothing was ever written down of who runs here, it may be known elsewhere.
    let (left, report) = doctor(&house, &["--fix"]);
    assert_eq!(
        (left, &report["fixed"]),
        (vec!["orphan-window".to_owned()], &serde_json::json!([]))
    );
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(house.path(&format!("state/brigade/host/{}", key(&house))))
        .unwrap();
    assert_eq!(doctor(&house, &[]).0, ["orphan-window"]);
    assert_eq!(doctor(&house, &["--fix"]).0, Vec::<String>::new());
    assert_eq!(windows(), "mine\n");
}

fn git(dir: PathBuf, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
    assert!(git.args(args).output().unwrap().status.success(), "{args:?}");
}

#[test]
fn a_worktree_of_nobody_is_removed_unless_work_is_in_it() {
    let house = House::with_team();
    git(house.path("work"), &["init", "-q", "-b", "main"]);
    git(house.path("work"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let tree = house.path("state/brigade/worktrees/demo/carl");
    let branch = "brigade/demo/carl";
    git(house.path("work"), &["worktree", "add", "-b", branch, tree.to_str().unwrap()]);
    fs::write(tree.join("file"), "work").unwrap();
    let (left, report) = doctor(&house, &["--fix"]);
    assert_eq!(left, ["open-worktree"]);
    assert_eq!(report["findings"][0]["fixable"], false);
    assert!(tree.join("file").exists());
    fs::remove_file(tree.join("file")).unwrap();
    assert_eq!(doctor(&house, &[]).0, ["open-worktree"]);
    assert_eq!(doctor(&house, &["--fix"]).0, Vec::<String>::new());
    assert!(!tree.exists());
}
