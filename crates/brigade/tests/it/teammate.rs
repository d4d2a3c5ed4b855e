//! A member's process, which delivers mail to a scripted agent and restarts the agent when it dies.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::{assert_all_gone, is_alive, kill, terminate, wait_for};

/// A running member process. The process treats text on its stdin as input that a user typed into its pane.
struct Teammate {
    child: Child,
}

impl Teammate {
    fn spawn(cli: &CliEnv, name: &str) -> Self {
        let agent = format!("acp:{FAKE_AGENT}");
        Self::start(cli.command(&["spawn", name, "--agent", &agent, "--place", "here"]))
    }

    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap() }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ends(mut self) -> Option<i32> {
        wait_for("the member's process to end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Teammate {
    fn drop(&mut self) {
        let _ignored = self.child.kill();
        let _ignored = self.child.wait();
    }
}

fn received(cli: &CliEnv) -> String {
    std::fs::read_to_string(cli.path("work/heard")).unwrap_or_default()
}

/// Returns the bodies of all protocol messages of one type in an inbox.
fn bodies(cli: &CliEnv, of: &str, kind: &str) -> Vec<Value> {
    let inbox = cli.run(&["inbox", of, "--json"]).stdout;
    let inbox: Value = serde_json::from_str(&inbox).unwrap_or_default();
    let texts = inbox.as_array().into_iter().flatten().filter_map(|m| m["text"].as_str());
    let bodies = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    bodies.filter(|body| body["type"] == kind).collect()
}

fn member(cli: &CliEnv, name: &str) -> Option<Value> {
    let team = cli.json(&["team", "show"]);
    team["members"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned()
}

#[test]
fn mail_becomes_a_turn_and_the_lead_is_notified() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "begin"]);
    let _bob = Teammate::spawn(&cli, "bob");
    wait_for("the first turn", || received(&cli).contains("teammate_id").then_some(()));
    wait_for("the first turn to end", || {
        (bodies(&cli, "team-lead", "idle_notification").len() == 1).then_some(())
    });
    cli.run_ok(&["send", "bob", "TALK"]);
    let idle = wait_for("the second turn to end", || {
        bodies(&cli, "team-lead", "idle_notification").into_iter().nth(1)
    });
    assert_eq!(idle["from"], "bob");
    assert_eq!(idle["idleReason"], "available");
    let inbox = cli.json(&["inbox", "bob"]);
    assert!(inbox.as_array().unwrap().iter().all(|message| message["read"] == true), "{inbox}");
    assert_eq!(member(&cli, "bob").unwrap()["isActive"], false);
    assert_eq!(received(&cli).matches("TALK").count(), 1);
    let log = cli.run_ok(&["log"]);
    assert_eq!(log.matches("shown").count(), 2, "{log}");
}

#[test]
fn typed_input_reaches_the_agent() {
    let cli = CliEnv::with_team();
    let mut bob = Teammate::spawn(&cli, "bob");
    bob.types("please hurry");
    wait_for("the agent to receive the typed text", || {
        received(&cli).contains("please hurry").then_some(())
    });
}

/// Returns bob's work events from the journal.
fn work_events(cli: &CliEnv) -> Vec<Value> {
    let log = cli.run_ok(&["log", "--json"]);
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let work = records.filter(|record| !record["event"]["worked"].is_null());
    work.map(|record| {
        assert_eq!(
            (&record["by"], &record["event"]["worked"]["name"]),
            (&"bob".into(), &"bob".into())
        );
        record["event"]["worked"]["act"].clone()
    })
    .collect()
}

