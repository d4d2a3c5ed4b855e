//! Hosts with members' credentials: restarts, and credentials that the server no longer accepts.

use brigade_nats::identity::CredentialRole;

use super::org::Operator;
use super::seats::OrgServer;
use super::{FAKE_AGENT, wait_until};
use crate::env::CliEnv;
use crate::process::{is_alive, kill};

/// Returns the state of the only link of a host.
fn link_state(cli: &CliEnv) -> serde_json::Value {
    let links = cli.run(&["link", "--list", "--json"]).stdout;
    let links: serde_json::Value = serde_json::from_str(&links).unwrap_or_default();
    links[0].clone()
}

#[test]
fn resume_restarts_the_members_of_a_host_with_members_credentials() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "bob"]);
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    wait_until("the prompt", || host.received("alice").contains("hello alice"));
    let supervisor = host.json(&["status"])[0]["supervisor"].as_u64().unwrap();
    let pids = [supervisor, host.member("alice")["pid"].as_u64().unwrap()];
    pids.into_iter().for_each(kill);
    wait_until("the killed processes to end", || !pids.into_iter().any(is_alive));
    let status = host.run(&["status"]);
    assert!(status.stdout.contains("brigade resume  the supervisor is not running"), "{status}");
    let resume = host.run(&["resume"]);
    assert_eq!(resume.code, Some(0), "{resume}");
    lead.run_ok(&["send", "alice", "are you there"]);
    wait_until("alice to receive her mail", || host.received("alice").contains("are you there"));
    assert_eq!(host.run(&["resume", "demo"]).code, Some(0));
}

#[test]
fn a_link_whose_credentials_are_revoked_fails_with_the_reason() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    operator.cli.run_ok(&["--store", "files", "team", "create", "demo"]);
    let link = ["link", "demo", "--store", &operator.url, "--creds", &lead];
    operator.cli.run_ok(&link);
    assert_eq!(link_state(&operator.cli)["state"], "connected");
    operator.cli.run_ok(&["org", "revoke", "demo", "team-lead", "--dir", "op"]);
    wait_until("the link to fail", || link_state(&operator.cli)["state"] == "failed");
    let why = link_state(&operator.cli)["why"].to_string();
    assert!(why.contains("the NATS server refused the credentials of team-lead"), "{why}");
    let doctor = operator.cli.run(&["--store", "files", "doctor"]);
    assert!(doctor.stdout.contains("the link failed: "), "{doctor}");
    // With new credentials, the same command starts the link again.
    assert_eq!(operator.add(&["demo", "team-lead", "--lead"]), lead);
    operator.cli.run_ok(&link);
    operator.cli.run_ok(&["link", "--stop", "demo"]);
}

#[test]
fn a_link_with_credentials_that_do_not_suffice_fails_at_once() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let alice = operator.add(&["proj", "alice"]);
    operator.cli.run_ok(&["--store", "files", "team", "create", "proj"]);
    let link = |creds: &str| {
        let began = std::time::Instant::now();
        let link = ["link", "proj", "--store", &operator.url, "--creds", creds];
        let refused = operator.cli.run(&link);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(began.elapsed().as_secs() < 30, "{refused}");
        refused
    };
    let other = link(&lead);
    let expected = "error: the credentials are for team demo, not for team proj\n\
                    hint: name the credentials for team proj with `--creds FILE`";
    assert_eq!(other.stderr.trim(), expected, "{other}");
    // A member's credentials cannot create the team on the server.
    let member = link(&alice);
    assert!(member.stderr.contains("does not allow the credentials of alice"), "{member}");
}

#[test]
fn status_with_revoked_credentials_does_not_promise_that_members_reconnect() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let store = ["--store", &operator.url, "--creds", &lead];
    operator.cli.run_ok(&[&store[..], &["team", "create", "demo"]].concat());
    let agent = format!("acp:{FAKE_AGENT}");
    let host = operator.add(&["demo", "alice", "team-lead", "--lead", "--out", "host.creds"]);
    let store = ["--store", &operator.url, "--creds", &host];
    operator.cli.run_ok(&[&store[..], &["spawn", "alice", "--agent", &agent]].concat());
    operator.cli.run_ok(&["org", "revoke", "demo", "alice", "--dir", "op"]);
    let status = operator.cli.run(&[&store[..], &["status"]].concat());
    assert!(status.stdout.contains("server cannot be used"), "{status}");
    assert!(status.stderr.contains("cannot use the server until the cause is fixed"), "{status}");
    let down = operator.cli.run(&[&store[..], &["down", "demo", "--now"]].concat());
    assert!(down.stderr.contains("killed the members of team demo"), "{down}");
}

#[test]
fn resume_restarts_members_with_new_credentials_after_a_revocation() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "join", "alice"]);
    operator.add(&["demo", "alice", "bob", "--out", "first.creds"]);
    let agent = format!("acp:{FAKE_AGENT}");
    let host = |creds: &str, args: &[&str]| {
        let store = ["--store", &operator.url, "--creds", creds, "--team", "demo"];
        operator.cli.run(&[&store, args].concat())
    };
    let spawned = host("first.creds", &["spawn", "alice", "--agent", &agent]);
    assert_eq!(spawned.code, Some(0), "{spawned}");
    operator.cli.run_ok(&["org", "revoke", "demo", "alice", "--dir", "op"]);
    operator.add(&["demo", "alice", "bob", "--out", "second.creds"]);
    let resumed = host("second.creds", &["resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert!(resumed.stderr.contains("restart with "), "{resumed}");
    operator.run_ok_as(&lead, "team-lead", &["send", "alice", "are you there"]);
    let received = || std::fs::read_to_string(operator.cli.path("work/heard")).unwrap_or_default();
    wait_until("alice to receive her mail", || received().contains("are you there"));
    // The credentials are not replaced twice, and another member starts without waiting.
    operator.run_ok_as(&lead, "team-lead", &["team", "join", "bob"]);
    let spawned = host("second.creds", &["spawn", "bob", "--agent", &agent]);
    assert_eq!(spawned.code, Some(0), "{spawned}");
    assert!(!spawned.stderr.contains("restart with "), "{spawned}");
    let down = host("second.creds", &["down", "--now"]);
    assert_eq!(down.code, Some(0), "{down}");
}

#[test]
fn doctor_prints_each_note_once() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let _lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "bob"]);
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    kill(host.json(&["status"])[0]["supervisor"].as_u64().unwrap());
    let doctor = host.run(&["doctor", "--fix"]);
    assert!(doctor.stdout.contains("fixed  no-supervisor"), "{doctor}");
    let note = "these credentials do not permit checking the streams";
    assert_eq!(doctor.stderr.matches(note).count(), 1, "{doctor}");
}
