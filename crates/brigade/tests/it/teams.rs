//! `brigade team …`

use insta::assert_snapshot;

use crate::env::House;

#[test]
fn a_team_is_created_joined_shown_left_and_deleted() {
    let house = House::new();
    assert_snapshot!(house.run(&["team", "list"]), @"
    --- stderr
    note: there is no team yet; `brigade team create NAME` makes one
    --- exit 4
    ");
    assert_snapshot!(house.run(&["team", "create", "demo", "-d", "Ship it"]), @"created team demo; you are its team-lead");
    assert_snapshot!(house.run(&["team", "create", "demo"]), @r#"
    --- stderr
    error: a team named "demo" already exists
    hint: use it with `--team demo`, or delete it with `brigade team delete demo`
    --- exit 1
    "#);
    assert_snapshot!(house.run(&["team", "join", "bob", "--agent-type", "codex", "--model", "gpt-5"]), @"bob joined team demo, in blue");
    assert_snapshot!(house.run(&["team", "join", "Bob"]), @r#"
    --- stderr
    error: 'Bob' would share an inbox with "bob"; choose another name
    hint: `brigade team show` lists the members
    --- exit 1
    "#);
    assert_snapshot!(house.run(&["team", "join", "system"]), @"
    --- stderr
    error: invalid value 'system' for '<NAME>': the member name 'system' is reserved: Claude Code's own notices come from it

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(house.run(&["team", "activity", "bob", "active"]), @"bob is active");
    assert_snapshot!(house.run(&["team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    demo  2        Ship it
    ");
    assert_snapshot!(house.run(&["team", "show"]), @"
    demo  Ship it
    a named team, since <date and time>

    MEMBER     TYPE       STATE   MODEL    WORKS IN
    team-lead  team-lead  -       unknown  <house>/work
    bob        codex      active  gpt-5    <house>/work
    ");
    assert_snapshot!(house.run(&["team", "delete"]), @"
    --- stderr
    error: team demo still has active members: bob
    hint: wait until they are idle, or delete it all the same with --force
    --- exit 1
    ");
    assert_snapshot!(house.run(&["team", "activity", "bob", "idle"]), @"bob is idle");
    assert_snapshot!(house.run(&["team", "leave", "bob"]), @"bob left team demo");
    assert_snapshot!(house.run(&["team", "leave", "bob"]), @"
    --- stderr
    error: no member bob in team demo
    hint: members are team-lead
    --- exit 1
    ");
    assert_snapshot!(house.run(&["team", "leave", "team-lead"]), @"
    --- stderr
    error: the lead cannot leave; delete the team instead
    hint: `brigade team delete`
    --- exit 1
    ");
    assert_snapshot!(house.run(&["team", "delete", "demo"]), @"deleted team demo; its history stays: `brigade --team demo log`");
    assert_snapshot!(house.run(&["team", "show"]), @"
    --- stderr
    error: there is no team yet
    hint: `brigade team create NAME` makes one, `brigade new` and `brigade up` one from a file
    --- exit 1
    ");
}

#[test]
fn leaving_gives_open_tasks_back() {
    let house = House::with_team();
    for subject in ["one", "two", "three"] {
        house.done(&["task", "add", subject]);
    }
    for id in ["1", "2"] {
        house.done(&["--as", "bob", "task", "claim", id]);
    }
    house.done(&["--as", "bob", "task", "done", "1"]);
    assert_snapshot!(house.run(&["team", "leave", "bob"]), @"
    bob left team demo
    gave back its open tasks: 2
    ");
    assert_snapshot!(house.run(&["task", "list"]), @"
    ID  STATE    OWNER  SUBJECT
    1   ● done   bob    one
    2   ○ ready  -      two
    3   ○ ready  -      three
    ");
}

#[test]
fn answers_for_programs() {
    let house = House::new();
    assert_snapshot!(house.run(&["team", "list", "--json"]), @"
    []
    --- exit 4
    ");
    assert_snapshot!(house.run(&["team", "create", "demo", "--json"]), @r#"{"team":"demo"}"#);
    assert_snapshot!(house.run(&["team", "join", "bob", "--json"]), @r#"{"color":"blue","name":"bob","team":"demo"}"#);
    assert_snapshot!(house.run(&["team", "activity", "bob", "active", "--json"]), @r#"{"active":true,"name":"bob"}"#);
    assert_snapshot!(house.run(&["team", "list", "--json"]), @r#"[{"description":"","members":2,"name":"demo"}]"#);
    assert_snapshot!(house.run(&["team", "leave", "bob", "--json"]), @r#"{"name":"bob","released":[],"team":"demo"}"#);
    assert_snapshot!(house.run(&["team", "show", "--json"]), @r#"
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
          "cwd": "<house>/work",
          "subscriptions": []
        }
      ]
    }
    "#);
    assert_snapshot!(house.run(&["team", "delete", "--json"]), @r#"{"team":"demo"}"#);
}

#[test]
fn shown_as_json_it_is_the_file_itself() {
    let house = House::with_native_team();
    let file = std::fs::read_to_string(house.path("claude/teams/theirs/config.json")).unwrap();
    assert_eq!(house.done(&["team", "show", "--json"]), file + "\n");
}

#[test]
fn a_team_that_cannot_be_read_does_not_hide_the_others() {
    let house = House::with_team();
    house.write("claude/teams/torn/config.json", "{\"name\": \"to");
    assert_snapshot!(house.run(&["team", "list"]), @"
    TEAM  MEMBERS  DESCRIPTION
    demo  3        Ship the parser
    --- stderr
    note: team torn cannot be read: cut off after 12 bytes
    ");
    assert_snapshot!(house.run(&["--team", "torn", "team", "show"]), @"
    --- stderr
    error: the configuration of team torn cannot be read: cut off after 12 bytes
    hint: Claude Code may be writing it just now; if it stays so, mend the file by hand
    --- exit 1
    ");
}
