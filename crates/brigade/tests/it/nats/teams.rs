//! `brigade team` in a NATS store.

use super::NatsHost;

#[test]
fn teams_are_created_shown_and_deleted_from_any_host() {
    brigade_testkit::needs!(NatsServer);
    let a = NatsHost::with_team();
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
    b.run_ok(&["team", "leave", "bob"]);
    assert_eq!(a.json(&["team", "show"])["members"].as_array().unwrap().len(), 2);
    b.run_ok(&["team", "delete", "demo"]);
    assert_eq!(a.run(&["team", "list"]).code, Some(4));
    // The deleted team's history is kept.
    assert!(a.run_ok(&["log", "--team", "demo"]).contains("alice"));
}

#[test]
fn files_and_nats_are_separate_stores() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let files = client.run(&["team", "list", "--store", "files", "--json"]);
    assert_eq!(files.stdout.trim(), "[]");
    client.run_ok(&["--store", "files", "team", "create", "demo", "--description", "Another"]);
    let description = |store: &[&str]| {
        let team = client.json(&[&["team", "show", "demo"], store].concat());
        team["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(description(&["--store", "files"]), "Another");
    assert_eq!(description(&[]), "Ship the parser");
    assert!(!client.path("claude/teams/demo/inboxes/bob.json").exists());
}

#[test]
fn a_new_team_does_not_get_mail_of_a_deleted_one() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    client.run_ok(&["send", "bob", "of the first"]);
    client.run_ok(&["team", "delete", "demo"]);
    client.run_ok(&["team", "create", "demo"]);
    client.run_ok(&["team", "join", "bob"]);
    assert_eq!(client.run(&["inbox", "bob"]).code, Some(4));
    client.run_ok(&["send", "bob", "of the second"]);
    assert_eq!(client.json(&["inbox", "bob"])[0]["text"], "of the second");
}

#[test]
fn the_store_can_be_set_in_the_team_file() {
    brigade_testkit::needs!(NatsServer);
    let mut client = NatsHost::with_team();
    let store = client.engine.store();
    client.cli.variables.retain(|(name, _)| *name != "BRIGADE_STORE");
    assert_eq!(client.run(&["team", "list", "--json"]).stdout.trim(), "[]");
    client.write("work/brigade.toml", &format!("team = \"demo\"\nstore = \"{store}\"\n"));
    assert_eq!(client.json(&["team", "list"])[0]["name"], "demo");
    // The option `--store` and the variable BRIGADE_STORE override the team file.
    let said = client.run(&["team", "list", "--json", "--store", "files"]);
    assert_eq!(said.stdout.trim(), "[]");
    let said = client.run_with_env(&["team", "list", "--json"], &[("BRIGADE_STORE", "files")]);
    assert_eq!(said.stdout.trim(), "[]");
    client.write("work/brigade.toml", "team = \"demo\"\nstore = \"nats://me:secret@a\"\n");
    let said = client.run(&["team", "list"]);
    assert_eq!(said.code, Some(1), "{said}");
    assert!(said.stderr.contains("use --creds FILE"), "{said}");
    // Commands accept an invalid team file if it sets no store.
    client.write("work/brigade.toml", "team = \n");
    assert_eq!(client.run(&["team", "list", "--json"]).stdout.trim(), "[]");
}
