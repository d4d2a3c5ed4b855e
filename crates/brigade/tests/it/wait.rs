//! `brigade wait`

use std::collections::VecDeque;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::wait_until;

/// How many waits the test of many waits starts. Set this variable to 1000 for the whole test, on an idle machine.
const WAITS: &str = "BRIGADE_WAITS";

/// Starts a command and waits until it watches the team.
fn start(cli: &CliEnv, args: &[&str]) -> Child {
    let mut command = cli.command(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let threads = format!("/proc/{}/task", child.id());
    // A thread of its own waits for changes of the files.
    wait_until("the command to watch the team", || {
        std::fs::read_dir(&threads).map_or(0, Iterator::count) > 1
    });
    child
}

fn outcome(cli: &CliEnv, child: Child) -> String {
    cli.outcome(&child.wait_with_output().unwrap()).to_string()
}

#[test]
fn a_wait_ends_when_the_task_is_done() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Design"]);
    cli.run_ok(&["task", "add", "Build"]);
    let both = start(&cli, &["wait", "--task", "1", "2"]);
    let all = start(&cli, &["wait", "--tasks", "--json"]);
    let one = start(&cli, &["wait", "--any", "--task", "1", "2"]);
    cli.run_ok(&["task", "done", "2"]);
    assert_snapshot!(outcome(&cli, one), @"task 2 is done");
    cli.run_ok(&["task", "done", "1"]);
    assert_snapshot!(outcome(&cli, both), @"task 1 is done; task 2 is done");
    assert_snapshot!(outcome(&cli, all), @r#"{"outcome":"done","conditions":[{"state":"met","detail":"2 tasks done"}]}"#);
    // A condition that holds already ends the wait at once.
    assert_snapshot!(cli.run(&["wait", "--task", "1"]), @"task 1 is done");
}

#[test]
fn a_wait_that_cannot_succeed_fails() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["wait", "--tasks"]), @"
    --- stderr
    error: team demo has no tasks to wait for
    hint: add one with `brigade task add`
    --- exit 1
    ");
    for subject in ["Design", "Build"] {
        cli.run_ok(&["task", "add", subject]);
    }
    let deleted = start(&cli, &["wait", "--task", "1"]);
    cli.run_ok(&["task", "delete", "1"]);
    assert_snapshot!(outcome(&cli, deleted), @"
    failed: task 1 was deleted
    --- exit 1
    ");
    let left = start(&cli, &["wait", "--idle", "bob", "--message"]);
    cli.run_ok(&["team", "leave", "bob"]);
    assert_snapshot!(outcome(&cli, left), @"
    failed: bob is not in the team
    --- exit 1
    ");
    let team = start(&cli, &["wait", "--task", "2"]);
    cli.run_ok(&["team", "delete", "--force"]);
    assert_snapshot!(outcome(&cli, team), @"
    failed: team demo was deleted
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["wait", "--task", "2"]), @"
    --- stderr
    error: there is no team yet
    hint: create one with `brigade team create NAME`, or from a file with `brigade new` and `brigade up`
    --- exit 1
    ");
}

#[test]
fn mistakes_in_the_conditions_are_reported() {
    let cli = CliEnv::with_team();
    assert_snapshot!(cli.run(&["wait"]), @"
    --- stderr
    error: there is nothing to wait for
    hint: for example `brigade wait --task 3` or `brigade wait --idle bob`
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["wait", "--task", "7"]), @"
    --- stderr
    error: no task 7
    hint: `brigade task list` shows the tasks
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["wait", "--idle", "carol"]), @"
    --- stderr
    error: no member carol in team demo
    hint: members: team-lead, alice, bob
    --- exit 1
    ");
}

