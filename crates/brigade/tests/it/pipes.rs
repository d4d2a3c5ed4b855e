//! Colours on a terminal, and output to closed pipes.

use std::process::Stdio;

use crate::env::CliEnv;

const ESCAPE: char = '\u{1b}';

#[test]
fn no_colour_without_a_terminal_or_with_no_color() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "x"]);
    let args = ["task", "list"];
    assert!(!cli.run(&args).stdout.contains(ESCAPE));
    let forced = cli.run_with_env(&args, &[("CLICOLOR_FORCE", "1")]);
    assert!(forced.stdout.contains(ESCAPE), "{forced}");
    let never = cli.run_with_env(&args, &[("NO_COLOR", "1")]);
    assert!(!never.stdout.contains(ESCAPE));
    let error = cli.run_with_env(&["send", "carl", "x"], &[("NO_COLOR", "1")]);
    assert!(!error.stderr.contains(ESCAPE));
}

#[test]
fn json_is_never_coloured() {
    let cli = CliEnv::with_team();
    let json = cli.run_with_env(&["--json"], &[("CLICOLOR_FORCE", "1")]);
    assert!(!json.stdout.contains(ESCAPE));
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "hi"]);
    for args in [&["inbox", "bob"] as &[&str], &["log", "--json"], &["team", "list"], &[], &["man"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = cli.command(args);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
    }
}

#[test]
fn unprinted_messages_are_not_marked_read() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "hi"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = cli.command(&["--as", "bob", "inbox", "--mark-read"]);
    assert!(command.stdout(writer).status().unwrap().success());
    assert_eq!(cli.json(&["inbox", "bob", "--unread"]).as_array().unwrap().len(), 1);
}
