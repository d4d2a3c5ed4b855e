//! `brigade org`: from nothing to a team of seats that the servers keep apart.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use brigade_testkit::nats_server::PROGRAM;

use super::until;
use crate::env::{House, Outcome};

/// Ends the server with the test, however that ends.
const KEEPER: &str =
    r#""$0" -c "$1" >>"$2" 2>&1 & pid=$!; echo $pid; read -r word; kill -9 $pid; wait $pid"#;

/// An operator's house, its server running.
struct Operator {
    house: House,
    url: String,
    keeper: Option<Child>,
}

impl Operator {
    fn new() -> Self {
        let house = House::new();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let node = format!("127.0.0.1:{port}");
        let made = house.json(&["org", "init", "acme", "--dir", "op", "--nodes", &node]);
        assert_eq!(made["urls"][0], format!("nats://{node}"));
        let mut operator = Self { house, url: format!("nats://{node}"), keeper: None };
        operator.start();
        operator
    }

    fn start(&mut self) {
        let program = std::env::var_os(PROGRAM).unwrap_or_else(|| "nats-server".into());
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .arg(program)
            .args([self.house.path("work/op/server-1.conf"), self.house.path("log")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        self.keeper = Some(keeper);
        until("the server", || self.house.run(&["org", "apply", "--dir", "op"]).code == Some(0));
    }

    fn stop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            keeper.wait().unwrap();
        }
    }

    /// Gives credentials; where they are.
    fn add(&self, args: &[&str]) -> String {
        let args = [&["org", "add-member"], args, &["--dir", "op"]].concat();
        self.house.json(&args)["file"].as_str().unwrap().to_owned()
    }

    fn run_as(&self, creds: &str, name: &str, args: &[&str]) -> Outcome {
        let seat = ["--store", &self.url, "--creds", creds, "--team", "demo", "--as", name];
        self.house.run(&[&seat, args].concat())
    }

