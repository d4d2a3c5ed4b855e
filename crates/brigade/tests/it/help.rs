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

/// Appends the help of a command and its subcommands.
fn describe(cli: &CliEnv, command: &[String], text: &mut String) {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = cli.run_ok(&args);
    let _infallible = writeln!(text, "===== brigade {}\n", args.join(" "));
    let mut skip = false;
    for line in help.lines() {
        // The global options are the same for every command.
        skip = if line == "Global options:" { !command.is_empty() } else { skip };
        skip = skip && !line.starts_with("Example");
        if !skip {
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
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
