//! `brigade team` in an engine.

use super::Far;

#[test]
fn a_team_is_made_shown_and_deleted_from_any_host() {
    let a = Far::with_team();
    let b = a.another("b");
    assert_eq!(b.json(&["team", "list"])[0]["name"], "demo");
    let team = b.json(&["team", "show", "demo"]);
    assert_eq!(team["description"], "Ship the parser");
    let names: Vec<&str> =
        team["members"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["team-lead", "alice", "bob"]);
    let again = b.run(&["team", "create", "demo"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("a team named \"demo\" already exists"), "{again}");
    b.done(&["team", "leave", "bob"]);
    assert_eq!(a.json(&["team", "show"])["members"].as_array().unwrap().len(), 2);
    b.done(&["team", "delete", "demo"]);
    assert_eq!(a.run(&["team", "list"]).code, Some(4));
    // Its history stays, and a new team of its name has none of its mail.
    assert!(a.done(&["log", "--team", "demo"]).contains("alice"));
}

#[test]
fn the_files_of_the_host_are_another_place() {
    let far = Far::with_team();
    let files = far.run(&["team", "list", "--store", "files", "--json"]);
    assert_eq!(files.stdout.trim(), "[]");
    far.done(&["--store", "files", "team", "create", "demo", "--description", "Another"]);
    let description = |store: &[&str]| {
        let team = far.json(&[&["team", "show", "demo"], store].concat());
        team["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(description(&["--store", "files"]), "Another");
    assert_eq!(description(&[]), "Ship the parser");
    assert!(!far.path("claude/teams/demo/inboxes/bob.json").exists());
}

#[test]
fn mail_of_a_deleted_team_is_not_that_of_the_next() {
    let far = Far::with_team();
    far.done(&["send", "bob", "of the first"]);
    far.done(&["team", "delete", "demo"]);
    far.done(&["team", "create", "demo"]);
    far.done(&["team", "join", "bob"]);
    assert_eq!(far.run(&["inbox", "bob"]).code, Some(4));
    far.done(&["send", "bob", "of the second"]);
    assert_eq!(far.json(&["inbox", "bob"])[0]["text"], "of the second");
}

#[test]
fn where_the_team_lives_can_stand_in_its_file() {
    let mut far = Far::with_team();
    let store = far.engine.store();
    far.house.variables.retain(|(name, _)| *name != "BRIGADE_STORE");
    assert_eq!(far.run(&["team", "list", "--json"]).stdout.trim(), "[]");
    far.write("work/brigade.toml", &format!("team = \"demo\"\nstore = \"{store}\"\n"));
    assert_eq!(far.json(&["team", "list"])[0]["name"], "demo");
    // What is said on the command line, or by a variable, counts before it.
    let said = far.run(&["team", "list", "--json", "--store", "files"]);
    assert_eq!(said.stdout.trim(), "[]");
    let said = far.run_with_env(&["team", "list", "--json"], &[("BRIGADE_STORE", "files")]);
    assert_eq!(said.stdout.trim(), "[]");
    far.write("work/brigade.toml", "team = \"demo\"\nstore = \"nats://me:secret@a\"\n");
    let said = far.run(&["team", "list"]);
    assert_eq!(said.code, Some(1), "{said}");
    assert!(said.stderr.contains("use --creds FILE"), "{said}");
    // A file that says nothing of it may be as wrong as it likes.
    far.write("work/brigade.toml", "team = \n");
    assert_eq!(far.run(&["team", "list", "--json"]).stdout.trim(), "[]");
}
