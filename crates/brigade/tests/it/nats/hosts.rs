//! Members on several hosts: `brigade spawn`, `up`, `status`, `stop`, `down` and `resume` in an engine.

use std::process::{Command, Stdio};
use std::sync::Arc;

use brigade_testkit::nats_server::Engine;

use super::{FAKE, Far, until};
use crate::env::House;

#[test]
fn mail_from_another_host_becomes_a_turn() {
    let a = Far::with_team();
    let b = a.another("b");
    let agent = format!("acp:{FAKE}");
    let mut bob = b.command(&["spawn", "bob", "--agent", &agent, "--place", "here"]);
    let mut bob = bob.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let heard = || std::fs::read_to_string(b.path("work/heard")).unwrap_or_default();
    until("bob", || heard().contains("begun"));
    a.done(&["send", "bob", "please begin"]);
    until("its turn", || heard().contains("please begin"));
    until("its end", || {
        a.run(&["inbox", "team-lead", "--json"]).stdout.contains("idle_notification")
    });
    assert_eq!(heard().matches("please begin").count(), 1);
    until("the mark", || a.json(&["inbox", "bob"])[0]["read"] == true);
    assert_eq!(a.member("bob")["host"], "b");
    until("bob to be idle", || a.member("bob")["liveness"] == "idle");
    bob.kill().unwrap();
    bob.wait().unwrap();
}

