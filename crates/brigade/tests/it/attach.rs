//! `brigade attach`: the screen of one member, and the agent's own program on the member's session.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::doctor_host::TmuxServer;
use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::process::{is_alive, kill, wait_for, wait_until};

/// A scripted agent with an interface of its own.
const FAKE_TUI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-tui.sh");

/// A terminal in which a test runs brigade.
struct TestTerminal {
    server: TmuxServer,
}

impl TestTerminal {
    /// Opens a terminal with a shell that has the environment of the test.
    fn open(cli: &CliEnv, size: (u16, u16)) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let server = TmuxServer(format!("attach-{}-{number}", std::process::id()));
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let shell = format!(
            "env -i PATH={} HOME={} XDG_STATE_HOME={} CLAUDE_CONFIG_DIR={} TERM=screen TZ=UTC PS1='$ ' \
             BRIGADE_TRUST=all sh",
            std::env::var("PATH").unwrap(),
            cli.path("home").display(),
            cli.path("state").display(),
            cli.path("claude").display(),
        );
        let work = cli.path("work");
        let work = work.to_str().unwrap();
        server.tmux(&["new-session", "-d", "-x", &width, "-y", &height, "-c", work, &shell]);
        Self { server }
    }

    /// Types a command line that runs brigade, and records the id of its process.
    fn start(&self, cli: &CliEnv, args: &str) {
        let (pid, program) = (cli.path("attach-pid"), env!("CARGO_BIN_EXE_brigade"));
        let _none_yet = std::fs::remove_file(&pid);
        self.type_line(&format!(
            "sh -c 'echo $$ > {}; exec {program} {args}'; echo code=$?",
            pid.display()
        ));
        wait_until("the process of brigade", || pid_in(&pid).is_some());
    }

    fn type_line(&self, text: &str) {
        self.press(&["-l", text]);
        self.press(&["Enter"]);
    }

    fn press(&self, keys: &[&str]) {
        self.server.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.server.tmux(&["capture-pane", "-p", "-J"])
    }

    fn wait_for(&self, text: &str) -> String {
        let began = std::time::Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(began.elapsed().as_secs() < 30, "no {text:?} on the screen:\n{screen}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

fn pid_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Starts a team whose member bob has an agent with an interface of its own.
fn team_with_interface() -> HostedTeam {
    let team = HostedTeam { cli: CliEnv::new() };
    std::fs::create_dir_all(team.cli.path("work/b")).unwrap();
    let file = format!(
        "team = \"demo\"\n[members.bob]\nagent = \"qwen\"\nprogram = {FAKE_TUI:?}\ndir = \"b\"\nprompt = \"hello bob\"\n"
    );
    team.cli.write("work/brigade.toml", &file);
    team.cli.json(&["up"]);
    wait_until("the first turn", || {
        team.received("b").contains("hello bob") && team.cli.member("bob")["liveness"] == "idle"
    });
    team
}

/// Checks that the events are recorded in this order.
fn assert_order(heard: &str, events: &[&str]) {
    let mut rest = heard;
    for event in events {
        let found = rest.split_once(event);
        (_, rest) = found.unwrap_or_else(|| panic!("no {event:?} at its place:\n{heard}"));
    }
}

#[test]
fn without_a_terminal_the_command_names_another_one() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    for args in [&["attach", "alice"][..], &["attach", "alice", "--takeover"]] {
        let refused = team.cli.run(args);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("brigade logs --member alice --work -f"), "{refused}");
    }
}

#[test]
fn the_screen_shows_the_work_and_sends_text_answers_and_interrupts() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let terminal = TestTerminal::open(&team.cli, (80, 24));
    terminal.start(&team.cli, "attach alice");
    terminal.wait_for("hello alice");
    terminal.wait_for("── idle");
    terminal.type_line("please TALK now");
    terminal.wait_for("I am talking");
    assert!(team.received("a").contains("please TALK now"));
    terminal.type_line("please ASK");
    let asked = terminal.wait_for("── wants to run: make");
    assert!(asked.contains("$ make") && asked.contains("ctrl-y allow"), "{asked}");
    terminal.press(&["C-y"]);
    terminal.wait_for("approved alice's permission");
    wait_until("the answer", || team.received("a").contains("allow-it"));
    terminal.type_line("please SLEEP");
    terminal.wait_for("── working");
    terminal.press(&["C-c"]);
    terminal.wait_for("turn interrupted");
    assert!(team.received("a").contains("session/cancel"));
    terminal.press(&["C-d"]);
    terminal.wait_for("code=0");
    // The member keeps running.
    assert_eq!(team.cli.member("alice")["liveness"], "idle");
    assert_eq!(team.received("a").matches("started").count(), 1);
}

#[test]
fn a_name_that_is_not_on_the_team_is_refused() {
    let team = HostedTeam::new();
    team.cli.json(&["up"]);
    let terminal = TestTerminal::open(&team.cli, (100, 24));
    terminal.start(&team.cli, "attach carl");
    let refused = terminal.wait_for("code=1");
    assert!(refused.contains("carl is not a member"), "{refused}");
}

