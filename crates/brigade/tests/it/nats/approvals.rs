//! `brigade approvals`, `approve` and `deny` in a NATS store.

use super::{FAKE_AGENT, NatsHost, wait_until};

#[test]
fn a_permission_request_is_answered_once_from_another_host() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    let agent = format!("acp:{FAKE_AGENT}");
    b.run_ok(&["spawn", "carl", "--agent", &agent]);
    let received = || std::fs::read_to_string(b.path("work/heard")).unwrap_or_default();
    for (round, (answer, outcome)) in
        [("approve", "allow-it"), ("deny", "refuse-it")].iter().enumerate()
    {
        a.run_ok(&["send", "carl", "ASK"]);
        wait_until("carl's permission request", || a.run(&["approvals"]).code == Some(0));
        let asked = a.json(&["approvals"]);
        assert_eq!(asked[0]["from"], "carl", "{asked}");
        wait_until("carl's status to be waiting", || b.member("carl")["liveness"] == "waiting");
        let which = asked[0]["number"].to_string();
        let mut words = vec![*answer, &which];
        if *answer == "deny" {
            words.extend(["--reason", "not today"]);
        }
        a.run_ok(&words);
        wait_until("the agent to receive the answer", || {
            received().matches("answered").count() == round + 1
        });
        assert!(received().contains(outcome), "{}", received());
        // A second answer to the same request is refused.
        let late = a.run(&["approve", &which]);
        assert_ne!(late.code, Some(0), "{late}");
        assert_eq!(a.run(&["approvals"]).code, Some(4));
    }
}
