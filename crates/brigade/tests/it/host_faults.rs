//! Commands about teams on this host when a member, another command or the person interferes.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::env::{CliEnv, FAKE_AGENT, Outcome};
use crate::host::HostedTeam;
use crate::process::{
    assert_all_gone, interrupt, kill, resume, suspend, terminate_pid, wait_until,
};

/// Creates a hosted team and lets its members run `script` instead of the scripted agent.
fn team_with_script(script: &str) -> HostedTeam {
    let team = HostedTeam::new();
    team.cli.write("agent.sh", &format!("#!/bin/sh\n{script}\nexec sh {FAKE_AGENT}\n"));
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let agent = format!("acp:sh {}", team.cli.path("agent.sh").display());
    team.cli.write("work/brigade.toml", &file.replace(&format!("acp:{FAKE_AGENT}"), &agent));
    team
}

/// Returns the folder of the host's registry.
fn registry(cli: &CliEnv) -> PathBuf {
    std::fs::read_dir(cli.path("state/brigade/host")).unwrap().next().unwrap().unwrap().path()
}

/// Starts a command, with its output in pipes.
fn start(cli: &CliEnv, args: &[&str]) -> Child {
    cli.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(cli: &CliEnv, child: Child) -> Outcome {
    cli.outcome(&child.wait_with_output().unwrap())
}

fn end_supervisor(cli: &CliEnv) {
    kill(cli.status()["supervisor"].as_u64().unwrap());
    wait_until("the supervisor to end", || cli.status()["supervisor"] == Value::Null);
}

#[test]
fn b5_up_and_resume_start_a_failed_agent_again() {
    let team = team_with_script("[ -e works ] || { echo no licence >&2; exit 1; }");
    std::fs::write(team.cli.path("work/a/works"), "").unwrap();
    assert_eq!(team.cli.run(&["up"]).code, Some(1));
    let alice = team.pid("alice");
    for command in ["up", "resume"] {
        assert_eq!(team.cli.member("bob")["liveness"], "dead");
        let failed = team.cli.run(&[command]);
        assert_eq!(failed.code, Some(1), "{failed}");
        std::fs::write(team.cli.path("work/b/works"), "").unwrap();
        let again = team.cli.run(&[command]);
        assert_eq!(again.code, Some(0), "{again}");
        assert_eq!(team.cli.member("bob")["liveness"], "idle");
        // A member that works is not restarted.
        assert_eq!(team.pid("alice"), alice);
        std::fs::remove_file(team.cli.path("work/b/works")).unwrap();
        team.cli.run_ok(&["send", "bob", "LAST"]);
        wait_until("bob to be dead", || team.cli.member("bob")["liveness"] == "dead");
    }
}

#[test]
fn b4_tasks_have_their_owners_though_up_was_interrupted() {
    let team = team_with_script("while [ ! -e works ]; do sleep 0.1; done");
    let up = start(&team.cli, &["up"]);
    wait_until("alice to be starting", || {
        let status = team.cli.run(&["status", "--json"]);
        status.stdout.contains("starting its agent") && status.stdout.contains("bob")
    });
    interrupt(&up);
    let up = finish(&team.cli, up);
    assert_eq!(up.code, Some(130), "{up}");
    assert!(up.stderr.contains("team demo is still starting"), "{up}");
    wait_until("the task's owner", || team.cli.json(&["task", "list"])[0]["owner"] == "alice");
    for dir in ["a", "b"] {
        std::fs::write(team.cli.path(&format!("work/{dir}/works")), "").unwrap();
    }
    let again = team.cli.json(&["up"]);
    assert_eq!((&again["tasks"], &again["assigned"]), (&0.into(), &0.into()), "{again}");
}

/// A task that lost its owner is assigned again, and `up` reports that.
#[test]
fn b4_up_says_that_it_assigned_tasks() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["task", "update", "1", "--no-owner"]);
    let again = team.cli.run_ok(&["up"]);
    assert!(
        again.contains("team demo is up: 0 new members, 0 new tasks, 1 task assigned"),
        "{again}"
    );
}