#[test]
fn a_session_is_taken_over_and_the_member_continues_it_with_its_mail() {
    let team = team_with_interface();
    let session = team.cli.member("bob")["session"].clone();
    let terminal = TestTerminal::open(&team.cli, (100, 24));
    terminal.start(&team.cli, "attach bob --takeover");
    let opened = terminal.wait_for("the own interface");
    assert!(
        opened.contains("Qwen Code opens bob's session") && opened.contains("/quit"),
        "{opened}"
    );
    assert_eq!(team.cli.member("bob")["liveness"], "paused");
    assert!(team.cli.run_ok(&["status"]).contains("used in a terminal"));
    terminal.type_line("a typed turn");
    team.cli.run_ok(&["send", "bob", "while you are away"]);
    // Another terminal cannot take the session over, too.
    let second = TestTerminal::open(&team.cli, (100, 24));
    second.start(&team.cli, "attach bob --takeover");
    second.wait_for("a person continues its session in a terminal");
    drop(second);
    terminal.type_line("quit");
    let left = terminal.wait_for("code=0");
    assert!(left.contains("bob continues the session"), "{left}");
    wait_until("the mail", || team.received("b").contains("while you are away"));
    let heard = team.received("b");
    let events = [
        "hello bob",
        "opened --resume s1",
        "typed a typed turn",
        "closed",
        "loaded",
        "while you are away",
    ];
    assert_order(&heard, &events);
    assert_eq!(heard.matches("while you are away").count(), 1, "{heard}");
    assert_eq!(heard.matches("begun").count(), 1, "{heard}");
    assert_eq!(team.cli.member("bob")["session"], session);
    let log = team.cli.run_ok(&["logs", "-n", "20"]);
    let lines = [
        "bob                 a person took over its session in Qwen Code [s1]",
        "team-lead → bob     while you are away",
        "bob                 Qwen Code has ended; the member continues its session [s1]",
    ];
    assert_order(&log, &lines);
    terminal.start(&team.cli, "attach bob");
    let shown = terminal.wait_for("◇ Qwen Code has ended");
    assert!(shown.contains("◇ a person took over its session in Qwen Code"), "{shown}");
}

/// The member must not resume the session while the agent's program may still write to it.
#[test]
#[cfg(target_os = "linux")]
fn after_a_kill_the_program_ends_before_the_member_continues() {
    let team = team_with_interface();
    let terminal = TestTerminal::open(&team.cli, (100, 24));
    terminal.start(&team.cli, "attach bob --takeover");
    terminal.wait_for("the own interface");
    terminal.type_line("a typed turn");
    wait_until("the typed turn", || team.received("b").contains("typed a typed turn"));
    team.cli.run_ok(&["send", "bob", "while you are away"]);
    kill(pid_in(&team.cli.path("attach-pid")).unwrap());
    wait_until("the mail", || team.received("b").contains("while you are away"));
    let heard = team.received("b");
    assert_order(
        &heard,
        &["opened", "typed a typed turn", "terminated", "loaded", "while you are away"],
    );
    assert_eq!(heard.matches("while you are away").count(), 1, "{heard}");
    assert_eq!(heard.matches("begun").count(), 1, "{heard}");
    let log = team.cli.run_ok(&["logs", "bob"]);
    assert_order(&log, &["a person took over its session", "Qwen Code has ended"]);
}

/// The supervisor starts the member's process again. The new process finds the lock of the session.
#[test]
#[cfg(target_os = "linux")]
fn a_member_that_is_started_again_waits_for_the_terminal() {
    let team = team_with_interface();
    let terminal = TestTerminal::open(&team.cli, (100, 24));
    terminal.start(&team.cli, "attach bob --takeover");
    terminal.wait_for("the own interface");
    let process = team.pid("bob");
    kill(process);
    let again = wait_for("a new process", || {
        let member = team.cli.member("bob");
        let pid = member["pid"].as_u64().filter(|pid| *pid != process);
        pid.filter(|_| member["liveness"] == "paused")
    });
    team.cli.run_ok(&["send", "bob", "while you are away"]);
    terminal.type_line("still typing");
    wait_until("the typed turn", || team.received("b").contains("typed still typing"));
    assert!(is_alive(again) && !team.received("b").contains("loaded"), "{}", team.received("b"));
    terminal.type_line("quit");
    wait_until("the mail", || team.received("b").contains("while you are away"));
    let heard = team.received("b");
    assert_order(
        &heard,
        &["opened", "typed still typing", "closed", "loaded", "while you are away"],
    );
    assert_eq!(heard.matches("while you are away").count(), 1, "{heard}");
    // The new process records the end of the takeover, once.
    let log = team.cli.run_ok(&["logs", "bob"]);
    assert_order(&log, &["a person took over its session", "Qwen Code has ended"]);
    assert_eq!(log.matches("took over").count() + log.matches("has ended").count(), 2, "{log}");
}

/// A command that is cancelled while the member works leaves the member as it was.
#[test]
fn the_session_is_handed_over_only_after_the_turn() {
    let team = team_with_interface();
    team.cli.run_ok(&["send", "bob", "please SLEEP"]);
    wait_until("the turn", || team.received("b").contains("sleeps"));
    let terminal = TestTerminal::open(&team.cli, (100, 24));
    terminal.start(&team.cli, "attach bob --takeover");
    terminal.wait_for("waiting for the end of bob's turn");
    assert!(!team.received("b").contains("opened"));
    terminal.press(&["C-c"]);
    let attach = pid_in(&team.cli.path("attach-pid")).unwrap();
    wait_until("the end of the command", || !is_alive(attach));
    team.cli.run_ok(&["interrupt", "bob"]);
    team.cli.run_ok(&["send", "bob", "go on"]);
    wait_until("the next turn", || team.received("b").contains("go on"));
    assert_eq!(team.received("b").matches("started").count(), 1);
}
