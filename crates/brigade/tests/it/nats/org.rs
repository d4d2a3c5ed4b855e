//! `brigade org`: creates an organisation in which the NATS servers isolate members from each other.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use brigade_testkit::nats_server::ServerProcess;

use super::wait_until;
use crate::env::{CliEnv, Outcome};

/// The environment of an organisation's operator, with a running NATS server.
pub(super) struct Operator {
    pub(super) cli: CliEnv,
    pub(super) url: String,
    server: Option<ServerProcess>,
}

impl Operator {
    pub(super) fn new() -> Self {
        let cli = CliEnv::new();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let node = format!("127.0.0.1:{port}");
        let made = cli.json(&["org", "init", "acme", "--dir", "op", "--nodes", &node]);
        assert_eq!(made["urls"][0], format!("nats://{node}"));
        let mut operator = Self { cli, url: format!("nats://{node}"), server: None };
        operator.start();
        operator
    }

    fn start(&mut self) {
        let config = self.cli.path("work/op/server-1.conf");
        self.server = Some(ServerProcess::start(&config, &self.cli.path("log")));
        wait_until("the server to accept the accounts", || {
            self.cli.run(&["org", "apply", "--dir", "op"]).code == Some(0)
        });
    }

    /// Creates credentials and returns the path of the credentials file.
    pub(super) fn add(&self, args: &[&str]) -> String {
        let args = [&["org", "add-member"], args, &["--dir", "op"]].concat();
        self.cli.json(&args)["file"].as_str().unwrap().to_owned()
    }

    pub(super) fn run_as(&self, creds: &str, name: &str, args: &[&str]) -> Outcome {
        let seat = ["--store", &self.url, "--creds", creds, "--team", "demo", "--as", name];
        self.cli.run(&[&seat, args].concat())
    }

    pub(super) fn run_ok_as(&self, creds: &str, name: &str, args: &[&str]) -> String {
        let outcome = self.run_as(creds, name, args);
        assert_eq!(outcome.code, Some(0), "{name} {args:?}: {outcome}");
        outcome.stdout
    }
}

#[test]
fn credentials_isolate_members() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let (alice, bob) = (operator.add(&["demo", "alice"]), operator.add(&["demo", "bob"]));
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    for name in ["alice", "bob"] {
        operator.run_ok_as(&lead, "team-lead", &["team", "join", name]);
    }
    operator.run_ok_as(&lead, "team-lead", &["send", "alice", "begin"]);
    assert!(operator.run_ok_as(&alice, "alice", &["inbox", "--mark-read"]).contains("begin"));
    operator.run_ok_as(&lead, "team-lead", &["task", "add", "a task"]);
    operator.run_ok_as(&alice, "alice", &["task", "claim", "1"]);
    operator.run_ok_as(&alice, "alice", &["send", "team-lead", "claimed"]);
    assert!(operator.run_ok_as(&lead, "team-lead", &["inbox"]).contains("claimed"));

    for attempt in [&["send", "team-lead", "as bob"][..], &["inbox", "--mark-read"]] {
        let refused = operator.run_as(&alice, "bob", attempt);
        assert_eq!(refused.code, Some(1), "{attempt:?}: {refused}");
        assert!(refused.stderr.contains("--creds FILE"), "{attempt:?}: {refused}");
    }
    assert!(!operator.run_ok_as(&lead, "team-lead", &["inbox"]).contains("as bob"));
    assert_eq!(operator.run_as(&bob, "bob", &["inbox"]).code, Some(4), "bob's inbox is not empty");
}

