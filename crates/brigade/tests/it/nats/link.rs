//! `brigade link`: natives of two hosts, each in the files of its own, on one team.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::Engine;

use super::{FAKE, until};
use crate::env::House;

/// A host with Claude Code's files, and the engine it is linked with.
struct Host {
    house: House,
    name: &'static str,
    store: String,
}

impl Host {
    fn new(name: &'static str, engine: &Engine) -> Self {
        Self { house: House::new(), name, store: engine.store() }
    }

    fn options(&self) -> [&str; 6] {
        ["link", "demo", "--host", self.name, "--store", &self.store]
    }

    /// Brings the host into step; what the link said.
    fn once(&self) -> String {
        self.house.done(&[self.options().as_slice(), &["--once"]].concat())
    }

    /// Starts a link.
    fn start(&self) -> Running {
        let mut command = self.house.command(&self.options());
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn texts(&self, of: &str) -> Vec<String> {
        let inbox = self.house.run(&["inbox", of, "--json"]).stdout;
        let inbox: serde_json::Value = serde_json::from_str(&inbox).unwrap();
        let text = |entry: &serde_json::Value| entry["text"].as_str().unwrap().to_owned();
        inbox.as_array().unwrap().iter().map(text).collect()
    }

    fn owner(&self, task: &str) -> serde_json::Value {
        self.house.json(&["task", "show", task])["owner"].clone()
    }
}

/// A link that runs, and is killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The lead and alice on `a`, bob on `b`.
fn two(engine: &Engine) -> (Host, Host) {
    let (a, b) = (Host::new("a", engine), Host::new("b", engine));
    a.house.done(&["team", "create", "demo"]);
    a.house.done(&["team", "join", "alice"]);
    assert!(a.once().starts_with("demo: created the team in the NATS store\n"));
    assert!(b.once().starts_with("demo: created the team here\n"));
    b.house.done(&["team", "join", "bob"]);
    assert!(b.once().contains("demo: bob runs on this host"));
    assert!(a.once().contains("demo: bob runs on host b"));
    (a, b)
}

#[test]
fn mail_and_tasks_go_from_one_hosts_files_to_the_others() {
    let engine = Engine::single();
    let (a, b) = two(&engine);
    a.house.done(&["--as", "alice", "send", "bob", "over there"]);
    a.house.done(&["task", "add", "Shared work"]);
    assert!(a.once().contains("demo: mail out: alice to bob\ndemo: task 1 sent\n"));
    let said = b.house.done(&[b.options().as_slice(), &["--once", "--json"]].concat());
    assert!(said.contains(r#"{"team":"demo","what":"in","from":"alice","to":"bob","#), "{said}");
    assert!(said.contains(r#"{"team":"demo","what":"task_in","id":1}"#), "{said}");
    assert_eq!(b.texts("bob"), ["over there"]);
    // Both claim it; one is told.
    a.house.done(&["--as", "alice", "task", "claim", "1"]);
    b.house.done(&["--as", "bob", "task", "claim", "1"]);
    a.once();
    b.once();
    assert_eq!((a.owner("1"), b.owner("1")), ("alice".into(), "alice".into()));
    assert!(
        b.texts("bob")[1].contains("Your claim of task 1 was rejected: alice claimed it first")
    );
    // Those who sit at the engine see all of it.
    let log = a.house.done(&["log", "--team", "demo", "--store", &a.store]);
    assert!(log.contains("over there"), "{log}");
}

#[test]
fn whoever_goes_down_on_one_host_leaves_the_team_to_the_others() {
    let engine = Engine::single();
    let (a, b) = two(&engine);
    a.house.done(&["task", "add", "Shared work"]);
    a.once();
    b.once();
    b.house.done(&["spawn", "carl", "--agent", &format!("acp:{FAKE}")]);
    assert!(b.once().contains("demo: carl runs on this host"));
    let said = b.house.done(&["down"]);
    assert!(said.contains("team demo is not on this host any more"), "{said}");
    b.once();
    a.once();
    for host in [&a, &b] {
        assert_eq!(host.house.json(&["task", "list"]).as_array().unwrap().len(), 1);
    }
    let team = a.house.done(&["team", "show"]);
    assert!(team.contains("bob") && !team.contains("carl"), "{team}");
}

#[test]
fn a_link_is_woken_and_runs_alone() {
    let engine = Engine::single();
    let (a, b) = two(&engine);
    let _links = [a.start(), b.start()];
    a.house.done(&["--as", "alice", "send", "bob", "first"]);
    until("the first", || b.texts("bob") == ["first"]);
    let mut slowest = Duration::ZERO;
    for number in 0..5 {
        b.house.done(&["--as", "bob", "send", "team-lead", &format!("{number}")]);
        let began = Instant::now();
        until("the answer", || a.texts("team-lead").len() > number);
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}: as slow as a sweep");
    let second = b.house.run(&b.options());
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another process links team demo"), "{second}");
}

#[test]
fn killed_links_and_a_killed_engine_lose_nothing_and_double_nothing() {
    let mut engine = Engine::single();
    let (a, b) = two(&engine);
    let stayed = a.start();
    let mut link = Some(b.start());
    let mut sent = Vec::new();
    for number in 0..24_usize {
        let text = format!("number {number}");
        b.house.done(&["--as", "bob", "send", "alice", &text]);
        sent.push(text);
        match number % 8 {
            2 => link = None,
            3 => link = Some(b.start()),
            5 => engine.stop(0),
            7 => engine.start(0),
            _ => {}
        }
    }
    engine.wait_ready();
    until("all of it", || a.texts("alice").len() >= sent.len());
    drop(link);
    drop(stayed);
    b.once();
    a.once();
    assert_eq!(a.texts("alice"), sent);
}

#[test]
fn a_link_needs_an_engine_and_waits_for_it() {
    let house = House::new();
    let alone = house.run(&["link", "demo"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("--store nats://HOST:PORT"), "{alone}");
    let mut engine = Engine::single();
    let (a, b) = two(&engine);
    engine.stop(0);
    let once = a.house.run(&[a.options().as_slice(), &["--once"]].concat());
    assert_eq!(once.code, Some(1), "{once}");
    let _link = a.start();
    a.house.done(&["--as", "alice", "send", "bob", "later"]);
    engine.start(0);
    engine.wait_ready();
    until("the engine is found", || {
        b.once();
        b.texts("bob") == ["later"]
    });
}

#[test]
fn a_link_without_a_team_says_that_it_waits() {
    let engine = Engine::single();
    let house = House::new();
    let mut link = house.command(&["link", "--store", &engine.store()]);
    let mut link = Running(link.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let said = BufReader::new(link.0.stderr.as_mut().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(said, "note: there is no team in the engine yet; waiting for one");
}