#[test]
fn finding_20_stop_and_down_end_though_an_unknown_process_holds_a_members_lock() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    end_supervisor(&team.cli);
    kill(team.pid("alice"));
    let lock = registry(&team.cli).join("demo/alice/seat");
    let held = File::options().read(true).write(true).open(&lock).unwrap();
    wait_until("the lock", || flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok());
    for command in [["stop", "alice", "--now"].as_slice(), &["down", "--now"]] {
        let began = Instant::now();
        let stopped = team.cli.run(command);
        assert_eq!(stopped.code, Some(1), "{stopped}");
        assert!(stopped.stderr.contains("cannot stop alice: brigade cannot identify"), "{stopped}");
        assert!(stopped.stderr.contains("demo/alice/seat"), "{stopped}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    drop(held);
    team.cli.run_ok(&["down", "--now"]);
}

#[test]
fn b9_down_waits_for_another_command_that_takes_the_team_down() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    // Bob needs the whole time limit, because the scripted agent does not answer.
    let first = start(&team.cli, &["down", "--limit", "4"]);
    let holder = || std::fs::read(registry(&team.cli).join("demo/up")).unwrap_or_default();
    let pid = |lock: Vec<u8>| serde_json::from_slice::<Value>(&lock).ok()?.get("pid")?.as_u64();
    wait_until("the first command", || pid(holder()) == Some(u64::from(first.id())));
    let second = team.cli.run(&["down"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert!(
        second.stderr.contains("waiting for another `brigade up` or `brigade down`"),
        "{second}"
    );
    let first = finish(&team.cli, first);
    assert_eq!(first.code, Some(0), "{first}");
}

#[test]
fn b11_a_second_interrupt_kills_the_members_at_once() {
    let team = HostedTeam::new();
    let up = start(&team.cli, &["up", "--until-done"]);
    wait_until("both members to be idle", || {
        team.cli.run(&["status", "--json"]).stdout.matches("\"idle\"").count() == 2
    });
    // Both members have received their first messages, so `up` waits for the tasks.
    wait_until("the assignment", || team.received("a").contains("assigns you task 1"));
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&up);
    wait_until("the requests to stop", || team.received("b").contains("asks you to shut down"));
    interrupt(&up);
    let began = Instant::now();
    let up = finish(&team.cli, up);
    assert_eq!(up.code, Some(130), "{up}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(up.stderr.contains("interrupted again: killing the members of team demo"), "{up}");
    assert_eq!(team.cli.run(&["status"]).code, Some(4));
}

#[test]
fn b12_an_interrupted_down_or_stop_says_what_it_has_done() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let stop = start(&team.cli, &["stop", "bob"]);
    wait_until("the request to stop", || team.received("b").contains("asks you to shut down"));
    interrupt(&stop);
    let stop = finish(&team.cli, stop);
    assert_eq!(stop.code, Some(130), "{stop}");
    assert!(stop.stderr.contains("asked to stop, and may still do so: bob"), "{stop}");
    assert!(stop.stderr.contains("`brigade stop bob --team demo` completes it"), "{stop}");
    let down = start(&team.cli, &["down"]);
    let requests = || team.cli.run(&["log", "--json"]).stdout.matches("shutdown_request").count();
    wait_until("the requests to stop, one more for bob", || requests() >= 3);
    // The command must notice that it has sent the last request.
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&down);
    let down = finish(&team.cli, down);
    assert_eq!(down.code, Some(130), "{down}");
    assert!(down.stderr.contains("asked to stop, and may still do so: alice, bob"), "{down}");
    assert!(down.stderr.contains("`brigade down` completes it"), "{down}");
    // A team without members remains if they stop later; `status` says how to delete it.
    for name in ["alice", "bob"] {
        team.cli.run_ok(&["stop", name, "--now"]);
    }
    let status = team.cli.run_ok(&["status"]);
    assert!(status.contains("`brigade down demo` deletes the team"), "{status}");
}

#[test]
fn b13_a_member_that_cannot_answer_is_stopped_at_once() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["send", "alice", "FAIL"]);
    wait_until("alice's turn to fail", || {
        team.cli.member("alice")["evidence"].as_str().unwrap().contains("not logged in")
    });
    let began = Instant::now();
    let alice = team.cli.run(&["stop", "alice", "--limit", "60"]);
    assert_eq!(alice.code, Some(0), "{alice}");
    let why = "cannot answer a request to stop, so it is ended now: its last turn failed: ";
    assert!(alice.stderr.contains(why) && alice.stderr.contains("not logged in"), "{alice}");
    assert!(!alice.stderr.contains("asked to stop"), "{alice}");
    // Bob's agent fails when it is shown the request.
    let bob = team.cli.run(&["stop", "bob", "--limit", "60", "--reason", "FAIL"]);
    assert_eq!(bob.code, Some(0), "{bob}");
    assert!(bob.stderr.contains("asked to stop") && bob.stderr.contains(why), "{bob}");
    assert!(began.elapsed() < Duration::from_secs(45));
}

