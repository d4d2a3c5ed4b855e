//! The faults that `brigade doctor` finds, one row each: how to create it, and how to verify its fix.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

use crate::doctor::{age, task_of};
use crate::env::CliEnv;

/// A fault.
pub(crate) struct Fault {
    /// Its description in assertion messages.
    pub(crate) called: &'static str,
    /// The check that finds it.
    pub(crate) check: &'static str,
    /// Creates the fault. Returns a process that must keep running meanwhile, if any.
    pub(crate) seed: fn(&CliEnv) -> Option<Running>,
    /// If it can be fixed: asserts that it was.
    pub(crate) mended: Option<fn(&CliEnv)>,
    /// Environment variables. `ROOT` stands for the root of the test environment.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

/// A process that is killed at the end of the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ignored = self.0.kill();
        let _ignored = self.0.wait();
    }
}

const fn fault(
    called: &'static str,
    check: &'static str,
    seed: fn(&CliEnv) -> Option<Running>,
    mended: Option<fn(&CliEnv)>,
) -> Fault {
    Fault { called, check, seed, mended, env: &[] }
}

/// A process id above the maximum, which no process has.
const NOBODY: u32 = 4_194_999;

const DEMO: &str = "claude/teams/demo";
const INBOXES: &str = "claude/teams/demo/inboxes";
const BOARD: &str = "claude/tasks/demo";

/// Creates a lock of this age.
fn lock(cli: &CliEnv, path: &str, seconds: i64) -> Option<Running> {
    let path = cli.path(path);
    fs::create_dir_all(&path).unwrap();
    age(&path, seconds);
    None
}

/// Creates a file of this age.
fn file(cli: &CliEnv, path: &str, text: &str, seconds: i64) -> Option<Running> {
    cli.write(path, text);
    age(&cli.path(path), seconds);
    None
}

fn is_gone(cli: &CliEnv, path: &str) {
    assert!(cli.path(path).symlink_metadata().is_err(), "{path} is still there");
}

/// Brigade's own folder for the teams of this environment.
fn own(cli: &CliEnv) -> String {
    let key = fs::read_dir(cli.path("state/brigade/files")).unwrap().next().unwrap().unwrap();
    format!("state/brigade/files/{}", key.file_name().to_str().unwrap())
}

