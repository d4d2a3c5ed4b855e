//! `brigade init` in files that somebody else has a hand in.

use std::fs::OpenOptions;
use std::os::unix::fs::{chown, symlink};

use insta::assert_snapshot;
use serde_json::json;

use crate::init::{CLAUDE, CODEX, GEMINI, Guest, SETTINGS};

#[test]
fn what_is_not_ours_is_left_alone() {
    let guest = Guest::new(&["claude", "codex", "gemini", "tmux"]);
    guest.write("claude/agents/codex.md", "mine");
    guest.write(CODEX, "[mcp_servers]\nteam = { command = \"theirs\" }\n");
    guest.write(GEMINI, "{\n  // mine\n  \"theme\": \"x\"\n}\n");
    assert_snapshot!(guest.notes(&["init", "--yes"]), @"
    note: left alone: <house>/claude/agents/codex.md: it is not brigade's
    note: left alone: <house>/home/.codex/config.toml: it has a server `team` that brigade did not put there
    note: left alone: <house>/home/.gemini/settings.json: not JSON at line 2, column 3
    ");
    assert_eq!(guest.read("claude/agents/codex.md"), "mine");
    assert_eq!(guest.read(CODEX), "[mcp_servers]\nteam = { command = \"theirs\" }\n");
    guest.write(GEMINI, r#"{"mcpServers": {"team": {"command": "theirs"}}}"#);
    let again = guest.answer(&["init"]);
    assert_eq!(again["changes"], json!([]));
    assert_eq!(again["left_alone"][2]["path"], json!("<house>/home/.gemini/settings.json"));
}

/// What `init` says of a configuration of Codex, and what it makes of it.
fn codex(before: &str) -> (String, String) {
    let guest = Guest::new(&["claude", "codex", "tmux"]);
    guest.write(CODEX, before);
    let said = guest.notes(&["init", "--yes"]);
    let after = guest.read(CODEX);
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.read(CODEX), before);
    (said, after)
}

#[test]
fn a_configuration_of_codex_in_any_spelling() {
    // The table of servers is closed: nothing can be added from below.
    let closed = "mcp_servers = { other = { command = \"x\" } }\n";
    let (said, after) = codex(closed);
    assert!(said.contains("no server `team` can be added to the way it is written"), "{said}");
    assert_eq!(after, closed);
    let (said, after) = codex("model = ");
    assert!(said.contains("config.toml: not TOML: "), "{said}");
    assert_eq!(after, "model = ");
    // What else it says of tools and code is its own.
    let (said, after) = codex("[features]\ncode_mode = true\n");
    assert_eq!(said.matches("left alone").count(), 0, "{said}");
    assert!(after.contains("[mcp_servers.team]"), "{after}");
}

#[test]
fn links_are_followed_and_stay() {
    let guest = Guest::full();
    guest.write("dotfiles/settings.json", SETTINGS);
    guest.write("dotfiles/codex/config.toml", "model = \"x\"\n");
    std::fs::create_dir_all(guest.house.path("claude")).unwrap();
    symlink("../dotfiles/settings.json", guest.house.path(CLAUDE)).unwrap();
    symlink("../dotfiles/codex", guest.house.path("home/.codex")).unwrap();
    let before = guest.everything();
    guest.done(&["init", "--yes"]);
    assert!(guest.house.path(CLAUDE).is_symlink() && guest.house.path("home/.codex").is_symlink());
    assert_eq!(guest.json("dotfiles/settings.json")["teammateMode"], json!("tmux"));
    assert!(guest.read("dotfiles/codex/config.toml").contains("[mcp_servers.team]"));
    guest.done(&["init", "--undo"]);
    assert_eq!(guest.everything(), before);
}

#[test]
fn a_link_to_what_is_not_the_users_own_is_refused() {
    let guest = Guest::new(&["claude", "tmux"]);
    std::fs::create_dir_all(guest.house.path("claude")).unwrap();
    // Root owns everything, but what it gives away; nobody else owns what is root's.
    guest.write("foreign.json", "{}");
    let foreign = match chown(guest.house.path("foreign.json"), Some(12345), None) {
        Ok(()) => guest.house.path("foreign.json"),
        Err(_) => "/etc/passwd".into(),
    };
    symlink(&foreign, guest.house.path(CLAUDE)).unwrap();
    let before = guest.everything();
    assert_snapshot!(guest.run(&["init", "--yes"]), @"
    --- stderr
    error: <house>/claude/settings.json belongs to another user
    hint: run brigade as its owner, or change the owner with `chown`
    --- exit 1
    ");
    std::fs::remove_file(guest.house.path(CLAUDE)).unwrap();
    symlink("nowhere.json", guest.house.path(CLAUDE)).unwrap();
    assert_snapshot!(guest.run(&["init", "--yes"]), @"
    --- stderr
    error: <house>/claude/settings.json is a link to nothing
    hint: make what it points at, or remove the link
    --- exit 1
    ");
    std::fs::remove_file(guest.house.path(CLAUDE)).unwrap();
    symlink(&foreign, guest.house.path(CLAUDE)).unwrap();
    assert_eq!(guest.everything(), before);
}

#[test]
fn settings_that_cannot_be_read_are_not_touched() {
    let guest = Guest::full();
    let refuse = |text: &str| {
        guest.write(CLAUDE, text);
        let before = guest.everything();
        let outcome = guest.run(&["init", "--yes"]);
        assert_eq!(guest.everything(), before);
        outcome
    };
    assert_snapshot!(refuse("{\n  // mine\n  \"model\": \"opus\"\n}\n"), @"
    --- stderr
    error: <house>/claude/settings.json is not as it should be
      caused by: not JSON at line 2, column 3
    hint: mend it by hand; brigade changes only what it can read, and comments are not JSON
    --- exit 1
    ");
    assert_snapshot!(refuse(r#"{"env": ["A=1"]}"#), @"
    --- stderr
    error: <house>/claude/settings.json is not as it should be
      caused by: expected a section of settings, found an array
    hint: mend it by hand; brigade changes only what it can read, and comments are not JSON
    --- exit 1
    ");
}

#[test]
fn two_at_once_do_not_mix() {
    let guest = Guest::new(&["claude", "tmux"]);
    guest.write("state/brigade/init/lock", "");
    let path = guest.house.path("state/brigade/init/lock");
    let lock = OpenOptions::new().write(true).open(path).unwrap();
    lock.lock().unwrap();
    assert_snapshot!(guest.run(&["init", "--yes"]), @"
    --- stderr
    error: another `brigade init` is running
    hint: answer or end that one first
    --- exit 75
    ");
    drop(lock);
    guest.done(&["init", "--yes"]);
}
