//! `brigade __complete`, which the scripts of `brigade completions` call. `e2e/shell` runs real shells.

use std::time::{Duration, Instant};

use crate::env::CliEnv;

/// Returns the values that complete a line of bash.
fn complete(cli: &CliEnv, line: &str) -> Vec<String> {
    let text = cli.run_ok(&["__complete", "bash", line]);
    let mut lines = text.lines().map(str::to_owned);
    assert_eq!(lines.next().as_deref(), Some("words"), "{line}");
    lines.collect()
}

/// B27: completion offered options for `send <TAB>`, and files for `--agent <TAB>`.
#[test]
fn b27_completion_knows_members_and_agents() {
    let cli = CliEnv::with_team();
    assert_eq!(complete(&cli, "brigade send "), ["alice", "bob"]);
    assert_eq!(complete(&cli, "brigade send a"), ["alice"]);
    assert_eq!(complete(&cli, "brigade stop alice "), ["bob"]);
    assert_eq!(complete(&cli, "brigade --as "), ["team-lead", "alice", "bob"]);
    assert_eq!(complete(&cli, "brigade spawn x --agent co"), ["codex", "copilot"]);
    assert_eq!(complete(&cli, "brigade --team="), ["--team=demo"]);
    assert_eq!(complete(&cli, "brigade new --template re"), ["review", "research"]);
}

#[test]
fn completion_knows_tasks() {
    let cli = CliEnv::with_team();
    for subject in ["one", "two", "three"] {
        cli.run_ok(&["task", "add", subject, "--label", subject]);
    }
    cli.run_ok(&["task", "done", "2"]);
    assert_eq!(complete(&cli, "brigade task done "), ["1", "3"]);
    assert_eq!(complete(&cli, "brigade task reopen "), ["2"]);
    assert_eq!(complete(&cli, "brigade task show "), ["1", "3", "2"]);
    assert_eq!(complete(&cli, "brigade task add x --blocked-by 1,"), ["1,3", "1,2"]);
    assert_eq!(complete(&cli, "brigade task list --label t"), ["three", "two"]);
    let described = cli.run_ok(&["__complete", "fish", "brigade", "task", "done", ""]);
    assert_eq!(described, "words\n1\tone\n3\tthree\n");
}

#[test]
fn values_that_a_shell_would_interpret_are_left_out() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["team", "join", "carl", "--model", "gpt-5.2"]);
    cli.run_ok(&["team", "join", "dora", "--model", "$(touch hacked)"]);
    assert_eq!(complete(&cli, "brigade spawn x --model "), ["gpt-5.2"]);
    cli.run_ok(&["task", "add", "a\u{1b}[2Jb\tc\nd"]);
    let described = cli.run_ok(&["__complete", "zsh", "brigade", "task", "show", ""]);
    assert_eq!(described.lines().count(), 2, "{described:?}");
    assert!(!described.contains('\u{1b}'), "{described:?}");
}

#[test]
fn completion_prints_nothing_if_something_is_wrong() {
    let cli = CliEnv::with_team();
    for (name, value) in [
        ("BRIGADE_TEAM", "nothing"),
        ("BRIGADE_TEAM", "not a name!"),
        ("BRIGADE_STORE", "nats://127.0.0.1:1"),
        ("BRIGADE_STORE", "?"),
        ("HOME", ""),
    ] {
        let variables = [(name, value), ("CLAUDE_CONFIG_DIR", ""), ("XDG_STATE_HOME", "")];
        let variables = if name == "HOME" { &variables[..] } else { &variables[..1] };
        let outcome = cli.run_with_env(&["__complete", "bash", "brigade send "], variables);
        assert_eq!(outcome.to_string(), "words\n", "{name}={value}");
    }
    cli.write("work/brigade.toml", "team = \"x\"\nstore = \"nats://127.0.0.1:1\"\n");
    let untrusted = [("BRIGADE_TRUST", ""), ("BRIGADE_TEAM", "demo")];
    let outcome = cli.run_with_env(&["__complete", "bash", "brigade send "], &untrusted);
    assert_eq!(outcome.to_string(), "words\nalice\nbob\n");
    assert_eq!(cli.run(&["__complete"]).code, Some(0));
}

/// A file that never ends stands for a disk that does not answer.
#[test]
fn completion_does_not_wait_for_long() {
    let cli = CliEnv::with_team();
    let config = cli.path("claude/teams/demo/config.json");
    std::fs::remove_file(&config).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &config, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let begin = Instant::now();
    assert_eq!(complete(&cli, "brigade send "), [""; 0]);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn completion_does_not_deliver_or_record_anything() {
    let cli = CliEnv::with_team();
    cli.write_inbox("team-lead", "bob", "from outside");
    let before = files(&cli);
    for line in ["brigade approve ", "brigade task done ", "brigade send ", "brigade --team "] {
        let _values = complete(&cli, line);
    }
    assert_eq!(files(&cli), before);
}

fn files(cli: &CliEnv) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![cli.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}
