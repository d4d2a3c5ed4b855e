//! Tests the help of all commands, and the manual pages and completions that are generated from the help.

use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::env::CliEnv;

#[test]
fn help_of_every_command() {
    let cli = CliEnv::new();
    let mut text = String::new();
    describe(&cli, &[], &mut text);
    assert_snapshot!("help", text);
}

/// The longest help of a command, in lines. It fits a screen.
const MAX_HELP: usize = 40;

/// Commands with a longer help, each with the reason.
const LONGER: &[(&str, &str)] = &[("--help", "lists all commands")];

/// Appends the help of a command and its subcommands.
fn describe(cli: &CliEnv, command: &[String], text: &mut String) {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = cli.run_ok(&args);
    let name = args.join(" ");
    let lines = help.lines().count();
    let may_be_longer = LONGER.iter().any(|(longer, _)| *longer == name);
    assert!(lines <= MAX_HELP || may_be_longer, "brigade {name} has {lines} lines");
    let _infallible = writeln!(text, "===== brigade {name}\n");
    for line in help.lines() {
        let _infallible = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in below.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().unwrap().to_owned();
        describe(cli, &[command, &[name]].concat(), text);
    }
}

#[test]
fn manual_pages_for_every_command() {
    let cli = CliEnv::new();
    let dir = cli.path("man");
    assert_eq!(cli.run_ok(&["man", dir.to_str().unwrap()]), "");
    for page in ["brigade.1", "brigade-send.1", "brigade-task-graph.1", "brigade-team-join.1"] {
        assert!(dir.join(page).exists(), "{page}");
    }
    let page = cli.run_ok(&["man"]);
    assert!(page.contains(".TH brigade 1"));
    assert!(page.contains("75  locked by another program; try again"));
}

#[test]
fn completions_for_every_shell() {
    let cli = CliEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cli.run_ok(&["completions", shell]);
        // Some scripts ask brigade, and the others list all options.
        let is_dynamic = script.contains("brigade __complete");
        assert!(is_dynamic || script.contains("mark-read"), "{shell}");
    }
}

#[test]
fn topics_of_the_help() {
    let cli = CliEnv::new();
    let global = cli.run_ok(&["help", "global"]);
    for option in ["--team <TEAM>", "--as <NAME>", "--no-pager", "--wait[=<TIME>]", "--ca <FILE>"] {
        assert!(global.contains(option), "{option}: {global}");
    }
    assert!(cli.run_ok(&["help", "exit-codes"]).contains("75  locked by another program"));
    assert!(cli.run_ok(&["help", "aliases"]).contains("s, ps = status"));
    // Each command names the topics.
    for args in [&["task", "add", "-h"][..], &["help", "send"], &["--help"]] {
        let help = cli.run_ok(args);
        assert!(help.contains("brigade help global | exit-codes"), "{help}");
    }
}
