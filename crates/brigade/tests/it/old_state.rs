//! Tests that this release can read and use the state that an earlier release left in files and in NATS.
//!
//! `fixtures/state-home` contains the state, the output of the earlier release, and the script that created
//! both. If `BRIGADE_OLD_BINARY` is set to the earlier release's program, the tests also check that the
//! earlier release can read what this release wrote.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::env::CliEnv;
use crate::process::wait_until;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/state-home");
/// The directory in which the recorded state was created.
const MADE_IN: &str = "/tmp/brigade-fixture-home";
/// Fields that are not compared: their values depend on the time, are text for people, or count something else now (requests are no
/// longer counted as unread messages).
const VARIABLE: &[&str] = &["age_seconds", "evidence", "unread"];

/// A copy of the recorded state. Dropping the copy stops its members.
struct OldState {
    cli: CliEnv,
}

impl Drop for OldState {
    fn drop(&mut self) {
        let _nothing_is_up = self.cli.run(&["down", "demo", "--now"]);
        let _nothing_is_up = self.cli.run(&["down", "gone", "--now"]);
    }
}

impl OldState {
    /// Unpacks the recorded file store and adapts the absolute paths in it.
    fn files() -> Self {
        let cli = CliEnv::new();
        unpack("files.tar.gz", &cli.root);
        relocate(&cli.root, &cli.root);
        let made_in = claude_dir_key(&Path::new(MADE_IN).join("claude"));
        let key = claude_dir_key(&cli.path("claude"));
        for dir in ["files", "host"] {
            let dir = cli.path("state/brigade").join(dir);
            std::fs::rename(dir.join(&made_in), dir.join(&key)).unwrap();
        }
        Self { cli }
    }

    /// Returns the path of one of brigade's own files for team `demo`.
    fn demo_file(&self, name: &str) -> PathBuf {
        let key = claude_dir_key(&self.cli.path("claude"));
        self.cli.path("state/brigade/files").join(key).join("demo").join(name)
    }

    /// Returns the path of a file in the host registry's folder for team `demo`.
    fn host_file(&self, name: &str) -> PathBuf {
        let key = claude_dir_key(&self.cli.path("claude"));
        self.cli.path("state/brigade/host").join(key).join("demo").join(name)
    }

    /// Returns everything that the scripted agent in this folder received.
    fn received(&self, folder: &str) -> String {
        std::fs::read_to_string(self.cli.path(folder).join("heard")).unwrap_or_default()
    }
}

/// Returns the FNV-1a hash of a Claude Code folder's path. The hash is the name of brigade's state folder.
fn claude_dir_key(claude_dir: &Path) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = claude_dir.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

fn unpack(archive: &str, into: &Path) {
    let archive = Path::new(FIXTURE).join(archive);
    let tar = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into).status();
    assert!(tar.unwrap().success());
}

/// Replaces [`MADE_IN`] with `root` in all files except mail: brigade stores byte offsets into the mail
/// journals, and these must stay valid.
fn relocate(dir: &Path, root: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("mail") && !path.ends_with("inboxes") {
                relocate(&path, root);
            }
            continue;
        }
        // Git objects are not UTF-8 and contain no path.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if text.contains(MADE_IN) {
            std::fs::write(&path, text.replace(MADE_IN, root.to_str().unwrap())).unwrap();
        }
    }
}

/// Runs every command whose output was recorded with the earlier release, and compares the outputs.
fn compare_with_recorded_output(cli: &CliEnv, store: &str) {
    let expected = std::fs::read(Path::new(FIXTURE).join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for (command, expected) in expected[store].as_object().unwrap() {
        let args: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let printed = cli.run_ok(&args).replace(cli.root.to_str().unwrap(), MADE_IN);
        let printed: Value = if command.starts_with("log") {
            printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
        } else {
            serde_json::from_str(&printed).unwrap()
        };
        assert_includes(&printed, expected, command);
    }
}

/// Asserts that `actual` has every value of `expected`. Objects in `actual` may have additional fields.
fn assert_includes(actual: &Value, expected: &Value, at: &str) {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            for (name, expected) in expected {
                if !VARIABLE.contains(&name.as_str()) {
                    let at = format!("{at}: {name}");
                    assert_includes(actual.get(name).unwrap_or(&Value::Null), expected, &at);
                }
            }
        }
        (Value::Array(actual), Value::Array(expected)) => {
            assert_eq!(actual.len(), expected.len(), "{at}: {actual:#?}\nnot\n{expected:#?}");
            for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                assert_includes(actual, expected, &format!("{at}: {index}"));
            }
        }
        _ => assert_eq!(actual, expected, "{at}"),
    }
}

