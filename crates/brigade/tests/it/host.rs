//! Teams that run on this host, with a scripted agent in place of a vendor's.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::House;

const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A house with a team's file, whose members are ended with it.
struct Hosting {
    house: House,
}

impl Drop for Hosting {
    fn drop(&mut self) {
        let _none_up = self.house.run(&["down", "--now"]);
    }
}

impl Hosting {
    /// With a file of two members in folders of their own, and a task that waits for another.
    fn new() -> Self {
        let house = House::new();
        for dir in ["a", "b"] {
            std::fs::create_dir_all(house.path(&format!("work/{dir}"))).unwrap();
        }
        let file = format!(
            r#"team = "demo"
[defaults]
agent = "acp:{FAKE}"
[members.alice]
dir = "a"
prompt = "hello alice"
[members.bob]
dir = "b"
[tasks.one]
subject = "First"
owner = "alice"
[tasks.two]
subject = "Second"
after = ["one"]
"#
        );
        house.write("work/brigade.toml", &file);
        Self { house }
    }

    fn heard(&self, dir: &str) -> String {
        std::fs::read_to_string(self.house.path(&format!("work/{dir}/heard"))).unwrap_or_default()
    }

    fn status(&self) -> Value {
        self.house.json(&["status"])[0].clone()
    }

    fn member(&self, name: &str) -> Value {
        let status = self.status();
        status["members"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned().unwrap()
    }

    fn pid(&self, name: &str) -> u64 {
        self.member(name)["pid"].as_u64().unwrap()
    }

    /// Every process that has to do with this house.
    fn processes(&self) -> Vec<String> {
        let root = self.house.root.to_str().unwrap().to_owned();
        let ps = Command::new("ps").args(["-eo", "pid,args"]).output().unwrap();
        let ps = String::from_utf8_lossy(&ps.stdout).into_owned();
        ps.lines().filter(|line| line.contains(&root)).map(str::to_owned).collect()
    }
}

fn kill(pid: u64) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| *line == word).count()
}

#[test]
fn a_team_comes_up_once_however_often_it_is_brought_up() {
    let team = Hosting::new();
    let first = team.house.json(&["up"]);
    assert_eq!(first["new"], serde_json::json!(["alice", "bob"]));
    assert_eq!(first["tasks"], 2);
    until("the prompt", || team.heard("a").contains("hello alice"));
    let (alice, bob) = (team.pid("alice"), team.pid("bob"));
    let read =
        || std::fs::read_to_string(team.house.path("claude/teams/demo/config.json")).unwrap();
    until("the end of her turn", || !read().contains("\"isActive\": true"));
    let overview = team.house.json(&[]);
    assert_eq!(overview[0]["members"][1]["liveness"], "idle", "as `brigade status` has it");
    let config = read();
    let second = team.house.json(&["up"]);
    assert_eq!((second["new"].clone(), second["tasks"].clone()), (serde_json::json!([]), 0.into()));
    assert_eq!((team.pid("alice"), team.pid("bob")), (alice, bob));
    assert_eq!(read(), config);
    for dir in ["a", "b"] {
        assert_eq!(count(&team.heard(dir), "started"), 1, "{}", team.heard(dir));
    }
    let tasks = team.house.json(&["task", "list"]);
    assert_eq!(tasks.as_array().unwrap().len(), 2);
    assert_eq!(tasks[0]["owner"], "alice");
    assert_eq!(tasks[1]["blockedBy"], serde_json::json!(["1"]));
}

