//! A table of the faults that `brigade doctor` finds: how to create each, and how to verify that it was fixed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Child, Command};

use brigade_files::{claude_dir_key, layout};
use serde_json::json;

use crate::doctor::{age, task_of};
use crate::env::CliEnv;

/// A fault that `brigade doctor` must find.
pub(crate) struct Fault {
    /// A description for assertion messages.
    pub(crate) title: &'static str,
    /// The name of the check that finds the fault.
    pub(crate) check: &'static str,
    /// Creates the fault. Returns a process that must run during the check, if there is one.
    pub(crate) create: fn(&CliEnv) -> Option<KillOnDrop>,
    /// Asserts that the fault was fixed; `None` if `--fix` cannot fix the fault.
    pub(crate) assert_fixed: Option<fn(&CliEnv)>,
    /// Whether to set PATH to the folder `bin` of the test environment and the usual system folders.
    pub(crate) has_path: bool,
}

/// A process that is killed at the end of the test.
pub(crate) struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ignored = self.0.kill();
        let _ignored = self.0.wait();
    }
}

const fn fault(
    title: &'static str,
    check: &'static str,
    create: fn(&CliEnv) -> Option<KillOnDrop>,
) -> Fault {
    Fault { title, check, create, assert_fixed: None, has_path: false }
}

impl Fault {
    const fn fixed(self, assert_fixed: fn(&CliEnv)) -> Self {
        Self { assert_fixed: Some(assert_fixed), ..self }
    }

    const fn with_path(self) -> Self {
        Self { has_path: true, ..self }
    }
}

/// A process id that no process can have, because it is above the maximum.
const NO_PROCESS: u32 = 4_194_999;

const BRIGADE: &str = env!("CARGO_BIN_EXE_brigade");
const CONFIG: &str = "claude/teams/demo/config.json";
const CONFIG_LOCK: &str = "claude/teams/demo/config.json.lock";
const INBOXES: &str = "claude/teams/demo/inboxes";
const INBOX: &str = "claude/teams/demo/inboxes/bob.json";
const INBOX_LOCK: &str = "claude/teams/demo/inboxes/bob.json.lock";
const NATIVE_TEMP: &str = "claude/teams/demo/inboxes/bob.json.tmp.0a1b2c3d";
const UNKNOWN_INBOX: &str = "claude/teams/demo/inboxes/zoe.json";
const TASK_LOCK: &str = "claude/tasks/demo/2.json.lock";
const HOST_KEY: &str = "state/brigade/host/key";

/// Creates a folder, such as a lock, that was modified this many seconds ago.
fn folder(cli: &CliEnv, path: &str, seconds: i64) -> Option<KillOnDrop> {
    fs::create_dir_all(cli.path(path)).unwrap();
    age(&cli.path(path), seconds);
    None
}

/// Creates a file that was modified this many seconds ago.
fn file(cli: &CliEnv, path: &str, text: &str, seconds: i64) -> Option<KillOnDrop> {
    cli.write(path, text);
    age(&cli.path(path), seconds);
    None
}

/// Creates a temporary file like the one that a brigade process leaves behind if it dies.
fn temp_file(cli: &CliEnv, target: &str, text: &str) -> Option<KillOnDrop> {
    file(cli, &layout::temp_name(target, NO_PROCESS, 1), text, 60)
}

fn read(cli: &CliEnv, path: &str) -> String {
    fs::read_to_string(cli.path(path)).unwrap()
}

fn assert_gone(cli: &CliEnv, path: &str) {
    assert!(cli.path(path).symlink_metadata().is_err(), "{path} is still there");
}

fn assert_inbox_complete(cli: &CliEnv) {
    assert!(cli.run_ok(&["inbox", "bob"]).contains("third"));
}

fn assert_can_join(cli: &CliEnv) {
    cli.run_ok(&["team", "join", "carl"]);
}

fn set_mode(cli: &CliEnv, path: &str, mode: u32) -> Option<KillOnDrop> {
    fs::set_permissions(cli.path(path), fs::Permissions::from_mode(mode)).unwrap();
    None
}

