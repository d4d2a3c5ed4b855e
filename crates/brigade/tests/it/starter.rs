//! `brigade new`, and the published schema of the team file.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::TestMachine;

/// Reads a file of the repository.
fn repository(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap()
}

#[test]
fn new_writes_a_starter_for_the_repository() {
    let machine = TestMachine::new(&["gemini", "codex", "qwen"]);
    let cli = &machine.cli;
    cli.write("work/Cargo.toml", "");
    cli.write("work/package.json", r#"{"scripts": {"test": "x", "lint": "x", "rm": "x"}}"#);
    cli.write("work/pnpm-lock.yaml", "");
    cli.write("work/pyproject.toml", "");
    cli.write("work/uv.lock", "");
    assert_snapshot!(machine.run_ok(&["new"]), @"
    wrote brigade.toml: team work with codex and gemini
    edit it, then preview the team with `brigade up --check`
    ");
    assert_snapshot!("starter", machine.read("work/brigade.toml"));
    let answer = machine.answer(&["up", "--check"]);
    assert_eq!((&answer["valid"], &answer["missing_agents"]), (&json!(true), &json!([])));
}

#[test]
fn every_commented_setting_is_valid() {
    let machine = TestMachine::new(&["claude"]);
    machine.run_ok(&["new"]);
    let starter = machine.read("work/brigade.toml");
    let unused = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = starter.lines().map(unused).collect();
    machine.cli.write("work/all.toml", &lines.join("\n"));
    let answer = machine.answer(&["up", "--check", "--file", "all.toml"]);
    assert_eq!(answer["team"]["lead"]["agent"], json!("claude"));
    assert_eq!(answer["team"]["tasks"][1]["owner"], json!("builder"));
    let offered = lines.iter().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let offered: Vec<&str> = offered.collect();
    // The starter file must mention every key, so that users learn about all of them.
    let schema: Value = serde_json::from_str(&repository("docs/brigade.schema.json")).unwrap();
    for key in
        schema.pointer("/properties/defaults/properties").unwrap().as_object().unwrap().keys()
    {
        assert!(offered.contains(&key.as_str()) || key == "rules", "{key}");
    }
}

#[test]
fn existing_files_are_kept() {
    let machine = TestMachine::new(&[]);
    machine.cli.write("work/brigade.toml", "mine");
    assert_snapshot!(machine.run(&["new"]), @"
    --- stderr
    error: <root>/work/brigade.toml already exists
    hint: edit it, or replace it with `brigade new --force`
    --- exit 1
    ");
    assert_eq!(machine.read("work/brigade.toml"), "mine");
    let answer = machine.answer(&["new", "--force"]);
    let path = "<root>/work/brigade.toml";
    let expected = json!({ "path": path, "team": "work", "agents": ["claude"], "schema": null });
    assert_eq!(answer, expected);
    assert!(machine.read("work/brigade.toml").contains("[members.builder]"));
}

#[test]
fn new_writes_to_the_repository_root() {
    let machine = TestMachine::new(&["codex"]);
    std::fs::create_dir_all(machine.cli.path("work/.git")).unwrap();
    std::fs::write(machine.cli.path("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    // Codex leaves an empty `.git` folder in folders that are not repositories. Brigade must ignore it.
    std::fs::create_dir_all(machine.cli.path("work/src/.git")).unwrap();
    let mut command = machine.command(&["new"]);
    let output = command.current_dir(machine.cli.path("work/src")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(machine.cli.path("work/brigade.toml").exists());
    assert!(!machine.cli.path("work/src/brigade.toml").exists());
}

#[test]
fn the_published_schema_is_current() {
    let machine = TestMachine::new(&["codex"]);
    machine.run_ok(&["new", "--schema"]);
    assert!(machine.read("work/brigade.toml").starts_with("#:schema ./brigade.schema.json\n"));
    assert_eq!(
        machine.read("work/brigade.schema.json"),
        repository("docs/brigade.schema.json"),
        "docs/brigade.schema.json is out of date; run `just docs`"
    );
    assert_eq!(machine.answer(&["up", "--check"])["valid"], json!(true));
}
