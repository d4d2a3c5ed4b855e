use super::NatsHost;
use std::process::Stdio;

#[test]
fn waits_and_questions_work_on_a_nats_server() {
    let host = NatsHost::new();
    host.create_team();
    host.run_ok(&["task", "add", "Design"]);
    let wait = |args: &[&str]| {
        let mut command = host.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let task = wait(&["wait", "--task", "1", "--timeout", "1m"]);
    let message = wait(&["wait", "--message", "--from", "bob", "--timeout", "1m"]);
    let question = wait(&["ask", "bob", "ready?", "--timeout", "1m"]);
    crate::process::wait_until("the question", || {
        host.run(&["inbox", "bob"]).stdout.contains("ready?")
    });
    host.run_ok(&["task", "done", "1"]);
    host.run_ok(&["--as", "bob", "send", "team-lead", "yes"]);
    for (child, expected) in [
        (task, "task 1 is done\n"),
        (message, "team-lead has a message from bob\n"),
        (question, "yes\n"),
    ] {
        let outcome = host.outcome(&child.wait_with_output().unwrap());
        assert_eq!(outcome.to_string(), expected);
    }
}