#[test]
fn b19_b20_status_lists_members_in_file_order_with_their_tasks() {
    let team = HostedTeam::new();
    let mut file = format!("team = \"demo\"\n[defaults]\nagent = \"acp:{FAKE_AGENT}\"\n");
    for name in ["m2", "m10", "m1"] {
        std::fs::create_dir_all(team.cli.path(&format!("work/{name}"))).unwrap();
        file.push_str(&format!("[members.{name}]\ndir = \"{name}\"\n"));
    }
    file.push_str("[tasks.one]\nsubject = \"First\"\nowner = \"m10\"\n");
    team.cli.write("work/brigade.toml", &file);
    team.cli.run_ok(&["up"]);
    let status = team.cli.status();
    let members = status["members"].as_array().unwrap();
    let names: Vec<&str> = members.iter().map(|member| member["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m2", "m10", "m1"]);
    assert_eq!(members[1]["assigned"], serde_json::json!([1]));
    let row = |text: &str| text.lines().find(|line| line.contains("m10")).unwrap().to_owned();
    let text = row(&team.cli.run_ok(&["status"]));
    assert!(text.contains("1 First (not started)"), "{text}");
    team.cli.run_ok(&["--as", "m10", "task", "claim", "1"]);
    let text = row(&team.cli.run_ok(&["status"]));
    assert!(text.ends_with("1 First"), "{text}");
}

#[test]
fn b28_sending_to_a_member_that_does_not_run_prints_a_note() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let sent = team.cli.run(&["send", "alice", "hello"]);
    assert_eq!(sent.stderr, "");
    end_supervisor(&team.cli);
    kill(team.pid("alice"));
    wait_until("alice to be dead", || team.cli.member("alice")["liveness"] == "dead");
    let sent = team.cli.run(&["send", "alice", "hello"]);
    assert_eq!(sent.code, Some(0));
    assert!(sent.stderr.contains("note: alice is not running"), "{sent}");
    assert!(sent.stderr.contains("`brigade resume demo`"), "{sent}");
    let all = team.cli.json(&["broadcast", "hello"]);
    assert!(
        all["not_running"]["alice"].is_string() && all["not_running"]["bob"].is_null(),
        "{all}"
    );
}

#[test]
fn b30_the_last_text_of_a_turn_is_in_the_leads_inbox() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["send", "bob", "TALK"]);
    wait_until("bob's report", || {
        team.cli.run(&["inbox"]).stdout.contains("at the end of its turn\n  I am talking")
    });
}

