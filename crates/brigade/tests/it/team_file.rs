//! Valid `brigade.toml` files, and the errors for invalid ones.

use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::CliEnv;
use crate::init::TestMachine;

/// Invalid files, each with a description of its mistakes.
const BROKEN: &[(&str, &str)] = &[
    ("not TOML", "team = \"demo\nmembers = [\n[tasks.a\n"),
    ("the same table twice", "team = \"demo\"\n[defaults]\nagent = \"codex\"\n[defaults]\n"),
    ("an empty file", ""),
    ("an unknown key", "team = \"demo\"\ndescripton = \"x\"\n\n[taks.a]\nsubject = \"x\"\n"),
    ("a key of another section", "team = \"demo\"\n[lead]\nagent = \"codex\"\nplan = true\n"),
    ("an invalid team name", "team = \"My Team\"\n"),
    (
        "unknown agents",
        "team = \"demo\"\n[members.a]\nagent = \"codx\"\n[members.b]\nagent = \"cursor\"\n",
    ),
    ("an acp agent without a command", "team = \"demo\"\n[members.a]\nagent = \"acp: \"\n"),
    ("no agent", "team = \"demo\"\n[lead]\n[members.a]\n"),
    (
        "values of the wrong type",
        "team = 7\nmembers = true\n[defaults]\nagent = [\"codex\"]\nplan = \"yes\"\nallow = \"ls\"\nenv = { A = \"b\" }\n",
    ),
    (
        "unknown values",
        "team = \"demo\"\n[defaults]\naccess = \"al\"\nplace = \"nativ\"\nrestart = \"on-failure\"\nrules = [{ ruling = \"alow\" }]\n[lead]\nagent = \"codex\"\nanswers = \"led\"\n",
    ),
    (
        "invalid member names",
        "team = \"demo\"\ndefaults.agent = \"codex\"\n[members.team-lead]\n[members.system]\n[members.\"a b\"]\n[members.bob]\n[members.Bob]\n",
    ),
    (
        "native members that are not Claude Code",
        "team = \"demo\"\n[defaults]\nplace = \"native\"\n[members.a]\nagent = \"claude\"\n[members.b]\nagent = \"codex\"\n[members.c]\nagent = \"gemini\"\nplace = \"native\"\n",
    ),
    (
        "invalid prompts",
        "team = \"demo\"\ndefaults.agent = \"codex\"\n[members.a]\nprompt = \"x\"\nprompt-file = \"there.md\"\n[members.b]\nprompt-file = \"missing.md\"\n[members.c]\nprompt-file = \"empty.md\"\n[members.d]\nprompt-file = \".\"\n[members.e]\nprompt-file = \"binary.md\"\n[members.f]\nprompt = \" \"\n",
    ),
    (
        "a missing folder",
        "team = \"demo\"\ndefaults.agent = \"codex\"\n[members.a]\ndir = \"nowhere\"\n",
    ),
    (
        "invalid variable names",
        "team = \"demo\"\n[defaults]\nagent = \"codex\"\nenv = [\"KEY=secret\", \"9\", \"OK\", \"\"]\n",
    ),
    (
        "invalid rules",
        "team = \"demo\"\n[members.a]\nagent = \"codex\"\ndeny = [\"\"]\nallow = [\"git log | head *\", \"make *\"]\n[[members.a.rules]]\nruling = \"allow\"\ncommand = \"sudo make\"\n[[members.a.rules]]\ntool = \"Bash\"\n[[members.a.rules]]\nrulling = \"deny\"\n",
    ),
    (
        "invalid tasks",
        "team = \"demo\"\n[tasks.lex]\nsubject = \"x\"\nafter = [\"lexx\", \"lex\"]\n[tasks.\"a b\"]\nsubject = \"\"\n[tasks.c]\n",
    ),
    (
        "cyclic task dependencies",
        "team = \"demo\"\n[tasks]\na = { subject = \"a\", after = [\"c\"] }\nb = { subject = \"b\", after = [\"a\"] }\nc = { subject = \"c\", after = [\"b\"] }\nd = { subject = \"d\", after = [\"a\"] }\ne = { subject = \"e\", after = [\"f\"] }\nf = { subject = \"f\", after = [\"e\"] }\n",
    ),
    (
        "an unknown task owner",
        "team = \"demo\"\n[members.alice]\nagent = \"codex\"\n[tasks.a]\nsubject = \"x\"\nowner = \"alise\"\n",
    ),
    (
        "control characters",
        "team = \"demo\"\n[members.\"\\u001b[2J\"]\nagent = \"\u{202e}codex\"\n",
    ),
];