/// Writes bob's last heartbeat with the mode that brigade uses.
fn pulse_of_bob(cli: &CliEnv, pulse: &serde_json::Value) -> Option<Running> {
    let folder = format!("{}/demo/pulse", own(cli));
    let path = format!("{folder}/bob.json");
    file(cli, &path, &pulse.to_string(), 60);
    for (path, mode) in [(&folder, 0o700), (&path, 0o600)] {
        fs::set_permissions(cli.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    None
}

fn task(cli: &CliEnv, id: u64, fields: &str) -> Option<Running> {
    let task = format!(r#"{{"id": "{id}", "subject": "s", "description": "", {fields}}}"#);
    file(cli, &format!("{BOARD}/{id}.json"), &task, 60)
}

fn message(from: &str, text: &str) -> String {
    let timestamp = "2026-01-01T12:00:00.000Z";
    serde_json::json!([{ "from": from, "text": text, "timestamp": timestamp, "read": false }])
        .to_string()
}

fn members(cli: &CliEnv) -> Vec<String> {
    let team = cli.json(&["team", "show"]);
    let members = team["members"].as_array().unwrap().iter();
    members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes Claude Code settings with one wrong value.
fn settings(cli: &CliEnv, command: &str, teams: &str, mode: &str) -> Option<Running> {
    let env = serde_json::json!({ "CLAUDE_CODE_TEAMMATE_COMMAND": command, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": teams });
    let settings = serde_json::json!({ "env": env, "teammateMode": mode });
    file(cli, "claude/settings.json", &settings.to_string(), 0)
}

const HERE: &str = env!("CARGO_BIN_EXE_brigade");
const PATH: (&str, &str) = ("PATH", "ROOT/bin:/usr/bin:/bin");

pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "a stale lock on an inbox",
        "stale-lock",
        |cli| lock(cli, &format!("{INBOXES}/bob.json.lock"), 60),
        Some(|cli| {
            is_gone(cli, &format!("{INBOXES}/bob.json.lock"));
        }),
    ),
    fault(
        "a stale lock on the roster",
        "stale-lock",
        |cli| lock(cli, &format!("{DEMO}/config.json.lock"), 11),
        Some(|cli| {
            cli.run_ok(&["team", "join", "carl"]);
        }),
    ),
    fault(
        "a stale lock on the board",
        "stale-lock",
        |cli| lock(cli, &format!("{BOARD}/.lock.lock"), 60),
        Some(|cli| {
            cli.run_ok(&["task", "add", "three"]);
        }),
    ),
    fault(
        "a stale lock on a task",
        "stale-lock",
        |cli| lock(cli, &format!("{BOARD}/2.json.lock"), 60),
        Some(|cli| is_gone(cli, &format!("{BOARD}/2.json.lock"))),
    ),
    fault(
        "a lock from the future",
        "stale-lock",
        |cli| lock(cli, &format!("{INBOXES}/bob.json.lock"), -7200),
        Some(|cli| is_gone(cli, &format!("{INBOXES}/bob.json.lock"))),
    ),
    fault(
        "a file in place of a lock",
        "broken-lock",
        |cli| file(cli, &format!("{INBOXES}/bob.json.lock"), "4711", 60),
        Some(|cli| {
            cli.run_ok(&["send", "bob", "fourth"]);
        }),
    ),
    fault(
        "a lock folder that is not empty",
        "broken-lock",
        |cli| {
            cli.write(&format!("{DEMO}/config.json.lock/owner"), "4711");
            lock(cli, &format!("{DEMO}/config.json.lock"), 60)
        },
        Some(|cli| {
            cli.run_ok(&["team", "join", "carl"]);
        }),
    ),
    fault(
        "a torn inbox",
        "torn-file",
        |cli| {
            let path = format!("{INBOXES}/bob.json");
            let whole = fs::read_to_string(cli.path(&path)).unwrap();
            file(cli, &path, whole.get(..whole.len() / 2).unwrap(), 60)
        },
        Some(|cli| assert!(cli.run_ok(&["inbox", "bob"]).contains("third"))),
    ),
    fault(
        "an empty roster",
        "torn-file",
        |cli| file(cli, &format!("{DEMO}/config.json"), "", 60),
        Some(|cli| assert_eq!(members(cli), ["team-lead", "alice", "bob"])),
    ),
    fault(
        "a torn task",
        "torn-file",
        |cli| file(cli, &format!("{BOARD}/2.json"), r#"{"id": "2", "sub"#, 60),
        Some(|cli| assert_eq!(cli.json(&["task", "show", "2"])["blockedBy"][0], "1")),
    ),
    fault(
        "a torn task without a journal record",
        "torn-file",
        |cli| file(cli, &format!("{BOARD}/9.json"), r#"{"id""#, 60),
        None,
    ),
    fault(
        "a big inbox",
        "big-inbox",
        |cli| file(cli, &format!("{INBOXES}/bob.json"), &message("alice", &"x".repeat(900_000)), 0),
        None,
    ),
    fault(
        "a team in two folders",
        "split-team",
        |cli| {
            let config = fs::read_to_string(cli.path(&format!("{DEMO}/config.json"))).unwrap();
            cli.write("claude/teams/my-team/config.json", &config);
            cli.write("claude/teams/My_Team/inboxes/bob.json", "[]");
            age(&cli.path("claude/teams/My_Team"), 600);
            None
        },
        None,
    ),
    fault(
        "an empty team's folder",
        "no-config",
        |cli| lock(cli, "claude/teams/empty", 600),
        Some(|cli| is_gone(cli, "claude/teams/empty")),
    ),
    fault(
        "a team's folder with mail and no roster",
        "no-config",
        |cli| {
            cli.write("claude/teams/left/inboxes/bob.json", "[]");
            lock(cli, "claude/teams/left", 600)
        },
        None,
    ),
    fault(
        "a temporary file of ours beside an inbox",
        "left-over",
        |cli| file(cli, &format!("{INBOXES}/bob.json.tmp.brigade-{NOBODY}-1"), "[]", 60),
        Some(|cli| assert!(cli.run_ok(&["inbox", "bob"]).contains("third"))),
    ),
    fault(
        "a temporary file of ours beside a roster",
        "left-over",
        |cli| file(cli, &format!("{DEMO}/config.json.tmp.brigade-{NOBODY}-3"), "{}", 60),
        Some(|cli| assert_eq!(members(cli).len(), 3)),
    ),
    fault(
        "a temporary file of Claude Code's",
        "left-over",
        |cli| file(cli, &format!("{INBOXES}/bob.json.tmp.0a1b2c3d"), "[]", 7200),
        Some(|cli| is_gone(cli, &format!("{INBOXES}/bob.json.tmp.0a1b2c3d"))),
    ),
    fault(
        "a partly deleted team",
        "left-over",
        |cli| {
            let team = "claude/teams/old.deleted-4d2221a5-4c29-4cf2-b193-e9d31f0cae3f";
            cli.write(&format!("{team}/inboxes/bob.json"), "[]");
            lock(cli, team, 7200)
        },
        Some(|cli| assert_eq!(fs::read_dir(cli.path("claude/teams")).unwrap().count(), 1)),
    ),
    fault(
        "a journal that others can read",
        "open-to-others",
        |cli| {
            let path = cli.path(&format!("{}/demo/team.jsonl", own(cli)));
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
            None
        },
        Some(|cli| {
            let path = cli.path(&format!("{}/demo/team.jsonl", own(cli)));
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }),
    ),
    fault(
        "a key that others can read",
        "open-to-others",
        |cli| {
            let dir = "state/brigade/host";
            file(cli, &format!("{dir}/key"), "secret", 60);
            fs::set_permissions(cli.path(dir), fs::Permissions::from_mode(0o700)).unwrap();
            fs::set_permissions(cli.path(&format!("{dir}/key")), fs::Permissions::from_mode(0o640))
                .unwrap();
            None
        },
        Some(|cli| {
            let mode = cli.path("state/brigade/host/key").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }),
    ),
    fault(
        "an inbox that is a link",
        "foreign-file",
        |cli| {
            cli.write("elsewhere.json", "[]");
            let link = cli.path(&format!("{INBOXES}/carl.json"));
            std::os::unix::fs::symlink(cli.path("elsewhere.json"), link).unwrap();
            None
        },
        None,
    ),
    fault(
        "a member written back after it left",
        "returned-member",
        |cli| {
            let config = fs::read_to_string(cli.path(&format!("{DEMO}/config.json"))).unwrap();
            cli.run_ok(&["team", "leave", "alice"]);
            file(cli, &format!("{DEMO}/config.json"), &config, 60)
        },
        Some(|cli| assert_eq!(members(cli), ["team-lead", "bob"])),
    ),
    fault(
        "a member whose process is gone",
        "ghost-member",
        |cli| {
            // It joined before its last heartbeat.
            let path = format!("{DEMO}/config.json");
            let text = fs::read_to_string(cli.path(&path)).unwrap();
            let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
            config["members"][2]["joinedAt"] = 1_763_180_000_000_u64.into();
            cli.write(&path, &config.to_string());
            let pulse = serde_json::json!({
                "process": { "pid": NOBODY, "began": "1" }, "at": "2026-01-01T12:00:00Z",
                "state": { "idle": {} }, "since": "2026-01-01T12:00:00Z"
            });
            pulse_of_bob(cli, &pulse)
        },
        Some(|cli| {
            assert_eq!(members(cli), ["team-lead", "alice"]);
            assert_eq!(cli.json(&["task", "show", "1"])["status"], "pending");
        }),
    ),
    fault(
        "a member whose vendor refused its last turn",
        "failed-turn",
        |cli| {
            // The heartbeat is recent, so its process is not checked.
            let pulse = serde_json::json!({
                "process": { "pid": NOBODY, "began": "1" }, "at": "2099-01-01T12:00:00Z",
                "state": { "idle": { "failed": "not logged in" } }, "since": "2099-01-01T12:00:00Z"
            });
            pulse_of_bob(cli, &pulse)
        },
        None,
    ),
    fault(
        "a file where the inboxes should be",
        "unreadable-folder",
        |cli| {
            fs::remove_dir_all(cli.path(INBOXES)).unwrap();
            file(cli, INBOXES, "", 60)
        },
        None,
    ),
    fault(
        "mail to a name that is not on the team",
        "inbox-of-nobody",
        |cli| file(cli, &format!("{INBOXES}/zoe.json"), &message("alice", "are you there?"), 3600),
        Some(|cli| is_gone(cli, &format!("{INBOXES}/zoe.json"))),
    ),
    fault(
        "a plan without an answer",
        "long-wait",
        |cli| {
            let plan = serde_json::json!({
                "type": "plan_approval_request", "from": "bob", "timestamp": "2026-01-01T12:00:00.000Z",
                "planFilePath": "", "planContent": "do it", "requestId": "plan_approval-1@bob@demo"
            });
            file(cli, &format!("{INBOXES}/team-lead.json"), &message("bob", &plan.to_string()), 0)
        },
        None,
    ),
    fault(
        "a team whose session has ended",
        "session-gone",
        |cli| {
            let space = fs::read_link("/proc/self/ns/pid").unwrap();
            let config = serde_json::json!({
                "name": "session-0a1b2c3d", "createdAt": 1, "leadAgentId": "team-lead@session-0a1b2c3d",
                "leadProcess": { "pid": NOBODY, "pidSpace": format!("host#{}", space.display()), "procStart": "1" },
                "members": [{ "agentId": "team-lead@session-0a1b2c3d", "name": "team-lead" }]
            });
            file(cli, "claude/teams/session-0a1b2c3d/config.json", &config.to_string(), 60)
        },
        None,
    ),
    fault(
        "a task that Claude Code does not show",
        "invisible-task",
        |cli| task(cli, 3, r#""status": "pending""#),
        Some(|cli| assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 3)),
    ),
    fault(
        "a task whose owner is not on the team",
        "task-of-nobody",
        |cli| file(cli, &format!("{BOARD}/1.json"), &task_of("zoe"), 60),
        Some(|cli| {
            cli.run_ok(&["--as", "alice", "task", "claim", "1"]);
        }),
    ),
    fault(
        "tasks that wait for each other",
        "task-circle",
        |cli| {
            task(cli, 3, r#""status": "pending", "blocks": [], "blockedBy": ["4"]"#);
            task(cli, 4, r#""status": "pending", "blocks": [], "blockedBy": ["3"]"#)
        },
        None,
    ),
    fault(
        "a task that waits for a deleted one",
        "lost-dependency",
        |cli| task(cli, 3, r#""status": "pending", "blocks": [], "blockedBy": ["1", "77"]"#),
        Some(|cli| {
            assert_eq!(cli.json(&["task", "show", "3"])["blockedBy"], serde_json::json!(["1"]));
        }),
    ),
    fault(
        "a process of a removed member",
        "orphan-process",
        |cli| {
            let key = own(cli).rsplit_once('/').unwrap().1.to_owned();
            let dir = format!("state/brigade/host/{key}/demo/carl");
            cli.write(&format!("{dir}/seat"), "");
            let mut made = cli.path(&dir);
            while made.file_name().is_some_and(|name| name != "brigade") {
                fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
                made.pop();
            }
            let seat = cli.path(&format!("{dir}/seat"));
            let lock = fs::File::open(&seat).unwrap();
            lock.lock().unwrap();
            // The process inherits the lock with its standard input.
            let child = Command::new("sleep").arg("300").stdin(lock).spawn().unwrap();
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
            let process = serde_json::json!({ "pid": child.id(), "began": began });
            fs::write(&seat, process.to_string()).unwrap();
            age(&cli.path(&dir), 120);
            Some(Running(child))
        },
        Some(|_| {}),
    ),
    Fault {
        env: &[PATH],
        ..fault(
            "an agent of an old version",
            "old-agent",
            |cli| {
                let package = "lib/node_modules/@openai/codex";
                cli.write(
                    &format!("{package}/package.json"),
                    r#"{"name": "@openai/codex", "version": "0.50.0"}"#,
                );
                cli.write(&format!("{package}/bin/codex.js"), "#!/bin/sh\n");
                let program = cli.path(&format!("{package}/bin/codex.js"));
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
                fs::create_dir(cli.path("bin")).unwrap();
                std::os::unix::fs::symlink(program, cli.path("bin/codex")).unwrap();
                None
            },
            None,
        )
    },
    fault(
        "an agent that is not installed",
        "no-agent",
        |cli| {
            file(
                cli,
                "work/brigade.toml",
                "team = \"demo\"\n[members.alice]\nagent = \"codex\"\n",
                0,
            )
        },
        None,
    ),
    fault(
        "missing tmux",
        "no-tmux",
        |cli| {
            file(
                cli,
                "work/brigade.toml",
                "team = \"demo\"\n[members.alice]\nagent = \"acp:/bin/true\"\nplace = \"tmux\"\n",
                0,
            )
        },
        None,
    ),
    fault(
        "a team's file with a mistake",
        "team-file",
        |cli| file(cli, "work/brigade.toml", "team = 7\n", 0),
        None,
    ),
    fault(
        "a teammate command that does not exist",
        "settings",
        |cli| settings(cli, "/nowhere/brigade", "1", "tmux"),
        None,
    )
    .with_path(),
    fault(
        "agent teams that are disabled",
        "settings",
        |cli| settings(cli, HERE, "0", "tmux"),
        None,
    )
    .with_path(),
    fault(
        "teammates inside the lead",
        "settings",
        |cli| settings(cli, HERE, "1", "in-process"),
        None,
    )
    .with_path(),
];

impl Fault {
    /// Adds the usual programs to the PATH.
    const fn with_path(self) -> Self {
        Self { env: &[PATH], ..self }
    }
}