/// Deletes a team while its member runs, and restores it in two attempts.
#[test]
fn finding_33_b3_resume_completes_an_interrupted_take_over() {
    let team = HostedTeam::new();
    let (cli, agent) = (&team.cli, format!("acp:{FAKE_AGENT}"));
    // The other team keeps the supervisor running.
    for (name, member) in [("other", "carl"), ("gone", "dora")] {
        cli.run_ok(&["team", "create", name]);
        cli.run_ok(&["spawn", member, "--agent", &agent, "--team", name]);
    }
    cli.run_ok(&["task", "add", "First", "--team", "gone"]);
    cli.run_ok(&["team", "join", "erin", "--team", "gone"]);
    cli.run_ok(&["send", "erin", "unread at the end", "--team", "gone"]);
    cli.run_ok(&["team", "delete", "--force", "--team", "gone"]);
    let folder = registry(cli).join("gone");
    wait_until("the team to be gone", || !folder.exists());
    // The team's file cannot be written, so the first attempt fails after the team was restored.
    std::fs::create_dir_all(folder.join("team.json")).unwrap();
    let first = cli.run(&["resume", "gone"]);
    assert_eq!(first.code, Some(1), "{first}");
    std::fs::remove_dir(folder.join("team.json")).unwrap();
    let second = cli.run(&["resume", "gone"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert!(second.stdout.contains("team gone is up again with 1 member"), "{second}");
    assert_eq!(cli.json(&["task", "list", "--team", "gone"])[0]["subject"], "First");
    let inbox = cli.json(&["inbox", "erin", "--team", "gone"]);
    assert_eq!(inbox[0]["text"], "unread at the end");
    cli.run_ok(&["down", "gone", "--now"]);
}

/// The process of a member that has left is suspended, so that it cannot end.
#[test]
fn b14_status_says_that_a_member_has_left() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let bob = team.pid("bob");
    suspend(bob);
    team.cli.run_ok(&["team", "leave", "bob"]);
    let member = team.cli.member("bob");
    resume(bob);
    assert_eq!(member["liveness"], "dead");
    let expected = format!("left the team; process {bob} is still ending");
    assert_eq!(member["evidence"], expected);
    wait_until("bob to be gone", || team.cli.status()["members"].as_array().unwrap().len() == 1);
}

#[test]
#[cfg(target_os = "linux")]
fn b15_spawn_says_which_variables_of_the_agent_it_does_not_inherit() {
    let team = HostedTeam::new();
    let up = team.cli.run_with_env(&["up"], &[("OPENAI_API_KEY", "secret-1")]);
    assert_eq!(up.code, Some(0), "{up}");
    assert!(!up.stderr.contains("OPENAI_API_KEY"), "{up}");
    let agent = format!("acp:{FAKE_AGENT}");
    let variables = [("OPENAI_API_KEY", "secret-2"), ("GEMINI_API_KEY", "secret-3")];
    let spawn = |name| ["spawn", name, "--agent", &agent];
    let spawned = team.cli.run_with_env(&spawn("carl"), &variables);
    assert_eq!(spawned.code, Some(0), "{spawned}");
    let note = "these variables differ: GEMINI_API_KEY, OPENAI_API_KEY;";
    assert!(spawned.stderr.contains(note), "{spawned}");
    assert!(!spawned.stderr.contains("secret"), "{spawned}");
    let same = team.cli.run_with_env(&spawn("dora"), &[("OPENAI_API_KEY", "secret-1")]);
    assert!(!same.stderr.contains("note:"), "{same}");
}

#[test]
fn b23_the_log_shows_an_agents_error_output_without_escape_sequences() {
    let team = team_with_script(r"printf '\033[2mno\033[0m licence\n' >&2; exit 1");
    assert_eq!(team.cli.run(&["up"]).code, Some(1));
    let log = team.cli.run_ok(&["log", "--work"]);
    assert!(log.contains("last output: no licence"), "{log}");
    assert!(!log.contains("u{1b}"), "{log}");
}

/// A reboot or `docker stop` sends SIGTERM to every process. The members must come back, with their tasks.
#[test]
fn members_stay_in_their_team_when_every_process_is_terminated() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    wait_until("the assignment", || team.received("a").contains("assigns you task 1"));
    let processes =
        [team.cli.status()["supervisor"].as_u64().unwrap(), team.pid("alice"), team.pid("bob")];
    for pid in processes {
        terminate_pid(pid);
    }
    assert_all_gone(&processes);
    let resumed = team.cli.run(&["resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert!(resumed.stdout.contains("team demo is up again with 2 members"), "{resumed}");
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], "alice");
    // The agents continue their sessions.
    assert!(team.received("a").contains("loaded"), "{}", team.received("a"));
    // `stop` still removes a member for good.
    team.cli.run_ok(&["stop", "bob", "--now"]);
    assert_eq!(team.cli.json(&["resume"])["teams"], serde_json::json!(["demo"]));
    assert_eq!(team.cli.status()["members"].as_array().unwrap().len(), 1);
}

#[test]
fn resume_does_not_report_a_team_without_members_as_up() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    for name in ["alice", "bob"] {
        team.cli.run_ok(&["stop", name, "--now"]);
    }
    let resumed = team.cli.run(&["resume"]);
    assert_eq!(resumed.code, Some(4), "{resumed}");
    assert!(!resumed.stdout.contains("up again"), "{resumed}");
    assert!(resumed.stderr.contains("there are no members to restart on this host"), "{resumed}");
}

/// A member that has left is not "already up" while its process ends.
#[test]
fn up_adds_a_member_again_whose_old_process_is_still_ending() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    wait_until("both members to be idle", || {
        team.cli.member("alice")["liveness"] == "idle"
            && team.cli.member("bob")["liveness"] == "idle"
    });
    let old = team.pid("bob");
    // The suspended process cannot end.
    suspend(old);
    team.cli.run_ok(&["team", "leave", "bob"]);
    let up = start(&team.cli, &["up"]);
    std::thread::sleep(Duration::from_secs(2));
    resume(old);
    let up = finish(&team.cli, up);
    assert_eq!(up.code, Some(0), "{up}");
    assert!(up.stdout.contains("team demo is up: 1 new member"), "{up}");
    assert!(up.stderr.contains(&format!("waiting for process {old} to end")), "{up}");
    assert!(!up.stderr.contains("its last report was"), "{up}");
    assert_eq!(team.cli.member("bob")["liveness"], "idle");
    assert_ne!(team.pid("bob"), old);
}