#[test]
fn of_many_who_bring_it_up_at_once_one_does() {
    let team = Hosting::new();
    let ups: Vec<_> = (0..2).map(|_| team.house.command(&["up"]).spawn().unwrap()).collect();
    for mut up in ups {
        assert!(up.wait().unwrap().success());
    }
    let agent = format!("acp:{FAKE}");
    let spawn = ["spawn", "carl", "--agent", &agent];
    let spawns: Vec<_> = (0..10).map(|_| team.house.command(&spawn).spawn().unwrap()).collect();
    for mut spawn in spawns {
        assert!(spawn.wait().unwrap().success());
    }
    for dir in ["a", "b", "."] {
        assert_eq!(count(&team.heard(dir), "started"), 1, "{dir}: {}", team.heard(dir));
    }
    let members = team.house.json(&["team", "show"])["members"].as_array().unwrap().len();
    assert_eq!(members, 4);
    assert_eq!(team.house.json(&["task", "list"]).as_array().unwrap().len(), 2);
    // Another of the same name is refused.
    let other = team.house.run(&["spawn", "carl", "--agent", "codex"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("with other settings: agent"), "{}", other.stderr);
}

#[test]
fn members_outlive_their_supervisor_and_are_found_by_the_next() {
    let team = Hosting::new();
    team.house.done(&["up"]);
    let (alice, bob) = (team.pid("alice"), team.pid("bob"));
    kill(team.status()["supervisor"].as_u64().unwrap());
    until("its end", || team.status()["supervisor"] == Value::Null);
    assert_eq!((team.pid("alice"), team.pid("bob")), (alice, bob));
    kill(alice);
    until("alice to be dead", || team.member("alice")["liveness"] == "dead");
    let resumed = team.house.run(&["resume"]);
    // That she was dead is no news of the one who is being started.
    assert!(resumed.stderr.contains("alice: idle"), "{resumed}");
    assert!(!resumed.stderr.contains("dead"), "{resumed}");
    assert_eq!(team.pid("bob"), bob);
    assert_ne!(team.pid("alice"), alice);
    // It goes on with its session.
    assert_eq!((count(&team.heard("a"), "begun"), count(&team.heard("a"), "loaded")), (1, 1));
    assert_eq!(count(&team.heard("b"), "started"), 1);
}

/// Without [`give_back`](../../src/memory.rs) some four megabytes stay.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_a_flood_of_mail_took_is_given_back() {
    let team = Hosting::new();
    team.house.done(&["up"]);
    let alice = team.pid("alice");
    let status = || std::fs::read_to_string(format!("/proc/{alice}/status")).unwrap();
    let own = || -> u64 {
        let status = status();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = own();
    for number in 0..300 {
        team.house.done(&["send", "alice", &format!("{number} {}", "x".repeat(4000))]);
    }
    until("all to be read", || team.heard("a").contains("299 x"));
    until("the memory to be given back", || own() < before + 1500);
}

#[test]
fn who_dies_is_started_again_and_keeps_its_task() {
    let team = Hosting::new();
    team.house.done(&["up"]);
    team.house.done(&["--as", "alice", "task", "claim", "1"]);
    let alice = team.pid("alice");
    kill(alice);
    until("another alice", || {
        let member = team.member("alice");
        member["liveness"] == "idle" && member["pid"].as_u64().is_some_and(|pid| pid != alice)
    });
    assert_eq!(team.house.json(&["task", "list"])[0]["owner"], "alice");
}

#[test]
fn down_leaves_nothing_behind_but_the_log_and_touches_nobody_else() {
    let team = Hosting::new();
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    team.house.done(&["up"]);
    assert!(!team.processes().is_empty());
    let down = team.house.run(&["down", "--limit", "1"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert!(down.stderr.contains("2 tasks not done went with the team"), "{down}");
    assert_eq!(team.processes(), Vec::<String>::new());
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    let files = |dir: &str| {
        let found = Command::new("find").arg(team.house.path(dir)).args(["-type", "f"]).output();
        String::from_utf8(found.unwrap().stdout).unwrap()
    };
    assert_eq!(files("claude"), "");
    assert!(!files("state").contains("/host/"), "{}", files("state"));
    assert!(!files("state").contains("/kept/"), "{}", files("state"));
    assert!(team.house.done(&["log", "--team", "demo"]).contains("alice"));
    assert_eq!(team.house.run(&["status"]).code, Some(4));
}

#[test]
fn one_member_is_stopped_and_the_others_go_on() {
    let team = Hosting::new();
    team.house.done(&["up"]);
    let bob = team.pid("bob");
    let ended = team.house.json(&["stop", "alice", "--limit", "1"]);
    assert_eq!(ended["members"][0]["ended"], "forced");
    let status = team.status();
    assert_eq!(status["members"].as_array().unwrap().len(), 1);
    assert_eq!(team.pid("bob"), bob);
    // Its task is free again.
    assert_eq!(team.house.json(&["task", "list"])[0]["owner"], Value::Null);
    let again = team.house.run(&["stop", "alice"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("running here: bob"), "{}", again.stderr);
}

#[test]
fn who_loses_its_window_comes_back_in_another() {
    let team = Hosting::new();
    let file = std::fs::read_to_string(team.house.path("work/brigade.toml")).unwrap();
    let file = file.replace("dir = \"a\"", "dir = \"a\"\nplace = \"tmux\"");
    team.house.write("work/brigade.toml", &file);
    team.house.done(&["up"]);
    let alice = team.pid("alice");
    let host = std::fs::read_dir(team.house.path("state/brigade/host")).unwrap().next().unwrap();
    let socket = format!("brigade-{}", host.unwrap().file_name().to_str().unwrap());
    let tmux = ["-L", &socket, "display-message", "-p", "#{pid}"];
    let server = Command::new("tmux").args(tmux).env_remove("TMUX").output().unwrap();
    kill(String::from_utf8(server.stdout).unwrap().trim().parse().unwrap());
    until("another process", || {
        let now = team.member("alice");
        now["liveness"] == "idle" && now["pid"].as_u64() != Some(alice)
    });
    assert_eq!(team.house.json(&["team", "show"])["members"].as_array().unwrap().len(), 3);
    assert_eq!(team.house.json(&["task", "list"])[0]["owner"], "alice");
}

#[test]
fn up_ends_though_an_agent_cannot_be_kept_running() {
    let team = Hosting::new();
    let file = std::fs::read_to_string(team.house.path("work/brigade.toml")).unwrap();
    team.house.write("work/brigade.toml", &file.replace("dir = \"b\"", "agent = \"acp:false\""));
    let run = team.house.run(&["up"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("not started: bob"), "{}", run.stderr);
    until("alice to be idle", || team.member("alice")["liveness"] == "idle");
    assert_eq!(team.member("bob")["liveness"], "dead");
    // It has no agent that could be asked to stop, and so nobody is waited for.
    let began = Instant::now();
    assert_eq!(team.house.json(&["stop", "bob", "--limit", "60"])["members"][0]["ended"], "forced");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn until_done_ends_with_the_last_task() {
    let team = Hosting::new();
    let run = team.house.command(&["up", "--until-done", "--json"]);
    let mut run = { run }.stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("the members", || {
        let status = team.house.run(&["status", "--json"]);
        status.code == Some(0) && status.stdout.matches("\"idle\"").count() == 2
    });
    for id in ["1", "2"] {
        team.house.done(&["task", "done", id]);
    }
    until("its end", || run.try_wait().unwrap().is_some());
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["done"], true);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert!(lines.contains("completed"), "{lines}");
    assert_eq!(team.processes(), Vec::<String>::new());
}

#[test]
fn until_done_fails_when_the_time_is_over() {
    let team = Hosting::new();
    let run = team.house.run(&["up", "--until-done", "--limit", "1"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("2 tasks were not done in time"), "{}", run.stderr);
    assert_eq!(team.processes(), Vec::<String>::new());
    // Nothing stays where nothing runs, whoever looks.
    assert_eq!(team.house.run(&["status"]).code, Some(4));
    let left = std::fs::read_dir(team.house.path("state/brigade/host")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_member_with_a_worktree_works_on_a_branch_of_its_own() {
    let team = Hosting::new();
    let git = |dir: &str, args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(team.house.path(dir)).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let done = git.args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    git("work", &["init", "-q", "-b", "main"]);
    std::fs::write(team.house.path("work/a/file"), "one\n").unwrap();
    git("work", &["add", "a/file"]);
    git("work", &["commit", "-q", "-m", "first"]);
    let file = std::fs::read_to_string(team.house.path("work/brigade.toml")).unwrap();
    team.house.write("work/brigade.toml", &file.replace("prompt =", "worktree = true\nprompt ="));
    team.house.done(&["up"]);
    let tree = "state/brigade/worktrees/demo/alice";
    // The folder it was to work in, in its own tree.
    until("its start", || team.house.path(&format!("{tree}/a/heard")).exists());
    assert!(!team.house.path("work/a/heard").exists());
    let distance = |team: &Hosting| team.member("alice")["worktree"].clone();
    assert_eq!(distance(&team)["branch"], "brigade/demo/alice");
    std::fs::write(team.house.path(&format!("{tree}/a/file")), "two\n").unwrap();
    let diff = team.house.done(&["diff", "alice"]);
    assert!(diff.contains("-one\n+two\n") && diff.contains("b/a/heard"), "{diff}");
    assert_eq!(distance(&team)["changed"], 2);
    // It stays as long as there is something to lose.
    let down = team.house.run(&["down", "--now"]);
    assert!(down.stderr.contains("not committed, and stays"), "{}", down.stderr);
    git(tree, &["add", "."]);
    git(tree, &["commit", "-q", "-m", "second"]);
    team.house.done(&["up"]);
    assert_eq!(distance(&team)["ahead"], 1);
    // It writes down its prompt once more, and nothing after it.
    let is_prompt = |line: &str| line.starts_with('+') && line.contains("hello alice");
    until("the prompt", || git(tree, &["diff"]).lines().any(is_prompt));
    until("the end of its turn", || team.member("alice")["liveness"] == "idle");
    git(tree, &["checkout", "-q", "."]);
    let down = team.house.run(&["down", "--now"]);
    assert!(down.stderr.contains("has commits, and stays"), "{}", down.stderr);
    assert!(!team.house.path(tree).exists());
    assert!(git("work", &["branch"]).contains("brigade/demo/alice"));
}

#[test]
fn a_team_that_is_deleted_leaves_nobody_behind() {
    let team = Hosting::new();
    team.house.done(&["team", "create", "other"]);
    let agent = format!("acp:{FAKE}");
    team.house.done(&["spawn", "carl", "--agent", &agent]);
    team.house.done(&["team", "delete", "--force"]);
    until("nobody to be left", || team.processes().is_empty());
    assert_eq!(team.house.run(&["status"]).code, Some(4));
}

#[test]
fn an_agent_that_leads_is_brought_the_leads_mail() {
    let team = Hosting::new();
    std::fs::create_dir_all(team.house.path("work/l")).unwrap();
    let file = std::fs::read_to_string(team.house.path("work/brigade.toml")).unwrap();
    let led =
        file.replace("[members.alice]", "[lead]\ndir = \"l\"\nprompt = \"Lead.\"\n[members.alice]");
    team.house.write("work/brigade.toml", &led);
    team.house.done(&["up"]);
    team.house.done(&["--as", "bob", "send", "team-lead", "a question for you"]);
    until("the question", || team.heard("l").contains("a question for you"));
    let heard = team.heard("l");
    assert!(heard.contains("You are team-lead") && heard.contains("spawn_teammate"), "{heard}");
    assert_eq!(team.member("team-lead")["agent"], format!("acp:{FAKE}"));
    // It goes with the others, and the team with it.
    team.house.done(&["down", "--now"]);
    assert_eq!(team.processes(), Vec::<String>::new());
}
