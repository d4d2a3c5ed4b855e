//! Credentials of members: what the server permits them to do, and which identity commands use by default.

use std::path::Path;
use std::sync::Arc;

use brigade_nats::StreamSettings;
use brigade_nats::identity::CredentialRole;
use brigade_nats::org::{Folder, Granted, Organisation};
use brigade_testkit::nats_server::TestServers;
use jiff::Timestamp;

use super::{FAKE_AGENT, NatsHost, wait_until};

/// An organisation's NATS server, and its operator's folder.
pub(super) struct OrgServer {
    folder: Folder,
    organisation: Organisation,
    engine: Arc<TestServers>,
    _dir: tempfile::TempDir,
}

impl OrgServer {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let folder = Folder::init(dir.path(), None, now).unwrap();
        let acme = "acme".parse().unwrap();
        let organisation = folder.add(&acme, &StreamSettings::default(), now).unwrap();
        // Use the account settings from the operator's configuration; the test server provides the rest.
        let config = std::fs::read_to_string(folder.server(1)).unwrap();
        let accounts = config.find("operator:").unwrap();
        let engine = Arc::new(TestServers::with(1, config.get(accounts..).unwrap()));
        let office = Self { folder, organisation, engine, _dir: dir };
        // The first command with sufficient permissions creates the streams.
        let admin = office.folder.admin(&acme);
        assert_eq!(office.host("admin", &admin).run(&["team", "list"]).code, Some(4));
        office
    }

    fn host(&self, name: &str, creds: &Path) -> NatsHost {
        let mut client = NatsHost::on(&self.engine, name);
        client.cli.variables.push(("BRIGADE_CREDS", creds.to_str().unwrap().to_owned()));
        client
    }

    /// Creates a host with credentials for these members of the team `demo`.
    pub(super) fn seat(&mut self, host: &str, role: CredentialRole, members: &[&str]) -> NatsHost {
        let granted = Granted {
            team: "demo".parse().unwrap(),
            members: members.iter().map(|name| name.parse().unwrap()).collect(),
            role,
            answers: role == CredentialRole::Lead,
            until: None,
            out: None,
            shard: None,
        };
        let seat = self.folder.grant(&mut self.organisation, granted, Timestamp::now()).unwrap();
        self.host(host, &seat.file)
    }

    /// Creates the lead's host, and a team `demo` with `alice` and `bob`.
    pub(super) fn lead(&mut self) -> NatsHost {
        let lead = self.seat("a", CredentialRole::Lead, &["team-lead"]);
        lead.run_ok(&["team", "create", "demo"]);
        lead.run_ok(&["team", "join", "alice"]);
        lead.run_ok(&["team", "join", "bob"]);
        lead
    }
}

#[test]
fn credentials_determine_the_identity() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let alice = office.seat("b", CredentialRole::Member, &["alice"]);
    let bob = office.seat("c", CredentialRole::Member, &["bob"]);
    lead.run_ok(&["task", "add", "Write the docs"]);
    alice.run_ok(&["send", "bob", "hello"]);
    let inbox = bob.json(&["inbox", "--mark-read"]);
    assert_eq!((&inbox[0]["from"], &inbox[0]["text"]), (&"alice".into(), &"hello".into()));
    alice.run_ok(&["task", "claim", "1"]);
    assert_eq!(bob.run(&["task", "claim", "1"]).code, Some(1));
    alice.run_ok(&["task", "done", "1"]);
    alice.run_ok(&["broadcast", "it is done"]);
    assert_eq!(lead.json(&["inbox"])[0]["text"], "it is done");
    assert_eq!(lead.json(&["task", "list"])[0]["status"], "completed");
    assert!(lead.run_ok(&["log"]).contains("hello"));
    assert_eq!(alice.json(&["team", "list"])[0]["name"], "demo");
}

#[test]
fn the_server_refuses_forbidden_actions() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let alice = office.seat("b", CredentialRole::Member, &["alice"]);
    lead.run_ok(&["send", "bob", "for bob alone"]);
    for words in [
        &["--as", "bob", "send", "team-lead", "I am bob"][..],
        &["--as", "team-lead", "send", "bob", "I am the lead"],
        &["inbox", "bob"],
        &["--as", "bob", "inbox", "--mark-read"],
        &["--as", "bob", "task", "add", "not mine to say"],
        &["--as", "team-lead", "team", "join", "mallory"],
        &["--as", "team-lead", "team", "delete", "--force"],
        &["--team", "other", "--as", "team-lead", "team", "create", "other"],
    ] {
        let refused = alice.run(words);
        assert_eq!(refused.code, Some(1), "{words:?}: {refused}");
        let said = "the NATS server does not allow the credentials of alice in team demo to";
        assert!(refused.stderr.contains(said), "{words:?}: {refused}");
        assert!(
            refused.stderr.contains("hint: the NATS server checks the credentials"),
            "{refused}"
        );
    }
    assert_eq!(lead.json(&["inbox", "bob"]).as_array().unwrap().len(), 1);
    assert_eq!(lead.run(&["inbox"]).code, Some(4));
}

