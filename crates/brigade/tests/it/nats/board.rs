//! `brigade task` in an engine.

use serde_json::json;

use super::Far;

#[test]
fn a_board_is_worked_on_from_two_hosts() {
    let a = Far::with_team();
    let b = a.another("b");
    a.done(&["task", "add", "Write the lexer"]);
    a.done(&["task", "add", "Write the parser", "--blocked-by", "1"]);
    assert!(b.done(&["task", "graph"]).contains("Write the parser"));
    let blocked = b.run(&["--as", "bob", "task", "claim", "2"]);
    assert_eq!(blocked.code, Some(1), "{blocked}");
    b.done(&["--as", "bob", "task", "claim", "1"]);
    let taken = a.run(&["--as", "alice", "task", "claim", "1"]);
    assert_eq!(taken.code, Some(1), "{taken}");
    assert!(taken.stderr.contains("bob"), "{taken}");
    b.done(&["--as", "bob", "task", "done", "1"]);
    a.done(&["--as", "alice", "task", "claim", "2"]);
    let tasks = b.json(&["task", "list"]);
    assert_eq!((&tasks[0]["status"], &tasks[0]["owner"]), (&json!("completed"), &json!("bob")));
    assert_eq!((&tasks[1]["status"], &tasks[1]["owner"]), (&json!("in_progress"), &json!("alice")));
    a.done(&["task", "delete", "2"]);
    assert_eq!(b.json(&["task", "list"]).as_array().unwrap().len(), 1);
    // A number is given once.
    a.done(&["task", "add", "Write the docs"]);
    assert_eq!(b.json(&["task", "list"])[1]["id"], "3");
}

#[test]
fn of_many_who_claim_a_task_at_once_one_has_it() {
    let far = Far::with_team();
    far.done(&["task", "add", "Wanted by all"]);
    let names: Vec<String> = (0..6).map(|number| format!("m{number}")).collect();
    for name in &names {
        far.done(&["team", "join", name]);
    }
    let claim =
        |name: &String| far.command(&["--as", name, "task", "claim", "1"]).output().unwrap();
    let won = std::thread::scope(|scope| {
        let claims: Vec<_> = names.iter().map(|name| scope.spawn(move || claim(name))).collect();
        let outcomes = claims.into_iter().map(|claim| claim.join().unwrap().status.code());
        outcomes.filter(|code| *code == Some(0)).count()
    });
    assert_eq!(won, 1);
}
