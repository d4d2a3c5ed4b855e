//! An agent as a member, with a scripted agent in place of a vendor's.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::House;
use crate::guard::{all_gone, is_alive};

const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A teammate at work, and whatever somebody types in its pane.
struct Teammate {
    child: Child,
}

impl Teammate {
    fn spawn(house: &House, name: &str) -> Self {
        let agent = format!("acp:{FAKE}");
        Self::start(house.command(&["spawn", name, "--agent", &agent, "--place", "here"]))
    }

    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap() }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ends(mut self) -> Option<i32> {
        until("it to end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Teammate {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Waits for something that comes soon.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn heard(house: &House) -> String {
    std::fs::read_to_string(house.path("work/heard")).unwrap_or_default()
}

/// The bodies of protocol messages of a type in an inbox.
fn bodies(house: &House, of: &str, kind: &str) -> Vec<Value> {
    let inbox = house.run(&["inbox", of, "--json"]).stdout;
    let inbox: Value = serde_json::from_str(&inbox).unwrap_or_default();
    let texts = inbox.as_array().into_iter().flatten().filter_map(|m| m["text"].as_str());
    let bodies = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    bodies.filter(|body| body["type"] == kind).collect()
}

fn member(house: &House, name: &str) -> Option<Value> {
    let team = house.json(&["team", "show"]);
    team["members"].as_array().unwrap().iter().find(|m| m["name"] == name).cloned()
}

#[test]
fn mail_becomes_a_turn_and_its_end_is_told() {
    let house = House::with_team();
    house.done(&["send", "bob", "begin"]);
    let _bob = Teammate::spawn(&house, "bob");
    until("the first turn", || heard(&house).contains("teammate_id").then_some(()));
    until("its end", || {
        (bodies(&house, "team-lead", "idle_notification").len() == 1).then_some(())
    });
    house.done(&["send", "bob", "TALK"]);
    let idle =
        until("the second", || bodies(&house, "team-lead", "idle_notification").into_iter().nth(1));
    assert_eq!(idle["from"], "bob");
    assert_eq!(idle["idleReason"], "available");
    let inbox = house.json(&["inbox", "bob"]);
    assert!(inbox.as_array().unwrap().iter().all(|message| message["read"] == true), "{inbox}");
    assert_eq!(member(&house, "bob").unwrap()["isActive"], false);
    assert_eq!(heard(&house).matches("TALK").count(), 1);
    let log = house.done(&["log"]);
    assert_eq!(log.matches("shown").count(), 2, "{log}");
}

#[test]
fn what_is_typed_reaches_the_agent() {
    let house = House::with_team();
    let mut bob = Teammate::spawn(&house, "bob");
    bob.types("please hurry");
    until("the words", || heard(&house).contains("please hurry").then_some(()));
}

/// What members did, as the journal has it.
fn acts(house: &House) -> Vec<Value> {
    let log = house.done(&["log", "--json"]);
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
fn what_it_does_is_in_the_log_for_those_who_ask() {
    let house = House::with_team();
    house.done(&["send", "bob", "WORK"]);
    let _bob = Teammate::spawn(&house, "bob");
    let is_end = |act: &Value| !act["turn_ended"].is_null();
    let acts =
        until("the turn's end", || Some(acts(&house)).filter(|acts| acts.iter().any(is_end)));
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
    let plain = house.done(&["log"]);
    assert!(!plain.contains("made."), "{plain}");
    let told = until("that it is idle", || {
        Some(house.done(&["log", "--work"])).filter(|told| told.contains("is idle"))
    });
    let about =
        told.lines().filter_map(|line| line.split_once("bob  ")).map(|(_, about)| about.trim());
    let told: Vec<&str> = about.skip_while(|about| *about != "started its agent").collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    started its agent
    is active
    “1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 2…
    execute: make
    “It is made.”
    ended its turn
    is idle
    ");
}

/// What a pane shows while its agent changes a file.
fn pane_of_an_edit(run: impl FnOnce(Command) -> String + Send) -> String {
    let house = House::with_team();
    let agent = format!("acp:{FAKE}");
    let bob =
        house.command(&["spawn", "bob", "--agent", &agent, "--place", "here", "--prompt", "EDIT"]);
    std::thread::scope(|scope| {
        let pane = scope.spawn(|| run(bob));
        until("the edit", || bodies(&house, "team-lead", "idle_notification").pop());
        strike(&house, "bob");
        pane.join().unwrap()
    })
}

#[test]
fn a_pane_shows_what_changed_in_a_file() {
    let on_a_pipe =
        |mut command: Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let on_a_terminal = |command| crate::init::on_a_terminal(command, "").0;
    let without_colour = |mut command: Command| {
        command.env("NO_COLOR", "1");
        on_a_terminal(command)
    };
    let plain = "● edit Edit a\n  /a  +1 -1\n  -2\n  +two\\u{1b}[2J\n";
    for pane in [pane_of_an_edit(on_a_pipe), pane_of_an_edit(without_colour)] {
        let pane = pane.replace('\r', "");
        assert!(pane.contains(plain), "{pane}");
    }
    let pane = pane_of_an_edit(on_a_terminal);
    assert!(pane.contains("\u{1b}[31m-2\u{1b}[0m"), "in red: {pane}");
    assert!(pane.contains("\u{1b}[32m+two\\u{1b}[2J\u{1b}[0m"), "in green: {pane}");
}

/// A message that kills the agent is given to it again, and after some tries the lead is told, once.
#[test]
fn an_agent_that_dies_is_started_again_with_its_session_and_then_given_up() {
    let house = House::with_team();
    let _bob = Teammate::spawn(&house, "bob");
    house.done(&["send", "bob", "DIE"]);
    let idle = until("the report", || bodies(&house, "team-lead", "idle_notification").pop());
    assert_eq!(idle["idleReason"], "failed", "{idle}");
    let heard = heard(&house);
    assert_eq!(heard.matches("started").count(), 5, "{heard}");
    assert_eq!(heard.matches("loaded").count(), 4, "{heard}");
    assert_eq!(bodies(&house, "team-lead", "idle_notification").len(), 1);
}

/// An agent that gets on between its deaths is not given up, however often it dies.
#[test]
fn an_agent_that_ends_its_turns_is_started_again_every_time() {
    let house = House::with_team();
    let _bob = Teammate::spawn(&house, "bob");
    for death in 1..=6 {
        house.done(&["send", "bob", "LAST"]);
        let starts = || heard(&house).matches("started").count();
        until("the next start", || (starts() == death + 1).then_some(()));
    }
    let idle = bodies(&house, "team-lead", "idle_notification");
    assert!(idle.iter().all(|body| body["idleReason"] == "available"), "{idle:?}");
}

/// To be killed is not to be refused.
#[test]
fn an_agent_that_dies_while_it_resumes_keeps_its_session() {
    let house = House::with_team();
    let _bob = Teammate::spawn(&house, "bob");
    house.write("work/dies-loading", "");
    house.done(&["send", "bob", "LAST"]);
    let loads = || heard(&house).matches("loaded").count();
    until("two deaths", || (loads() >= 2).then_some(()));
    std::fs::remove_file(house.path("work/dies-loading")).unwrap();
    house.done(&["send", "bob", "TALK"]);
    until("the next turn", || heard(&house).contains("TALK").then_some(()));
    assert_eq!(heard(&house).matches("begun").count(), 1, "{}", heard(&house));
}

/// Nobody else could end what the guard was there for.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_whose_guard_is_killed_goes_with_all_it_started_and_is_started_again() {
    let house = House::with_team();
    let _bob = Teammate::spawn(&house, "bob");
    house.done(&["send", "bob", "STAY"]);
    let told = until("those who stay", || {
        let heard = heard(&house);
        let (_, told) = heard.lines().find(|line| line.starts_with("stays "))?.split_once(' ')?;
        Some(told.split(' ').map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>())
    });
    until("the turn's end", || bodies(&house, "team-lead", "idle_notification").pop());
    assert!(told.iter().all(|&pid| is_alive(pid)), "{told:?}");
    assert!(Command::new("kill").args(["-KILL", &told[0].to_string()]).status().unwrap().success());
    all_gone(&told);
    house.done(&["send", "bob", "TALK"]);
    until("the next turn", || heard(&house).contains("TALK").then_some(()));
    let heard = heard(&house);
    let count = |word: &str| heard.lines().filter(|line| *line == word).count();
    assert_eq!((count("started"), count("begun"), count("loaded")), (2, 1, 1), "{heard}");
}

#[test]
fn who_is_told_to_end_leaves_nothing_behind() {
    let house = House::with_team();
    house.done(&["task", "add", "Work"]);
    let mut carol = Teammate::spawn(&house, "carol");
    until("her", || member(&house, "carol"));
    until("the agent", || heard(&house).contains("started").then_some(()));
    house.done(&["--as", "carol", "task", "claim", "1"]);
    let pid = carol.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = until("her end", || carol.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert_eq!(member(&house, "carol"), None);
    assert_eq!(house.json(&["task", "show", "1"])["status"], "pending");
}

/// Whoever has left is gone for good; only who was killed comes back.
#[test]
fn a_newcomer_of_the_same_name_begins_anew() {
    let house = House::with_team();
    let has = |word: &'static str, times| move |heard: String| heard.matches(word).count() == times;
    let reached = |what: &str, test: &dyn Fn(String) -> bool| {
        until(what, || test(heard(&house)).then_some(()));
    };
    let mut bob = Teammate::spawn(&house, "bob");
    reached("a session", &has("begun", 1));
    house.done(&["send", "bob", "TALK"]);
    reached("a turn", &has("TALK", 1));
    until("its end", || bodies(&house, "team-lead", "idle_notification").pop());
    bob.child.kill().unwrap();
    bob.child.wait().unwrap();
    let mut bob = Teammate::spawn(&house, "bob");
    reached("the same session", &has("loaded", 1));
    let pid = bob.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    until("his end", || bob.child.try_wait().unwrap());
    let _another = Teammate::spawn(&house, "bob");
    reached("a session of his own", &has("begun", 2));
    assert_eq!(heard(&house).matches("loaded").count(), 1, "{}", heard(&house));
}

/// What the model says by its tool is done by the teammate's own process.
#[test]
fn who_agrees_to_shut_down_goes() {
    let house = House::with_team();
    let bob = Teammate::spawn(&house, "bob");
    until("the agent", || heard(&house).contains("started").then_some(()));
    let mut lead = crate::client::Client::of(&house, "team-lead");
    let asked = lead.done("request_shutdown", serde_json::json!({ "to": "bob" }));
    until("the question", || heard(&house).contains("answer_shutdown").then_some(()));
    let mut model = crate::client::Client::of(&house, "bob");
    let yes = serde_json::json!({ "request_id": asked["request_id"], "approve": true });
    model.done("answer_shutdown", yes);
    assert_eq!(bob.ends(), Some(0));
    assert_eq!(member(&house, "bob"), None);
}

/// Takes somebody off the roster as another program would, which gives no task back.
fn strike(house: &House, name: &str) {
    let path = house.path("claude/teams/demo/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["members"].as_array_mut().unwrap().retain(|member| member["name"] != name);
    std::fs::write(&path, serde_json::to_vec_pretty(&config).unwrap()).unwrap();
}

/// The tools that were giving the tasks back are ended with the agent.
#[test]
fn whoever_took_it_off_the_roster_its_tasks_are_free() {
    let house = House::with_team();
    house.done(&["task", "add", "Work"]);
    let bob = Teammate::spawn(&house, "bob");
    until("the agent", || heard(&house).contains("started").then_some(()));
    house.done(&["--as", "bob", "task", "claim", "1"]);
    strike(&house, "bob");
    assert_eq!(bob.ends(), Some(0));
    let task = house.json(&["task", "show", "1"]);
    assert_eq!((&task["status"], &task["owner"]), (&Value::from("pending"), &Value::Null));
}

/// Claude Code 2.1.50 starts a teammate, and writes its entry afterwards.
#[test]
fn who_is_not_on_the_roster_yet_waits_for_its_entry() {
    let house = House::with_team();
    let agent = format!("acp:{FAKE}");
    let mut dora = Teammate::start(house.command(&[
        "--agent-id",
        "dora@demo",
        "--agent-name",
        "dora",
        "--team-name",
        "demo",
        "--agent-type",
        &agent,
    ]));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(dora.child.try_wait().unwrap(), None);
    house.done(&["team", "join", "dora"]);
    until("the agent", || heard(&house).contains("started").then_some(()));
}

/// Claude Code gives its own arguments, and no command.
#[test]
fn claude_codes_arguments_are_enough_and_other_agents_are_its_own() {
    let house = House::with_team();
    let agent = format!("acp:{FAKE}");
    let arguments =
        ["--agent-id", "bob@demo", "--agent-name", "bob", "--team-name", "demo", "--agent-type"];
    let _bob = Teammate::start(house.command(&[&arguments[..], &[&agent]].concat()));
    until("the agent", || heard(&house).contains("started").then_some(()));
    // A plain teammate is the real program's, with the same words.
    let claude = "#!/bin/sh\nprintf '%s ' \"$@\" > claude-was-here\n";
    house.write("bin/claude", claude);
    std::fs::set_permissions(
        house.path("bin/claude"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!("{}:/usr/bin:/bin", house.path("bin").display());
    // So is its own, for which there is a driver too.
    for agent_type in ["general-purpose", "claude"] {
        let words = [&arguments[..], &[agent_type, "--new", "x"]].concat();
        assert!(house.command(&words).env("PATH", &path).status().unwrap().success());
        let given = std::fs::read_to_string(house.path("work/claude-was-here")).unwrap();
        assert_eq!(given.trim(), words.join(" "));
    }
}
