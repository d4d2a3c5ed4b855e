//! Rules for tools that use files.

use std::path::Path;

use brigade_core::policy::{Rule, RuleDecision, named_files, run_folder};
use serde_json::{Value, json};

use super::{FOLDER, decide_in_folder};

/// A rule for a file tool allowed files anywhere, because only the folder in which the tool runs was compared.
#[test]
fn a_rule_for_a_file_tool_is_for_files_in_the_members_folder() {
    let allowed = |tool: &str, input: &Value| {
        let tool_rule =
            Rule { ruling: RuleDecision::Allow, tool: Some(tool.into()), command: None };
        decide_in_folder(&[tool_rule], tool, input).is_some()
    };
    for (tool, input) in [
        ("edit", json!({ "path": "/etc/passwd", "content": "x" })),
        ("edit", json!({ "path": "../x" })),
        ("edit", json!({ "path": "src/../../x" })),
        ("edit", json!({ "path": "~/.bashrc" })),
        ("edit", json!({ "path": "$HOME/.bashrc" })),
        ("edit", json!({ "uri": "file:///etc/passwd" })),
        ("edit", json!({ "filepath": "/project/x", "diff": "", "path": "/etc/x" })),
        ("edit", json!({ "title": "x", "content": [{ "path": "/etc/x", "newText": "" }] })),
        // No file is named.
        ("edit", json!({ "title": "Writing to x", "content": [] })),
        ("fileChange", Value::Null),
        ("fileChange", json!({ "changes": [{ "path": "/etc/x", "diff": "" }] })),
        ("fileChange", json!({ "changes": { "/etc/x": { "type": "add" } } })),
        (
            "fileChange",
            json!({ "changes": [{ "path": "x", "kind": { "type": "update", "move_path": "/x" } }] }),
        ),
        ("Write", json!({ "file_path": "/project2/x", "content": "" })),
        ("NotebookEdit", json!({ "notebook_path": "/x.ipynb" })),
        ("MultiEdit", json!({ "file_path": "x", "edits": [{ "file_path": "/x" }] })),
        ("read", json!({ "filePath": "/etc/passwd" })),
        ("read_many", json!({ "paths": ["x", "/etc/passwd"] })),
        ("Glob", json!({ "pattern": "/etc/*" })),
        ("mcp__fs__write", json!({ "path": "/etc/x" })),
        ("move", json!({ "source": "x", "destination": "/tmp/x" })),
    ] {
        assert!(!allowed(tool, &input), "{tool} {input}");
    }
    for (tool, input) in [
        ("edit", json!({ "path": "src/x", "content": "/etc/passwd" })),
        ("edit", json!({ "path": "/project/src/x" })),
        ("edit", json!({ "title": "Writing to /x", "content": [{ "path": "/project/x" }] })),
        ("fileChange", json!({ "changes": { "src/x": { "type": "add" } } })),
        ("fileChange", json!({ "changes": [{ "path": "/project/x", "diff": "" }] })),
        ("Write", json!({ "file_path": "/project/x", "content": "../x" })),
        ("Grep", json!({ "pattern": "fn .*main", "path": "src" })),
        ("WebFetch", json!({ "url": "https://example.com/x" })),
        ("read", json!({})),
    ] {
        assert!(allowed(tool, &input), "{tool} {input}");
    }
    // A pattern for the input does not lead out of the folder, either.
    let rule = Rule {
        ruling: RuleDecision::Allow,
        tool: Some("write".into()),
        command: Some(r#"{"path":"*"}"#.into()),
    };
    let decision = |path: &str| {
        decide_in_folder(std::slice::from_ref(&rule), "write", &json!({ "path": path }))
    };
    assert!(decision("src/x").is_some());
    assert!(decision("/etc/x").is_none());
}

#[test]
fn the_files_beside_the_input_count() {
    let request = json!({ "locations": [{ "path": "/etc/x", "line": 1 }], "name": "Write" });
    let files = named_files(&json!({ "path": "x" }), &request, Path::new(FOLDER));
    assert_eq!(files, [Path::new("/project/x"), Path::new("/etc/x")]);
}

/// With two fields that name a folder, the second one hid the first.
#[test]
fn several_folder_fields_wait() {
    let rule = Rule { ruling: RuleDecision::Allow, tool: None, command: Some("ls".into()) };
    let decision = |input: &Value| {
        let cwd = run_folder(input, Path::new(FOLDER)).unwrap_or_default();
        let folder = Path::new(FOLDER);
        let tool_use = super::ToolUse { tool: "execute", input, cwd: &cwd, folder, files: &[] };
        super::decide(std::slice::from_ref(&rule), &tool_use)
    };
    assert!(decision(&json!({ "command": "ls", "cwd": "/project/sub" })).is_some());
    assert!(decision(&json!({ "command": "ls", "cwd": "/project", "workdir": "" })).is_some());
    for input in [
        json!({ "command": "ls", "cwd": "/etc", "workdir": "/project" }),
        json!({ "command": "ls", "workdir": "/project", "directory": "/project" }),
        json!({ "command": "ls", "workdir": "/etc" }),
    ] {
        assert!(decision(&input).is_none(), "{input}");
    }
}