#[test]
fn log_work_shows_what_the_agent_does() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["send", "bob", "WORK"]);
    let _bob = Teammate::spawn(&cli, "bob");
    let is_end = |act: &Value| !act["turn_ended"].is_null();
    let acts = wait_for("the turn to end", || {
        Some(work_events(&cli)).filter(|acts| acts.iter().any(is_end))
    });
    let counted: String = (1..=50).map(|number| format!("{number} ")).collect();
    let expected = json!([
        { "started": {} },
        { "ready": {} },
        { "turn_started": {} },
        { "said": { "text": counted } },
        { "tool_started": { "id": "7", "tool": "execute", "about": "make" } },
        { "tool_ended": { "id": "7", "ok": true } },
        { "said": { "text": "It is\nmade." } },
        { "turn_ended": { "end": "done" } },
    ]);
    assert_eq!(Value::from(acts), expected);
    let plain = cli.run_ok(&["log"]);
    assert!(!plain.contains("made."), "{plain}");
    let told = wait_for("the log to say that the turn has ended", || {
        Some(cli.run_ok(&["log", "--work"])).filter(|told| told.contains("ended its turn"))
    });
    let about =
        told.lines().filter_map(|line| line.split_once("bob  ")).map(|(_, about)| about.trim());
    let about = about.skip_while(|about| *about != "started its agent");
    // The roster changes only if the turn takes longer than a second.
    let told: Vec<&str> = about.filter(|about| !["is active", "is idle"].contains(about)).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    started its agent
    “1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 2…
    execute: make
    “It is … (+1 line)
    ended its turn
    ");
}

/// Returns what a member's pane shows while its agent changes a file.
fn pane_of_an_edit(run: impl FnOnce(Command) -> String + Send) -> String {
    let cli = CliEnv::with_team();
    let agent = format!("acp:{FAKE_AGENT}");
    let bob =
        cli.command(&["spawn", "bob", "--agent", &agent, "--place", "here", "--prompt", "EDIT"]);
    std::thread::scope(|scope| {
        let pane = scope.spawn(|| run(bob));
        wait_for("the turn with the edit to end", || {
            bodies(&cli, "team-lead", "idle_notification").pop()
        });
        remove_from_roster(&cli, "bob");
        pane.join().unwrap()
    })
}

#[test]
fn the_pane_shows_file_changes() {
    let on_a_pipe =
        |mut command: Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let run_on_terminal = |command| crate::init::run_on_terminal(command, "").0;
    let without_colour = |mut command: Command| {
        command.env("NO_COLOR", "1");
        run_on_terminal(command)
    };
    let plain = "● edit Edit a\n  /a  +1 -1\n  -2\n  +two\\u{1b}[2J\n";
    for pane in [pane_of_an_edit(on_a_pipe), pane_of_an_edit(without_colour)] {
        let pane = pane.replace('\r', "");
        assert!(pane.contains(plain), "{pane}");
    }
    let pane = pane_of_an_edit(run_on_terminal);
    assert!(pane.contains("\u{1b}[31m-2\u{1b}[0m"), "removed line not in red: {pane}");
    assert!(pane.contains("\u{1b}[32m+two\\u{1b}[2J\u{1b}[0m"), "added line not in green: {pane}");
}

/// A message that kills the agent is delivered again. After several attempts, the lead gets one notification.
#[test]
fn a_dying_agent_is_resumed_and_eventually_marked_failed() {
    let cli = CliEnv::with_team();
    let _bob = Teammate::spawn(&cli, "bob");
    cli.run_ok(&["send", "bob", "DIE"]);
    let idle = wait_for("the lead to be notified of the failure", || {
        bodies(&cli, "team-lead", "idle_notification").pop()
    });
    assert_eq!(idle["idleReason"], "failed", "{idle}");
    let heard = received(&cli);
    assert_eq!(heard.matches("started").count(), 5, "{heard}");
    assert_eq!(heard.matches("loaded").count(), 4, "{heard}");
    assert_eq!(bodies(&cli, "team-lead", "idle_notification").len(), 1);
}

/// An agent that dies repeatedly, but completes turns in between, is never marked failed.
#[test]
fn an_agent_that_makes_progress_is_always_restarted() {
    let cli = CliEnv::with_team();
    let _bob = Teammate::spawn(&cli, "bob");
    for death in 1..=6 {
        cli.run_ok(&["send", "bob", "LAST"]);
        let starts = || received(&cli).matches("started").count();
        wait_for("the agent to be restarted", || (starts() == death + 1).then_some(()));
    }
    let idle = bodies(&cli, "team-lead", "idle_notification");
    assert!(idle.iter().all(|body| body["idleReason"] == "available"), "{idle:?}");
}