    fn done_as(&self, creds: &str, name: &str, args: &[&str]) -> String {
        let outcome = self.run_as(creds, name, args);
        assert_eq!(outcome.code, Some(0), "{name} {args:?}: {outcome}");
        outcome.stdout
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn seats_work_together_and_the_server_keeps_them_apart() {
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let (alice, bob) = (operator.add(&["demo", "alice"]), operator.add(&["demo", "bob"]));
    operator.done_as(&lead, "team-lead", &["team", "create", "demo"]);
    for name in ["alice", "bob"] {
        operator.done_as(&lead, "team-lead", &["team", "join", name]);
    }
    operator.done_as(&lead, "team-lead", &["send", "alice", "begin"]);
    assert!(operator.done_as(&alice, "alice", &["inbox", "--mark-read"]).contains("begin"));
    operator.done_as(&lead, "team-lead", &["task", "add", "a task"]);
    operator.done_as(&alice, "alice", &["task", "claim", "1"]);
    operator.done_as(&alice, "alice", &["send", "team-lead", "claimed"]);
    assert!(operator.done_as(&lead, "team-lead", &["inbox"]).contains("claimed"));

    for attempt in [&["send", "team-lead", "as bob"][..], &["inbox", "--mark-read"]] {
        let refused = operator.run_as(&alice, "bob", attempt);
        assert_eq!(refused.code, Some(1), "{attempt:?}: {refused}");
        assert!(refused.stderr.contains("--creds FILE"), "{attempt:?}: {refused}");
    }
    assert!(!operator.done_as(&lead, "team-lead", &["inbox"]).contains("as bob"));
    assert_eq!(operator.run_as(&bob, "bob", &["inbox"]).code, Some(4), "nothing for bob");
}

#[test]
fn who_is_revoked_is_out_and_can_be_let_in_anew() {
    let mut operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let alice = operator.add(&["demo", "alice"]);
    operator.add(&["demo", "alice", "bob", "--out", "host.creds"]);
    operator.done_as(&lead, "team-lead", &["team", "create", "demo"]);
    assert_eq!(operator.run_as(&alice, "alice", &["team", "show"]).code, Some(0));

    let revoke = ["org", "revoke", "demo", "alice", "--dir", "op"];
    let revoked = operator.house.json(&revoke);
    assert_eq!(revoked["revoked"].as_array().unwrap().len(), 2, "{revoked}");
    assert_eq!(revoked["pushed"][0]["taken"], true, "{revoked}");
    assert_eq!(operator.run_as(&alice, "alice", &["team", "show"]).code, Some(1));
    assert_eq!(operator.run_as("host.creds", "bob", &["team", "show"]).code, Some(1));
    assert_eq!(operator.house.run(&revoke).code, Some(4), "nobody is left");

    let again = operator.add(&["demo", "alice"]);
    assert_eq!(again, alice, "in place of what is worth nothing any more");
    assert_eq!(operator.run_as(&again, "alice", &["team", "show"]).code, Some(0));

    // The servers are down: it is written down, and they know when they are started.
    operator.stop();
    let late = operator.house.run(&revoke);
    assert_eq!(late.code, Some(1), "{late}");
    assert!(late.stderr.contains("brigade org apply"), "{late}");
    operator.start();
    assert_eq!(operator.run_as(&again, "alice", &["team", "show"]).code, Some(1));

    let list = operator.house.json(&["org", "list", "--dir", "op"]);
    let seats = list["organisations"][0]["seats"].as_array().unwrap();
    let revoked = seats.iter().filter(|seat| seat["revoked"].is_string()).count();
    assert_eq!((seats.len(), revoked), (4, 3), "{list}");
}

#[test]
fn what_is_written_is_for_its_owner_alone() {
    let house = House::new();
    house.done(&["org", "init", "acme", "--dir", "op"]);
    house.done(&["org", "add-member", "demo", "alice", "--dir", "op", "--out", "a.creds"]);
    let mode = |path: &str| {
        let path = house.path(path);
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    for dir in ["work/op", "work/op/orgs/acme", "work/op/orgs/acme/creds"] {
        assert_eq!(mode(dir), 0o700, "{dir}");
    }
    let keys = ["operator.nk", "system.nk", "operator.json", "server-1.conf"];
    let own = ["account.nk", "seats.nk", "org.json", "admin.creds"];
    let keys = keys.map(|name| format!("work/op/{name}")).into_iter();
    let own = own.map(|name| format!("work/op/orgs/acme/{name}")).into_iter();
    for file in keys.chain(own).chain(["work/a.creds".to_owned()]) {
        assert_eq!(mode(&file), 0o600, "{file}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let house = House::new();
    house.done(&["org", "init", "acme", "--dir", "op"]);
    house.done(&["org", "init", "rival", "--dir", "op"]);
    for (args, code, said) in [
        (&["init", "acme"][..], 1, "add-member"),
        (&["init", "third", "--nodes", "h:1"], 1, "leave out --nodes"),
        (&["init", "third", "--shards", "5"], 2, "1, 4 or 16"),
        (&["init", "third", "--replicas", "3"], 2, "--nodes"),
        (&["init", "third", "--retention", "soon"], 2, "as in 30d"),
        (&["add-member", "demo", "alice"], 1, "choose with --org: acme, rival"),
        (&["add-member", "demo", "alice", "--no-answers"], 2, "--lead"),
        (&["add-member", "demo", "a.b", "--org", "acme"], 2, "member name"),
        (&["revoke", "demo", "nobody", "--org", "acme"], 4, "brigade org list"),
        (&["list", "--org", "none"], 1, "acme, rival"),
    ] {
        let refused = house.run(&[&["org"], args, &["--dir", "op"]].concat());
        assert_eq!(refused.code, Some(code), "{args:?}: {refused}");
        assert!(refused.stderr.contains(said), "{args:?}: {refused}");
    }
    let nowhere = house.run(&["org", "list", "--dir", "elsewhere"]);
    assert!(nowhere.stderr.contains("brigade org init"), "{nowhere}");
    house.done(&["org", "add-member", "demo", "alice", "--dir", "op", "--org", "acme"]);
    let twice = house.run(&["org", "add-member", "demo", "alice", "--dir", "op", "--org", "acme"]);
    assert!(twice.stderr.contains("brigade overwrites nothing"), "{twice}");
}
