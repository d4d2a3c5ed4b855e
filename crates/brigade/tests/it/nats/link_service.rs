//! `brigade link` in the background: start, stop, state, and the end of a link together with its team.

use brigade_testkit::nats_server::TestServers;
use rustix::process::{Pid, Signal, kill_process};

use super::{FAKE_AGENT, wait_until};
use crate::env::CliEnv;

const SESSION: &str = "session-e0c67a80";

/// A host whose links are ended when the test ends.
struct ServiceHost {
    cli: CliEnv,
    store: String,
}

impl Drop for ServiceHost {
    fn drop(&mut self) {
        for team in ["demo", SESSION] {
            let _not_linked = self.cli.run(&["link", "--stop", team]);
        }
        let _none_up = self.cli.run(&["down", "--now"]);
    }
}

impl ServiceHost {
    fn new(mut cli: CliEnv, name: &str, engine: &TestServers) -> Self {
        cli.variables.push(("BRIGADE_HOST", name.to_owned()));
        Self { cli, store: engine.store() }
    }

    /// Starts a link in the background.
    fn link(&self, team: &str) -> String {
        self.cli.run_ok(&["link", team, "--store", &self.store])
    }

    fn links(&self) -> serde_json::Value {
        serde_json::from_str(&self.cli.run(&["link", "--list", "--json"]).stdout).unwrap()
    }

    fn pid(&self) -> Option<i32> {
        i32::try_from(self.links()[0]["pid"].as_i64()?).ok()
    }

    fn texts(&self, of: &str) -> String {
        self.cli.run(&["inbox", of, "--json"]).stdout
    }
}

/// Makes a session team one of Claude Code 2.1.325, which names its process.
fn with_lead_process(cli: CliEnv) -> CliEnv {
    let path = cli.path(&format!("claude/teams/{SESSION}/config.json"));
    let config = std::fs::read_to_string(&path).unwrap();
    let config = config.replacen('{', "{\"leadProcess\": {\"pid\": 1},", 1);
    std::fs::write(path, config).unwrap();
    cli
}

/// Deletes the team as Claude Code does when its session ends.
fn end_session(cli: &CliEnv) {
    let away = cli.path("claude/teams/.deleted-0");
    std::fs::rename(cli.path(&format!("claude/teams/{SESSION}")), &away).unwrap();
    std::fs::remove_dir_all(away).unwrap();
}

#[test]
fn a_link_runs_in_the_background_and_is_restarted() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let a = ServiceHost::new(CliEnv::new(), "a", &engine);
    let b = ServiceHost::new(CliEnv::new(), "b", &engine);
    a.cli.run_ok(&["team", "create", "demo"]);
    a.cli.run_ok(&["team", "join", "alice"]);
    let linked = a.link("demo");
    let expected =
        format!("team demo is linked: {}; 2 members on this host, 0 on other hosts\n", a.store);
    assert_eq!(linked, expected);
    assert!(a.link("demo").contains("team demo was linked already"));
    b.link("demo");
    let report = b.links();
    assert_eq!((&report[0]["state"], &report[0]["host"]), (&"connected".into(), &"b".into()));
    assert_eq!(report[0]["remote"], serde_json::json!(["alice", "team-lead"]), "{report}");
    let status = b.cli.run(&["status"]).stdout;
    assert!(status.contains("LINK") && status.contains("connected"), "{status}");
    assert!(status.contains(&b.store), "{status}");
    // The supervisor starts a killed link again.
    let pid = b.pid().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_until("the link to run again", || {
        b.pid().is_some_and(|new| new != pid) && b.links()[0]["state"] == "connected"
    });
    b.cli.run_ok(&["team", "join", "bob"]);
    wait_until("bob to be announced", || a.cli.run_ok(&["team", "show"]).contains("bob"));
    a.cli.run_ok(&["--as", "alice", "send", "bob", "over there"]);
    wait_until("the message to arrive", || b.texts("bob").contains("over there"));
    // A second link in the foreground is refused.
    let second = a.cli.run(&["link", "demo", "--store", &a.store, "--foreground"]);
    assert_eq!(second.code, Some(1), "{second}");
    assert!(
        second.stderr.contains("another process on this host already links team demo"),
        "{second}"
    );
    let pid = a.pid().unwrap();
    assert_eq!(a.cli.run_ok(&["link", "--stop", "demo"]), "team demo is no longer linked\n");
    wait_until("the link's process to end", || {
        !std::path::Path::new(&format!("/proc/{pid}")).exists()
    });
    assert_eq!(a.cli.run(&["link", "--list"]).code, Some(4));
    let again = a.cli.run(&["link", "--stop", "demo"]);
    assert!(again.stderr.contains("team demo is not linked on this host"), "{again}");
}