fn assert_private(cli: &CliEnv, path: &str) {
    let mode = cli.path(path).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Returns a path in brigade's state folder for team `demo`.
fn state_path(cli: &CliEnv, path: &str) -> String {
    let key = claude_dir_key(&cli.path("claude"));
    format!("state/brigade/files/{key}/demo/{path}")
}

/// Writes bob's last heartbeat, with the file mode that brigade uses.
fn pulse_of_bob(cli: &CliEnv, at: &str, idle: &serde_json::Value) -> Option<KillOnDrop> {
    let (folder, path) = (state_path(cli, "pulse"), state_path(cli, "pulse/bob.json"));
    let process = json!({ "pid": NO_PROCESS, "began": "1" });
    let pulse = json!({ "process": process, "at": at, "state": { "idle": idle }, "since": at });
    file(cli, &path, &pulse.to_string(), 60);
    set_mode(cli, &folder, 0o700);
    set_mode(cli, &path, 0o600)
}

fn task(cli: &CliEnv, id: u64, fields: &str) -> Option<KillOnDrop> {
    let task = format!(r#"{{"id": "{id}", "subject": "s", "description": "", {fields}}}"#);
    file(cli, &format!("claude/tasks/demo/{id}.json"), &task, 60)
}

fn blocked_task(cli: &CliEnv, id: u64, blocked_by: &str) -> Option<KillOnDrop> {
    task(cli, id, &format!(r#""status": "pending", "blocks": [], "blockedBy": [{blocked_by}]"#))
}

fn message(from: &str, text: &str) -> String {
    let timestamp = "2026-01-01T12:00:00.000Z";
    json!([{ "from": from, "text": text, "timestamp": timestamp, "read": false }]).to_string()
}

fn members(cli: &CliEnv) -> Vec<String> {
    let team = cli.json(&["team", "show"]);
    let members = team["members"].as_array().unwrap().iter();
    members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

fn team_file(cli: &CliEnv, member: &str) -> Option<KillOnDrop> {
    file(cli, "work/brigade.toml", &format!("team = \"demo\"\n[members.alice]\n{member}\n"), 0)
}

/// Writes Claude Code settings with these values.
fn settings(cli: &CliEnv, command: &str, teams: &str, mode: &str) -> Option<KillOnDrop> {
    let env = json!({ "CLAUDE_CODE_TEAMMATE_COMMAND": command, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": teams });
    let settings = json!({ "env": env, "teammateMode": mode });
    file(cli, "claude/settings.json", &settings.to_string(), 0)
}

/// Starts a process that holds the process lock of carl, who is not on the team. The shell runs `before` first.
fn orphan_process(cli: &CliEnv, before: &str) -> Option<KillOnDrop> {
    let dir = format!("state/brigade/host/{}/demo/carl", claude_dir_key(&cli.path("claude")));
    cli.write(&format!("{dir}/seat"), "");
    let mut made = cli.path(&dir);
    while made.file_name().is_some_and(|name| name != "brigade") {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
        made.pop();
    }
    let seat = cli.path(&format!("{dir}/seat"));
    let script = format!(r#"{before}; exec 9<>"$0"; flock 9; exec sleep 300"#);
    let child = Command::new("sh").args(["-c", &script]).arg(&seat).spawn().unwrap();
    // Wait until the child process holds the lock.
    while Command::new("flock").arg("-n").arg(&seat).arg("true").status().unwrap().success() {}
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    fs::write(&seat, json!({ "pid": child.id(), "began": began }).to_string()).unwrap();
    age(&cli.path(&dir), 120);
    Some(KillOnDrop(child))
}

pub(crate) const FAULTS: &[Fault] = &[
    fault("a stale lock on an inbox", "stale-lock", |cli| folder(cli, INBOX_LOCK, 60))
        .fixed(|cli| assert_gone(cli, INBOX_LOCK)),
    fault("a stale lock on the roster", "stale-lock", |cli| folder(cli, CONFIG_LOCK, 11))
        .fixed(assert_can_join),
    fault("a stale lock on the board", "stale-lock", |cli| {
        folder(cli, "claude/tasks/demo/.lock.lock", 60)
    })
    .fixed(|cli| drop(cli.run_ok(&["task", "add", "three"]))),
    fault("a stale lock on a task", "stale-lock", |cli| folder(cli, TASK_LOCK, 60))
        .fixed(|cli| assert_gone(cli, TASK_LOCK)),
    fault("a lock from the future", "stale-lock", |cli| folder(cli, INBOX_LOCK, -7200))
        .fixed(|cli| assert_gone(cli, INBOX_LOCK)),
    fault("a file in place of a lock", "broken-lock", |cli| file(cli, INBOX_LOCK, "4711", 60))
        .fixed(|cli| drop(cli.run_ok(&["send", "bob", "fourth"]))),
    fault("a lock folder that is not empty", "broken-lock", |cli| {
        cli.write(&format!("{CONFIG_LOCK}/owner"), "4711");
        folder(cli, CONFIG_LOCK, 60)
    })
    .fixed(assert_can_join),
    fault("a torn inbox", "torn-file", |cli| {
        let whole = read(cli, INBOX);
        file(cli, INBOX, whole.get(..whole.len() / 2).unwrap(), 60)
    })
    .fixed(assert_inbox_complete),
    fault("an empty roster", "torn-file", |cli| file(cli, CONFIG, "", 60))
        .fixed(|cli| assert_eq!(members(cli), ["team-lead", "alice", "bob"])),
    fault("a torn task", "torn-file", |cli| {
        file(cli, "claude/tasks/demo/2.json", r#"{"id": "2", "sub"#, 60)
    })
    .fixed(|cli| assert_eq!(cli.json(&["task", "show", "2"])["blockedBy"][0], "1")),
    fault("a torn task without a journal record", "torn-file", |cli| {
        file(cli, "claude/tasks/demo/9.json", r#"{"id""#, 60)
    }),
    fault("a big inbox", "big-inbox", |cli| {
        file(cli, INBOX, &message("alice", &"x".repeat(900_000)), 0)
    }),
    fault("a team in two folders", "split-team", |cli| {
        cli.write("claude/teams/my-team/config.json", &read(cli, CONFIG));
        cli.write("claude/teams/My_Team/inboxes/bob.json", "[]");
        folder(cli, "claude/teams/My_Team", 600)
    }),
    fault("an empty team folder", "no-config", |cli| folder(cli, "claude/teams/empty", 600))
        .fixed(|cli| assert_gone(cli, "claude/teams/empty")),
    fault("a team folder with mail but no roster", "no-config", |cli| {
        cli.write("claude/teams/left/inboxes/bob.json", "[]");
        folder(cli, "claude/teams/left", 600)
    }),
    fault("brigade's temporary file beside an inbox", "left-over", |cli| {
        temp_file(cli, INBOX, "[]")
    })
    .fixed(assert_inbox_complete),
    fault("brigade's temporary file beside a roster", "left-over", |cli| {
        temp_file(cli, CONFIG, "{}")
    })
    .fixed(|cli| assert_eq!(members(cli).len(), 3)),
    fault("a lock that a killed process was removing", "left-over", |cli| {
        folder(cli, &layout::temp_name(INBOX_LOCK, NO_PROCESS, 0), 60)
    })
    .fixed(|cli| assert_gone(cli, &layout::temp_name(INBOX_LOCK, NO_PROCESS, 0))),
    fault("Claude Code's temporary file", "left-over", |cli| file(cli, NATIVE_TEMP, "[]", 7200))
        .fixed(|cli| assert_gone(cli, NATIVE_TEMP)),
    fault("a partly deleted team", "left-over", |cli| {
        let team = "claude/teams/old.deleted-4d2221a5-4c29-4cf2-b193-e9d31f0cae3f";
        cli.write(&format!("{team}/inboxes/bob.json"), "[]");
        folder(cli, team, 7200)
    })
    .fixed(|cli| assert_eq!(fs::read_dir(cli.path("claude/teams")).unwrap().count(), 1)),
    fault("the board of a partly deleted team", "board-without-team", |cli| {
        // Finding 38: `team delete` was killed after it had renamed the first of two folders.
        cli.run_ok(&["team", "create", "half"]);
        cli.run_ok(&["--team", "half", "task", "add", "one"]);
        fs::remove_dir_all(cli.path("claude/teams/half")).unwrap();
        folder(cli, "claude/tasks/half", 600)
    })
    .fixed(|cli| assert_gone(cli, "claude/tasks/half")),
    fault("a journal that others can read", "open-to-others", |cli| {
        set_mode(cli, &state_path(cli, "team.jsonl"), 0o644)
    })
    .fixed(|cli| assert_private(cli, &state_path(cli, "team.jsonl"))),
    fault("a key that others can read", "open-to-others", |cli| {
        cli.write(HOST_KEY, "secret");
        set_mode(cli, "state/brigade/host", 0o700);
        set_mode(cli, HOST_KEY, 0o640)
    })
    .fixed(|cli| assert_private(cli, HOST_KEY)),
    fault("an inbox that is a symbolic link", "foreign-file", |cli| {
        cli.write("elsewhere.json", "[]");
        symlink(cli.path("elsewhere.json"), cli.path(&format!("{INBOXES}/carl.json"))).unwrap();
        None
    }),
    fault("a member that reappears after it left", "returned-member", |cli| {
        let config = read(cli, CONFIG);
        cli.run_ok(&["team", "leave", "alice"]);
        file(cli, CONFIG, &config, 60)
    })
    .fixed(|cli| assert_eq!(members(cli), ["team-lead", "bob"])),
    fault("a member whose process is gone", "ghost-member", |cli| {
        // The doctor ignores the heartbeat unless bob joined before the heartbeat was written.
        let mut config: serde_json::Value = serde_json::from_str(&read(cli, CONFIG)).unwrap();
        config["members"][2]["joinedAt"] = 1_763_180_000_000_u64.into();
        cli.write(CONFIG, &config.to_string());
        pulse_of_bob(cli, "2026-01-01T12:00:00Z", &json!({}))
    })
    .fixed(|cli| {
        assert_eq!(members(cli), ["team-lead", "alice"]);
        assert_eq!(cli.json(&["task", "show", "1"])["status"], "pending");
    }),
    fault("a member whose vendor refused its last turn", "failed-turn", |cli| {
        // The heartbeat is recent, so the doctor does not check whether bob's process exists.
        pulse_of_bob(cli, "2099-01-01T12:00:00Z", &json!({ "failed": "not logged in" }))
    }),
    fault("a file where the inboxes should be", "unreadable-folder", |cli| {
        fs::remove_dir_all(cli.path(INBOXES)).unwrap();
        file(cli, INBOXES, "", 60)
    }),
    fault("mail to a name that is not on the team", "inbox-of-nobody", |cli| {
        file(cli, UNKNOWN_INBOX, &message("alice", "are you there?"), 3600)
    })
    .fixed(|cli| assert_gone(cli, UNKNOWN_INBOX)),
    fault("a plan without an answer", "long-wait", |cli| {
        let plan = json!({
            "type": "plan_approval_request", "from": "bob", "timestamp": "2026-01-01T12:00:00.000Z",
            "planFilePath": "", "planContent": "do it", "requestId": "plan_approval-1@bob@demo"
        });
        file(cli, &format!("{INBOXES}/team-lead.json"), &message("bob", &plan.to_string()), 0)
    }),
    fault("a team whose session has ended", "session-gone", |cli| {
        let space = fs::read_link("/proc/self/ns/pid").unwrap();
        let config = json!({
            "name": "session-0a1b2c3d", "createdAt": 1, "leadAgentId": "team-lead@session-0a1b2c3d",
            "leadProcess": { "pid": NO_PROCESS, "pidSpace": format!("host#{}", space.display()), "procStart": "1" },
            "members": [{ "agentId": "team-lead@session-0a1b2c3d", "name": "team-lead" }]
        });
        file(cli, "claude/teams/session-0a1b2c3d/config.json", &config.to_string(), 60)
    }),
    fault("a task that Claude Code does not show", "invisible-task", |cli| {
        task(cli, 3, r#""status": "pending""#)
    })
    .fixed(|cli| assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 3)),
    fault("a task whose owner is not on the team", "task-of-nobody", |cli| {
        file(cli, "claude/tasks/demo/1.json", &task_of("zoe"), 60)
    })
    .fixed(|cli| drop(cli.run_ok(&["--as", "alice", "task", "claim", "1"]))),
    fault("tasks that wait for each other", "task-circle", |cli| {
        blocked_task(cli, 3, r#""4""#);
        blocked_task(cli, 4, r#""3""#)
    }),
    fault("a task that waits for a deleted one", "lost-dependency", |cli| {
        blocked_task(cli, 3, r#""1", "77""#)
    })
    .fixed(|cli| assert_eq!(cli.json(&["task", "show", "3"])["blockedBy"], json!(["1"]))),
    fault("a process of a removed member", "orphan-process", |cli| orphan_process(cli, ":"))
        .fixed(|_| {}),
    fault("a process of a removed member that ignores SIGTERM", "orphan-process", |cli| {
        orphan_process(cli, "trap '' TERM")
    })
    .fixed(|_| {}),
    fault("an unknown process that holds the lock of a removed member", "orphan-process", |cli| {
        let process = orphan_process(cli, ":");
        let key = claude_dir_key(&cli.path("claude"));
        let seat = cli.path(&format!("state/brigade/host/{key}/demo/carl/seat"));
        fs::write(&seat, json!({ "pid": 4_000_000, "began": "1" }).to_string()).unwrap();
        age(seat.parent().unwrap(), 120);
        process
    }),
    fault("an outdated agent", "old-agent", |cli| {
        let package = "lib/node_modules/@openai/codex";
        let program = format!("{package}/bin/codex.js");
        let description = r#"{"name": "@openai/codex", "version": "0.50.0"}"#;
        cli.write(&format!("{package}/package.json"), description);
        cli.write(&program, "#!/bin/sh\n");
        fs::create_dir(cli.path("bin")).unwrap();
        symlink(cli.path(&program), cli.path("bin/codex")).unwrap();
        set_mode(cli, &program, 0o755)
    })
    .with_path(),
    fault("an agent that is not installed", "no-agent", |cli| team_file(cli, r#"agent = "codex""#)),
    fault("an agent that is logged out", "logged-out", |cli| {
        cli.write("bin/claude", "#!/bin/sh\necho '{\"loggedIn\": false}'\n");
        set_mode(cli, "bin/claude", 0o755);
        team_file(cli, r#"agent = "claude""#)
    })
    .with_path(),
    fault("missing tmux", "no-tmux", |cli| {
        team_file(cli, "agent = \"acp:/bin/true\"\nplace = \"tmux\"")
    }),
    fault("an invalid team file", "team-file", |cli| {
        file(cli, "work/brigade.toml", "team = 7\n", 0)
    }),
    fault("a policy file with a mistake", "policy-file", |cli| {
        file(cli, "home/.config/brigade/policy.toml", "rules = 7\n", 0)
    }),
    fault("a teammate command that does not exist", "settings", |cli| {
        settings(cli, "/nowhere/brigade", "1", "tmux")
    })
    .with_path(),
    fault("agent teams that are disabled", "settings", |cli| settings(cli, BRIGADE, "0", "tmux"))
        .with_path(),
    fault("teammates inside the lead's process", "settings", |cli| {
        settings(cli, BRIGADE, "1", "in-process")
    })
    .with_path(),
];
