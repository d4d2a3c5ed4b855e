//! `brigade team …`

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn teams_are_created_joined_shown_left_and_deleted() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["team", "list"]), @"
    --- stderr
    note: there is no team yet; create one with `brigade team create NAME`
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["team", "create", "demo", "-d", "Ship it"]), @"created team demo; you are its team-lead");
    assert_snapshot!(cli.run(&["team", "create", "demo"]), @r#"
    --- stderr
    error: a team named "demo" already exists
    hint: use it with `--team demo`, or delete it with `brigade team delete demo`
    --- exit 1
    "#);
    assert_snapshot!(cli.run(&["team", "join", "bob", "--agent-type", "codex", "--model", "gpt-5"]), @"bob joined team demo (color: blue)");
    assert_snapshot!(cli.run(&["team", "join", "Bob"]), @r#"
    --- stderr
    error: 'Bob' would share an inbox with "bob"; choose another name
    hint: `brigade team show` lists the members
    --- exit 1
    "#);
    assert_snapshot!(cli.run(&["team", "join", "system"]), @"
    --- stderr
    error: invalid value 'system' for '<NAME>': the member name 'system' is reserved: Claude Code's own notices come from it

    For more information, try `brigade team join --help`.
    --- exit 2
    ");
    assert_snapshot!(cli.run(&["team", "activity", "bob", "active"]), @"bob is active");
    assert_snapshot!(cli.run(&["team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    demo  2        Ship it
    ");
    assert_snapshot!(cli.run(&["team", "show"]), @"
    demo  Ship it
    a named team, created <date and time>

    MEMBER     TYPE       STATE   MODEL    FOLDER
    team-lead  team-lead  -       unknown  <root>/work
    bob        codex      active  gpt-5    <root>/work
    ");
    assert_snapshot!(cli.run(&["team", "delete"]), @"
    --- stderr
    error: team demo still has active members: bob
    hint: wait until the members are idle, or delete the team anyway with --force
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["team", "activity", "bob", "idle"]), @"bob is idle");
    assert_snapshot!(cli.run(&["team", "leave", "bob"]), @"bob left team demo");
    assert_snapshot!(cli.run(&["team", "leave", "bob"]), @"
    --- stderr
    error: no member bob in team demo
    hint: members: team-lead
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["team", "leave", "team-lead"]), @"
    --- stderr
    error: the lead cannot leave; delete the team instead
    hint: `brigade team delete` deletes the whole team
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["team", "delete", "demo"]), @"deleted team demo; its history: `brigade --team demo log`");
    assert_snapshot!(cli.run(&["team", "show"]), @"
    --- stderr
    error: there is no team yet
    hint: create one with `brigade team create NAME`, or from a file with `brigade new` and `brigade up`
    --- exit 1
    ");
}

#[test]
fn leaving_unassigns_unfinished_tasks() {
    let cli = CliEnv::with_team();
    for subject in ["one", "two", "three"] {
        cli.run_ok(&["task", "add", subject]);
    }
    for id in ["1", "2"] {
        cli.run_ok(&["--as", "bob", "task", "claim", id]);
    }
    cli.run_ok(&["--as", "bob", "task", "done", "1"]);
    assert_snapshot!(cli.run(&["team", "leave", "bob"]), @"
    bob left team demo
    unassigned its unfinished tasks: 2
    ");
    assert_snapshot!(cli.run(&["task", "list"]), @"
    ID  STATE    OWNER  SUBJECT
    1   ● done   bob    one
    2   ○ ready  -      two
    3   ○ ready  -      three
    ");
}

#[test]
fn json_output() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&["team", "list", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["team", "create", "demo", "--json"]), @r#"{"team":"demo"}"#);
    assert_snapshot!(cli.run(&["team", "join", "bob", "--json"]), @r#"{"color":"blue","name":"bob","team":"demo"}"#);
    assert_snapshot!(cli.run(&["team", "activity", "bob", "active", "--json"]), @r#"{"active":true,"name":"bob"}"#);
    assert_snapshot!(cli.run(&["team", "list", "--json"]), @r#"[{"description":"","members":2,"name":"demo"}]"#);
    assert_snapshot!(cli.run(&["team", "leave", "bob", "--json"]), @r#"{"name":"bob","released":[],"team":"demo"}"#);
    assert_snapshot!(cli.run(&["team", "show", "--json"]), @r#"
    {
      "name": "demo",
      "description": "",
      "createdAt": <ms>,
      "leadAgentId": "team-lead@demo",
      "leadSessionId": "<id>",
      "members": [
        {
          "agentId": "team-lead@demo",
          "name": "team-lead",
          "agentType": "team-lead",
          "model": "unknown",
          "joinedAt": <ms>,
          "tmuxPaneId": "",
          "cwd": "<root>/work",
          "subscriptions": []
        }
      ]
    }
    "#);
    assert_snapshot!(cli.run(&["team", "delete", "--json"]), @r#"{"team":"demo"}"#);
}

#[test]
fn show_json_prints_the_file() {
    let cli = CliEnv::with_native_team();
    let file = std::fs::read_to_string(cli.path("claude/teams/theirs/config.json")).unwrap();
    assert_eq!(cli.run_ok(&["team", "show", "--json"]), file + "\n");
}

#[test]
fn an_unreadable_team_does_not_hide_the_others() {
    let cli = CliEnv::with_team();
    cli.write("claude/teams/torn/config.json", "{\"name\": \"to");
    assert_snapshot!(cli.run(&["team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    demo  3        Ship the parser
    --- stderr
    note: team torn cannot be read: cut off after 12 bytes
    ");
    assert_snapshot!(cli.run(&["--team", "torn", "team", "show"]), @"
    --- stderr
    error: the configuration of team torn cannot be read: cut off after 12 bytes
    hint: Claude Code may be writing it at this moment; if the error stays, fix the file by hand
    --- exit 1
    ");
}

/// Claude Code keeps task lists in the same folder. A new team of the same name must not delete them.
#[test]
fn a_task_list_of_the_same_name_is_moved_and_not_deleted() {
    let cli = CliEnv::new();
    let task = r#"{"id": "3", "subject": "Mine", "description": "", "status": "pending", "blocks": [], "blockedBy": []}"#;
    cli.write("claude/tasks/demo/3.json", task);
    cli.write("claude/tasks/demo/4.json", "{torn");
    let created = cli.run(&["team", "create", "demo"]);
    assert_eq!(created.code, Some(0), "{created}");
    assert!(
        created.stderr.contains("claude/tasks/demo already had 2 tasks; moved to "),
        "{created}"
    );
    assert_eq!(cli.run(&["task", "list"]).code, Some(4));
    let (_, aside) = created.stderr.split_once("moved to <root>/").unwrap();
    let aside = std::fs::read_dir(cli.path(aside.split_once("/aside/").unwrap().0).join("aside"));
    let aside = aside.unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(aside.join("3.json")).unwrap(), task);
    assert_eq!(std::fs::read_to_string(aside.join("4.json")).unwrap(), "{torn");
    // The numbers of these tasks are not used again.
    cli.run_ok(&["task", "add", "New"]);
    assert_eq!(cli.json(&["task", "list"])[0]["id"], "5");
}

#[test]
fn new_does_not_choose_the_name_of_a_task_list() {
    let cli = CliEnv::new();
    cli.write("claude/tasks/work/1.json", "{}");
    assert_eq!(cli.json(&["new"])["team"], "work-2");
}