#[test]
fn the_end_of_the_time_has_its_own_exit_code() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Design"]);
    assert_snapshot!(cli.run(&["wait", "--task", "1", "--message", "--timeout", "1s"]), @"
    not in time: task 1 is not started; no unread message
    --- exit 124
    ");
    assert_snapshot!(cli.run(&["wait", "--approval", "--timeout", "0", "--json"]), @r#"
    {"outcome":"timed_out","conditions":[{"state":"unmet","detail":"no request waits"}]}
    --- exit 124
    "#);
}

#[test]
fn a_wait_for_a_message_ignores_idle_notices_and_other_senders() {
    let cli = CliEnv::with_team();
    let idle = r#"{"type":"idle_notification","from":"bob","timestamp":"2026-11-15T12:00:00.000Z","idleReason":"available"}"#;
    cli.write_inbox("team-lead", "bob", idle);
    let from_bob = start(&cli, &["wait", "--message", "--from", "bob"]);
    cli.run_ok(&["--as", "alice", "send", "team-lead", "hello"]);
    assert_snapshot!(cli.run(&["wait", "--message"]), @"team-lead has a message from alice");
    cli.run_ok(&["--as", "bob", "send", "team-lead", "the parser is ready"]);
    assert_snapshot!(outcome(&cli, from_bob), @"team-lead has a message from bob");
}

#[test]
fn a_message_from_another_program_ends_a_wait() {
    let cli = CliEnv::with_native_team();
    let wait = start(&cli, &["--as", "bob", "wait", "--message"]);
    let timestamp = "2026-11-15T12:00:00.000Z";
    let entry = serde_json::json!([{ "from": "team-lead", "text": "hi", "timestamp": timestamp, "read": false }]);
    cli.write("claude/teams/theirs/inboxes/bob.json", &entry.to_string());
    assert_snapshot!(outcome(&cli, wait), @"bob has a message from team-lead");
    // Claude Code runs bob, and the roster says whether bob is in a turn.
    let wait = start(&cli, &["wait", "--task", "1", "--any", "--idle", "bob", "--timeout", "1m"]);
    assert_snapshot!(outcome(&cli, wait), @"
    --- stderr
    error: no task 1
    hint: `brigade task list` shows the tasks
    --- exit 1
    ");
    let wait = start(&cli, &["wait", "--idle", "bob"]);
    cli.write("claude/teams/theirs/inboxes/bob.json", "[]");
    assert_snapshot!(outcome(&cli, wait), @"bob is idle");
}

/// A member is idle only when it has done what it was asked: a wait after `send` must not end before the turn begins.
#[test]
fn a_wait_for_a_member_ends_after_its_turn() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    assert_eq!(cli.run_ok(&["wait", "--idle", "alice", "bob"]), "alice is idle; bob is idle\n");
    for number in 0..10 {
        let text = format!("message {number}");
        cli.run_ok(&["send", "bob", &text]);
        cli.run_ok(&["wait", "--idle", "bob", "--timeout", "1m"]);
        assert!(team.received("b").contains(&text), "the wait ended before the turn");
        assert_eq!(cli.member("bob")["liveness"], "idle");
    }
    cli.run_ok(&["send", "bob", "ASK first"]);
    let asked = cli.run_ok(&["wait", "--approval"]);
    assert!(asked.starts_with("request 1: bob asks for permission to run: make"), "{asked}");
    let idle = start(cli, &["wait", "--idle", "bob"]);
    cli.run_ok(&["approve", "1"]);
    assert_eq!(outcome(cli, idle), "bob is idle\n");
    cli.run_ok(&["send", "alice", "FAIL once"]);
    let failed = cli.run(&["wait", "--idle", "alice", "--timeout", "30s"]);
    assert!(failed.stdout.starts_with("failed: the last turn of alice failed: not logged in"));
    assert_eq!(failed.code, Some(1));
    let stopped = start(cli, &["wait", "--approval", "--idle", "bob"]);
    cli.run_ok(&["stop", "bob", "--now"]);
    assert_eq!(outcome(cli, stopped), "failed: bob is not in the team\n--- exit 1");
}

/// A request that a rule answers does not wait for a person.
#[test]
fn a_wait_for_a_request_ignores_requests_that_a_rule_answers() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    let file = std::fs::read_to_string(cli.path("work/brigade.toml")).unwrap();
    cli.write("work/brigade.toml", &file.replace("[defaults]", "[defaults]\nallow = [\"make\"]"));
    cli.json(&["up"]);
    let wait = start(cli, &["wait", "--approval", "--timeout", "6s"]);
    for _ in 0..3 {
        cli.run_ok(&["send", "bob", "ASK"]);
        cli.run_ok(&["wait", "--idle", "bob", "--timeout", "1m"]);
    }
    let ended = outcome(cli, wait);
    assert!(ended.contains("no request waits\n--- exit 124"), "{ended}");
}