#[test]
fn a_host_runs_the_members_of_its_credentials() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "bob"]);
    host.write_file(&["alice", "bob"], "");
    let up = host.run(&["up"]);
    assert_eq!(up.code, Some(0), "{up}");
    lead.run_ok(&["send", "alice", "please ASK"]);
    wait_until("alice to receive her mail", || host.received("alice").contains("please ASK"));
    wait_until("alice's permission request", || lead.run(&["approvals"]).code == Some(0));
    lead.run_ok(&["approve", "1"]);
    wait_until("alice's agent to receive the answer", || {
        host.received("alice").contains("answered")
    });
    assert!(host.received("alice").contains("allow-it"), "{}", host.received("alice"));
    assert_eq!(lead.member("bob")["host"], "b");
    wait_until("bob to be idle", || host.member("bob")["liveness"] == "idle");
    let down = host.run(&["down", "--limit", "5"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert_eq!(lead.json(&["team", "list"])[0]["name"], "demo");
}

#[test]
fn a_lead_starts_members_on_its_own_host() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let host = office.seat("a", CredentialRole::Lead, &["team-lead", "carl"]);
    host.run_ok(&["team", "create", "demo"]);
    let agent = format!("acp:{FAKE_AGENT}");
    let spawned = host.run(&["spawn", "carl", "--agent", &agent, "--prompt", "hello carl"]);
    assert_eq!(spawned.code, Some(0), "{spawned}");
    let received = || std::fs::read_to_string(host.path("work/heard")).unwrap_or_default();
    wait_until("the prompt", || received().contains("hello carl"));
    host.run_ok(&["down", "--limit", "5"]);
    assert_eq!(host.run(&["team", "list"]).code, Some(4));
}

#[test]
fn credentials_can_be_set_in_the_team_file() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let mut alice = office.seat("b", CredentialRole::Member, &["alice"]);
    let (_, creds) = alice.cli.variables.pop().unwrap();
    let refused = alice.run(&["team", "list"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains(" wants credentials"), "{refused}");
    std::fs::copy(creds, alice.path("work/alice.creds")).unwrap();
    let store = office.engine.store();
    alice.cli.variables.retain(|(name, _)| *name != "BRIGADE_STORE");
    let file = format!("team = \"demo\"\nstore = \"{store}\"\ncreds = \"alice.creds\"\n");
    alice.write("work/brigade.toml", &file);
    alice.run_ok(&["send", "bob", "hello"]);
    assert_eq!(lead.json(&["inbox", "bob"])[0]["from"], "alice");
    // Commands in a subfolder use the same team file and credentials.
    std::fs::create_dir_all(alice.path("work/below")).unwrap();
    let mut below = alice.command(&["send", "bob", "from below"]);
    assert!(below.current_dir(alice.path("work/below")).status().unwrap().success());
}

#[test]
fn a_link_only_synchronizes_members_of_its_credentials() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let a = office.seat("a", CredentialRole::Lead, &["team-lead", "alice"]);
    let b = office.seat("b", CredentialRole::Member, &["bob"]);
    let here =
        |client: &NatsHost, words: &[&str]| client.run_ok(&[&["--store", "files"], words].concat());
    here(&a, &["team", "create", "demo"]);
    here(&a, &["team", "join", "alice"]);
    let output = a.run_ok(&["link", "demo", "--once"]);
    assert!(output.contains("created the team in the NATS store"), "{output}");
    a.run_ok(&["--as", "team-lead", "team", "join", "bob"]);
    // The credentials determine which team is linked. Bob is on the roster, although no host runs him yet.
    let output = b.run_ok(&["link", "--once"]);
    assert!(output.contains("created the team here"), "{output}");
    assert!(!output.contains("bob"), "{output}");
    here(&b, &["team", "join", "bob"]);
    here(&b, &["team", "join", "eve"]);
    let output = b.run_ok(&["link", "--once"]);
    assert!(output.contains("bob runs on this host"), "{output}");
    assert!(output.contains("cannot synchronize member eve"), "{output}");
    a.run_ok(&["link", "--once"]);
    here(&a, &["--as", "alice", "send", "bob", "from a"]);
    here(&b, &["--as", "bob", "send", "team-lead", "from b"]);
    here(&b, &["--as", "bob", "send", "alice", "from b as well"]);
    here(&a, &["task", "add", "For whoever comes first"]);
    for client in [&a, &b, &a] {
        client.run_ok(&["link", "--once"]);
    }
    here(&b, &["--as", "bob", "task", "claim", "1"]);
    for client in [&b, &a] {
        client.run_ok(&["link", "--once"]);
    }
    let text = |client: &NatsHost, of: &str| {
        let inbox = here(client, &["--json", "inbox", of]);
        let inbox: serde_json::Value = serde_json::from_str(&inbox).unwrap();
        inbox[0]["text"].clone()
    };
    assert_eq!(text(&b, "bob"), "from a");
    assert_eq!(text(&a, "team-lead"), "from b");
    assert_eq!(text(&a, "alice"), "from b as well");
    let task: serde_json::Value =
        serde_json::from_str(&here(&a, &["--json", "task", "show", "1"])).unwrap();
    assert_eq!(task["owner"], "bob");
}
