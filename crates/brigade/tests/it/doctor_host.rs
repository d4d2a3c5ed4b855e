//! `brigade doctor` on a team whose members run a scripted agent.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::Command;

use brigade_files::claude_dir_key;
use brigade_host::registry::Registry;
use brigade_host::tmux::Tmux;
use serde_json::Value;

use crate::doctor::names;
use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::wait_until;

/// A running team. Dropping this value takes the team down.
struct RunningTeam(CliEnv);

impl Drop for RunningTeam {
    fn drop(&mut self) {
        let _none_up = self.0.run(&["down", "--now"]);
    }
}

impl RunningTeam {
    fn new() -> Self {
        let cli = CliEnv::new();
        for dir in ["a", "b"] {
            fs::create_dir_all(cli.path(&format!("work/{dir}"))).unwrap();
        }
        let file = format!(
            "team = \"demo\"\n[defaults]\nagent = \"acp:{FAKE_AGENT}\"\n[members.alice]\ndir = \"a\"\n\
             [members.bob]\ndir = \"b\"\nrestart = \"never\"\n"
        );
        cli.write("work/brigade.toml", &file);
        let up = Self(cli);
        up.0.run_ok(&["up"]);
        wait_until("both members", || {
            up.0.member("alice")["liveness"] == "idle" && up.0.member("bob")["liveness"] == "idle"
        });
        up
    }
}

fn kill(pid: &Value) {
    crate::process::kill(pid.as_u64().unwrap());
}

/// Returns the names of the checks that found something, without duplicates, and the whole report.
fn doctor(cli: &CliEnv, args: &[&str]) -> (Vec<String>, Value) {
    let (report, code) = crate::doctor::doctor(cli, None, args);
    let names = names(&report);
    assert_eq!(code, Some(i32::from(!names.is_empty())));
    (names, report)
}

#[test]
fn fix_restarts_a_member_that_died_with_its_supervisor() {
    let up = RunningTeam::new();
    assert_eq!(doctor(&up.0, &["--fix"]).0, Vec::<String>::new());
    let alice = up.0.member("alice")["pid"].clone();
    kill(&up.0.status()["supervisor"]);
    wait_until("the supervisor to end", || up.0.status()["supervisor"].is_null());
    assert_eq!(doctor(&up.0, &[]).0, ["no-supervisor"]);
    kill(&alice);
    wait_until("alice to be dead", || up.0.member("alice")["liveness"] == "dead");
    up.0.run_ok(&["team", "activity", "alice", "active"]);
    assert_eq!(doctor(&up.0, &[]).0, ["stuck-active", "dead-member", "no-supervisor"]);
    let (left, report) = doctor(&up.0, &["--fix"]);
    assert_eq!(left, Vec::<String>::new(), "{report}");
    wait_until("alice's new process", || {
        let state = up.0.member("alice");
        state["liveness"] == "idle" && state["pid"] != alice
    });
    assert_eq!(doctor(&up.0, &[]).0, Vec::<String>::new());
}

#[test]
fn failed_members_are_reported_but_not_restarted() {
    let up = RunningTeam::new();
    kill(&up.0.member("bob")["pid"]);
    wait_until("bob to be marked failed", || doctor(&up.0, &[]).0 == ["given-up"]);
    let (left, report) = doctor(&up.0, &["--fix"]);
    assert_eq!(left, ["given-up"]);
    assert_eq!(report["fixed"], serde_json::json!([]));
    assert!(report["findings"][0]["remedy"].as_str().unwrap().contains("brigade resume demo"));
    // Move the team's folder away.
    fs::rename(up.0.path("claude/teams/demo"), up.0.path("gone")).unwrap();
    assert_eq!(doctor(&up.0, &[]).0, ["given-up", "team-gone"]);
}

/// A tmux server that is killed at the end of the test.
pub(crate) struct TmuxServer(pub(crate) String);

impl TmuxServer {
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.0, "-f", "/dev/null"]).args(args);
        for name in ["TMUX", "TMUX_TMPDIR"] {
            tmux.env_remove(name);
        }
        String::from_utf8(tmux.output().unwrap().stdout).unwrap()
    }
}

