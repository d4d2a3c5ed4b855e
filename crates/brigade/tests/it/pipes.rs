//! Colours where there is a terminal, and readers that go away.

use std::process::Stdio;

use crate::env::House;

const ESCAPE: char = '\u{1b}';

#[test]
fn no_colour_without_a_terminal_or_with_no_color() {
    let house = House::with_team();
    house.done(&["task", "add", "x"]);
    let args = ["task", "list"];
    assert!(!house.run(&args).stdout.contains(ESCAPE));
    let forced = house.run_with_env(&args, &[("CLICOLOR_FORCE", "1")]);
    assert!(forced.stdout.contains(ESCAPE), "{forced}");
    let never = house.run_with_env(&args, &[("NO_COLOR", "1")]);
    assert!(!never.stdout.contains(ESCAPE));
    let error = house.run_with_env(&["send", "carl", "x"], &[("NO_COLOR", "1")]);
    assert!(!error.stderr.contains(ESCAPE));
}

#[test]
fn json_is_never_coloured() {
    let house = House::with_team();
    let json = house.run_with_env(&["--json"], &[("CLICOLOR_FORCE", "1")]);
    assert!(!json.stdout.contains(ESCAPE));
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let house = House::with_team();
    house.done(&["send", "bob", "hi"]);
    for args in [&["inbox", "bob"] as &[&str], &["log", "--json"], &["team", "list"], &[], &["man"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = house.command(args);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
    }
}

#[test]
fn what_nobody_read_is_not_marked_read() {
    let house = House::with_team();
    house.done(&["send", "bob", "hi"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = house.command(&["--as", "bob", "inbox", "--mark-read"]);
    assert!(command.stdout(writer).status().unwrap().success());
    assert_eq!(house.json(&["inbox", "bob", "--unread"]).as_array().unwrap().len(), 1);
}
