//! Teams of scripted agents that run on this host: `up`, `spawn`, `stop`, `down` and `resume`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brigade_host::registry::Registry;
use brigade_host::tmux::Tmux;
use serde_json::Value;

use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::{kill, wait_until};

/// An environment with a team file. Dropping the environment ends the members.
pub(crate) struct HostedTeam {
    pub(crate) cli: CliEnv,
}

impl Drop for HostedTeam {
    fn drop(&mut self) {
        let _none_up = self.cli.run(&["down", "--now"]);
    }
}

impl HostedTeam {
    /// Creates a team file with two members in their own folders, and two tasks, one of which blocks the other.
    pub(crate) fn new() -> Self {
        let cli = CliEnv::new();
        for dir in ["a", "b"] {
            std::fs::create_dir_all(cli.path(&format!("work/{dir}"))).unwrap();
        }
        let file = format!(
            r#"team = "demo"
[defaults]
agent = "acp:{FAKE_AGENT}"
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
        cli.write("work/brigade.toml", &file);
        Self { cli }
    }

    pub(crate) fn received(&self, dir: &str) -> String {
        std::fs::read_to_string(self.cli.path(&format!("work/{dir}/heard"))).unwrap_or_default()
    }

    pub(crate) fn pid(&self, name: &str) -> u64 {
        self.cli.member(name)["pid"].as_u64().unwrap()
    }

    /// Returns every process whose command line contains this environment's path.
    fn processes(&self) -> Vec<String> {
        let root = self.cli.root.to_str().unwrap().to_owned();
        let ps = Command::new("ps").args(["-eo", "pid,args"]).output().unwrap();
        let ps = String::from_utf8_lossy(&ps.stdout).into_owned();
        ps.lines().filter(|line| line.contains(&root)).map(str::to_owned).collect()
    }
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| *line == word).count()
}

#[test]
fn a_second_up_changes_nothing() {
    let team = HostedTeam::new();
    let first = team.cli.json(&["up"]);
    assert_eq!(first["new"], serde_json::json!(["alice", "bob"]));
    assert_eq!(first["tasks"], 2);
    wait_until("the prompt", || team.received("a").contains("hello alice"));
    let (alice, bob) = (team.pid("alice"), team.pid("bob"));
    // Ignore `isActive`, which members change at the start and end of each turn.
    let roster = || {
        let config = std::fs::read_to_string(team.cli.path("claude/teams/demo/config.json"));
        config.unwrap().replace("\"isActive\": true", "\"isActive\": false")
    };
    wait_until("alice's turn to end", || team.cli.json(&[])[0]["members"][1]["liveness"] == "idle");
    let config = roster();
    let second = team.cli.json(&["up"]);
    assert_eq!((second["new"].clone(), second["tasks"].clone()), (serde_json::json!([]), 0.into()));
    assert_eq!((team.pid("alice"), team.pid("bob")), (alice, bob));
    assert_eq!(roster(), config);
    for dir in ["a", "b"] {
        assert_eq!(count(&team.received(dir), "started"), 1, "{}", team.received(dir));
    }
    let tasks = team.cli.json(&["task", "list"]);
    assert_eq!(tasks.as_array().unwrap().len(), 2);
    assert_eq!(tasks[0]["owner"], "alice");
    assert_eq!(tasks[1]["blockedBy"], serde_json::json!(["1"]));
}

#[test]
fn a_member_spawned_again_gets_its_prompt_again() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let agent = format!("acp:{FAKE_AGENT}");
    for times in 1..=2 {
        let spawn = ["spawn", "carl", "--agent", &agent, "--prompt", "hello carl"];
        team.cli.json(&spawn);
        let prompts = || team.received(".").matches("hello carl").count();
        wait_until("the prompt", || prompts() == times);
        team.cli.json(&["stop", "carl", "--now"]);
    }
}