/// If an agent is killed while it resumes its session, the session can still be resumed later.
#[test]
fn an_agent_that_dies_while_resuming_keeps_its_session() {
    let cli = CliEnv::with_team();
    let _bob = Teammate::spawn(&cli, "bob");
    cli.write("work/dies-loading", "");
    cli.run_ok(&["send", "bob", "LAST"]);
    let loads = || received(&cli).matches("loaded").count();
    wait_for("two attempts to resume the session", || (loads() >= 2).then_some(()));
    std::fs::remove_file(cli.path("work/dies-loading")).unwrap();
    cli.run_ok(&["send", "bob", "TALK"]);
    wait_for("the next turn", || received(&cli).contains("TALK").then_some(()));
    assert_eq!(received(&cli).matches("begun").count(), 1, "{}", received(&cli));
}

/// If the guard process is killed, the member's process must end the agent itself.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_guard_takes_its_agent_along_and_the_agent_is_restarted() {
    let cli = CliEnv::with_team();
    let _bob = Teammate::spawn(&cli, "bob");
    cli.run_ok(&["send", "bob", "STAY"]);
    let told = wait_for("the process ids of the guard, the agent and its child", || {
        let heard = received(&cli);
        let (_, told) = heard.lines().find(|line| line.starts_with("stays "))?.split_once(' ')?;
        Some(told.split(' ').map(|pid| pid.parse().unwrap()).collect::<Vec<u64>>())
    });
    wait_for("the turn to end", || bodies(&cli, "team-lead", "idle_notification").pop());
    assert!(told.iter().all(|&pid| is_alive(pid)), "{told:?}");
    kill(told[0]);
    assert_all_gone(&told);
    cli.run_ok(&["send", "bob", "TALK"]);
    wait_for("the next turn", || received(&cli).contains("TALK").then_some(()));
    let heard = received(&cli);
    let count = |word: &str| heard.lines().filter(|line| *line == word).count();
    assert_eq!((count("started"), count("begun"), count("loaded")), (2, 1, 1), "{heard}");
}

#[test]
fn a_terminated_member_leaves_nothing_behind() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Work"]);
    let mut carol = Teammate::spawn(&cli, "carol");
    wait_for("carol to join", || member(&cli, "carol"));
    wait_for("the agent to start", || received(&cli).contains("started").then_some(()));
    cli.run_ok(&["--as", "carol", "task", "claim", "1"]);
    terminate(&carol.child);
    let status = wait_for("carol's process to end", || carol.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert_eq!(member(&cli, "carol"), None);
    assert_eq!(cli.json(&["task", "show", "1"])["status"], "pending");
}

/// A member whose process was killed resumes its session. A member that left the team starts a new session.
#[test]
fn a_new_member_with_an_old_name_starts_fresh() {
    let cli = CliEnv::with_team();
    let has = |word: &'static str, times| move |heard: String| heard.matches(word).count() == times;
    let reached = |what: &str, test: &dyn Fn(String) -> bool| {
        wait_for(what, || test(received(&cli)).then_some(()));
    };
    let mut bob = Teammate::spawn(&cli, "bob");
    reached("the first session", &has("begun", 1));
    cli.run_ok(&["send", "bob", "TALK"]);
    reached("the first turn", &has("TALK", 1));
    wait_for("the first turn to end", || bodies(&cli, "team-lead", "idle_notification").pop());
    bob.child.kill().unwrap();
    bob.child.wait().unwrap();
    let mut bob = Teammate::spawn(&cli, "bob");
    reached("the session to be resumed", &has("loaded", 1));
    terminate(&bob.child);
    wait_for("bob's process to end", || bob.child.try_wait().unwrap());
    let _another = Teammate::spawn(&cli, "bob");
    reached("a new session", &has("begun", 2));
    assert_eq!(received(&cli).matches("loaded").count(), 1, "{}", received(&cli));
}

/// The model uses its MCP tool to agree to a shutdown. The member's process then exits.
#[test]
fn a_member_that_agrees_to_shut_down_exits() {
    let cli = CliEnv::with_team();
    let bob = Teammate::spawn(&cli, "bob");
    wait_for("the agent to start", || received(&cli).contains("started").then_some(()));
    let mut lead = crate::client::Client::of(&cli, "team-lead");
    let asked = lead.call_ok("request_shutdown", serde_json::json!({ "to": "bob" }));
    wait_for("the shutdown request", || received(&cli).contains("answer_shutdown").then_some(()));
    let mut model = crate::client::Client::of(&cli, "bob");
    let yes = serde_json::json!({ "request_id": asked["request_id"], "approve": true });
    model.call_ok("answer_shutdown", yes);
    assert_eq!(bob.ends(), Some(0));
    assert_eq!(member(&cli, "bob"), None);
}

