//! `brigade` alone

use insta::assert_snapshot;

use crate::env::House;

#[test]
fn with_no_team_it_says_how_to_start() {
    let house = House::new();
    assert_snapshot!(house.run(&[]), @"
    There is no team yet. Three ways to one:
      brigade init                 Claude Code leads, and can start teammates of other vendors
      brigade new, brigade up      you lead a team from a file, of the agents installed here
      brigade team create demo     you lead, and add agents with `brigade spawn bob --agent codex`
    ");
    assert_snapshot!(house.run(&["--json"]), @"[]");
}

#[test]
fn it_shows_members_unread_messages_and_ready_tasks() {
    let house = House::with_team();
    house.done(&["broadcast", "hello"]);
    house.done(&["send", "bob", "and you"]);
    for subject in ["a", "b", "c", "d", "e", "f"] {
        house.done(&["task", "add", subject]);
    }
    house.done(&["task", "add", "g", "--blocked-by", "1"]);
    house.done(&["team", "create", "other"]);
    assert_snapshot!(house.run(&[]), @"
    demo  Ship the parser
      MEMBER     STATE  UNREAD  TYPE
      team-lead  -      -       team-lead
      alice      idle   1       general-purpose
      bob        idle   2       codex

      7 tasks: 1 blocked, 6 ready
      ○ 1  a
      ○ 2  b
      ○ 3  c
      ○ 4  d
      ○ 5  e
      … 1 more: brigade task list --ready

    other
      MEMBER     STATE  UNREAD  TYPE
      team-lead  -      -       team-lead

      no tasks
    ");
    assert_snapshot!(house.run(&["--team", "other"]), @"
    other
      MEMBER     STATE  UNREAD  TYPE
      team-lead  -      -       team-lead

      no tasks
    ");
    assert_snapshot!(house.run(&["--json"]), @r#"[{"name":"demo","description":"Ship the parser","members":[{"name":"team-lead","agent_type":"team-lead","active":null,"unread":0},{"name":"alice","agent_type":"general-purpose","active":false,"unread":1},{"name":"bob","agent_type":"codex","active":false,"unread":2}],"tasks":{"total":7,"done":0,"in_progress":0,"blocked":1,"kept":0,"ready":6},"ready":["1","2","3","4","5","6"]},{"name":"other","description":"","members":[{"name":"team-lead","agent_type":"team-lead","active":null,"unread":0}],"tasks":{"total":0,"done":0,"in_progress":0,"blocked":0,"kept":0,"ready":0},"ready":[]}]"#);
}