#[test]
fn a_team_comes_up_on_two_hosts_and_goes_down_on_each() {
    let a = Far::new();
    let b = a.another("b");
    a.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    b.write_file(&["alice", "bob"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    let up = a.json(&["up"]);
    assert_eq!((&up["new"], &up["tasks"]), (&serde_json::json!(["alice"]), &1.into()));
    until("the prompt", || a.heard("alice").contains("hello alice"));
    // Who runs on a is not started on b, and a task that is there is not made again.
    let up = b.command(&["up", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(up.status.success(), "{said}");
    assert!(said.contains("alice runs on a, and is not started here"), "{said}");
    assert!(!b.path("work/alice/heard").exists());
    until("the prompt", || b.heard("bob").contains("hello bob"));
    let count = |far: &Far| far.json(&["status"])[0]["members"].as_array().unwrap().len();
    assert_eq!((count(&a), count(&b)), (2, 2));
    assert_eq!(b.member("alice")["host"], "a");
    assert!(b.member("alice")["evidence"].as_str().unwrap().starts_with("on a, "));
    assert!(a.member("alice")["evidence"].as_str().unwrap().starts_with("process "));
    assert_eq!(a.json(&["task", "list"]).as_array().unwrap().len(), 1);
    // The one that goes down first leaves the team to the other.
    let down = b.run(&["down", "--limit", "5"]);
    assert_eq!(down.code, Some(0), "{down}");
    assert!(down.stderr.contains("alice runs on a; team demo stays for it"), "{down}");
    assert!(down.stdout.contains("team demo is not on this host any more"), "{down}");
    assert_eq!(a.json(&["team", "list"])[0]["name"], "demo");
    until("alice to be idle", || a.member("alice")["liveness"] == "idle");
    a.done(&["down", "--limit", "5"]);
    assert_eq!(a.run(&["team", "list"]).code, Some(4));
    assert!(b.done(&["log", "--team", "demo"]).contains("bob"));
}

#[test]
fn who_dies_is_started_again_and_goes_on_with_its_session() {
    let far = Far::new();
    far.write_file(&["alice"], "");
    far.done(&["up"]);
    until("the prompt", || far.heard("alice").contains("hello alice"));
    let pid = far.member("alice")["pid"].as_u64().unwrap();
    let supervisor = far.json(&["status"])[0]["supervisor"].as_u64().unwrap();
    for pid in [supervisor, pid] {
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    until("its end", || far.member("alice")["pid"].is_null());
    far.done(&["send", "alice", "are you there"]);
    far.done(&["resume"]);
    until("the mail", || far.heard("alice").contains("are you there"));
    assert!(far.heard("alice").contains("loaded"), "{}", far.heard("alice"));
    assert_eq!(far.heard("alice").matches("hello alice").count(), 1);
    far.done(&["stop", "alice", "--limit", "5"]);
    assert!(far.member("alice").is_null());
}

#[test]
fn what_runs_here_is_ended_though_the_engine_is_away() {
    let mut far = Far::new();
    far.write_file(&["alice"], "");
    far.done(&["up"]);
    until("the prompt", || far.heard("alice").contains("hello alice"));
    let pid = far.member("alice")["pid"].as_u64().unwrap().to_string();
    Arc::get_mut(&mut far.engine).unwrap().stop(0);
    let asked = far.run(&["down"]);
    assert!(
        asked.stderr.contains("`brigade down TEAM --now` ends what runs on this host"),
        "{asked}"
    );
    let down = far.run(&["down", "--now"]);
    assert_eq!(down.code, Some(1), "{down}");
    assert!(down.stderr.contains("the team stays in the engine"), "{down}");
    until("its end", || {
        !Command::new("kill").args(["-0", &pid]).output().unwrap().status.success()
    });
    let engine = Arc::get_mut(&mut far.engine).unwrap();
    engine.start(0);
    engine.wait_ready();
    far.done(&["down"]);
    assert_eq!(far.run(&["team", "list"]).code, Some(4));
}

#[test]
fn claude_code_itself_stays_in_files() {
    let far = Far::new();
    let native = "team = \"demo\"\n[members.carla]\nagent = \"claude\"\nplace = \"native\"\n";
    far.write("work/brigade.toml", native);
    let up = far.run(&["up"]);
    assert_eq!(up.code, Some(1));
    assert!(up.stderr.contains("carla cannot join a team on NATS"), "{up}");
    assert!(up.stderr.contains("brigade link"), "{up}");
    assert_eq!(far.run(&["team", "list"]).code, Some(4));
}

#[test]
fn a_team_that_has_done_its_work_goes_by_itself() {
    let far = Far::new();
    far.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"\nowner = \"alice\"");
    let mut up = far.command(&["up", "--until-done", "--limit", "60"]);
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the task", || far.run(&["--as", "alice", "task", "done", "1"]).code == Some(0));
    let told = up.wait_with_output().unwrap();
    let told = far.outcome(&told);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("First"), "{told}");
    assert_eq!(far.run(&["team", "list"]).code, Some(4));
}

#[test]
fn a_team_that_was_deleted_under_its_members_comes_back() {
    let a = Far::new();
    let b = a.another("b");
    a.write_file(&["alice"], "[tasks.one]\nsubject = \"First\"");
    a.done(&["up"]);
    until("the prompt", || a.heard("alice").contains("hello alice"));
    b.done(&["team", "delete", "demo", "--force"]);
    // Whoever played a member of it ends, and nothing of it is left on the host.
    let left = || Command::new("find").arg(a.path("state")).args(["-name", "alice"]).output();
    until("its end", || left().unwrap().stdout.is_empty());
    a.done(&["resume", "demo"]);
    assert_eq!(a.json(&["task", "list"])[0]["subject"], "First");
    a.done(&["send", "alice", "are you there"]);
    until("the mail", || a.heard("alice").contains("are you there"));
}

#[test]
fn a_member_is_ended_while_its_engine_is_away() {
    let mut engine = Engine::single();
    let mut house = House::new();
    house.variables = vec![("BRIGADE_STORE", engine.store())];
    house.done(&["team", "create", "demo"]);
    let agent = format!("acp:{FAKE}");
    let mut bob = house.command(&["spawn", "bob", "--agent", &agent, "--place", "here"]);
    let mut bob = bob.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let heard = || std::fs::read_to_string(house.path("work/heard")).unwrap_or_default();
    until("bob", || heard().contains("begun"));
    engine.stop(0);
    let told = Command::new("kill").args(["-TERM", &bob.id().to_string()]).status();
    assert!(told.unwrap().success());
    until("its end", || bob.try_wait().unwrap().is_some());
}
