//! `brigade new`, and the published schema of the team file.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::init::{TestMachine, run_on_terminal};

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
    let expected = json!({ "path": path, "team": "work", "agents": ["claude"], "template": "starter", "schema": null });
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

const TEMPLATES: [&str; 6] = ["starter", "review", "feature", "bugfix", "research", "port"];

#[test]
fn every_template_is_valid_with_every_set_of_installed_agents() {
    for installed in [&[][..], &["codex"], &["claude", "codex"], &["codex", "gemini", "qwen"]] {
        for template in TEMPLATES {
            let machine = TestMachine::new(installed);
            machine.cli.write("work/Cargo.toml", "");
            let made = machine.answer(&["new", "--template", template]);
            assert_eq!(made["template"], json!(template));
            let answer = machine.answer(&["up", "--check"]);
            assert_eq!(answer["valid"], json!(true), "{template}: {answer}");
            if !installed.is_empty() {
                assert_eq!(answer["missing_agents"], json!([]), "{template}");
            }
            let members = answer["team"]["members"].as_array().unwrap();
            assert_eq!(members.len(), 2, "{template}");
            let tasks = answer["team"]["tasks"].as_array().unwrap().len();
            assert_eq!(tasks > 0, template != "starter", "{template}");
        }
    }
}

#[test]
fn the_help_and_the_list_name_every_template() {
    let machine = TestMachine::new(&[]);
    let (list, help) = (machine.run_ok(&["new", "--list"]), machine.run_ok(&["new", "--help"]));
    assert_eq!(list.lines().count(), TEMPLATES.len());
    for line in list.lines() {
        let (name, about) = line.split_once(' ').unwrap();
        assert!(TEMPLATES.contains(&name));
        let is_same = |help: &str| help.trim().starts_with(name) && help.ends_with(about.trim());
        assert!(help.lines().any(is_same), "{line}");
    }
    assert_snapshot!(machine.run(&["new", "--template", "nope"]), @"
    --- stderr
    error: invalid value 'nope' for '--template <NAME>'
      [possible values: starter, review, feature, bugfix, research, port]

    For more information, try `brigade new --help`.
    --- exit 2
    ");
}

#[test]
fn options_choose_the_template_the_agents_and_the_name() {
    let machine = TestMachine::new(&["codex", "gemini"]);
    let made = machine.answer(&[
        "new",
        "--template",
        "review",
        "--agent",
        "gemini",
        "--name",
        "reviewers",
    ]);
    assert_eq!((&made["team"], &made["agents"]), (&json!("reviewers"), &json!(["gemini"])));
    let file = machine.read("work/brigade.toml");
    assert_eq!(file.matches("agent = \"gemini\"").count(), 2, "{file}");
}

#[test]
fn new_asks_three_questions_on_a_terminal() {
    let machine = TestMachine::new(&["codex", "gemini"]);
    let (shown, code) = run_on_terminal(machine.command(&["new"]), "bugfix\ncodex\n\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("]: ").count(), 3, "{shown}");
    let file = machine.read("work/brigade.toml");
    assert!(file.contains("team = \"work\"") && file.contains("[members.fixer]"), "{file}");
}

/// A typo does not end the command: it asks again, and names the choices. After three mistakes it gives up.
#[test]
fn new_asks_again_after_a_mistake() {
    let machine = TestMachine::new(&["codex", "gemini"]);
    let typed = "bugfx\nbugfix\ncodx\ncodex\n../x\nfixers\n";
    let (shown, code) = run_on_terminal(machine.command(&["new"]), typed);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("]: ").count(), 6, "{shown}");
    for text in [
        "there is no template \"bugfx\"; did you mean bugfix? templates: starter, review, feature, ",
        "unknown agent \"codx\"; did you mean codex? agents: codex, claude, ",
        "the team name must not begin with '.'",
        "  \u{1b}[1mstarter   \u{1b}[0m A builder and a reviewer",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(machine.read("work/brigade.toml").contains("team = \"fixers\""));
    let machine = TestMachine::new(&["codex"]);
    let (shown, code) = run_on_terminal(machine.command(&["new"]), "a\nb\nc\nd\n");
    assert_eq!(code, Some(2), "{shown}");
    assert_eq!(shown.matches("]: ").count(), 3, "{shown}");
    assert!(!machine.cli.path("work/brigade.toml").exists());
}
