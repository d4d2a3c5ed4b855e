//! Members on several hosts: `brigade spawn`, `up`, `status`, `stop`, `down` and `resume` in a NATS store.

use std::process::{Command, Stdio};
use std::sync::Arc;

use brigade_testkit::nats_server::TestServers;

use super::{NatsHost, wait_until};
use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::{is_alive, kill, terminate};

#[test]
fn mail_from_another_host_becomes_a_turn() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    let agent = format!("acp:{FAKE_AGENT}");
    let mut bob = b.command(&["spawn", "bob", "--agent", &agent, "--place", "here"]);
    let mut bob = bob.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let received = || std::fs::read_to_string(b.path("work/heard")).unwrap_or_default();
    wait_until("bob's agent to start", || received().contains("begun"));
    a.run_ok(&["send", "bob", "please begin"]);
    wait_until("bob to receive his mail", || received().contains("please begin"));
    wait_until("bob's turn to end", || {
        a.run(&["inbox", "team-lead", "--json"]).stdout.contains("idle_notification")
    });
    assert_eq!(received().matches("please begin").count(), 1);
    wait_until("bob's mail to be marked as read", || a.json(&["inbox", "bob"])[0]["read"] == true);
    assert_eq!(a.member("bob")["host"], "b");
    wait_until("bob to be idle", || a.member("bob")["liveness"] == "idle");
    bob.kill().unwrap();
    bob.wait().unwrap();
}

#[test]
fn a_team_runs_on_two_hosts_and_stops_on_each() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::new();
    let b = a.another("b");
    a.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    b.write_file(&["alice", "bob"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    let up = a.json(&["up"]);
    assert_eq!((&up["new"], &up["tasks"]), (&serde_json::json!(["alice"]), &1.into()));
    wait_until("the prompt", || a.received("alice").contains("hello alice"));
    // Host b starts no member that already runs on host a, and creates no task that already exists.
    let up = b.command(&["up", "--json"]).output().unwrap();
    let output = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(up.status.success(), "{output}");
    assert!(output.contains("alice runs on a and is not started here"), "{output}");
    assert!(!b.path("work/alice/heard").exists());
    wait_until("the prompt", || b.received("bob").contains("hello bob"));
    let count =
        |client: &NatsHost| client.json(&["status"])[0]["members"].as_array().unwrap().len();
    assert_eq!((count(&a), count(&b)), (2, 2));
    assert_eq!(b.member("alice")["host"], "a");
    assert!(b.member("alice")["evidence"].as_str().unwrap().starts_with("on a, "));
    assert!(a.member("alice")["evidence"].as_str().unwrap().starts_with("process "));
    assert_eq!(a.json(&["task", "list"]).as_array().unwrap().len(), 1);
    // After `down` on host b, the team still exists, because alice runs on host a.
    let down = b.run(&["down", "--limit", "5"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert!(down.stderr.contains("alice runs on a, so team demo is not deleted"), "{down}");
    assert!(down.stdout.contains("team demo no longer runs on this host"), "{down}");
    assert_eq!(a.json(&["team", "list"])[0]["name"], "demo");
    wait_until("alice to be idle", || a.member("alice")["liveness"] == "idle");
    a.run_ok(&["down", "--limit", "5"]);
    assert_eq!(a.run(&["team", "list"]).code, Some(4));
    assert!(b.run_ok(&["log", "--team", "demo"]).contains("bob"));
}

/// Finding 10: the supervisor of a second host started a member that runs on the first host, failed, and released the
/// tasks of the running member.
#[test]
fn a_supervisor_does_not_start_a_member_that_runs_on_another_host() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::new();
    let b = a.another("b");
    b.write_file(&["alice"], "");
    b.run_ok(&["up"]);
    for process in ["supervisor", "alice"] {
        let pid = match process {
            "supervisor" => b.json(&["status"])[0]["supervisor"].as_u64(),
            name => b.member(name)["pid"].as_u64(),
        };
        kill(pid.unwrap());
    }
    wait_until("alice's process to end", || b.member("alice")["pid"].is_null());
    // The heartbeat of a killed process expires after 30 seconds. Delete it instead of waiting.
    a.engine.request("$JS.API.STREAM.PURGE.LV_0", "");
    a.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    a.run_ok(&["up"]);
    wait_until("alice to be idle", || a.member("alice")["liveness"] == "idle");
    b.run_ok(&["resume"]);
    let host = std::fs::read_dir(b.path("state/brigade/host")).unwrap().next().unwrap().unwrap();
    wait_until("the supervisor of b to find alice on a", || {
        let log = std::fs::read_to_string(host.path().join("supervisor.log")).unwrap_or_default();
        log.contains("alice of team demo: runs on a, so it is not started here")
    });
    let spawned = b.run(&["spawn", "alice", "--agent", &format!("acp:{FAKE_AGENT}")]);
    assert_eq!(spawned.code, Some(1), "{spawned}");
    assert_eq!(a.json(&["task", "list"])[0]["owner"], "alice");
    assert_eq!(b.member("alice")["pid"], serde_json::Value::Null);
}

#[test]
fn a_dead_member_is_restarted_with_its_session() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::new();
    client.write_file(&["alice"], "");
    client.run_ok(&["up"]);
    wait_until("the prompt", || client.received("alice").contains("hello alice"));
    let pid = client.member("alice")["pid"].as_u64().unwrap();
    let supervisor = client.json(&["status"])[0]["supervisor"].as_u64().unwrap();
    for pid in [supervisor, pid] {
        kill(pid);
    }
    wait_until("alice's process to end", || client.member("alice")["pid"].is_null());
    client.run_ok(&["send", "alice", "are you there"]);
    client.run_ok(&["resume"]);
    wait_until("alice to receive her mail", || client.received("alice").contains("are you there"));
    assert!(client.received("alice").contains("loaded"), "{}", client.received("alice"));
    assert_eq!(client.received("alice").matches("hello alice").count(), 1);
    client.run_ok(&["stop", "alice", "--limit", "5"]);
    assert!(client.member("alice").is_null());
}

#[test]
fn down_now_works_while_the_server_is_unreachable() {
    brigade_testkit::needs!(NatsServer);
    let mut client = NatsHost::new();
    client.write_file(&["alice"], "");
    client.run_ok(&["up"]);
    wait_until("the prompt", || client.received("alice").contains("hello alice"));
    let pid = client.member("alice")["pid"].as_u64().unwrap();
    Arc::get_mut(&mut client.engine).unwrap().stop(0);
    let asked = client.run(&["down"]);
    assert!(
        asked.stderr.contains("`brigade down TEAM --now` kills the members on this host"),
        "{asked}"
    );
    let down = client.run(&["down", "--now"]);
    assert_eq!(down.code, Some(1), "{down}");
    assert!(down.stderr.contains("the team still exists on the NATS server"), "{down}");
    wait_until("alice's process to end", || !is_alive(pid));
    let engine = Arc::get_mut(&mut client.engine).unwrap();
    engine.start(0);
    engine.wait_ready();
    client.run_ok(&["down"]);
    assert_eq!(client.run(&["team", "list"]).code, Some(4));
}

#[test]
fn native_members_are_refused_in_a_nats_store() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::new();
    let native = "team = \"demo\"\n[members.carla]\nagent = \"claude\"\nplace = \"native\"\n";
    client.write("work/brigade.toml", native);
    let up = client.run(&["up"]);
    assert_eq!(up.code, Some(1));
    assert!(up.stderr.contains("carla cannot join a team on NATS"), "{up}");
    assert!(up.stderr.contains("brigade link"), "{up}");
    assert_eq!(client.run(&["team", "list"]).code, Some(4));
}