#[test]
fn revoked_members_can_get_new_credentials() {
    brigade_testkit::needs!(NatsServer);
    let mut operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let alice = operator.add(&["demo", "alice"]);
    operator.add(&["demo", "alice", "bob", "--out", "host.creds"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    assert_eq!(operator.run_as(&alice, "alice", &["team", "show"]).code, Some(0));

    let revoke = ["org", "revoke", "demo", "alice", "--dir", "op"];
    let revoked = operator.cli.json(&revoke);
    assert_eq!(revoked["revoked"].as_array().unwrap().len(), 2, "{revoked}");
    assert_eq!(revoked["pushed"][0]["taken"], true, "{revoked}");
    assert_eq!(operator.run_as(&alice, "alice", &["team", "show"]).code, Some(1));
    assert_eq!(operator.run_as("host.creds", "bob", &["team", "show"]).code, Some(1));
    assert_eq!(operator.cli.run(&revoke).code, Some(4), "credentials are left to revoke");

    let again = operator.add(&["demo", "alice"]);
    assert_eq!(again, alice, "the revoked file was not replaced");
    assert_eq!(operator.run_as(&again, "alice", &["team", "show"]).code, Some(0));

    // While the server is down, a revocation is recorded; it takes effect when the server starts.
    operator.server = None;
    let late = operator.cli.run(&revoke);
    assert_eq!(late.code, Some(1), "{late}");
    assert!(late.stderr.contains("brigade org apply"), "{late}");
    operator.start();
    assert_eq!(operator.run_as(&again, "alice", &["team", "show"]).code, Some(1));

    let list = operator.cli.json(&["org", "list", "--dir", "op"]);
    let seats = list["organisations"][0]["seats"].as_array().unwrap();
    let revoked = seats.iter().filter(|seat| seat["revoked"].is_string()).count();
    assert_eq!((seats.len(), revoked), (4, 3), "{list}");
}

/// Finding 4: the credentials of a member outlived its membership.
#[test]
fn removing_a_member_can_revoke_its_credentials() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let alice = operator.add(&["demo", "alice"]);
    let bob = operator.add(&["demo", "bob", "carol"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    for name in ["alice", "bob"] {
        operator.run_ok_as(&lead, "team-lead", &["team", "join", name]);
    }
    let left = operator.run_as(&lead, "team-lead", &["team", "leave", "alice"]);
    assert!(left.stderr.contains("the NATS credentials of alice stay valid"), "{left}");
    assert!(left.stderr.contains("`brigade org revoke demo alice`"), "{left}");
    assert_eq!(operator.run_as(&alice, "alice", &["team", "show"]).code, Some(0));

    let left = operator.run_as(&lead, "team-lead", &["team", "leave", "bob", "--revoke", "op"]);
    assert_eq!(left.code, Some(0), "{left}");
    assert!(left.stderr.contains("revoked the credentials"), "{left}");
    assert!(left.stderr.contains("`brigade org add-member demo carol`"), "{left}");
    assert_eq!(operator.run_as(&bob, "bob", &["team", "show"]).code, Some(1));
    assert_eq!(operator.run_as(&bob, "carol", &["team", "show"]).code, Some(1));
}

#[test]
fn created_files_are_private() {
    let cli = CliEnv::new();
    cli.run_ok(&["org", "init", "acme", "--dir", "op"]);
    cli.run_ok(&["org", "add-member", "demo", "alice", "--dir", "op", "--out", "a.creds"]);
    let mode = |path: &str| {
        let path = cli.path(path);
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
fn invalid_arguments_are_refused_with_a_hint() {
    let cli = CliEnv::new();
    cli.run_ok(&["org", "init", "acme", "--dir", "op"]);
    cli.run_ok(&["org", "init", "rival", "--dir", "op"]);
    for (args, code, said) in [
        (&["init", "acme"][..], 1, "add-member"),
        (&["init", "third", "--nodes", "h:1"], 1, "omit --nodes"),
        (&["init", "third", "--shards", "5"], 2, "1, 4 or 16"),
        (&["init", "third", "--replicas", "3"], 2, "--nodes"),
        (&["init", "third", "--retention", "soon"], 2, "such as 30d"),
        (&["add-member", "demo", "alice"], 1, "choose an organisation with --org: acme, rival"),
        (&["add-member", "demo", "alice", "--no-answers"], 2, "--lead"),
        (&["add-member", "demo", "a.b", "--org", "acme"], 2, "member name"),
        (&["revoke", "demo", "nobody", "--org", "acme"], 4, "brigade org list"),
        (&["list", "--org", "none"], 1, "acme, rival"),
    ] {
        let refused = cli.run(&[&["org"], args, &["--dir", "op"]].concat());
        assert_eq!(refused.code, Some(code), "{args:?}: {refused}");
        assert!(refused.stderr.contains(said), "{args:?}: {refused}");
    }
    let nowhere = cli.run(&["org", "list", "--dir", "elsewhere"]);
    assert!(nowhere.stderr.contains("brigade org init"), "{nowhere}");
    cli.run_ok(&["org", "add-member", "demo", "alice", "--dir", "op", "--org", "acme"]);
    let twice = cli.run(&["org", "add-member", "demo", "alice", "--dir", "op", "--org", "acme"]);
    assert!(twice.stderr.contains("brigade overwrites nothing"), "{twice}");
}

#[test]
fn shards_can_be_added_while_teams_work() {
    brigade_testkit::needs!(NatsServer);
    let mut operator = Operator::new();
    let shards = |operator: &Operator| operator.cli.json(&["org", "shards", "--dir", "op"]);
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    // The team of these credentials does not exist yet when the shard is added.
    let later = operator.add(&["later", "team-lead", "--lead"]);
    let early = operator.cli.run(&["org", "assign-shard", "big", "0", "--dir", "op"]);
    assert_eq!(early.code, Some(1), "{early}");
    assert!(early.stderr.contains("brigade org add-shard"), "{early}");

    let added = operator.cli.json(&["org", "add-shard", "--dir", "op"]);
    assert_eq!((&added["shard"], &added["shards"]), (&1.into(), &2.into()), "{added}");
    operator.cli.run_ok(&["org", "assign-shard", "big", "1", "--dir", "op"]);
    let big = operator.add(&["big", "team-lead", "--lead"]);
    for (creds, team) in [(&later, "later"), (&big, "big")] {
        let create = ["--store", &operator.url, "--creds", creds, "team", "create", team];
        operator.cli.run_ok(&create);
    }
    operator.run_ok_as(&lead, "team-lead", &["team", "join", "alice"]);
    let teams = |shards: &serde_json::Value| {
        let all = shards.as_array().unwrap().iter();
        all.map(|shard| shard["teams"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(teams(&shards(&operator)), [2, 1]);
    let admin = operator.cli.path("work/op/orgs/acme/admin.creds");
    let admin = ["--store", &operator.url, "--creds", admin.to_str().unwrap()];
    let listed = operator.cli.run_ok(&[&admin[..], &["team", "list"]].concat());
    assert!(["big", "demo", "later"].iter().all(|team| listed.contains(team)), "{listed}");

    // Each of these would need data or credentials to move, or lacks the record of all credentials.
    for (args, code, said) in [
        (&["org", "assign-shard", "demo", "1", "--dir", "op"][..], 1, "shard 0"),
        (&["org", "assign-shard", "later", "1", "--dir", "op"], 1, "shard 0"),
        (&["org", "assign-shard", "new", "7", "--dir", "op"], 1, "no shard 7"),
        (&[&admin[..], &["org", "add-shard"]].concat(), 2, "--dir DIR"),
    ] {
        let refused = operator.cli.run(args);
        assert_eq!(refused.code, Some(code), "{args:?}: {refused}");
        assert!(refused.stderr.contains(said), "{args:?}: {refused}");
    }
    operator.server = None;
    let offline = ["--wait=0", "org", "add-member", "big", "bob", "--dir", "op"];
    let offline = operator.cli.run(&offline);
    assert_ne!(offline.code, Some(0), "credentials were issued without asking for the shard");
}
