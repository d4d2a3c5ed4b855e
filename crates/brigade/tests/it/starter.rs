//! `brigade new`, and the schema and the page that tell of the file.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::Guest;

/// A part of the repository.
fn repository(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap()
}

#[test]
fn a_starter_for_a_repository() {
    let guest = Guest::new(&["gemini", "codex", "qwen"]);
    let house = &guest.house;
    house.write("work/Cargo.toml", "");
    house.write("work/package.json", r#"{"scripts": {"test": "x", "lint": "x", "rm": "x"}}"#);
    house.write("work/pnpm-lock.yaml", "");
    house.write("work/pyproject.toml", "");
    house.write("work/uv.lock", "");
    assert_snapshot!(guest.done(&["new"]), @r"
    wrote brigade.toml: team work, with codex and gemini
    read it, change it, and look at the outcome with `brigade up --check`
    ");
    assert_snapshot!("starter", guest.read("work/brigade.toml"));
    let answer = guest.answer(&["up", "--check"]);
    assert_eq!((&answer["valid"], &answer["missing_agents"]), (&json!(true), &json!([])));
}

#[test]
fn every_setting_that_is_offered_is_valid() {
    let guest = Guest::new(&["claude"]);
    guest.done(&["new"]);
    let starter = guest.read("work/brigade.toml");
    let unused = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = starter.lines().map(unused).collect();
    guest.house.write("work/all.toml", &lines.join("\n"));
    let answer = guest.answer(&["up", "--check", "--file", "all.toml"]);
    assert_eq!(answer["team"]["lead"]["agent"], json!("claude"));
    assert_eq!(answer["team"]["tasks"][1]["owner"], json!("builder"));
    let offered = lines.iter().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let offered: Vec<&str> = offered.collect();
    // Nobody finds out about a key that is not there.
    let schema: Value = serde_json::from_str(&repository("docs/brigade.schema.json")).unwrap();
    for key in
        schema.pointer("/properties/defaults/properties").unwrap().as_object().unwrap().keys()
    {
        assert!(offered.contains(&key.as_str()) || key == "rules", "{key}");
    }
}

#[test]
fn what_is_there_is_kept() {
    let guest = Guest::new(&[]);
    guest.house.write("work/brigade.toml", "mine");
    assert_snapshot!(guest.run(&["new"]), @r"
    --- stderr
    error: <house>/work/brigade.toml is there already
    hint: change it as you like, or begin anew with --force
    --- exit 1
    ");
    assert_eq!(guest.read("work/brigade.toml"), "mine");
    let answer = guest.answer(&["new", "--force"]);
    let path = "<house>/work/brigade.toml";
    let expected = json!({ "path": path, "team": "work", "agents": ["claude"], "schema": null });
    assert_eq!(answer, expected);
    assert!(guest.read("work/brigade.toml").contains("[members.builder]"));
}

#[test]
fn the_file_belongs_to_the_repository() {
    let guest = Guest::new(&["codex"]);
    std::fs::create_dir_all(guest.house.path("work/.git")).unwrap();
    std::fs::write(guest.house.path("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    // As Codex leaves it where there is no repository.
    std::fs::create_dir_all(guest.house.path("work/src/.git")).unwrap();
    let mut command = guest.command(&["new"]);
    let output = command.current_dir(guest.house.path("work/src")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(guest.house.path("work/brigade.toml").exists());
    assert!(!guest.house.path("work/src/brigade.toml").exists());
}

#[test]
fn the_published_schema_is_the_one_of_this_program() {
    let guest = Guest::new(&["codex"]);
    guest.done(&["new", "--schema"]);
    assert!(guest.read("work/brigade.toml").starts_with("#:schema ./brigade.schema.json\n"));
    assert_eq!(
        guest.read("work/brigade.schema.json"),
        repository("docs/brigade.schema.json"),
        "write it anew: just docs"
    );
    assert_eq!(guest.answer(&["up", "--check"])["valid"], json!(true));
}
