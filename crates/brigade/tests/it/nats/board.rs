//! `brigade task` in a NATS store.

use serde_json::json;

use super::NatsHost;

#[test]
fn two_hosts_share_a_board() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
    let b = a.another("b");
    a.run_ok(&["task", "add", "Write the lexer"]);
    a.run_ok(&["task", "add", "Write the parser", "--blocked-by", "1"]);
    assert!(b.run_ok(&["task", "graph"]).contains("Write the parser"));
    let blocked = b.run(&["--as", "bob", "task", "claim", "2"]);
    assert_eq!(blocked.code, Some(1), "{blocked}");
    b.run_ok(&["--as", "bob", "task", "claim", "1"]);
    let taken = a.run(&["--as", "alice", "task", "claim", "1"]);
    assert_eq!(taken.code, Some(1), "{taken}");
    assert!(taken.stderr.contains("bob"), "{taken}");
    b.run_ok(&["--as", "bob", "task", "done", "1"]);
    a.run_ok(&["--as", "alice", "task", "claim", "2"]);
    let tasks = b.json(&["task", "list"]);
    assert_eq!((&tasks[0]["status"], &tasks[0]["owner"]), (&json!("completed"), &json!("bob")));
    assert_eq!((&tasks[1]["status"], &tasks[1]["owner"]), (&json!("in_progress"), &json!("alice")));
    a.run_ok(&["task", "delete", "2"]);
    assert_eq!(b.json(&["task", "list"]).as_array().unwrap().len(), 1);
    // The number of a deleted task is not reused.
    a.run_ok(&["task", "add", "Write the docs"]);
    assert_eq!(b.json(&["task", "list"])[1]["id"], "3");
}

#[test]
fn one_of_many_concurrent_claims_wins() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["task", "add", "Wanted by all"]);
    let names: Vec<String> = (0..6).map(|number| format!("m{number}")).collect();
    for name in &names {
        client.run_ok(&["team", "join", name]);
    }
    let claim =
        |name: &String| client.command(&["--as", name, "task", "claim", "1"]).output().unwrap();
    let won = std::thread::scope(|scope| {
        let claims: Vec<_> = names.iter().map(|name| scope.spawn(move || claim(name))).collect();
        let outcomes = claims.into_iter().map(|claim| claim.join().unwrap().status.code());
        outcomes.filter(|code| *code == Some(0)).count()
    });
    assert_eq!(won, 1);
}
