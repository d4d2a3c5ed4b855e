//! `brigade link`: one team on two hosts, each with its own Claude Code files.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::TestServers;

use super::{FAKE_AGENT, wait_until};
use crate::env::CliEnv;

/// A host with Claude Code's files, linked with a NATS server.
struct LinkedHost {
    cli: CliEnv,
    name: &'static str,
    store: String,
}

impl LinkedHost {
    fn new(name: &'static str, engine: &TestServers) -> Self {
        Self { cli: CliEnv::new(), name, store: engine.store() }
    }

    fn options(&self) -> [&str; 6] {
        ["link", "demo", "--host", self.name, "--store", &self.store]
    }

    /// Runs `brigade link --once` on this host and returns its output.
    fn once(&self) -> String {
        self.cli.run_ok(&[self.options().as_slice(), &["--once"]].concat())
    }

    /// Starts `brigade link` on this host.
    fn start(&self) -> Running {
        let mut command =
            self.cli.command(&[self.options().as_slice(), &["--foreground"]].concat());
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn texts(&self, of: &str) -> Vec<String> {
        let inbox = self.cli.run(&["inbox", of, "--json"]).stdout;
        let inbox: serde_json::Value = serde_json::from_str(&inbox).unwrap();
        let text = |entry: &serde_json::Value| entry["text"].as_str().unwrap().to_owned();
        inbox.as_array().unwrap().iter().map(text).collect()
    }

    fn owner(&self, task: &str) -> serde_json::Value {
        self.cli.json(&["task", "show", task])["owner"].clone()
    }
}

/// A running `brigade link` process that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ignored = self.0.kill();
        let _ignored = self.0.wait();
    }
}

/// Creates two linked hosts: the lead and alice are on `a`, bob is on `b`.
fn linked_hosts(engine: &TestServers) -> (LinkedHost, LinkedHost) {
    let (a, b) = (LinkedHost::new("a", engine), LinkedHost::new("b", engine));
    a.cli.run_ok(&["team", "create", "demo"]);
    a.cli.run_ok(&["team", "join", "alice"]);
    assert!(a.once().starts_with("demo: created the team in the NATS store\n"));
    assert!(b.once().starts_with("demo: created the team here\n"));
    b.cli.run_ok(&["team", "join", "bob"]);
    assert!(b.once().contains("demo: bob runs on this host"));
    assert!(a.once().contains("demo: bob runs on host b"));
    (a, b)
}

#[test]
fn mail_and_tasks_are_synchronized_between_hosts() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let (a, b) = linked_hosts(&engine);
    a.cli.run_ok(&["--as", "alice", "send", "bob", "over there"]);
    a.cli.run_ok(&["task", "add", "Shared work"]);
    assert!(a.once().contains("demo: mail out: alice to bob\ndemo: task 1 sent\n"));
    let output = b.cli.run_ok(&[b.options().as_slice(), &["--once", "--json"]].concat());
    assert!(
        output.contains(r#"{"team":"demo","what":"in","from":"alice","to":"bob","#),
        "{output}"
    );
    assert!(output.contains(r#"{"team":"demo","what":"task_in","id":1}"#), "{output}");
    assert_eq!(b.texts("bob"), ["over there"]);
    // Alice and bob claim the same task on different hosts; the link rejects bob's claim.
    a.cli.run_ok(&["--as", "alice", "task", "claim", "1"]);
    b.cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    a.once();
    b.once();
    assert_eq!((a.owner("1"), b.owner("1")), ("alice".into(), "alice".into()));
    assert!(
        b.texts("bob")[1].contains("Your claim of task 1 was rejected: alice claimed it first")
    );
    // A client that uses the NATS store directly sees the same messages.
    let log = a.cli.run_ok(&["log", "--team", "demo", "--store", &a.store]);
    assert!(log.contains("over there"), "{log}");
}

#[test]
fn down_on_one_host_keeps_the_team_for_the_others() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let (a, b) = linked_hosts(&engine);
    a.cli.run_ok(&["task", "add", "Shared work"]);
    a.once();
    b.once();
    b.cli.run_ok(&["spawn", "carl", "--agent", &format!("acp:{FAKE_AGENT}")]);
    assert!(b.once().contains("demo: carl runs on this host"));
    let output = b.cli.run_ok(&["down"]);
    assert!(output.contains("team demo no longer runs on this host"), "{output}");
    b.once();
    a.once();
    for host in [&a, &b] {
        assert_eq!(host.cli.json(&["task", "list"]).as_array().unwrap().len(), 1);
    }
    let team = a.cli.run_ok(&["team", "show"]);
    assert!(team.contains("bob") && !team.contains("carl"), "{team}");
}

#[test]
fn a_link_is_woken_and_locks_its_team() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let (a, b) = linked_hosts(&engine);
    let _links = [a.start(), b.start()];
    a.cli.run_ok(&["--as", "alice", "send", "bob", "first"]);
    wait_until("the first message to arrive", || b.texts("bob") == ["first"]);
    let mut slowest = Duration::ZERO;
    for number in 0..5 {
        b.cli.run_ok(&["--as", "bob", "send", "team-lead", &format!("{number}")]);
        let began = Instant::now();
        wait_until("the next message to arrive", || a.texts("team-lead").len() > number);
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}: the link was not woken");
    let second = b.cli.run(&b.options());
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("another process on this host already links team demo"),
        "{second}"
    );
}

#[test]
fn killed_links_and_servers_lose_and_duplicate_nothing() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::single();
    let (a, b) = linked_hosts(&engine);
    let stayed = a.start();
    let mut link = Some(b.start());
    let mut sent = Vec::new();
    for number in 0..24_usize {
        let text = format!("number {number}");
        b.cli.run_ok(&["--as", "bob", "send", "alice", &text]);
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
    wait_until("all messages to arrive", || a.texts("alice").len() >= sent.len());
    drop(link);
    drop(stayed);
    b.once();
    a.once();
    assert_eq!(a.texts("alice"), sent);
}

#[test]
fn a_link_waits_for_the_server() {
    brigade_testkit::needs!(NatsServer);
    let cli = CliEnv::new();
    let alone = cli.run(&["link", "demo"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("--store nats://HOST:PORT"), "{alone}");
    let mut engine = TestServers::single();
    let (a, b) = linked_hosts(&engine);
    engine.stop(0);
    let once = a.cli.run(&[a.options().as_slice(), &["--once"]].concat());
    assert_eq!(once.code, Some(1), "{once}");
    let _link = a.start();
    a.cli.run_ok(&["--as", "alice", "send", "bob", "later"]);
    engine.start(0);
    engine.wait_ready();
    wait_until("the link to reconnect and deliver the message", || {
        b.once();
        b.texts("bob") == ["later"]
    });
}

#[test]
fn a_link_without_a_team_prints_a_note() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let cli = CliEnv::new();
    let mut link = cli.command(&["link", "--store", &engine.store(), "--foreground"]);
    let mut link = Running(link.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let output = BufReader::new(link.0.stderr.as_mut().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(output, "note: there is no team on the NATS server yet; waiting for one");
}
