//! `brigade` without a command

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn without_a_team_it_shows_how_to_start() {
    let cli = CliEnv::new();
    assert_snapshot!(cli.run(&[]), @"
    There is no team yet. To start one:
      brigade init                 Claude Code leads and can start teammates of other vendors
      brigade new, brigade up      you lead a team defined in a file
      brigade team create demo     you lead and add agents with `brigade spawn bob --agent codex`
    ");
    assert_snapshot!(cli.run(&["--json"]), @"[]");
}

#[test]
fn shows_members_unread_messages_and_ready_tasks() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["broadcast", "hello"]);
    cli.run_ok(&["send", "bob", "and you"]);
    for subject in ["a", "b", "c", "d", "e", "f"] {
        cli.run_ok(&["task", "add", subject]);
    }
    cli.run_ok(&["task", "add", "g", "--blocked-by", "1"]);
    cli.run_ok(&["team", "create", "other"]);
    assert_snapshot!(cli.run(&[]), @"
    demo  2 members and the lead · Ship the parser
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

    other  0 members and the lead
      MEMBER     STATE  UNREAD  TYPE
      team-lead  -      -       team-lead

      no tasks
    ");
    assert_snapshot!(cli.run(&["--team", "other"]), @"
    other  0 members and the lead
      MEMBER     STATE  UNREAD  TYPE
      team-lead  -      -       team-lead

      no tasks
    ");
    assert_snapshot!(cli.run(&["--json"]), @r#"[{"name":"demo","description":"Ship the parser","members":[{"name":"team-lead","agent_type":"team-lead","active":null,"unread":0},{"name":"alice","agent_type":"general-purpose","active":false,"unread":1},{"name":"bob","agent_type":"codex","active":false,"unread":2}],"tasks":{"total":7,"done":0,"in_progress":0,"blocked":1,"kept":0,"ready":6},"ready":["1","2","3","4","5","6"]},{"name":"other","description":"","members":[{"name":"team-lead","agent_type":"team-lead","active":null,"unread":0}],"tasks":{"total":0,"done":0,"in_progress":0,"blocked":0,"kept":0,"ready":0},"ready":[]}]"#);
}
