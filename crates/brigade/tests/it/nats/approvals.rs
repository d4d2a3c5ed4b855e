//! `brigade approvals`, `approve` and `deny` in an engine.

use super::{FAKE, Far, until};

#[test]
fn leave_asked_on_one_host_is_given_on_another_once() {
    let a = Far::with_team();
    let b = a.another("b");
    let agent = format!("acp:{FAKE}");
    b.done(&["spawn", "carl", "--agent", &agent]);
    let heard = || std::fs::read_to_string(b.path("work/heard")).unwrap_or_default();
    for (round, (answer, outcome)) in
        [("approve", "allow-it"), ("deny", "refuse-it")].iter().enumerate()
    {
        a.done(&["send", "carl", "ASK"]);
        until("the request", || a.run(&["approvals"]).code == Some(0));
        let asked = a.json(&["approvals"]);
        assert_eq!(asked[0]["from"], "carl", "{asked}");
        until("carl to be seen waiting", || b.member("carl")["liveness"] == "waiting");
        let which = asked[0]["number"].to_string();
        let mut words = vec![*answer, &which];
        if *answer == "deny" {
            words.extend(["--reason", "not today"]);
        }
        a.done(&words);
        until("the answer", || heard().matches("answered").count() == round + 1);
        assert!(heard().contains(outcome), "{}", heard());
        // Who comes later is told.
        let late = a.run(&["approve", &which]);
        assert_ne!(late.code, Some(0), "{late}");
        assert_eq!(a.run(&["approvals"]).code, Some(4));
    }
}
