//! The output of commands while the NATS server is away, and with credentials that do not suffice.

use std::sync::Arc;

use brigade_nats::identity::CredentialRole;
use brigade_testkit::nats_server::TestServers;

use super::seats::OrgServer;
use super::{FAKE_AGENT, NatsHost};
use crate::process::kill;

#[test]
fn n9_status_shows_the_processes_of_this_host_while_the_server_is_away() {
    brigade_testkit::needs!(NatsServer);
    let mut host = NatsHost::new();
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    let pid = host.member("alice")["pid"].as_u64().unwrap();
    Arc::get_mut(&mut host.engine).unwrap().stop(0);
    let status = host.run(&["status"]);
    assert_eq!(status.code, Some(1), "{status}");
    assert!(status.stdout.contains("server unreachable"), "{status}");
    assert!(status.stdout.contains(&pid.to_string()), "{status}");
    assert!(status.stderr.contains("no server answers at"), "{status}");
    assert!(status.stderr.contains("only the processes of this host are shown"), "{status}");
    let json = host.run(&["status", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["members"][0]["pid"], pid, "{json}");
}

#[test]
fn n20_doctor_explains_why_the_server_cannot_be_used() {
    brigade_testkit::needs!(NatsServer);
    let mut host = NatsHost::new();
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    Arc::get_mut(&mut host.engine).unwrap().stop(0);
    let doctor = host.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    for said in [
        "no-connection  no server answers at",
        "members on this host keep running",
        "to do: check the address, that the server is running",
        "1 problem\n",
        "alice",
    ] {
        assert!(doctor.stdout.contains(said), "{said}: {doctor}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&host.run(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(report["findings"][0]["check"], "no-connection", "{report}");
    // Another cause has another explanation.
    let engine = TestServers::single();
    let tls = engine.store().replace("nats://", "tls://");
    let tls = host.run(&["doctor", "--store", &tls]);
    assert!(tls.stdout.contains("does not use TLS"), "{tls}");
}

#[test]
fn doctor_fixes_nothing_while_the_server_is_away_and_says_so() {
    brigade_testkit::needs!(NatsServer);
    let mut host = NatsHost::new();
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    kill(host.json(&["status"])[0]["supervisor"].as_u64().unwrap());
    Arc::get_mut(&mut host.engine).unwrap().stop(0);
    let doctor = host.run(&["doctor", "--fix"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    let advice = "to do: when the NATS server can be used again, run `brigade doctor --fix` to start \
                  the supervisor";
    assert!(doctor.stdout.contains(advice), "{doctor}");
    assert!(doctor.stdout.contains("2 problems\n"), "{doctor}");
    assert!(doctor.stderr.contains("checked, and nothing was fixed, because"), "{doctor}");
    assert!(!host.run(&["doctor"]).stderr.contains("fixed"));
}

#[test]
fn stop_names_the_command_that_works_while_the_server_is_away() {
    brigade_testkit::needs!(NatsServer);
    let mut host = NatsHost::new();
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    Arc::get_mut(&mut host.engine).unwrap().stop(0);
    let stop = host.run(&["--team", "demo", "stop", "alice", "--now"]);
    assert_eq!(stop.code, Some(1), "{stop}");
    assert!(stop.stderr.contains("`brigade down TEAM --now` kills"), "{stop}");
}

#[test]
fn n6_credentials_of_several_members_ask_which_member_you_are() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let _lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "bob"]);
    for args in [&["inbox"][..], &["send", "team-lead", "hello"], &["task", "claim", "1"]] {
        let asked = host.run(args);
        assert_eq!(asked.code, Some(1), "{args:?}: {asked}");
        let error = "error: the credentials are for several members: alice, bob\n\
                     hint: add `--as alice` or `--as bob`, or set BRIGADE_AS";
        assert_eq!(asked.stderr.trim(), error, "{args:?}");
    }
    assert_eq!(host.run(&["--as", "bob", "inbox"]).code, Some(4));
    let overview = host.run(&[]);
    assert_eq!(overview.code, Some(0), "{overview}");
    assert!(overview.stdout.contains("alice"), "{overview}");
    assert_eq!(overview.stderr, "", "{overview}");
}

#[test]
fn n7_spawn_needs_credentials_and_a_roster_entry() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "carol"]);
    let agent = format!("acp:{FAKE_AGENT}");
    let spawn = |host: &NatsHost, name: &str| host.run(&["spawn", name, "--agent", &agent]);
    let check = |outcome: crate::env::Outcome, expected: &str| {
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert_eq!(outcome.stderr.trim(), expected, "{outcome}");
    };
    check(
        spawn(&host, "bob"),
        "error: the credentials are for alice, carol, not for bob\n\
         hint: the operator of the NATS server issues credentials with `brigade org add-member demo bob`; \
         name them with `--creds FILE`",
    );
    check(
        spawn(&host, "carol"),
        "error: carol is not on the roster of team demo, and these credentials cannot add it\n\
         hint: the lead adds it with `brigade --team demo team join carol`",
    );
    assert!(spawn(&lead, "bob").stderr.contains("the credentials are for team-lead, not for bob"));
    assert_eq!(spawn(&host, "alice").code, Some(0));
}

#[test]
fn n7_status_shows_why_a_member_cannot_be_started() {
    brigade_testkit::needs!(NatsServer);
    let mut office = OrgServer::new();
    let _lead = office.lead();
    let host = office.seat("b", CredentialRole::Member, &["alice", "carol"]);
    // The lead has not added carol, and these credentials cannot.
    host.write_file(&["alice", "carol"], "");
    let up = host.run(&["up"]);
    assert_eq!(up.code, Some(1), "{up}");
    assert!(up.stderr.contains("error: not started: carol"), "{up}");
    let carol = host.member("carol");
    let evidence = carol["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("cannot be started: "), "{carol}");
}