/// Removes a member from the roster as another program would, without unassigning its tasks.
fn remove_from_roster(cli: &CliEnv, name: &str) {
    let path = cli.path("claude/teams/demo/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["members"].as_array_mut().unwrap().retain(|member| member["name"] != name);
    std::fs::write(&path, serde_json::to_vec_pretty(&config).unwrap()).unwrap();
}

/// The member's process must release the tasks, because the agent's MCP server ends together with the agent.
#[test]
fn tasks_are_released_when_a_member_is_removed_by_another_program() {
    let cli = CliEnv::with_team();
    cli.run_ok(&["task", "add", "Work"]);
    let bob = Teammate::spawn(&cli, "bob");
    wait_for("the agent to start", || received(&cli).contains("started").then_some(()));
    cli.run_ok(&["--as", "bob", "task", "claim", "1"]);
    remove_from_roster(&cli, "bob");
    assert_eq!(bob.ends(), Some(0));
    let task = cli.json(&["task", "show", "1"]);
    assert_eq!((&task["status"], &task["owner"]), (&Value::from("pending"), &Value::Null));
}

/// Claude Code 2.1.50 starts a teammate before it writes the teammate's roster entry.
#[test]
fn a_member_waits_until_it_is_on_the_roster() {
    let cli = CliEnv::with_team();
    let agent = format!("acp:{FAKE_AGENT}");
    let mut command = cli.command(&[
        "--agent-id",
        "dora@demo",
        "--agent-name",
        "dora",
        "--team-name",
        "demo",
        "--agent-type",
        &agent,
    ]);
    command.env("BRIGADE_ACP_COMMANDS", FAKE_AGENT);
    let mut dora = Teammate::start(command);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(dora.child.try_wait().unwrap(), None);
    cli.run_ok(&["team", "join", "dora"]);
    wait_for("the agent to start", || received(&cli).contains("started").then_some(()));
}

/// Claude Code starts brigade with Claude Code's own arguments and without a subcommand.
#[test]
fn claude_code_arguments_start_the_right_program() {
    let cli = CliEnv::with_team();
    let agent = format!("acp:{FAKE_AGENT}");
    let arguments =
        ["--agent-id", "bob@demo", "--agent-name", "bob", "--team-name", "demo", "--agent-type"];
    let words = [&arguments[..], &[&agent]].concat();
    // A model chooses the agent type. It must not choose a command that the user did not allow.
    let refused = cli.run(&words);
    insta::assert_snapshot!(refused.to_string().replace(FAKE_AGENT, "<agent>"), @r#"
    --- stderr
    error: the agent type "acp:<agent>" is a command, and a model may not choose the command to run
    hint: to allow it, set BRIGADE_ACP_COMMANDS to the command, without `acp:`, in the environment of Claude Code
    --- exit 1
    "#);
    let allowed = format!("other\n{FAKE_AGENT}\n");
    let mut command = cli.command(&words);
    command.env("BRIGADE_ACP_COMMANDS", allowed);
    let _bob = Teammate::start(command);
    wait_for("the agent to start", || received(&cli).contains("started").then_some(()));
    // For an ordinary teammate, brigade runs the real Claude Code with the same arguments.
    let claude = "#!/bin/sh\nprintf '%s ' \"$@\" > claude-was-here\n";
    cli.write("bin/claude", claude);
    std::fs::set_permissions(
        cli.path("bin/claude"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!("{}:/usr/bin:/bin", cli.path("bin").display());
    // Brigade also runs the real Claude Code for the agent type `claude`, although brigade has a driver for it.
    for agent_type in ["general-purpose", "claude"] {
        let words = [&arguments[..], &[agent_type, "--new", "x"]].concat();
        assert!(cli.command(&words).env("PATH", &path).status().unwrap().success());
        let given = std::fs::read_to_string(cli.path("work/claude-was-here")).unwrap();
        assert_eq!(given.trim(), words.join(" "));
    }
}
