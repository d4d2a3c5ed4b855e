//! Seats with credentials: what the server lets each do, and who it is when nothing is said.

use std::path::Path;
use std::sync::Arc;

use brigade_nats::Settings;
use brigade_nats::identity::Role;
use brigade_nats::org::{Folder, Granted, Organisation};
use brigade_testkit::nats_server::Engine;
use jiff::Timestamp;

use super::{FAKE, Far, until};

/// An engine of an organisation, and whoever gives out its credentials.
struct Office {
    folder: Folder,
    organisation: Organisation,
    engine: Arc<Engine>,
    _dir: tempfile::TempDir,
}

impl Office {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let folder = Folder::init(dir.path(), None, now).unwrap();
        let acme = "acme".parse().unwrap();
        let organisation = folder.add(&acme, &Settings::default(), now).unwrap();
        // What the operator says of accounts; the rest the engine says itself.
        let config = std::fs::read_to_string(folder.server(1)).unwrap();
        let accounts = config.find("operator:").unwrap();
        let engine = Arc::new(Engine::with(1, config.get(accounts..).unwrap()));
        let office = Self { folder, organisation, engine, _dir: dir };
        // The first who may makes the streams.
        let admin = office.folder.admin(&acme);
        assert_eq!(office.host("admin", &admin).run(&["team", "list"]).code, Some(4));
        office
    }

    fn host(&self, name: &str, creds: &Path) -> Far {
        let mut far = Far::on(&self.engine, name);
        far.house.variables.push(("BRIGADE_CREDS", creds.to_str().unwrap().to_owned()));
        far
    }

    /// A host with credentials for these members of the team `demo`.
    fn seat(&mut self, host: &str, role: Role, members: &[&str]) -> Far {
        let granted = Granted {
            team: "demo".parse().unwrap(),
            members: members.iter().map(|name| name.parse().unwrap()).collect(),
            role,
            answers: role == Role::Lead,
            until: None,
            out: None,
        };
        let seat = self.folder.grant(&mut self.organisation, granted, Timestamp::now()).unwrap();
        self.host(host, &seat.file)
    }

    /// The lead's host, with a team `demo` of `alice` and `bob`.
    fn lead(&mut self) -> Far {
        let lead = self.seat("a", Role::Lead, &["team-lead"]);
        lead.done(&["team", "create", "demo"]);
        lead.done(&["team", "join", "alice"]);
        lead.done(&["team", "join", "bob"]);
        lead
    }
}

#[test]
fn who_one_is_stands_in_the_credentials() {
    let mut office = Office::new();
    let lead = office.lead();
    let alice = office.seat("b", Role::Member, &["alice"]);
    let bob = office.seat("c", Role::Member, &["bob"]);
    lead.done(&["task", "add", "Write the docs"]);
    alice.done(&["send", "bob", "hello"]);
    let inbox = bob.json(&["inbox", "--mark-read"]);
    assert_eq!((&inbox[0]["from"], &inbox[0]["text"]), (&"alice".into(), &"hello".into()));
    alice.done(&["task", "claim", "1"]);
    assert_eq!(bob.run(&["task", "claim", "1"]).code, Some(1));
    alice.done(&["task", "done", "1"]);
    alice.done(&["broadcast", "it is done"]);
    assert_eq!(lead.json(&["inbox"])[0]["text"], "it is done");
    assert_eq!(lead.json(&["task", "list"])[0]["status"], "completed");
    assert!(lead.done(&["log"]).contains("hello"));
    assert_eq!(alice.json(&["team", "list"])[0]["name"], "demo");
}