#[test]
fn until_done_takes_the_team_down() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::new();
    client.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    let mut up = client.command(&["up", "--until-done", "--limit", "60"]);
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the task to exist", || {
        client.run(&["--as", "alice", "task", "done", "1"]).code == Some(0)
    });
    let told = up.wait_with_output().unwrap();
    let told = client.outcome(&told);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("First"), "{told}");
    assert_eq!(client.run(&["team", "list"]).code, Some(4));
}

#[test]
fn resume_restores_a_deleted_team() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::new();
    let b = a.another("b");
    a.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"");
    a.run_ok(&["up"]);
    wait_until("the prompt", || a.received("alice").contains("hello alice"));
    b.run_ok(&["team", "delete", "demo", "--force"]);
    // Alice's process ends and removes her files from host a.
    let left = || Command::new("find").arg(a.path("state")).args(["-name", "alice"]).output();
    wait_until("alice's files to be removed", || left().unwrap().stdout.is_empty());
    a.run_ok(&["resume", "demo"]);
    assert_eq!(a.json(&["task", "list"])[0]["subject"], "First");
    a.run_ok(&["send", "alice", "are you there"]);
    wait_until("alice to receive her mail", || a.received("alice").contains("are you there"));
}

#[test]
fn a_member_can_be_terminated_while_the_server_is_unreachable() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::single();
    let mut cli = CliEnv::new();
    cli.variables = vec![("BRIGADE_STORE", engine.store())];
    cli.run_ok(&["team", "create", "demo"]);
    let agent = format!("acp:{FAKE_AGENT}");
    let mut bob = cli.command(&["spawn", "bob", "--agent", &agent, "--place", "here"]);
    let mut bob = bob.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let received = || std::fs::read_to_string(cli.path("work/heard")).unwrap_or_default();
    wait_until("bob's agent to start", || received().contains("begun"));
    engine.stop(0);
    terminate(&bob);
    wait_until("bob's process to end", || bob.try_wait().unwrap().is_some());
}