#[test]
fn mistakes_are_reported_with_positions() {
    let mut text = String::new();
    for (what, file) in BROKEN {
        let cli = CliEnv::new();
        cli.write("work/there.md", "Hello");
        cli.write("work/empty.md", "\n");
        std::fs::write(cli.path("work/binary.md"), b"\xff\xfe").unwrap();
        cli.write("work/brigade.toml", file);
        let outcome = cli.run(&["up", "--check"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{what}");
        let _infallible = writeln!(text, "===== {what}\n{}", outcome.stderr);
    }
    assert_snapshot!("broken", text);
}

const WHOLE: &str = r#"
team = "parser"
description = "Ship the parser"

[lead]
agent = "claude"
place = "native"
answers = "lead"

[defaults]
agent = "codex"
model = "gpt"
access = "full"
worktree = true
plan = true
env = ["OPENAI_API_KEY"]
restart = "never"
allow = ["cargo test*"]
deny = ["git push*"]

[members.zoe]
prompt-file = "prompts/zoe.md"
plan = false
dir = "sub"
allow = ["ls*"]
ask = ["git commit*"]
deny = ["rm*"]

[[members.zoe.rules]]
tool = "Bash"
command = "make*"
ruling = "allow"

[members.alice]
agent = "gemini"
prompt = "Begin"
access = "ask"
place = "tmux"
restart = "always"
worktree = false
env = []

[tasks.write]
subject = "Write it"
after = ["design"]
owner = "zoe"

[tasks.design]
subject = "Design it"
description = "On paper"
"#;

/// Creates an environment with a team file that uses every setting.
fn whole() -> TestMachine {
    let machine = TestMachine::new(&["codex", "gemini"]);
    machine.cli.write("work/brigade.toml", WHOLE);
    machine.cli.write("work/prompts/zoe.md", "Hello, Zoe\n");
    std::fs::create_dir_all(machine.cli.path("work/sub/deep")).unwrap();
    machine
}

#[test]
fn every_setting_is_read() {
    let machine = whole();
    let answer = machine.answer(&["up", "--check"]);
    let rule = |ruling: &str, command: &str| json!({ "ruling": ruling, "command": command });
    let (deny, test) = (rule("deny", "git push*"), rule("allow", "cargo test*"));
    let make = json!({ "ruling": "allow", "tool": "Bash", "command": "make*" });
    assert_eq!(
        answer,
        json!({
            "valid": true,
            "trust": "trusted",
            "file": "brigade.toml",
            "changes": null,
            "starts": [
                {
                    "name": "team-lead", "agent": "claude", "model": null, "cwd": "<root>/work", "worktree": false,
                    "access": "full", "plan": false,
                },
                {
                    "name": "zoe", "agent": "codex", "model": "gpt", "cwd": "<root>/work/sub", "worktree": true,
                    "access": "full", "plan": false,
                },
                {
                    "name": "alice", "agent": "gemini", "model": null, "cwd": "<root>/work", "worktree": false,
                    "access": "ask", "plan": true,
                },
            ],
            "missing_agents": ["claude"],
            "logins": [
                { "agent": "codex", "members": ["zoe"], "login": "unknown", "log_in": "`codex login` logs in" },
                {
                    "agent": "gemini", "members": ["alice"], "login": "unknown",
                    "log_in": "`gemini` asks how to log in; or set GEMINI_API_KEY",
                },
            ],
            "team": {
                "team": "parser",
                "description": "Ship the parser",
                "root": "<root>/work",
                "answers": "lead",
                "lead": {
                    "name": "team-lead", "agent": "claude", "program": null, "model": null, "prompt": null,
                    "plan": false, "access": "full", "rules": [deny, test],
                    "cwd": "<root>/work", "worktree": false, "env": ["OPENAI_API_KEY"],
                    "place": "native", "restart": "never",
                },
                "members": [
                    {
                        "name": "zoe", "agent": "codex", "program": null, "model": "gpt", "prompt": "Hello, Zoe\n",
                        "plan": false, "access": "full",
                        "rules": [
                            rule("deny", "rm*"), deny, make, rule("ask", "git commit*"),
                            rule("allow", "ls*"), test,
                        ],
                        "cwd": "<root>/work/sub", "worktree": true, "env": ["OPENAI_API_KEY"],
                        "place": "headless", "restart": "never",
                    },
                    {
                        "name": "alice", "agent": "gemini", "program": null, "model": null, "prompt": "Begin",
                        "plan": true, "access": "ask", "rules": [deny, test],
                        "cwd": "<root>/work", "worktree": false, "env": [],
                        "place": "tmux", "restart": "always",
                    },
                ],
                "tasks": [
                    {
                        "key": "design", "subject": "Design it", "description": "On paper",
                        "after": [], "owner": null,
                    },
                    {
                        "key": "write", "subject": "Write it", "description": "",
                        "after": ["design"], "owner": "zoe",
                    },
                ],
            },
        })
    );
}

#[test]
fn check_previews_the_team() {
    let machine = whole();
    assert_snapshot!("would_be", machine.run(&["up", "--check"]));
    // `up --check` starts and changes nothing.
    assert!(!machine.cli.path("claude").exists());
    assert_eq!(std::fs::read_dir(machine.cli.path("state")).unwrap().count(), 0);
}

#[test]
fn mistakes_as_json() {
    let cli = CliEnv::new();
    cli.write("work/x.toml", "team = \"demo\"\n\n[members.a]\nagent = \"codx\"\nplan = 1\n");
    let outcome = cli.run(&["up", "--check", "--file", "x.toml", "--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), ""));
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        answer,
        json!({
            "valid": false,
            "file": "x.toml",
            "mistakes": [
                {
                    "line": 4, "column": 9, "message": "unknown agent \"codx\"",
                    "hint": "did you mean \"codex\"?",
                },
                { "line": 5, "column": 8, "message": "this must be true or false" },
            ],
        })
    );
}

#[test]
fn the_file_is_found_from_subfolders() {
    let machine = whole();
    let deep = machine.cli.path("work/sub/deep");
    let output = machine.command(&["up", "--check"]).current_dir(&deep).output().unwrap();
    let outcome = machine.cli.outcome(&output);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.starts_with("<root>/work/brigade.toml is valid"), "{outcome}");
}

#[test]
fn unreadable_files_are_reported() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["up", "--check"]), @"
    --- stderr
    error: there is no brigade.toml here or in any folder above
    hint: `brigade new` writes one
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["up", "--check", "--file", "x"]), @"
    --- stderr
    error: cannot read x
      caused by: No such file or directory (os error 2)
    hint: `brigade new` writes one
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["up", "--check", "--file", "."]), @r"
    --- stderr
    error: . is not a file
    --- exit 1
    ");
    std::fs::write(cli.path("work/bytes"), b"team = \"\xff\"").unwrap();
    assert_snapshot!(cli.run(&["up", "--check", "--file", "bytes"]), @r"
    --- stderr
    error: bytes is not UTF-8
    --- exit 1
    ");
    std::fs::write(cli.path("work/long"), vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_snapshot!(cli.run(&["up", "--check", "--file", "long"]), @r"
    --- stderr
    error: long is longer than 1 MiB
    --- exit 1
    ");
}
