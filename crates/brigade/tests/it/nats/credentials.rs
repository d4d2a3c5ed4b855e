//! Hosts with members' credentials: restarts, and credentials that the server no longer accepts.

use brigade_nats::identity::CredentialRole;

use super::org::Operator;
use super::seats::OrgServer;
use super::{FAKE_AGENT, wait_until};
use crate::process::{is_alive, kill};

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
    assert!(status.stdout.contains("Start it with `brigade resume`"), "{status}");
    let resume = host.run(&["resume"]);
    assert_eq!(resume.code, Some(0), "{resume}");
    lead.run_ok(&["send", "alice", "are you there"]);
    wait_until("alice to receive her mail", || host.received("alice").contains("are you there"));
    assert_eq!(host.run(&["resume", "demo"]).code, Some(0));
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
