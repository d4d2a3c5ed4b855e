//! Commands that change something, while the NATS server does not answer. None of them may report success.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{FAKE_AGENT, NatsHost};
use crate::env::Outcome;
use crate::process::{resume, suspend, wait_until};

/// Resumes the server when the test ends, so that the members can be stopped.
struct Frozen(u64);

impl Drop for Frozen {
    fn drop(&mut self) {
        resume(self.0);
    }
}

#[test]
fn no_command_reports_success_while_the_server_is_frozen() {
    brigade_testkit::needs!(NatsServer);
    let host = NatsHost::new();
    host.write_file(&["alice"], "");
    host.run_ok(&["up"]);
    host.run_ok(&["task", "add", "one"]);
    host.run_ok(&["send", "alice", "ASK"]);
    wait_until("the request", || host.run(&["approvals"]).code == Some(0));
    let frozen = Frozen(u64::from(host.engine.pid(0)));
    suspend(frozen.0);
    let agent = format!("acp:{FAKE_AGENT}");
    let commands: &[&[&str]] = &[
        &["send", "alice", "hello"],
        &["broadcast", "hello"],
        &["inbox"],
        &["task", "add", "two"],
        &["task", "claim", "1"],
        &["task", "update", "1", "--status", "completed"],
        &["task", "delete", "1"],
        &["team", "create", "other"],
        &["team", "join", "carol"],
        &["team", "delete", "demo", "--force"],
        &["approve", "1"],
        &["deny", "1", "--reason", "no"],
        &["spawn", "bob", "--agent", &agent],
        &["stop", "alice"],
        &["up"],
        &["resume"],
    ];
    let outcomes: Vec<(String, Outcome)> = std::thread::scope(|scope| {
        let run = |args: &&[&str]| {
            let args: Vec<&str> = args.iter().copied().chain(["--wait=1s"]).collect();
            (args.join(" "), host.run(&args))
        };
        let running: Vec<_> = commands.iter().map(|args| scope.spawn(move || run(args))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (command, outcome) in outcomes {
        assert_eq!(outcome.code, Some(1), "{command}: {outcome}");
        assert_eq!(outcome.stdout, "", "{command}: {outcome}");
        assert!(
            outcome.stderr.contains("cannot connect to the NATS server"),
            "{command}: {outcome}"
        );
    }
}

/// The server stops answering while commands are running. A command that reported success took effect.
#[test]
fn a_command_that_reports_success_took_effect_although_the_server_froze() {
    brigade_testkit::needs!(NatsServer);
    let host = NatsHost::new();
    host.run_ok(&["team", "create", "demo"]);
    host.run_ok(&["team", "join", "bob"]);
    let frozen = Frozen(u64::from(host.engine.pid(0)));
    let ended = AtomicUsize::new(0);
    let run = |number: u64| {
        std::thread::sleep(Duration::from_millis(10 * number));
        let text = format!("number {number};");
        let command = match number % 2 {
            0 => host.run(&["send", "bob", &text, "--wait=5s"]),
            _ => host.run(&["task", "add", &text, "--wait=5s"]),
        };
        ended.fetch_add(1, Ordering::Relaxed);
        (text, command)
    };
    let outcomes: Vec<(String, Outcome)> = std::thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = (0..12).map(|number| scope.spawn(move || run(number))).collect();
        wait_until("the first commands", || ended.load(Ordering::Relaxed) > 1);
        suspend(frozen.0);
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(frozen);
    let stored = format!("{}{}", host.run(&["--as", "bob", "inbox"]), host.run(&["task", "list"]));
    let done = outcomes.iter().filter(|(_, outcome)| outcome.code == Some(0));
    for (text, outcome) in done {
        assert!(stored.contains(text), "{outcome}\n{stored}");
    }
    assert!(
        outcomes.iter().any(|(_, outcome)| outcome.code != Some(0)),
        "the server froze too late"
    );
}
