//! The help, whole, so that no word of it changes unseen; and what is made of the same source.

use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::env::House;

#[test]
fn the_whole_help() {
    let house = House::new();
    let mut text = String::new();
    describe(&house, &[], &mut text);
    assert_snapshot!("help", text);
}

/// The help of a command and of those below it.
fn describe(house: &House, command: &[String], text: &mut String) {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = house.done(&args);
    let _infallible = writeln!(text, "===== brigade {}\n", args.join(" "));
    let mut skip = false;
    for line in help.lines() {
        // The global options are the same everywhere.
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
        describe(house, &[command, &[name]].concat(), text);
    }
}

#[test]
fn manual_pages_for_every_command() {
    let house = House::new();
    let dir = house.path("man");
    assert_eq!(house.done(&["man", dir.to_str().unwrap()]), "");
    for page in ["brigade.1", "brigade-send.1", "brigade-task-graph.1", "brigade-team-join.1"] {
        assert!(dir.join(page).exists(), "{page}");
    }
    let page = house.done(&["man"]);
    assert!(page.contains(".TH brigade 1"));
    assert!(page.contains("75  locked by another program; try again"));
}

#[test]
fn completions_for_every_shell() {
    let house = House::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = house.done(&["completions", shell]);
        assert!(script.contains("mark-read"), "{shell}");
    }
}
