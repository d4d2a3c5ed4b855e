//! What can be wrong, one row each: how it comes to be, whether it is mended, and how that is seen.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

use crate::doctor::{age, task_of};
use crate::env::House;

/// Something that is wrong.
pub(crate) struct Fault {
    /// What is told if it is not found.
    pub(crate) called: &'static str,
    /// The check that finds it.
    pub(crate) check: &'static str,
    /// Makes it; what has to live as long is given back.
    pub(crate) seed: fn(&House) -> Option<Running>,
    /// Where it can be mended: looks whether it is.
    pub(crate) mended: Option<fn(&House)>,
    /// Variables, `HOUSE` standing for the house's folder.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

/// A process that is ended with the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

const fn fault(
    called: &'static str,
    check: &'static str,
    seed: fn(&House) -> Option<Running>,
    mended: Option<fn(&House)>,
) -> Fault {
    Fault { called, check, seed, mended, env: &[] }
}

/// A number that no process has: the highest there can be is lower.
const NOBODY: u32 = 4_194_999;

const DEMO: &str = "claude/teams/demo";
const INBOXES: &str = "claude/teams/demo/inboxes";
const BOARD: &str = "claude/tasks/demo";

/// A lock of that age.
fn lock(house: &House, path: &str, seconds: i64) -> Option<Running> {
    let path = house.path(path);
    fs::create_dir_all(&path).unwrap();
    age(&path, seconds);
    None
}

/// A file of that age.
fn file(house: &House, path: &str, text: &str, seconds: i64) -> Option<Running> {
    house.write(path, text);
    age(&house.path(path), seconds);
    None
}

fn is_gone(house: &House, path: &str) {
    assert!(house.path(path).symlink_metadata().is_err(), "{path} is still there");
}

/// Our own folder for the teams of this house.
fn own(house: &House) -> String {
    let key = fs::read_dir(house.path("state/brigade/files")).unwrap().next().unwrap().unwrap();
    format!("state/brigade/files/{}", key.file_name().to_str().unwrap())
}

/// What bob's process said last, as private as it writes it.
fn pulse_of_bob(house: &House, pulse: &serde_json::Value) -> Option<Running> {
    let folder = format!("{}/demo/pulse", own(house));
    let path = format!("{folder}/bob.json");
    file(house, &path, &pulse.to_string(), 60);
    for (path, mode) in [(&folder, 0o700), (&path, 0o600)] {
        fs::set_permissions(house.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    None
}

fn task(house: &House, id: u64, fields: &str) -> Option<Running> {
    let task = format!(r#"{{"id": "{id}", "subject": "s", "description": "", {fields}}}"#);
    file(house, &format!("{BOARD}/{id}.json"), &task, 60)
}

fn message(from: &str, text: &str) -> String {
    let timestamp = "2026-01-01T12:00:00.000Z";
    serde_json::json!([{ "from": from, "text": text, "timestamp": timestamp, "read": false }])
        .to_string()
}

fn members(house: &House) -> Vec<String> {
    let team = house.json(&["team", "show"]);
    let members = team["members"].as_array().unwrap().iter();
    members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

/// Settings of Claude Code in which one thing is wrong.
fn settings(house: &House, command: &str, teams: &str, mode: &str) -> Option<Running> {
    let env = serde_json::json!({ "CLAUDE_CODE_TEAMMATE_COMMAND": command, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": teams });
    let settings = serde_json::json!({ "env": env, "teammateMode": mode });
    file(house, "claude/settings.json", &settings.to_string(), 0)
}

const HERE: &str = env!("CARGO_BIN_EXE_brigade");
const PATH: (&str, &str) = ("PATH", "HOUSE/bin:/usr/bin:/bin");

pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "a stale lock on an inbox",
        "stale-lock",
        |house| lock(house, &format!("{INBOXES}/bob.json.lock"), 60),
        Some(|house| {
            is_gone(house, &format!("{INBOXES}/bob.json.lock"));
        }),
    ),
    fault(
        "a stale lock on the roster",
        "stale-lock",
        |house| lock(house, &format!("{DEMO}/config.json.lock"), 11),
        Some(|house| {
            house.done(&["team", "join", "carl"]);
        }),
    ),
    fault(
        "a stale lock on the board",
        "stale-lock",
        |house| lock(house, &format!("{BOARD}/.lock.lock"), 60),
        Some(|house| {
            house.done(&["task", "add", "three"]);
        }),
    ),
    fault(
        "a stale lock on a task",
        "stale-lock",
        |house| lock(house, &format!("{BOARD}/2.json.lock"), 60),
        Some(|house| is_gone(house, &format!("{BOARD}/2.json.lock"))),
    ),
    fault(
        "a lock from the future",
        "stale-lock",
        |house| lock(house, &format!("{INBOXES}/bob.json.lock"), -7200),
        Some(|house| is_gone(house, &format!("{INBOXES}/bob.json.lock"))),
    ),
    fault(
        "a file where a lock belongs",
        "broken-lock",
        |house| file(house, &format!("{INBOXES}/bob.json.lock"), "4711", 60),
        Some(|house| {
            house.done(&["send", "bob", "fourth"]);
        }),
    ),
    fault(
        "a lock with something in it",
        "broken-lock",
        |house| {
            house.write(&format!("{DEMO}/config.json.lock/owner"), "4711");
            lock(house, &format!("{DEMO}/config.json.lock"), 60)
        },
        Some(|house| {
            house.done(&["team", "join", "carl"]);
        }),
    ),
    fault(
        "a torn inbox",
        "torn-file",
        |house| {
            let path = format!("{INBOXES}/bob.json");
            let whole = fs::read_to_string(house.path(&path)).unwrap();
            file(house, &path, whole.get(..whole.len() / 2).unwrap(), 60)
        },
        Some(|house| assert!(house.done(&["inbox", "bob"]).contains("third"))),
    ),
    fault(
        "an empty roster",
        "torn-file",
        |house| file(house, &format!("{DEMO}/config.json"), "", 60),
        Some(|house| assert_eq!(members(house), ["team-lead", "alice", "bob"])),
    ),
    fault(
        "a torn task",
        "torn-file",
        |house| file(house, &format!("{BOARD}/2.json"), r#"{"id": "2", "sub"#, 60),
        Some(|house| assert_eq!(house.json(&["task", "show", "2"])["blockedBy"][0], "1")),
    ),
    fault(
        "a torn task nobody has seen",
        "torn-file",
        |house| file(house, &format!("{BOARD}/9.json"), r#"{"id""#, 60),
        None,
    ),
    fault(
        "a big inbox",
        "big-inbox",
        |house| {
            file(house, &format!("{INBOXES}/bob.json"), &message("alice", &"x".repeat(900_000)), 0)
        },
        None,
    ),
    fault(
        "a team in two folders",
        "split-team",
        |house| {
            let config = fs::read_to_string(house.path(&format!("{DEMO}/config.json"))).unwrap();
            house.write("claude/teams/my-team/config.json", &config);
            house.write("claude/teams/My_Team/inboxes/bob.json", "[]");
            age(&house.path("claude/teams/My_Team"), 600);
            None
        },
        None,
    ),
    fault(
        "an empty team's folder",
        "no-config",
        |house| lock(house, "claude/teams/empty", 600),
        Some(|house| is_gone(house, "claude/teams/empty")),
    ),
    fault(
        "a team's folder with mail and no roster",
        "no-config",
        |house| {
            house.write("claude/teams/left/inboxes/bob.json", "[]");
            lock(house, "claude/teams/left", 600)
        },
        None,
    ),
    fault(
        "a temporary file of ours beside an inbox",
        "left-over",
        |house| file(house, &format!("{INBOXES}/bob.json.tmp.brigade-{NOBODY}-1"), "[]", 60),
        Some(|house| assert!(house.done(&["inbox", "bob"]).contains("third"))),
    ),
    fault(
        "a temporary file of ours beside a roster",
        "left-over",
        |house| file(house, &format!("{DEMO}/config.json.tmp.brigade-{NOBODY}-3"), "{}", 60),
        Some(|house| assert_eq!(members(house).len(), 3)),
    ),
    fault(
        "a temporary file of Claude Code's",
        "left-over",
        |house| file(house, &format!("{INBOXES}/bob.json.tmp.0a1b2c3d"), "[]", 7200),
        Some(|house| is_gone(house, &format!("{INBOXES}/bob.json.tmp.0a1b2c3d"))),
    ),
    fault(
        "a team deleted in part",
        "left-over",
        |house| {
            let team = "claude/teams/old.deleted-4d2221a5-4c29-4cf2-b193-e9d31f0cae3f";
            house.write(&format!("{team}/inboxes/bob.json"), "[]");
            lock(house, team, 7200)
        },
        Some(|house| assert_eq!(fs::read_dir(house.path("claude/teams")).unwrap().count(), 1)),
    ),
    fault(
        "a journal that others can read",
        "open-to-others",
        |house| {
            let path = house.path(&format!("{}/demo/team.jsonl", own(house)));
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
            None
        },
        Some(|house| {
            let path = house.path(&format!("{}/demo/team.jsonl", own(house)));
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }),
    ),
    fault(
        "a key that others can read",
        "open-to-others",
        |house| {
            let dir = "state/brigade/host";
            file(house, &format!("{dir}/key"), "secret", 60);
            fs::set_permissions(house.path(dir), fs::Permissions::from_mode(0o700)).unwrap();
            fs::set_permissions(
                house.path(&format!("{dir}/key")),
                fs::Permissions::from_mode(0o640),
            )
            .unwrap();
            None
        },
        Some(|house| {
            let mode =
                house.path("state/brigade/host/key").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }),
    ),
    fault(
        "an inbox that is a link",
        "foreign-file",
        |house| {
            house.write("elsewhere.json", "[]");
            let link = house.path(&format!("{INBOXES}/carl.json"));
            std::os::unix::fs::symlink(house.path("elsewhere.json"), link).unwrap();
            None
        },
        None,
    ),
    fault(
        "a member written back after it left",
        "returned-member",
        |house| {
            let config = fs::read_to_string(house.path(&format!("{DEMO}/config.json"))).unwrap();
            house.done(&["team", "leave", "alice"]);
            file(house, &format!("{DEMO}/config.json"), &config, 60)
        },
        Some(|house| assert_eq!(members(house), ["team-lead", "bob"])),
    ),
    fault(
        "a member whose process is gone",
        "ghost-member",
        |house| {
            // On the team since before it was heard of last.
            let path = format!("{DEMO}/config.json");
            let text = fs::read_to_string(house.path(&path)).unwrap();
            let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
            config["members"][2]["joinedAt"] = 1_763_180_000_000_u64.into();
            house.write(&path, &config.to_string());
            let pulse = serde_json::json!({
                "process": { "pid": NOBODY, "began": "1" }, "at": "2026-01-01T12:00:00Z",
                "state": { "idle": {} }, "since": "2026-01-01T12:00:00Z"
            });
            pulse_of_bob(house, &pulse)
        },
        Some(|house| {
            assert_eq!(members(house), ["team-lead", "alice"]);
            assert_eq!(house.json(&["task", "show", "1"])["status"], "pending");
        }),
    ),
    fault(
        "a member whose vendor refused its last turn",
        "failed-turn",
        |house| {
            // Its process may not be looked for: it has only just said so.
            let pulse = serde_json::json!({
                "process": { "pid": NOBODY, "began": "1" }, "at": "2099-01-01T12:00:00Z",
                "state": { "idle": { "failed": "not logged in" } }, "since": "2099-01-01T12:00:00Z"
            });
            pulse_of_bob(house, &pulse)
        },
        None,
    ),
    fault(
        "a file where the inboxes should be",
        "unreadable-folder",
        |house| {
            fs::remove_dir_all(house.path(INBOXES)).unwrap();
            file(house, INBOXES, "", 60)
        },
        None,
    ),
    fault(
        "mail to nobody",
        "inbox-of-nobody",
        |house| {
            file(house, &format!("{INBOXES}/zoe.json"), &message("alice", "are you there?"), 3600)
        },
        Some(|house| is_gone(house, &format!("{INBOXES}/zoe.json"))),
    ),
    fault(
        "a plan that nobody looked at",
        "long-wait",
        |house| {
            let plan = serde_json::json!({
                "type": "plan_approval_request", "from": "bob", "timestamp": "2026-01-01T12:00:00.000Z",
                "planFilePath": "", "planContent": "do it", "requestId": "plan_approval-1@bob@demo"
            });
            file(house, &format!("{INBOXES}/team-lead.json"), &message("bob", &plan.to_string()), 0)
        },
        None,
    ),
    fault(
        "a team whose session has ended",
        "session-gone",
        |house| {
            let space = fs::read_link("/proc/self/ns/pid").unwrap();
            let config = serde_json::json!({
                "name": "session-0a1b2c3d", "createdAt": 1, "leadAgentId": "team-lead@session-0a1b2c3d",
                "leadProcess": { "pid": NOBODY, "pidSpace": format!("host#{}", space.display()), "procStart": "1" },
                "members": [{ "agentId": "team-lead@session-0a1b2c3d", "name": "team-lead" }]
            });
            file(house, "claude/teams/session-0a1b2c3d/config.json", &config.to_string(), 60)
        },
        None,
    ),
    fault(
        "a task that Claude Code does not show",
        "invisible-task",
        |house| task(house, 3, r#""status": "pending""#),
        Some(|house| assert_eq!(house.json(&["task", "list"]).as_array().unwrap().len(), 3)),
    ),
    fault(
        "a task of nobody",
        "task-of-nobody",
        |house| file(house, &format!("{BOARD}/1.json"), &task_of("zoe"), 60),
        Some(|house| {
            house.done(&["--as", "alice", "task", "claim", "1"]);
        }),
    ),
    fault(
        "tasks that wait for each other",
        "task-circle",
        |house| {
            task(house, 3, r#""status": "pending", "blocks": [], "blockedBy": ["4"]"#);
            task(house, 4, r#""status": "pending", "blocks": [], "blockedBy": ["3"]"#)
        },
        None,
    ),
    fault(
        "a task that waits for a deleted one",
        "lost-dependency",
        |house| task(house, 3, r#""status": "pending", "blocks": [], "blockedBy": ["1", "77"]"#),
        Some(|house| {
            assert_eq!(house.json(&["task", "show", "3"])["blockedBy"], serde_json::json!(["1"]));
        }),
    ),
    fault(
        "a process of a member that is not to be",
        "orphan-process",
        |house| {
            let key = own(house).rsplit_once('/').unwrap().1.to_owned();
            let dir = format!("state/brigade/host/{key}/demo/carl");
            house.write(&format!("{dir}/seat"), "");
            let mut made = house.path(&dir);
            while made.file_name().is_some_and(|name| name != "brigade") {
                fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
                made.pop();
            }
            let seat = house.path(&format!("{dir}/seat"));
            let script = r#"exec 9<>"$0"; flock 9; exec sleep 300"#;
            let child = Command::new("sh").args(["-c", script]).arg(&seat).spawn().unwrap();
            // Until it holds the seat.
            while Command::new("flock").arg("-n").arg(&seat).arg("true").status().unwrap().success()
            {
            }
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
            let process = serde_json::json!({ "pid": child.id(), "began": began });
            fs::write(&seat, process.to_string()).unwrap();
            age(&house.path(&dir), 120);
            Some(Running(child))
        },
        Some(|_| {}),
    ),
    Fault {
        env: &[PATH],
        ..fault(
            "an agent of an old version",
            "old-agent",
            |house| {
                let package = "lib/node_modules/@openai/codex";
                house.write(
                    &format!("{package}/package.json"),
                    r#"{"name": "@openai/codex", "version": "0.50.0"}"#,
                );
                house.write(&format!("{package}/bin/codex.js"), "#!/bin/sh\n");
                let program = house.path(&format!("{package}/bin/codex.js"));
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
                fs::create_dir(house.path("bin")).unwrap();
                std::os::unix::fs::symlink(program, house.path("bin/codex")).unwrap();
                None
            },
            None,
        )
    },
    fault(
        "an agent that is not installed",
        "no-agent",
        |house| {
            file(
                house,
                "work/brigade.toml",
                "team = \"demo\"\n[members.alice]\nagent = \"codex\"\n",
                0,
            )
        },
        None,
    ),
    fault(
        "no tmux where one is wanted",
        "no-tmux",
        |house| {
            file(
                house,
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
        |house| file(house, "work/brigade.toml", "team = 7\n", 0),
        None,
    ),
    fault(
        "a teammate command that is not there",
        "settings",
        |house| settings(house, "/nowhere/brigade", "1", "tmux"),
        None,
    )
    .with_path(),
    fault(
        "teams that are not switched on",
        "settings",
        |house| settings(house, HERE, "0", "tmux"),
        None,
    )
    .with_path(),
    fault(
        "teammates inside the lead",
        "settings",
        |house| settings(house, HERE, "1", "in-process"),
        None,
    )
    .with_path(),
];

impl Fault {
    /// With the usual programs at hand.
    const fn with_path(self) -> Self {
        Self { env: &[PATH], ..self }
    }
}
