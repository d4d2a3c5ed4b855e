//! The filters of `brigade logs`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::wait_until;

fn team_with_history() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "please review the Parser"]);
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    cli.run_ok(&["--as", "bob", "send", "alice", "it works"]);
    cli.run_ok(&["task", "add", "Design"]);
    cli.run_ok(&["task", "add", "Build"]);
    cli.run_ok(&["task", "update", "1", "--owner", "alice"]);
    cli.run_ok(&["task", "done", "1"]);
    cli
}

#[test]
fn filters_select_events() {
    let cli = team_with_history();
    assert_snapshot!(cli.run(&["logs", "-n", "2"]), @"
    <date>
    <time>  team-lead → alice   task 1 assigned: Design  · unread
    <time>  team-lead           task 1 completed: Design
    ");
    assert_snapshot!(cli.run(&["logs", "--member", "bob"]), @"
    <date>
    <time>  bob                 joined
    <time>  team-lead → bob     please review the Parser  · read <time>
    <time>  bob → alice         it works  · unread
    ");
    assert_snapshot!(cli.run(&["logs", "--task", "1"]), @"
    <date>
    <time>  team-lead           task 1 added: Design
    <time>  team-lead           task 1 owner alice: Design
    <time>  team-lead → alice   task 1 assigned: Design  · unread
    <time>  team-lead           task 1 completed: Design
    ");
    assert_snapshot!(cli.run(&["log", "--kind", "mail", "team"]), @"
    <date>
    <time>  team-lead           team created
    <time>  team-lead → bob     please review the Parser  · read <time>
    <time>  bob → alice         it works  · unread
    ");
    assert_snapshot!(cli.run(&["logs", "--grep", "parser", "--since", "10m"]), @"
    <date>
    <time>  team-lead → bob     please review the Parser  · read <time>
    ");
    for none in [["--until", "10m"], ["--since", "2200-01-01"], ["--grep", "nothing"]] {
        assert_eq!(cli.run(&[&["logs"], none.as_slice()].concat()).code, Some(4), "{none:?}");
    }
    let records = cli.run_ok(&["logs", "--json", "--kind", "task", "-n", "2"]);
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["event"]["task"]["id"], 1);
    assert_snapshot!(cli.run(&["logs", "--since", "soon"]), @"
    --- stderr
    error: invalid value 'soon' for '--since <TIME>': use 10m, 2h, 1d, yesterday, 14:00, <date> or <date>T14:00

    For more information, try `brigade logs --help`.
    --- exit 2
    ");
}

/// The end of a long history is read without its beginning.
#[test]
fn the_last_events_of_a_long_history_have_the_same_lines() {
    let cli = team_with_history();
    let long = "long ".repeat(6_000);
    for number in 0..60 {
        let to = if number % 2 == 0 { "bob" } else { "alice" };
        cli.run_ok(&["send", to, &format!("{number} {long}")]);
    }
    cli.run_ok(&["--as", "bob", "inbox", "--mark-read"]);
    cli.run_ok(&["task", "update", "2", "--owner", "bob"]);
    cli.run_ok(&["task", "done", "2"]);
    cli.run_ok(&["task", "delete", "1"]);
    let events = |args: &[&str]| {
        let output = cli.run_ok(&[&["logs"], args].concat());
        output.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = events(&[]);
    assert!(all.last().unwrap().contains("task 1 deleted"), "{all:?}");
    for count in [1, 3, 5, 20, 50, 60, 500] {
        let expected = &all[all.len().saturating_sub(count)..];
        assert_eq!(events(&["-n", &count.to_string()]), expected, "the last {count}");
    }
    assert_eq!(events(&["--since", "1h"]), all);
    for filter in [["--member", "alice"], ["--task", "2"], ["--kind", "mail"], ["--grep", "7 long"]]
    {
        let all = events(&filter);
        let last = events(&[&filter[..], &["-n", "2"]].concat());
        assert_eq!(last, &all[all.len() - 2..], "{filter:?}");
    }
    let json = |args: &[&str]| cli.run_ok(&[&["logs", "--json"], args].concat());
    let all = json(&[]);
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(json(&["-n", "7"]).lines().collect::<Vec<_>>(), &all[all.len() - 7..]);
}

/// A reused team name showed the events of all earlier teams with this name.
#[test]
fn earlier_teams_with_the_same_name_are_shown_on_request() {
    let cli = team_with_history();
    cli.run_ok(&["team", "delete", "--force"]);
    assert!(cli.run_ok(&["--team", "demo", "logs"]).contains("it works"), "the deleted team");
    cli.run_ok(&["team", "create", "demo"]);
    cli.run_ok(&["task", "add", "Other"]);
    let shown = cli.run(&["logs"]);
    assert_snapshot!(shown, @"
    <date>
    <time>  team-lead           team created
    <time>  team-lead           task 1 added: Other
    ");
    // The journal records the end of the earlier mailboxes after the new team was created.
    let records = cli.run_ok(&["logs", "--json"]);
    assert!(records.lines().next().unwrap().contains("team_created"), "{records}");
    assert!(!records.contains("it works") && !records.contains("Design"), "{records}");
    assert!(cli.run_ok(&["logs", "--all-teams"]).contains("it works"));
    assert!(cli.run_ok(&["logs", "--all-teams", "--json"]).lines().count() > 8);
}

#[test]
fn a_member_s_conversation_is_printed_in_full() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    let long = format!("TALK {}", "about the parser ".repeat(20));
    cli.run_ok(&["ask", "bob", &long]);
    let log = cli.run_ok(&["logs", "--member", "bob", "--work"]);
    assert!(log.contains(long.trim()), "{log}");
    assert!(log.contains("I am talking"), "{log}");
    assert!(!log.contains("hello alice"), "{log}");
    assert!(cli.run_ok(&["logs", "--kind", "work", "-n", "3"]).contains("ended its turn"));
}

#[test]
fn a_text_keeps_its_lines_and_a_match_in_any_line_shows_all() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    cli.run_ok(&["ask", "bob", "please WORK"]);
    let lines = format!("bob                 “It is\n{:30}made.”\n", "");
    let logs = |args: &[&str]| cli.run(&[&["logs"], args].concat()).stdout;
    wait_until("the recorded work", || logs(&["bob", "--work"]).contains("made.”"));
    assert!(logs(&["bob", "--work"]).contains(&lines), "{}", logs(&["bob", "--work"]));
    assert!(logs(&["--work", "--grep", "MADE"]).contains(&lines));
    assert!(logs(&["--work"]).contains("“It is … (+1 line)\n"), "{}", logs(&["--work"]));
}

#[test]
fn an_unknown_member_is_an_error() {
    let cli = team_with_history();
    assert_eq!(cli.run(&["logs", "bob", "--grep", "nothing"]).code, Some(4));
    assert_snapshot!(cli.run(&["logs", "bobb"]), @"
    --- stderr
    error: no member bobb in team demo
    hint: did you mean bob? members: alice, bob, team-lead
    --- exit 1
    ");
}

#[test]
fn followed_events_are_filtered() {
    let cli = team_with_history();
    let mut command = cli.command(&["logs", "-f", "-n", "1", "--member", "bob"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("it works")));
    cli.run_ok(&["send", "alice", "not for bob"]);
    cli.run_ok(&["send", "bob", "for bob"]);
    assert!(lines.next().unwrap().contains("for bob  · unread"));
    child.kill().unwrap();
    child.wait().unwrap();
}
