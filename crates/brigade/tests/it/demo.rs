//! `brigade demo`

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::env::CliEnv;

/// An environment with a folder for temporary files of its own, and no agent on the search path.
fn machine() -> CliEnv {
    let mut cli = CliEnv::new();
    std::fs::create_dir_all(cli.path("tmp")).unwrap();
    cli.variables.push(("TMPDIR", cli.path("tmp").display().to_string()));
    cli.variables.push(("PATH", cli.path("bin").display().to_string()));
    cli
}

fn leftovers(cli: &CliEnv) -> Vec<String> {
    let entries = std::fs::read_dir(cli.path("tmp")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_demo_runs_without_agents_and_leaves_nothing_behind() {
    let cli = machine();
    let shown = cli.run(&["demo", "--speed", "60"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(shown.stderr.contains("scripted agents and no model"), "{shown}");
    for text in [
        "team created",
        "ada                 joined",
        "task 3 added, after 1",
        "team-lead → ben     task 3 assigned: ",
        "ada → ben",
        "permission requested to run: git fetch origin",
        "The demo approved your request",
        "cargo publish",
        "task 5 completed",
        "the agents were scripted",
    ] {
        assert!(shown.stdout.contains(text), "{text}\n{shown}");
    }
    let [new, dashboard] = shown.stderr.lines().rev().take(2).collect::<Vec<_>>()[..] else {
        panic!("{shown}");
    };
    assert!(new.starts_with("hint: `brigade new`"), "{shown}");
    assert!(dashboard.starts_with("hint: `brigade demo`"), "{shown}");
    assert_eq!(leftovers(&cli), Vec::<String>::new());
    for path in ["home", "state", "claude"] {
        assert!(!cli.path(path).exists(), "{path}");
    }
}

/// Starts a slow demo, and waits until its folder exists.
fn started(cli: &CliEnv) -> Child {
    let mut command = cli.command(&["demo", "--json"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let last = format!("tmp/brigade-demo-{}/claude/tasks/demo/5.json", child.id());
    while !cli.path(&last).exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", leftovers(cli));
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn an_interrupted_demo_removes_its_folder() {
    let cli = machine();
    let mut child = started(&cli);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(leftovers(&cli), Vec::<String>::new());
}

#[test]
fn the_next_demo_removes_the_folder_of_a_killed_one_and_spares_a_running_one() {
    let cli = machine();
    std::fs::create_dir_all(cli.path("tmp/brigade-demo-notes")).unwrap();
    let mut killed = started(&cli);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(leftovers(&cli).len(), 2);
    let mut running = started(&cli);
    let expected = [format!("brigade-demo-{}", running.id()), "brigade-demo-notes".to_owned()];
    let mut left = leftovers(&cli);
    left.sort();
    assert_eq!(left, expected);
    let mut next = started(&cli);
    assert_eq!(leftovers(&cli).len(), 3);
    for child in [&mut running, &mut next] {
        kill_process(Pid::from_child(child), Signal::TERM).unwrap();
        child.wait().unwrap();
    }
    assert_eq!(leftovers(&cli), ["brigade-demo-notes"]);
}