/// While nothing happens, only the regular scan of the file store wakes the process.
#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "the figure is part of the result")]
fn a_wait_does_not_poll() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Design"]);
    let mut child = start(&cli, &["wait", "--task", "1"]);
    let wakeups = || -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let status = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")));
        let lines: Vec<String> = status.map(Result::unwrap).collect();
        let counts = lines.iter().flat_map(|status| status.lines()).filter_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()
        });
        counts.sum()
    };
    std::thread::sleep(Duration::from_millis(500));
    let before = wakeups();
    std::thread::sleep(Duration::from_secs(6));
    let during = wakeups() - before;
    println!("{during} wake-ups in six seconds");
    // Three scans, each of which may block on the disk.
    assert!(during <= 20, "{during} wake-ups in six seconds");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A wait that is running, and the command that ends it.
struct RunningWait {
    child: Child,
    ending: Vec<String>,
}

/// Many waits end at random times: none is missed, and none is late. Prints the longest time from the end of the command
/// that causes the end until the end of the wait.
#[test]
#[expect(clippy::print_stdout, reason = "the figure is part of the result")]
fn no_wait_of_many_is_missed_or_late() {
    let wanted: Option<usize> = std::env::var(WAITS).ok().map(|count| count.parse().unwrap());
    let cli = CliEnv::with_team();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let mut running: VecDeque<RunningWait> = VecDeque::new();
    let mut latest = Duration::ZERO;
    let waits = wanted.unwrap_or(100);
    for number in 1..=waits {
        let (task, sender) = (number.to_string(), format!("m{number}"));
        cli.run_ok(&["task", "add", "wait for it"]);
        let (waiting, ending): (Vec<&str>, Vec<&str>) = match next(3) {
            0 => (vec!["--task", &task], vec!["task", "done", &task]),
            1 => (vec!["--task", &task], vec!["task", "delete", &task]),
            _ => {
                cli.run_ok(&["team", "join", &sender]);
                (
                    vec!["--message", "--from", &sender],
                    vec!["--as", &sender, "send", "team-lead", "done"],
                )
            }
        };
        let child = start(&cli, &[&["wait", "--timeout", "5m"], waiting.as_slice()].concat());
        let ending = ending.into_iter().map(str::to_owned).collect();
        running.push_back(RunningWait { child, ending });
        std::thread::sleep(Duration::from_millis(next(30)));
        while running.len() > 5 || (number == waits && !running.is_empty()) {
            let index = usize::try_from(next(running.len() as u64)).unwrap();
            let mut wait = running.remove(index).unwrap();
            assert!(wait.child.try_wait().unwrap().is_none(), "ended too early: {:?}", wait.ending);
            cli.run_ok(&wait.ending.iter().map(String::as_str).collect::<Vec<_>>());
            let ended = Instant::now();
            assert!(wait.child.wait().unwrap().code().unwrap() < 2, "missed: {:?}", wait.ending);
            latest = latest.max(ended.elapsed());
        }
    }
    println!("{waits} waits, none missed; the latest ended {latest:.1?} after its cause");
    let limit = if wanted.is_some() { Duration::from_millis(100) } else { Duration::from_secs(5) };
    assert!(latest < limit, "a wait ended {latest:?} after its cause");
}