#[test]
fn n19_link_refuses_an_unknown_team() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let host = ServiceHost::new(CliEnv::new(), "a", &engine);
    host.cli.run_ok(&["team", "create", "demo"]);
    host.cli.run_ok(&["team", "create", "other", "--store", &host.store]);
    for how in ["--foreground", "--once", "--json"] {
        let refused = host.cli.run(&["link", "nosuch", "--store", &host.store, how]);
        assert_eq!(refused.code, Some(1), "{refused}");
        let known = format!("teams on this host: demo; teams at {}: other", host.store);
        assert!(refused.stderr.contains(&known), "{refused}");
        assert!(refused.stderr.contains("exists neither on this host nor at"), "{refused}");
    }
    assert_eq!(host.links(), serde_json::json!([]));
}

#[test]
fn n19_link_names_the_address_and_the_cause_of_a_wrong_port() {
    let cli = CliEnv::with_team();
    let refused = cli.run(&["link", "demo", "--store", "nats://127.0.0.1:1"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("nats://127.0.0.1:1"), "{refused}");
    assert!(refused.stderr.contains("Connection refused"), "{refused}");
    let mut link = cli.command(&["link", "demo", "--store", "nats://127.0.0.1:1", "--foreground"]);
    let mut link = link.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let stderr = std::io::BufReader::new(link.stderr.take().unwrap());
    let line = std::io::BufRead::lines(stderr).next().unwrap().unwrap();
    let reports = cli.run(&["link", "--list"]).stdout;
    link.kill().unwrap();
    link.wait().unwrap();
    assert!(line.contains("nats://127.0.0.1:1") && line.contains("Connection refused"), "{line}");
    assert!(reports.contains("server unreachable"), "{reports}");
}

#[test]
fn n8_an_ended_session_is_removed_everywhere() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let a = ServiceHost::new(with_lead_process(CliEnv::with_session_team()), "a", &engine);
    let b = ServiceHost::new(CliEnv::new(), "b", &engine);
    a.link(SESSION);
    b.link(SESSION);
    assert!(b.cli.path(&format!("claude/teams/{SESSION}")).exists());
    end_session(&a.cli);
    for host in [&a, &b] {
        wait_until("the link to end", || host.links() == serde_json::json!([]));
        assert!(!host.cli.path(&format!("claude/teams/{SESSION}")).exists());
    }
    let teams = a.cli.run(&["team", "list", "--json", "--store", &a.store]).stdout;
    assert!(!teams.contains(SESSION), "{teams}");
}

#[test]
fn n8_team_delete_accepts_the_copy_of_an_ended_session() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let a = ServiceHost::new(with_lead_process(CliEnv::with_session_team()), "a", &engine);
    a.cli.run_ok(&["link", SESSION, "--once", "--store", &a.store]);
    let delete = ["team", "delete", SESSION, "--store", &a.store];
    let refused = a.cli.run(&delete);
    assert_eq!(refused.code, Some(1), "the session still runs: {refused}");
    end_session(&a.cli);
    a.cli.run_ok(&delete);
}

#[test]
fn a_link_reports_a_lost_connection_and_the_end_of_the_failure() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::single();
    let a = ServiceHost::new(CliEnv::with_team(), "a", &engine);
    a.link("demo");
    engine.stop(0);
    wait_until("the link to report it", || a.links()[0]["state"] == "unreachable");
    let doctor = a.cli.run(&["doctor"]).stdout;
    assert!(doctor.contains("dead-link") && doctor.contains("cannot be reached"), "{doctor}");
    engine.start(0);
    engine.wait_ready();
    wait_until("the link to reconnect", || a.links()[0]["state"] == "connected");
}

#[test]
fn doctor_finds_a_link_that_does_not_run() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let a = ServiceHost::new(CliEnv::with_team(), "a", &engine);
    a.link("demo");
    // A reboot ends the supervisor and the link.
    let supervisor = std::fs::read_dir(a.cli.path("state/brigade/host")).unwrap();
    let supervisor = supervisor.map(|entry| entry.unwrap().path().join("supervisor"));
    for lock in supervisor {
        let lock: serde_json::Value =
            serde_json::from_slice(&std::fs::read(lock).unwrap()).unwrap();
        let pid = i32::try_from(lock["pid"].as_i64().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let pid = Pid::from_raw(a.pid().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("the link to end", || a.links()[0]["state"] == "dead");
    let doctor = a.cli.run(&["doctor"]).stdout;
    assert!(doctor.contains("dead-link") && doctor.contains("the link is not running"), "{doctor}");
    let _findings = a.cli.run(&["doctor", "--fix"]);
    wait_until("the link to run again", || a.links()[0]["state"] == "connected");
}

#[test]
fn n13_down_says_that_claude_code_still_leads() {
    let cli = CliEnv::with_session_team();
    cli.run_ok(&["spawn", "dora", "--team", SESSION, "--agent", &format!("acp:{FAKE_AGENT}")]);
    let down = cli.run_ok(&["down"]);
    assert_eq!(down, format!("stopped dora; Claude Code still leads team {SESSION}\n"));
}
