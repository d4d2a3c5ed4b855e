//! `brigade search`

use std::process::Stdio;
use std::time::Duration;

use brigade_files::claude_dir_key;
use insta::assert_snapshot;
use serde_json::Value;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::wait_until;

fn team_with_history() -> CliEnv {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "please review the Parser"]);
    cli.run_ok(&["--as", "bob", "send", "alice", "the lexer works; 解析器 does not"]);
    cli.run_ok(&["task", "add", "Rewrite the parser"]);
    cli
}

fn hits(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_search_shows_the_newest_records_and_the_commands_that_open_them() {
    let cli = team_with_history();
    assert_snapshot!(cli.run(&["search", "parse"]), @"
    <date and time>  team-lead  task
      Rewrite the parser
      brigade task show 1 --team demo

    <date and time>  team-lead → bob  mail
      please review the Parser
      brigade logs --team demo --member bob --work --kind mail --since <date>T<time> --until <date>T<time>
    ");
    for hit in hits(&cli.run_ok(&["search", "parse", "--json"])) {
        let open = hit["open"].as_str().unwrap();
        let args: Vec<&str> = open.split(' ').skip(1).collect();
        let shown = cli.run_ok(&args);
        assert!(shown.to_lowercase().contains("parser"), "{open}: {shown}");
    }
}

#[test]
fn words_match_at_their_beginning_and_quotes_match_whole_words() {
    let cli = team_with_history();
    let count = |args: &[&str]| {
        let output = cli.run(&[&["search", "--json"], args].concat());
        (output.stdout.lines().count(), output.code.unwrap())
    };
    for (args, expected) in [
        (&["parse"][..], 2),
        (&["PARSER", "review"], 1),
        (&["\"the parser\""], 2),
        (&["\"review parser\""], 0),
        (&["\"parse\""], 0),
        (&["arser"], 0),
        (&["解析"], 1),
        (&["parser", "--kind", "task"], 1),
        (&["parser", "--kind", "task,mail"], 2),
        (&["parser", "--member", "bob"], 1),
        (&["parser", "--until", "10m"], 0),
        (&["parser", "--since", "10m"], 2),
        (&["parser", "-n", "1"], 1),
        (&["(the) OR parser*"], 0),
        (&["NEAR(\"the", "AND NOT ^"], 0),
    ] {
        assert_eq!(count(args), (expected, if expected == 0 { 4 } else { 0 }), "{args:?}");
    }
    assert_snapshot!(cli.run(&["search", "parser", "--member", "bobb"]), @"
    --- stderr
    error: no member bobb in team demo
    hint: did you mean bob? members: alice, bob, team-lead
    --- exit 1
    ");
    assert_snapshot!(cli.run(&["search", "lexers"]), @"
    --- stderr
    note: no record of team demo matches lexers
    --- exit 4
    ");
    assert_snapshot!(cli.run(&["search", "--", "--"]), @"
    --- stderr
    error: the text to search for has no letter or digit
    hint: `brigade logs --grep` finds any characters, but reads the whole history
    --- exit 2
    ");
}

#[test]
fn a_member_of_the_past_is_known() {
    let cli = team_with_history();
    cli.run_ok(&["team", "join", "carl"]);
    cli.run_ok(&["team", "leave", "carl"]);
    cli.run_ok(&["team", "delete", "--force"]);
    assert_eq!(cli.run(&["search", "parser", "--member", "carl"]).code, Some(4));
    assert_eq!(cli.run(&["search", "lexer", "--member", "carl", "--member", "bob"]).code, Some(0));
    let unknown = cli.run(&["search", "parser", "--member", "dora"]);
    assert!(unknown.stderr.contains("members: alice, bob, carl, team-lead"), "{unknown}");
    assert_eq!(unknown.code, Some(1));
}

/// The text with which an agent ends its turn is in its work and in the notice of the end of the turn.
#[test]
fn a_reply_is_found_once_and_its_command_shows_it() {
    let team = HostedTeam::new();
    let cli = &team.cli;
    cli.json(&["up"]);
    cli.run_ok(&["ask", "bob", "please WORK"]);
    wait_until("the recorded work", || {
        cli.run(&["logs", "bob", "--kind", "work"]).stdout.contains("made.”")
    });
    let found = hits(&cli.run_ok(&["search", "\"made.\"", "--json"]));
    let [hit] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (hit["kind"].as_str(), hit["who"].as_str()),
        (Some("mail"), Some("bob → team-lead"))
    );
    assert!(hit["text"].as_str().unwrap().starts_with("turn ended: "), "{hit}");
    let open = hit["open"].as_str().unwrap();
    let shown = cli.run_ok(&open.split(' ').skip(1).collect::<Vec<_>>());
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(shown.contains("turn ended: ") && lines.contains(&"made."), "{open}: {shown}");
    assert_eq!(hits(&cli.run_ok(&["search", "made", "--kind", "work", "--json"])).len(), 1);
}

#[test]
fn a_search_without_a_chosen_team_covers_ended_teams() {
    let cli = team_with_history();
    cli.run_ok(&["team", "delete", "--force"]);
    cli.run_ok(&["team", "create", "other"]);
    cli.run_ok(&["--team", "other", "task", "add", "Write a parser"]);
    let teams = |args: &[&str]| {
        let found = hits(&cli.run_ok(&[&["search", "parser", "--json"], args].concat()));
        found.iter().map(|hit| hit["team"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(teams(&[]), ["other", "demo", "demo"]);
    assert_eq!(teams(&["--team", "other"]), ["other"]);
    assert_eq!(teams(&["--team", "demo"]), ["demo", "demo"]);
    // The commands also show the records of the ended team.
    for hit in hits(&cli.run_ok(&["search", "parser", "--json"])) {
        let open = hit["open"].as_str().unwrap();
        let args: Vec<&str> = open.split(' ').skip(1).collect();
        let shown = cli.run_ok(&args);
        assert!(shown.to_lowercase().contains("parser"), "{open}: {shown}");
    }
    assert_eq!(cli.run(&["search", "parser", "--team", "nobody"]).code, Some(1));
}

#[test]
fn records_of_an_earlier_team_with_the_same_name_are_shown() {
    let cli = team_with_history();
    cli.run_ok(&["team", "delete", "--force"]);
    cli.run_ok(&["team", "create", "demo"]);
    let found = hits(&cli.run_ok(&["search", "parser", "--json"]));
    assert_eq!(found.len(), 2);
    for hit in found {
        let open = hit["open"].as_str().unwrap();
        let args: Vec<&str> = open.split(' ').skip(1).collect();
        let shown = cli.run_ok(&args);
        assert!(shown.to_lowercase().contains("parser"), "{open}: {shown}");
    }
}

#[test]
fn lines_that_are_not_records_are_counted() {
    let cli = team_with_history();
    let key = claude_dir_key(&cli.path("claude"));
    let journal = cli.path(&format!("state/brigade/files/{key}/demo/team.jsonl"));
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.extend(b"\n{\"at\":\"2026-11-18T12:00:00Z\",\"event\":{\"task\":{\"id\":1,\n");
    std::fs::write(&journal, bytes).unwrap();
    let output = cli.run(&["search", "review"]);
    assert!(
        output.stderr.contains("1 line in the journals of team demo cannot be read"),
        "{}",
        output.stderr
    );
    assert_eq!(output.code, Some(0));
}

/// The first search of a long history builds an index. A search that is killed meanwhile leaves an index that the next one can use.
#[test]
fn a_killed_search_does_not_change_what_the_next_one_finds() {
    let cli = CliEnv::with_team();
    let long = "several words in a text ".repeat(1_000);
    for number in 0..30 {
        cli.run_ok(&["send", "bob", &format!("swordfish {number} {long}")]);
    }
    for wait in [0, 2, 5, 10, 20, 40] {
        let mut search =
            cli.command(&["search", "swordfish"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        search.kill().unwrap();
        search.wait().unwrap();
    }
    let found = || cli.run_ok(&["search", "swordfish", "--json", "-n", "100"]).lines().count();
    assert_eq!(found(), 30);
    assert_eq!(found(), 30);
    assert_eq!(hits(&cli.run_ok(&["search", "\"swordfish 7\"", "--json"])).len(), 1);
}

#[test]
fn the_team_of_the_folder_is_searched_also_when_it_is_down() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "the zebra is striped"]);
    cli.write("work/brigade.toml", "team = \"demo\"\n");
    cli.run_ok(&["team", "delete", "demo", "--force"]);
    let found = cli.run(&["search", "zebra"]);
    assert_eq!(found.code, Some(0), "{found}");
    assert!(found.stdout.contains("the zebra is striped"), "{found}");
    let none = cli.run(&["search", "zebra", "--until", "2020-01-01"]);
    assert_eq!(none.code, Some(4));
    assert!(none.stderr.contains("matches zebra in this period"), "{none}");
}