/// Finding 31: agents inherited the files that the caller of `brigade up` had open, such as a lock or a secret.
#[test]
#[cfg(target_os = "linux")]
fn members_inherit_no_open_files() {
    let team = HostedTeam::new();
    team.cli.write("work/secret", "");
    let secret = team.cli.path("work/secret");
    let script = format!("exec 7<{}; exec {} up", secret.display(), env!("CARGO_BIN_EXE_brigade"));
    let up = team.cli.command_of(Path::new("/bin/sh"), &["-c", &script]).output().unwrap();
    assert!(up.status.success(), "{}", team.cli.outcome(&up));
    let holders = || {
        let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let all = all.filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok());
        let open = all.flatten().filter_map(Result::ok);
        open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|file| file == secret)).count()
    };
    assert_eq!(holders(), 0);
}

#[test]
fn concurrent_ups_start_one_team() {
    let team = HostedTeam::new();
    let ups: Vec<_> = (0..2).map(|_| team.cli.command(&["up"]).spawn().unwrap()).collect();
    for mut up in ups {
        assert!(up.wait().unwrap().success());
    }
    let agent = format!("acp:{FAKE_AGENT}");
    let spawn = ["spawn", "carl", "--agent", &agent];
    let spawns: Vec<_> = (0..10).map(|_| team.cli.command(&spawn).spawn().unwrap()).collect();
    for mut spawn in spawns {
        assert!(spawn.wait().unwrap().success());
    }
    for dir in ["a", "b", "."] {
        assert_eq!(count(&team.received(dir), "started"), 1, "{dir}: {}", team.received(dir));
    }
    let members = team.cli.json(&["team", "show"])["members"].as_array().unwrap().len();
    assert_eq!(members, 4);
    assert_eq!(team.cli.json(&["task", "list"]).as_array().unwrap().len(), 2);
    // Spawning a different agent under a name in use is refused.
    let other = team.cli.run(&["spawn", "carl", "--agent", "codex"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("with other settings: agent"), "{}", other.stderr);
}

#[test]
fn members_outlive_their_supervisor() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let (alice, bob) = (team.pid("alice"), team.pid("bob"));
    kill(team.cli.status()["supervisor"].as_u64().unwrap());
    wait_until("the supervisor to end", || team.cli.status()["supervisor"] == Value::Null);
    assert_eq!((team.pid("alice"), team.pid("bob")), (alice, bob));
    kill(alice);
    wait_until("alice to be dead", || team.cli.member("alice")["liveness"] == "dead");
    let resumed = team.cli.run(&["resume"]);
    // `resume` must report the state of alice's new process, not that her old process is dead.
    assert!(resumed.stderr.contains("alice: idle"), "{resumed}");
    assert!(!resumed.stderr.contains("dead"), "{resumed}");
    assert_eq!(team.pid("bob"), bob);
    assert_ne!(team.pid("alice"), alice);
    // Alice's agent resumes its session.
    assert_eq!((count(&team.received("a"), "begun"), count(&team.received("a"), "loaded")), (1, 1));
    assert_eq!(count(&team.received("b"), "started"), 1);
}

/// Without [`configure_malloc`](../../src/allocator.rs), about four megabytes stay allocated.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn memory_is_released_after_a_flood_of_mail() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let alice = team.pid("alice");
    let status = || std::fs::read_to_string(format!("/proc/{alice}/status")).unwrap();
    let own = || -> u64 {
        let status = status();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = own();
    for number in 0..300 {
        team.cli.run_ok(&["send", "alice", &format!("{number} {}", "x".repeat(4000))]);
    }
    wait_until("alice to read all mail", || team.received("a").contains("299 x"));
    wait_until("alice's memory to be released", || own() < before + 1500);
}

#[test]
fn a_dead_member_is_restarted_and_keeps_its_task() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["--as", "alice", "task", "claim", "1"]);
    let alice = team.pid("alice");
    kill(alice);
    wait_until("alice's new process", || {
        let member = team.cli.member("alice");
        member["liveness"] == "idle" && member["pid"].as_u64().is_some_and(|pid| pid != alice)
    });
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], "alice");
}