/// Returns the text of each message in an inbox, and whether the message is read.
fn inbox(cli: &CliEnv, args: &[&str]) -> Vec<(String, bool)> {
    let mail = cli.json(&[&["inbox"], args].concat());
    let entry = |m: &Value| (m["text"].as_str().unwrap().to_owned(), m["read"] == true);
    mail.as_array().unwrap().iter().map(entry).collect()
}

/// Returns the tasks of a team, each as its number, status, owner and blocking tasks.
fn tasks(cli: &CliEnv, team: &str) -> Vec<String> {
    let tasks = cli.json(&["task", "list", "--team", team]);
    let task = |task: &Value| {
        let text = |name: &str| task[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", text("id"), text("status"), text("owner"), task["blockedBy"])
    };
    tasks.as_array().unwrap().iter().map(task).collect()
}

/// Answers the only open request. Asserts that this request and the request `decided` cannot be answered again.
fn answer_requests(cli: &CliEnv, from: &str, decided: &str) {
    let waiting = cli.json(&["approvals", "--team", "demo"]);
    assert_eq!(waiting.as_array().unwrap().len(), 1, "{waiting}");
    assert_eq!(waiting[0]["from"], from);
    let number = waiting[0]["number"].to_string();
    cli.answer_unconfirmed(&["approve", &number, "--team", "demo"]);
    assert_eq!(cli.run(&["approve", &number, "--team", "demo"]).code, Some(1));
    assert_eq!(cli.run(&["approve", decided, "--team", "demo"]).code, Some(1));
    assert_eq!(cli.run(&["approvals", "--team", "demo"]).code, Some(4));
}

/// Asserts that mail can be sent and read, and that tasks can be added, claimed and completed.
fn write_mail_and_board(cli: &CliEnv, ready: &str) {
    cli.run_ok(&["send", "dora", "from this release", "--team", "demo"]);
    let texts: Vec<String> =
        inbox(cli, &["dora", "--team", "demo"]).into_iter().map(|(text, _)| text).collect();
    let count = |text: &str| texts.iter().filter(|its| *its == text).count();
    assert_eq!((count("unread"), count("from this release")), (1, 1), "{texts:?}");
    cli.run_ok(&["--as", "dora", "inbox", "--mark-read", "--team", "demo"]);
    assert_eq!(cli.run(&["inbox", "dora", "--unread", "--team", "demo"]).code, Some(4));
    cli.run_ok(&["--as", "dora", "task", "claim", ready, "--team", "demo"]);
    cli.run_ok(&["--as", "dora", "task", "done", ready, "--team", "demo"]);
    cli.run_ok(&["task", "add", "Added by this release", "--team", "demo"]);
    let added = cli.json(&["task", "list", "--team", "demo"]);
    assert_eq!(added.as_array().unwrap().last().unwrap()["id"], "5");
}

/// Runs the earlier release, if `BRIGADE_OLD_BINARY` is set, on the state that this release wrote.
fn continue_with_old_binary(cli: &CliEnv) {
    let Some(old) = std::env::var_os("BRIGADE_OLD_BINARY") else { return };
    let old = Path::new(&old);
    for args in [
        &["send", "dora", "from the old release"][..],
        &["inbox", "dora"],
        &["task", "list"],
        &["--as", "dora", "task", "claim", "5"],
        &["team", "show"],
        &["log"],
    ] {
        let args = [args, &["--team", "demo", "--json"]].concat();
        let output = cli.command_of(old, &args).output().unwrap();
        let outcome = cli.outcome(&output);
        assert_eq!(outcome.code, Some(0), "{args:?}: {outcome}");
        match args[0] {
            "inbox" => assert!(outcome.stdout.contains("from this release"), "{outcome}"),
            "task" => assert!(outcome.stdout.contains("Added by this release"), "{outcome}"),
            _ => {}
        }
    }
    assert!(cli.run_ok(&["inbox", "dora", "--team", "demo"]).contains("from the old release"));
    assert_eq!(cli.json(&["task", "show", "5", "--team", "demo"])["owner"], "dora");
}

fn file_names(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the names of all fields in a JSON file, at any depth.
fn names(path: &Path) -> BTreeSet<String> {
    fn collect(value: &Value, names: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                names.extend(fields.keys().cloned());
                fields.values().for_each(|value| collect(value, names));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    let text = std::fs::read(path).unwrap();
    collect(&serde_json::from_slice(&text).unwrap(), &mut names);
    names
}

#[test]
fn files_of_an_earlier_release_are_read_and_continued() {
    let state = OldState::files();
    let cli = &state.cli;
    compare_with_recorded_output(cli, "files");
    assert_eq!(
        tasks(cli, "demo"),
        [
            r#"1 in_progress alice []"#,
            r#"2 pending - ["1"]"#,
            r#"3 completed bob []"#,
            r#"4 pending - []"#
        ]
    );
    let dora = inbox(cli, &["dora", "--team", "demo"]);
    let dora: Vec<(&str, bool)> = dora.iter().map(|(text, read)| (text.as_str(), *read)).collect();
    assert_eq!(dora, [("read", true), ("unread", false), ("in the outbox", false)]);
    let decisions = || -> Vec<BTreeSet<String>> {
        let dir = state.demo_file("decided");
        let files = file_names(&dir).into_iter().filter(|name| name.starts_with("team-lead@"));
        files.map(|name| names(&dir.join(name))).collect()
    };
    let before = decisions();
    answer_requests(cli, "bob", "1");
    let after = decisions();
    assert_eq!((before.len(), after.len()), (2, 3));
    assert!(after.iter().all(|names| *names == before[0]), "{after:?}");
    write_mail_and_board(cli, "4");
    // The message from the outbox was delivered to the inbox once.
    let inbox = std::fs::read_to_string(cli.path("claude/teams/demo/inboxes/dora.json")).unwrap();
    assert_eq!(inbox.matches("in the outbox").count(), 1, "{inbox}");
    continue_with_old_binary(cli);
}

#[test]
fn members_of_an_earlier_release_resume_their_sessions() {
    let state = OldState::files();
    let cli = &state.cli;
    let notes = ["alice", "bob", "carol"].map(|name| {
        [
            state.demo_file(&format!("kept/{name}.json")),
            state.demo_file(&format!("pulse/{name}.json")),
        ]
    });
    let team = names(&state.host_file("team.json"));
    let before: Vec<(PathBuf, BTreeSet<String>)> =
        notes.as_flattened().iter().map(|path| (path.clone(), names(path))).collect();
    assert_eq!(cli.json(&["resume"])["teams"], serde_json::json!(["demo"]));
    let worktree = "state/brigade/worktrees/demo/alice/a";
    wait_until("alice to receive her mail", || {
        state.received(worktree).contains("after the crash")
    });
    for folder in [worktree, "work/b", "work/c"] {
        let received = state.received(folder);
        let count = |line: &str| received.lines().filter(|its| *its == line).count();
        assert_eq!((count("begun"), count("loaded")), (1, 1), "{folder}: {received}");
    }
    // The mail of bob's interrupted turn is delivered again, with the same header.
    let header = |text: &str| {
        let at = text.rfind("[mail ").unwrap();
        text.get(at..).unwrap().split(']').next().unwrap().to_owned()
    };
    wait_until("bob's mail to be delivered again", || {
        let bob = state.received("work/b");
        bob.matches(&header(&bob)).count() == 2
    });
    // `up` reports no difference from the team file, so every field of the old specifications was read.
    let up = cli.run(&["up"]);
    assert_eq!(up.code, Some(0), "{up}");
    assert!(!up.stderr.contains("note:"), "{up}");
    wait_until("bob's approval request", || {
        cli.run(&["approvals", "--team", "demo"]).code == Some(0)
    });
    cli.run_ok(&["send", "alice", "TALK", "--team", "demo"]);
    cli.run_ok(&["send", "carol", "TALK", "--team", "demo"]);
    wait_until("carol to receive her mail", || state.received("work/c").contains("TALK"));
    for name in ["alice", "carol"] {
        wait_until("alice and carol to be idle", || {
            let status = cli.json(&["status"]);
            let members = status[0]["members"].as_array().unwrap().clone();
            members.iter().any(|member| member["name"] == name && member["liveness"] == "idle")
        });
    }
    // This release rewrites the members' notes and heartbeats, with at least the fields that they had before.
    for (path, before) in before {
        wait_until(&format!("{before:?} in {}", path.display()), || {
            before.is_subset(&names(&path))
        });
    }
    let carol = std::fs::read_to_string(state.demo_file("kept/carol.json")).unwrap();
    assert!(carol.contains(r#""planned":true"#), "{carol}");
    // The team's file and a member's file, as written now, still have every field of the old files.
    assert!(team.is_subset(&names(&state.host_file("team.json"))), "{team:?}");
    let agent = format!("acp:{}", cli.path("bin/agent.sh").display());
    cli.run_ok(&["spawn", "erin", "--agent", &agent, "--team", "demo"]);
    let spec = |name: &str| names(&state.host_file(name).join("spec.json"));
    assert!(spec("bob").is_subset(&spec("erin")), "{:?}", spec("bob"));
    wait_until("erin's files", || {
        file_names(&state.host_file("bob")).is_subset(&file_names(&state.host_file("erin")))
    });
    cli.run_ok(&["down", "demo", "--now"]);
}

#[test]
fn a_team_whose_folders_are_gone_is_restored_from_an_old_journal() {
    let state = OldState::files();
    let cli = &state.cli;
    // Only the roster names carl's agent, which is a command. A person has to start it.
    let resumed = cli.run(&["resume", "gone"]);
    assert!(resumed.stderr.contains("did not restart carl"), "{resumed}");
    let agent = format!("acp:{}", cli.path("bin/agent.sh").display());
    cli.run_ok(&["spawn", "carl", "--agent", &agent, "--team", "gone"]);
    assert_eq!(tasks(cli, "gone"), [r#"1 in_progress carl []"#, r#"3 pending - ["1"]"#]);
    wait_until("carl to receive his mail", || state.received("work").contains("unread at the end"));
    assert!(!state.received("work").contains("read before the end"));
    cli.run_ok(&["task", "add", "Fourth", "--team", "gone"]);
    assert_eq!(cli.json(&["task", "show", "4", "--team", "gone"])["subject"], "Fourth");
    cli.run_ok(&["down", "gone", "--now"]);
}

#[test]
fn a_team_that_was_ended_can_be_resumed() {
    let state = OldState::files();
    let cli = &state.cli;
    let resumed = cli.run(&["resume", "ended"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let teams = cli.json(&["team", "list"]);
    assert!(teams.as_array().unwrap().iter().any(|team| team["name"] == "ended"), "{teams}");
    cli.run_ok(&["down", "ended", "--now"]);
}

#[cfg(feature = "nats")]
mod nats {
    use brigade_testkit::nats_server::TestServers;

    use super::*;

    /// Starts a NATS server with the recorded data. Returns a host `a` that uses the server, and the server.
    fn recorded() -> (OldState, TestServers) {
        let mut server = TestServers::single();
        server.stop(0);
        let folder = server.folder(0);
        std::fs::remove_dir_all(folder.join("data")).unwrap();
        unpack("nats.tar.gz", &folder);
        std::fs::rename(folder.join("nats"), folder.join("data")).unwrap();
        server.start(0);
        server.wait_ready();
        let mut cli = CliEnv::new();
        cli.variables = vec![("BRIGADE_STORE", server.store()), ("BRIGADE_HOST", "a".to_owned())];
        (OldState { cli }, server)
    }

    #[test]
    fn a_nats_store_of_an_earlier_release_is_read_and_continued() {
        brigade_testkit::needs!(NatsServer);
        let (state, _server) = recorded();
        let cli = &state.cli;
        compare_with_recorded_output(cli, "nats");
        let expected =
            [r#"1 in_progress alice []"#, r#"3 completed dora []"#, r#"4 pending - ["1"]"#];
        assert_eq!(tasks(cli, "demo"), expected);
        answer_requests(cli, "dora", "1");
        cli.run_ok(&["task", "done", "1", "--team", "demo"]);
        write_mail_and_board(cli, "4");
        continue_with_old_binary(cli);
    }

    #[test]
    fn a_member_in_an_old_nats_store_resumes_its_session() {
        brigade_testkit::needs!(NatsServer);
        let (state, _server) = recorded();
        let cli = &state.cli;
        let agent = format!("acp:{}/tests/it/fake-agent.sh", env!("CARGO_MANIFEST_DIR"));
        cli.run_ok(&["spawn", "alice", "--agent", &agent, "--team", "demo"]);
        wait_until("alice to receive her mail", || {
            state.received("work").contains("after the crash")
        });
        let received = state.received("work");
        assert!(received.lines().any(|line| line == "loaded"), "{received}");
        assert!(!received.contains("ASK"), "{received}");
    }

    #[test]
    fn a_deleted_team_is_restored_from_an_old_nats_store() {
        brigade_testkit::needs!(NatsServer);
        let (state, _server) = recorded();
        let cli = &state.cli;
        cli.run_ok(&["resume", "gone"]);
        assert_eq!(tasks(cli, "gone"), [r#"1 pending - []"#, r#"2 pending - ["1"]"#]);
        let carl = inbox(cli, &["carl", "--team", "gone"]);
        assert_eq!(carl, [("unread at the end".to_owned(), false)]);
    }
}