impl TmuxServer {
    fn windows(&self) -> String {
        self.tmux(&["list-windows", "-a", "-F", "#{window_name}"])
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Returns the registry of an environment whose state folder is `state`.
pub(crate) fn registry(cli: &CliEnv, state: &str) -> Registry {
    let key = claude_dir_key(&cli.path("claude"));
    let dir = cli.path(&format!("{state}/brigade/host/{key}"));
    DirBuilder::new().mode(0o700).recursive(true).create(&dir).unwrap();
    Registry::new(dir)
}

/// Opens a window like that of a member, and a window of a person.
fn open_windows(socket: String) -> TmuxServer {
    let server = TmuxServer(socket);
    let play = "sleep 300; : brigade play --team demo --as carl";
    server.tmux(&["new-session", "-d", "-s", "demo", "-n", "carl", play]);
    server.tmux(&["new-window", "-d", "-t", "demo:", "-n", "mine", "sleep 300"]);
    assert_eq!(server.windows(), "carl\nmine\n");
    server
}

#[test]
fn orphaned_windows_are_closed_but_not_those_of_a_person() {
    brigade_testkit::needs!(Tmux);
    let cli = CliEnv::with_team();
    let server = open_windows(Tmux::new(&registry(&cli, "state")).socket);
    assert_eq!(doctor(&cli, &[]).0, ["orphan-window"]);
    assert_eq!(doctor(&cli, &["--fix"]).0, Vec::<String>::new());
    assert_eq!(server.windows(), "mine\n");
}

/// Finding 30: a brigade with another state folder does not know these members, and must not end them.
#[test]
fn finding_30_windows_of_another_state_folder_stay() {
    brigade_testkit::needs!(Tmux);
    let cli = CliEnv::with_team();
    let other = open_windows(Tmux::new(&registry(&cli, "other-state")).socket);
    registry(&cli, "state");
    assert_eq!(doctor(&cli, &["--fix"]).0, Vec::<String>::new());
    assert_eq!(other.windows(), "carl\nmine\n");
    // Older versions of brigade used one server for all state folders: the window may be another's.
    let old = open_windows(format!("brigade-{}", claude_dir_key(&cli.path("claude"))));
    let (left, report) = doctor(&cli, &["--fix"]);
    assert_eq!(
        (left, &report["fixed"]),
        (vec!["orphan-window".to_owned()], &serde_json::json!([]))
    );
    assert_eq!(old.windows(), "carl\nmine\n");
}

/// B6: the member's process runs, but its agent has failed.
#[test]
fn b6_a_member_whose_agent_keeps_failing_is_reported() {
    let up = RunningTeam(CliEnv::new());
    up.0.write("work/brigade.toml", "team = \"demo\"\n[members.bob]\nagent = \"acp:/bin/false\"\n");
    assert_eq!(up.0.run(&["up"]).code, Some(1));
    wait_until("bob's agent to fail", || up.0.member("bob")["liveness"] == "dead");
    let (left, report) = doctor(&up.0, &[]);
    assert_eq!(left, ["agent-failed"], "{report}");
    let finding = &report["findings"][0];
    assert_eq!(finding["place"], "bob of team demo");
    assert!(finding["remedy"].as_str().unwrap().contains("send bob"), "{finding}");
}

fn git(dir: PathBuf, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
    assert!(git.args(args).output().unwrap().status.success(), "{args:?}");
}

#[test]
fn orphaned_worktrees_are_removed_unless_they_have_changes() {
    let cli = CliEnv::with_team();
    git(cli.path("work"), &["init", "-q", "-b", "main"]);
    git(cli.path("work"), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let tree = cli.path("state/brigade/worktrees/demo/carl");
    let branch = "brigade/demo/carl";
    git(cli.path("work"), &["worktree", "add", "-b", branch, tree.to_str().unwrap()]);
    fs::write(tree.join("file"), "work").unwrap();
    let (left, report) = doctor(&cli, &["--fix"]);
    assert_eq!(left, ["open-worktree"]);
    assert_eq!(report["findings"][0]["fixable"], false);
    assert!(tree.join("file").exists());
    fs::remove_file(tree.join("file")).unwrap();
    assert_eq!(doctor(&cli, &[]).0, ["open-worktree"]);
    assert_eq!(doctor(&cli, &["--fix"]).0, Vec::<String>::new());
    assert!(!tree.exists());
}