#[test]
fn down_leaves_only_the_log_and_other_processes_alone() {
    brigade_testkit::needs!(Ps);
    let team = HostedTeam::new();
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    team.cli.run_ok(&["up"]);
    assert!(!team.processes().is_empty());
    let down = team.cli.run(&["down", "--limit", "1"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert!(down.stderr.contains("the team and its 2 unfinished tasks were deleted"), "{down}");
    assert_eq!(team.processes(), Vec::<String>::new());
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    let files = |dir: &str| {
        let found = Command::new("find").arg(team.cli.path(dir)).args(["-type", "f"]).output();
        String::from_utf8(found.unwrap().stdout).unwrap()
    };
    assert_eq!(files("claude"), "");
    assert!(!files("state").contains("/host/"), "{}", files("state"));
    assert!(!files("state").contains("/kept/"), "{}", files("state"));
    assert!(team.cli.run_ok(&["log", "--team", "demo"]).contains("alice"));
    assert_eq!(team.cli.run(&["status"]).code, Some(4));
}

#[test]
fn stop_ends_one_member_only() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let bob = team.pid("bob");
    let ended = team.cli.json(&["stop", "alice", "--limit", "1"]);
    assert_eq!(ended["members"][0]["ended"], "forced");
    let status = team.cli.status();
    assert_eq!(status["members"].as_array().unwrap().len(), 1);
    assert_eq!(team.pid("bob"), bob);
    // Alice's task has no owner any more.
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], Value::Null);
    for name in ["alice", "zoe"] {
        let again = team.cli.run(&["stop", name]);
        assert_eq!(again.code, Some(1));
        let expected = if name == "alice" { "was stopped" } else { "members on this host: bob" };
        assert!(again.stderr.contains(expected), "{}", again.stderr);
    }
}

#[test]
fn a_member_whose_window_is_closed_gets_a_new_one() {
    brigade_testkit::needs!(Tmux);
    let team = HostedTeam::new();
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let file = file.replace("dir = \"a\"", "dir = \"a\"\nplace = \"tmux\"");
    team.cli.write("work/brigade.toml", &file);
    team.cli.run_ok(&["up"]);
    let alice = team.pid("alice");
    let host = std::fs::read_dir(team.cli.path("state/brigade/host")).unwrap().next().unwrap();
    let socket = Tmux::new(&Registry::new(host.unwrap().path())).socket;
    let tmux = ["-L", &socket, "display-message", "-p", "#{pid}"];
    let server = Command::new("tmux").args(tmux).env_remove("TMUX").output().unwrap();
    kill(String::from_utf8(server.stdout).unwrap().trim().parse().unwrap());
    wait_until("alice's new process", || {
        let now = team.cli.member("alice");
        now["liveness"] == "idle" && now["pid"].as_u64() != Some(alice)
    });
    assert_eq!(team.cli.json(&["team", "show"])["members"].as_array().unwrap().len(), 3);
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], "alice");
}

