//! The text of `brigade status` and of `brigade` without a command.

use insta::assert_snapshot;

use crate::host::HostedTeam;
use crate::process::wait_until;

/// Replaces the number of seconds in a text, which differs from run to run.
fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let mut shown = String::new();
    for (at, word) in words.iter().enumerate() {
        let is_time = word.trim_end().parse::<u32>().is_ok()
            && words.get(at + 1).is_some_and(|unit| unit.trim_end() == "s");
        shown.push_str(if is_time { "0 " } else { word });
    }
    shown
}

#[test]
fn status_shows_the_work_of_members_and_the_requests_that_wait() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    team.cli.run_ok(&["send", "alice", "ASK first"]);
    wait_until("the request", || team.cli.member("alice")["liveness"] == "waiting");
    wait_until("bob is idle", || team.cli.member("bob")["liveness"] == "idle");
    team.cli.run_ok(&["--as", "alice", "task", "claim", "1"]);
    assert_snapshot!(without_times(&team.cli.run_ok(&["status"])), @r"
    demo (you lead)  2 members · 0 of 2 tasks done · 1 approval waiting
      MEMBER  AGENT              STATE               TASK
      alice   acp:fake-agent.sh  wants to run: make  1 First
      bob     acp:fake-agent.sh  idle 0 s            –
      COMMAND            WAITING FOR YOU
      brigade approve 1  alice wants to run: make
    ");
    assert_snapshot!(without_times(&team.cli.run_ok(&[])), @r"
    demo  2 members and the lead
      MEMBER     STATE               UNREAD  TYPE
      team-lead  -                   -       team-lead
      alice      wants to run: make  -       acp:fake-agent.sh
      bob        idle 0 s            -       acp:fake-agent.sh

      2 tasks: 1 in progress, 1 blocked
      COMMAND            WAITING FOR YOU
      brigade approve 1  alice wants to run: make
    ");
    let status = team.cli.status();
    assert_eq!(status["members"][0]["words"], "wants to run: make");
    assert_eq!(status["members"][0]["task"]["subject"], "First");
    assert_eq!(status["attention"][0]["command"], "brigade approve 1 --team demo");
}

/// The lead's inbox has a request, an idle notice and a text; the dashboard has its own test of the same rule.
#[test]
fn every_view_counts_the_same_messages_and_members() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    team.cli.run_ok(&["send", "alice", "ASK first"]);
    wait_until("the request", || team.cli.member("alice")["liveness"] == "waiting");
    wait_until("bob is idle", || team.cli.member("bob")["liveness"] == "idle");
    team.cli.run_ok(&["team", "join", "carol"]);
    team.cli.run_ok(&["send", "team-lead", "hello", "--as", "bob"]);
    assert!(team.cli.json(&["inbox", "--unread"]).as_array().unwrap().len() > 1);
    let status = team.cli.run_ok(&["status"]);
    assert!(status.starts_with("demo (you lead)  3 members · "), "{status}");
    assert!(status.contains("\n  not run by brigade: carol\n"), "{status}");
    assert!(status.contains("  brigade inbox --unread  1 unread message\n"), "{status}");
    assert_eq!(team.cli.status()["unread"], 1);
    let overview = team.cli.run_ok(&[]);
    assert!(overview.starts_with("demo  3 members and the lead\n"), "{overview}");
    assert!(
        overview.contains("\n  team-lead  -                   1       team-lead\n"),
        "{overview}"
    );
    assert!(overview.contains("  brigade inbox --unread  1 unread message\n"), "{overview}");
}

#[test]
fn watch_needs_a_terminal() {
    let team = HostedTeam::new();
    assert_eq!(team.cli.run(&["status", "--watch"]).code, Some(2));
}