#[test]
fn what_a_seat_may_not_the_server_refuses() {
    let mut office = Office::new();
    let lead = office.lead();
    let alice = office.seat("b", Role::Member, &["alice"]);
    lead.done(&["send", "bob", "for bob alone"]);
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
        let said = "the engine does not allow this seat to";
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
fn a_host_with_the_credentials_of_its_members_plays_them() {
    let mut office = Office::new();
    let lead = office.lead();
    let host = office.seat("b", Role::Member, &["alice", "bob"]);
    host.write_file(&["alice", "bob"], "");
    let up = host.run(&["up"]);
    assert_eq!(up.code, Some(0), "{up}");
    lead.done(&["send", "alice", "please ASK"]);
    until("the turn", || host.heard("alice").contains("please ASK"));
    until("the request", || lead.run(&["approvals"]).code == Some(0));
    lead.done(&["approve", "1"]);
    until("the answer", || host.heard("alice").contains("answered"));
    assert!(host.heard("alice").contains("allow-it"), "{}", host.heard("alice"));
    assert_eq!(lead.member("bob")["host"], "b");
    until("bob to be idle", || host.member("bob")["liveness"] == "idle");
    let down = host.run(&["down", "--limit", "5"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert_eq!(lead.json(&["team", "list"])[0]["name"], "demo");
}

#[test]
fn a_lead_starts_members_on_its_own_host() {
    let mut office = Office::new();
    let host = office.seat("a", Role::Lead, &["team-lead", "carl"]);
    host.done(&["team", "create", "demo"]);
    let agent = format!("acp:{FAKE}");
    let spawned = host.run(&["spawn", "carl", "--agent", &agent, "--prompt", "hello carl"]);
    assert_eq!(spawned.code, Some(0), "{spawned}");
    let heard = || std::fs::read_to_string(host.path("work/heard")).unwrap_or_default();
    until("the prompt", || heard().contains("hello carl"));
    host.done(&["down", "--limit", "5"]);
    assert_eq!(host.run(&["team", "list"]).code, Some(4));
}

#[test]
fn credentials_can_stand_in_the_file_of_the_team() {
    let mut office = Office::new();
    let lead = office.lead();
    let mut alice = office.seat("b", Role::Member, &["alice"]);
    let (_, creds) = alice.house.variables.pop().unwrap();
    let refused = alice.run(&["team", "list"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("the server wants credentials"), "{refused}");
    std::fs::copy(creds, alice.path("work/alice.creds")).unwrap();
    let store = office.engine.store();
    alice.house.variables.retain(|(name, _)| *name != "BRIGADE_STORE");
    let file = format!("team = \"demo\"\nstore = \"{store}\"\ncreds = \"alice.creds\"\n");
    alice.write("work/brigade.toml", &file);
    alice.done(&["send", "bob", "hello"]);
    assert_eq!(lead.json(&["inbox", "bob"])[0]["from"], "alice");
    // In a folder below it is the same file, and the same credentials.
    std::fs::create_dir_all(alice.path("work/below")).unwrap();
    let mut below = alice.command(&["send", "bob", "from below"]);
    assert!(below.current_dir(alice.path("work/below")).status().unwrap().success());
}

#[test]
fn a_link_carries_those_for_whom_its_credentials_speak() {
    let mut office = Office::new();
    let a = office.seat("a", Role::Lead, &["team-lead", "alice"]);
    let b = office.seat("b", Role::Member, &["bob"]);
    let here = |far: &Far, words: &[&str]| far.done(&[&["--store", "files"], words].concat());
    here(&a, &["team", "create", "demo"]);
    here(&a, &["team", "join", "alice"]);
    let said = a.done(&["link", "demo", "--once"]);
    assert!(said.contains("created the team in the NATS store"), "{said}");
    a.done(&["--as", "team-lead", "team", "join", "bob"]);
    // The team is the one of the credentials, and the place of bob is kept until somebody takes it.
    let said = b.done(&["link", "--once"]);
    assert!(said.contains("created the team here"), "{said}");
    assert!(!said.contains("bob"), "{said}");
    here(&b, &["team", "join", "bob"]);
    here(&b, &["team", "join", "eve"]);
    let said = b.done(&["link", "--once"]);
    assert!(said.contains("bob runs on this host"), "{said}");
    assert!(said.contains("eve cannot be brought into step"), "{said}");
    a.done(&["link", "--once"]);
    here(&a, &["--as", "alice", "send", "bob", "from a"]);
    here(&b, &["--as", "bob", "send", "team-lead", "from b"]);
    here(&b, &["--as", "bob", "send", "alice", "from b as well"]);
    here(&a, &["task", "add", "For whoever comes first"]);
    for far in [&a, &b, &a] {
        far.done(&["link", "--once"]);
    }
    here(&b, &["--as", "bob", "task", "claim", "1"]);
    for far in [&b, &a] {
        far.done(&["link", "--once"]);
    }
    let text = |far: &Far, of: &str| {
        let inbox = here(far, &["--json", "inbox", of]);
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