#[test]
fn up_returns_if_an_agent_keeps_dying() {
    let team = HostedTeam::new();
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    team.cli.write("work/brigade.toml", &file.replace("dir = \"b\"", "agent = \"acp:false\""));
    let run = team.cli.run(&["up"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("not started: bob"), "{}", run.stderr);
    wait_until("alice to be idle", || team.cli.member("alice")["liveness"] == "idle");
    assert_eq!(team.cli.member("bob")["liveness"], "dead");
    // Bob has no agent that could answer the shutdown request, so `stop` does not wait for an answer.
    let began = Instant::now();
    assert_eq!(team.cli.json(&["stop", "bob", "--limit", "60"])["members"][0]["ended"], "forced");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn until_done_returns_after_the_last_task() {
    brigade_testkit::needs!(Ps);
    let team = HostedTeam::new();
    let run = team.cli.command(&["up", "--until-done", "--json"]);
    let mut run = { run }.stdout(Stdio::piped()).spawn().unwrap();
    wait_until("both members to be idle", || {
        let status = team.cli.run(&["status", "--json"]);
        status.code == Some(0) && status.stdout.matches("\"idle\"").count() == 2
    });
    for id in ["1", "2"] {
        team.cli.run_ok(&["task", "done", id]);
    }
    wait_until("`up --until-done` to end", || run.try_wait().unwrap().is_some());
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
fn until_done_fails_after_its_limit() {
    brigade_testkit::needs!(Ps);
    let team = HostedTeam::new();
    let run = team.cli.run(&["up", "--until-done", "--limit", "1"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("2 tasks were not done in time"), "{}", run.stderr);
    assert!(run.stderr.contains("the team and its 2 unfinished tasks were deleted"), "{run}");
    assert_eq!(team.processes(), Vec::<String>::new());
    // No team runs, and the host registry is empty.
    assert_eq!(team.cli.run(&["status"]).code, Some(4));
    let left = std::fs::read_dir(team.cli.path("state/brigade/host")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn until_done_is_refused_without_tasks() {
    let cli = CliEnv::new();
    let file = format!("team = \"demo\"\n[members.bob]\nagent = \"acp:{FAKE_AGENT}\"\n");
    cli.write("work/brigade.toml", &file);
    let run = cli.run(&["up", "--until-done"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(
        run.stderr.contains("the team has no tasks; --until-done has nothing to wait for"),
        "{run}"
    );
    assert_eq!(cli.run(&["status"]).code, Some(4));
}

/// A task whose file is damaged must not count as done, and must not be deleted.
#[test]
fn until_done_fails_if_a_task_cannot_be_read() {
    let team = HostedTeam::new();
    let run = team.cli.command(&["up", "--until-done"]);
    let run = { run }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("both members to be idle", || {
        let status = team.cli.run(&["status", "--json"]);
        status.code == Some(0) && status.stdout.matches("\"idle\"").count() == 2
    });
    team.cli.write("claude/tasks/demo/2.json", "{\"id\": \"2\", \"sub");
    team.cli.run_ok(&["task", "done", "1"]);
    let run = team.cli.outcome(&run.wait_with_output().unwrap());
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("cannot read task 2"), "{run}");
    assert!(run.stderr.contains("`brigade doctor --fix`"), "{run}");
    assert!(team.cli.path("claude/tasks/demo/2.json").exists());
    let tasks = &team.cli.status()["tasks"];
    assert_eq!((&tasks["total"], &tasks["unreadable"]), (&2.into(), &1.into()), "{tasks}");
    // Without the name of the task, `up` would add it a second time.
    let again = team.cli.run(&["up"]);
    assert_eq!(again.code, Some(1), "{again}");
    assert!(again.stderr.contains("cannot read task 2"), "{again}");
}

#[test]
fn a_member_with_a_worktree_has_its_own_branch() {
    let team = HostedTeam::new();
    let git = |dir: &str, args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(team.cli.path(dir)).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let done = git.args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    git("work", &["init", "-q", "-b", "main"]);
    std::fs::write(team.cli.path("work/a/file"), "one\n").unwrap();
    git("work", &["add", "a/file"]);
    git("work", &["commit", "-q", "-m", "first"]);
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    // Remove the tasks, because a task assignment could cause a second prompt.
    let (members, _tasks) = file.split_once("[tasks.one]").unwrap();
    team.cli.write("work/brigade.toml", &members.replace("prompt =", "worktree = true\nprompt ="));
    team.cli.run_ok(&["up"]);
    let tree = "state/brigade/worktrees/demo/alice";
    // Alice's working directory is folder `a` of her worktree.
    wait_until("alice's agent to start", || team.cli.path(&format!("{tree}/a/heard")).exists());
    assert!(!team.cli.path("work/a/heard").exists());
    let distance = |team: &HostedTeam| team.cli.member("alice")["worktree"].clone();
    assert_eq!(distance(&team)["branch"], "brigade/demo/alice");
    std::fs::write(team.cli.path(&format!("{tree}/a/file")), "two\n").unwrap();
    let diff = team.cli.run_ok(&["diff", "alice"]);
    assert!(diff.contains("-one\n+two\n") && diff.contains("b/a/heard"), "{diff}");
    assert_eq!(team.cli.run_ok(&["diff", "alice", "--name-only"]), "a/file\na/heard\n");
    assert_eq!(team.cli.run_ok(&["diff", "alice", "--name-only", "--", "a/file"]), "a/file\n");
    let diff = team.cli.run_ok(&["diff", "alice", "--", "a/file"]);
    assert!(diff.contains("-one\n+two\n") && !diff.contains("heard"), "{diff}");
    // After `--`, nothing is an option of git.
    let none = team.cli.run(&["diff", "alice", "--", "--output=stolen"]);
    assert_eq!(
        none.stderr,
        "error: alice has no change at --output=stolen (exact paths, relative to its worktree)\n"
    );
    assert_eq!(none.code, Some(4));
    assert_eq!(distance(&team)["changed"], 2);
    // `down` keeps a worktree that has uncommitted changes.
    let down = team.cli.run(&["down", "--now"]);
    assert!(down.stderr.contains("because it has uncommitted changes"), "{}", down.stderr);
    git(tree, &["add", "."]);
    git(tree, &["commit", "-q", "-m", "second"]);
    team.cli.run_ok(&["up"]);
    assert_eq!(distance(&team)["ahead"], 1);
    // The new agent appends its prompt to the committed file `heard`. After that, it writes nothing.
    let is_prompt = |line: &str| line.starts_with('+') && line.contains("hello alice");
    wait_until("the prompt", || git(tree, &["diff"]).lines().any(is_prompt));
    wait_until("alice's turn to end", || team.cli.member("alice")["liveness"] == "idle");
    git(tree, &["checkout", "-q", "."]);
    let down = team.cli.run(&["down", "--now"]);
    assert!(down.stderr.contains("because it has commits"), "{}", down.stderr);
    assert!(!team.cli.path(tree).exists());
    assert!(git("work", &["branch"]).contains("brigade/demo/alice"));
}

#[test]
fn deleting_a_team_ends_its_members() {
    brigade_testkit::needs!(Ps);
    let team = HostedTeam::new();
    team.cli.run_ok(&["team", "create", "demo"]);
    let agent = format!("acp:{FAKE_AGENT}");
    team.cli.run_ok(&["spawn", "carl", "--agent", &agent]);
    team.cli.run_ok(&["team", "delete", "--force"]);
    wait_until("all members to end", || team.processes().is_empty());
    assert_eq!(team.cli.run(&["status"]).code, Some(4));
}

#[test]
fn a_leading_agent_receives_the_leads_mail() {
    brigade_testkit::needs!(Ps);
    let team = HostedTeam::new();
    std::fs::create_dir_all(team.cli.path("work/l")).unwrap();
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let led =
        file.replace("[members.alice]", "[lead]\ndir = \"l\"\nprompt = \"Lead.\"\n[members.alice]");
    team.cli.write("work/brigade.toml", &led);
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["--as", "bob", "send", "team-lead", "a question for you"]);
    wait_until("the lead to receive bob's question", || {
        team.received("l").contains("a question for you")
    });
    let heard = team.received("l");
    assert!(heard.contains("You are team-lead") && heard.contains("spawn_teammate"), "{heard}");
    assert_eq!(team.cli.member("team-lead")["agent"], format!("acp:{FAKE_AGENT}"));
    // `down` ends all agents, including the lead's, and deletes the team.
    team.cli.run_ok(&["down", "--now"]);
    assert_eq!(team.processes(), Vec::<String>::new());
}
