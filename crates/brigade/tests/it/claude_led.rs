//! A team that Claude Code leads, with a member that brigade drives and a member that Claude Code runs.

mod ended;
mod person;

use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use brigade_core::signature::{KeyTime, SigningKey};
use brigade_core::store::Outgoing;
use brigade_files::claude_dir_key;
use brigade_wire::permission::{Grant, PermissionResponse, PermissionVerdict};
use brigade_wire::protocol::Protocol;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{CliEnv, FAKE_AGENT, Outcome};
use crate::process::{resume, suspend, wait_for, wait_until};

const TEAM: &str = "session-e0c67a80";
const SESSION: &str = "e0c67a80-0000-4000-8000-000000000000";

/// A team of the lead, `rev` and `nat`. The test is the lead. brigade drives `rev`.
struct ClaudeTeam {
    cli: CliEnv,
    key: SigningKey,
    rev: Child,
}

impl Drop for ClaudeTeam {
    fn drop(&mut self) {
        let _ended = self.rev.kill();
        let _reaped = self.rev.wait();
    }
}

/// Describes the session of the lead, which is the process of this test.
fn write_session(cli: &CliEnv) {
    let session = json!({
        "pid": std::process::id(), "sessionId": SESSION, "cwd": "/project", "startedAt": 0, "status": "busy",
    });
    cli.write(&format!("claude/sessions/{}.json", std::process::id()), &session.to_string());
}

impl ClaudeTeam {
    fn new() -> Self {
        let mut cli = CliEnv::new();
        cli.variables.push(("BRIGADE_ACP_COMMANDS", FAKE_AGENT.to_owned()));
        let member = |name: &str, agent: &str| {
            json!({
                "agentId": format!("{name}@{TEAM}"), "name": name, "agentType": agent, "joinedAt": 1_763_180_000_000_u64,
                "tmuxPaneId": "%1", "cwd": "/", "subscriptions": [], "backendType": "tmux", "isActive": false,
            })
        };
        let agent = format!("acp:{FAKE_AGENT}");
        let config = json!({
            "name": TEAM, "createdAt": 1_763_180_000_000_u64, "leadAgentId": format!("team-lead@{TEAM}"),
            "leadSessionId": SESSION, "leadProcess": { "pid": std::process::id() },
            "members": [member("team-lead", "team-lead"), member("rev", &agent), member("nat", "general-purpose")],
        });
        cli.write(&format!("claude/teams/{TEAM}/config.json"), &config.to_string());
        write_session(&cli);
        let key = SigningKey::generate(KeyTime::Made(1)).unwrap();
        let rev = Self::start_rev(&cli, &key);
        let team = Self { cli, key, rev };
        wait_until("the agent to start", || team.heard().contains("begun"));
        // A session that is not saved cannot be continued.
        let key = claude_dir_key(&team.cli.path("claude"));
        let saved = team.cli.path(&format!("state/brigade/files/{key}/{TEAM}/kept/rev.json"));
        wait_until("the agent's session to be saved", || {
            let saved = std::fs::read(&saved).unwrap_or_default();
            let saved: Value = serde_json::from_slice(&saved).unwrap_or_default();
            saved["memory"]["session"].is_string()
        });
        team
    }

    /// Starts rev as Claude Code does.
    fn start_rev(cli: &CliEnv, key: &SigningKey) -> Child {
        let agent = format!("acp:{FAKE_AGENT}");
        let verify_key = key.verify_key();
        let mut command = cli.command(&[
            "--agent-id",
            &format!("rev@{TEAM}"),
            "--agent-name",
            "rev",
            "--team-name",
            TEAM,
            "--agent-type",
            &agent,
            "--lead-verify-key",
            &verify_key,
        ]);
        let rev = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        rev.spawn().unwrap()
    }

    fn heard(&self) -> String {
        std::fs::read_to_string(self.cli.path("work/heard")).unwrap_or_default()
    }

    fn inbox(&self, of: &str) -> Vec<Value> {
        let path = self.cli.path(&format!("claude/teams/{TEAM}/inboxes/{of}.json"));
        let inbox = std::fs::read(path).unwrap_or_default();
        serde_json::from_slice(&inbox).unwrap_or_default()
    }

    /// Writes a signed message of the lead to rev's inbox, as Claude Code does.
    fn lead_writes(&self, text: &str) {
        self.write_message(text, true);
    }

    /// Writes a message of the lead to rev's inbox, as Claude Code does for a member that it has not started.
    fn lead_writes_unsigned(&self, text: &str) {
        self.write_message(text, false);
    }

    fn write_message(&self, text: &str, is_signed: bool) {
        let mut message = Outgoing {
            msg_id: format!("id {text}"),
            from: "team-lead".into(),
            text: text.into(),
            summary: None,
            timestamp: "2026-11-15T12:00:00.000Z".into(),
            color: None,
            msg_v: Some(1),
            lead_sig: None,
            team_created: 0,
        };
        message.lead_sig = self.key.sign(&message).filter(|_| is_signed);
        let mut inbox = self.inbox("rev");
        inbox.push(serde_json::to_value(message.to_inbox_entry()).unwrap());
        let inbox = Value::Array(inbox).to_string();
        self.cli.write(&format!("claude/teams/{TEAM}/inboxes/rev.json"), &inbox);
    }

    /// Ends the session as `/exit` does.
    fn end_session(&self) {
        let session = self.cli.path(&format!("claude/sessions/{}.json", std::process::id()));
        std::fs::remove_file(session).unwrap();
        let pid = rustix::process::Pid::from_child(&self.rev);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        // rev may write to its team meanwhile.
        let folder = self.cli.path(&format!("claude/teams/{TEAM}"));
        wait_until("the team to be deleted", || std::fs::remove_dir_all(&folder).is_ok());
    }

    /// Ends the session, and waits until rev waits for it.
    fn end_session_and_wait(&self) {
        self.end_session();
        wait_until("rev to wait", || {
            self.cli.run(&["status"]).stdout.contains("waits for Claude Code")
        });
    }

    /// Resumes the session as `claude --resume` does, with this team.
    fn resume_session(&self, team: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = u64::try_from(now.as_millis()).unwrap();
        let config = json!({
            "name": team, "createdAt": now, "leadAgentId": format!("team-lead@{team}"),
            "leadSessionId": SESSION, "leadProcess": { "pid": std::process::id() },
            "members": [{
                "agentId": format!("team-lead@{team}"), "name": "team-lead", "agentType": "team-lead",
                "joinedAt": now, "tmuxPaneId": "", "cwd": "/", "subscriptions": [],
            }],
        });
        self.cli.write(&format!("claude/teams/{team}/config.json"), &config.to_string());
        write_session(&self.cli);
    }

    /// Makes rev's agent ask for permission, and returns the id of the request.
    fn ask(&self) -> String {
        self.lead_writes("ASK");
        wait_for("the request", || self.requests().into_iter().next())
    }

    /// Returns the ids of the permission requests in the lead's inbox.
    fn requests(&self) -> Vec<String> {
        let inbox = self.inbox("team-lead");
        let texts = inbox.iter().filter_map(|message| message["text"].as_str());
        let bodies = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let requests = bodies.filter(|body| body["type"] == "permission_request");
        requests.filter_map(|request| Some(request["request_id"].as_str()?.to_owned())).collect()
    }

    /// Answers a request as Claude Code's dialog does.
    fn dialog_answers(&self, id: &str, yes: bool) {
        let verdict = if yes {
            PermissionVerdict::Success(Grant { updated_input: None, permission_updates: None })
        } else {
            PermissionVerdict::Error("Permission denied".to_owned())
        };
        let request_id = id.to_owned();
        let answer =
            PermissionResponse { request_id, tool_use_id: None, approved_request: None, verdict };
        self.lead_writes(&Protocol::from(answer).to_text());
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.cli.run_with_env(args, &[("BRIGADE_TEAM", TEAM)])
    }

    /// Adds `luke` to the team with `brigade spawn`.
    fn spawn_luke(&self) {
        let spawned = self.run(&["spawn", "luke", "--agent", &format!("acp:{FAKE_AGENT}")]);
        assert_eq!(spawned.code, Some(0), "{spawned}");
    }

    /// Returns the option that the agent got, for example `allow-it`.
    fn given(&self) -> Option<String> {
        let heard = self.heard();
        let (_, answer) = heard.split_once("answered ")?;
        let (_, option) = answer.split_once("\"optionId\":\"")?;
        Some(option.split('"').next()?.to_owned())
    }

    fn roster(&self) -> Vec<String> {
        let config =
            std::fs::read(self.cli.path(&format!("claude/teams/{TEAM}/config.json"))).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        let names = config["members"].as_array().unwrap().iter();
        names.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    }

    fn reports(&self) -> String {
        let inbox = self.inbox("team-lead");
        let texts = inbox.iter().filter_map(|message| message["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn n1_a_persons_answer_takes_effect_beside_the_leads_dialog() {
    let team = ClaudeTeam::new();
    let id = team.ask();
    let listed = team.run(&["approvals"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    // The model of a Claude Code session could have chosen these commands.
    for command in
        [&["approve", "1"][..], &["approve", "1", "--as", "team-lead"], &["stop", "rev", "--now"]]
    {
        let refused = team
            .cli
            .run_with_env(command, &[("BRIGADE_TEAM", TEAM), ("CLAUDE_CODE_SESSION_ID", SESSION)]);
        assert_eq!(refused.code, Some(1), "{command:?}: {refused}");
        assert!(refused.stderr.contains("only a person may act beside Claude Code"), "{refused}");
    }
    assert_eq!(team.given(), None);
    assert_snapshot!(team.run(&["approve", "1"]).to_string().replace(&id, "<id>"), @"approved rev's permission 1: run: make");
    // The member stores the answer before it passes the answer on, so the agent may get it a moment later.
    wait_until("the agent to get the answer", || team.given().as_deref() == Some("allow-it"));
    // Nothing closes Claude Code's dialog, so it may be answered later.
    team.dialog_answers(&id, false);
    wait_until("the report that the answer was late", || team.reports().contains("came late"));
    let reports = team.reports();
    assert!(reports.contains("had no effect: no to perm-"), "{reports}");
    assert!(reports.contains("a person said yes"), "{reports}");
    assert_eq!(team.heard().matches("answered").count(), 1);
    let log = team.run(&["log", "--work"]).to_string();
    assert!(log.contains("approved rev's permission request (by person)"), "{log}");
    assert!(log.contains("came late and had no effect"), "{log}");
}

#[test]
fn n1_an_answer_in_the_leads_dialog_is_final() {
    let team = ClaudeTeam::new();
    let id = team.ask();
    team.dialog_answers(&id, true);
    wait_until("the agent to get the answer", || team.given().as_deref() == Some("allow-it"));
    let denied = team.run(&["deny", "1", "--reason", "no"]);
    assert_eq!(denied.code, Some(1), "{denied}");
    assert!(denied.to_string().contains("Claude Code approved it"), "{denied}");
    let log = team.run(&["log"]).to_string();
    assert!(!log.contains("denied"), "{log}");
    // N22: the log shows the answer of the dialog.
    assert!(log.contains("permission granted"), "{log}");
}

#[test]
fn an_answer_is_not_reported_as_done_before_the_member_has_it() {
    let team = ClaudeTeam::new();
    let id = team.ask();
    suspend(u64::from(team.rev.id()));
    let sent = team.run(&["approve", &id]);
    resume(u64::from(team.rev.id()));
    assert_eq!(sent.code, Some(5), "{sent}");
    assert!(sent.stdout.starts_with("sent, not yet confirmed (rev has not taken"), "{sent}");
    wait_until("the agent to get the answer", || team.given().as_deref() == Some("allow-it"));
}

#[test]
fn a_request_of_a_member_that_claude_code_runs_is_answered_only_there() {
    let team = ClaudeTeam::new();
    let request = json!({
        "type": "permission_request", "request_id": "perm-1", "agent_id": "nat", "tool_name": "Bash",
        "tool_use_id": "t", "description": "", "input": { "command": "make" }, "permission_suggestions": [],
    });
    let entry = json!([{
        "from": "nat", "text": request.to_string(), "timestamp": "2026-11-15T12:00:00.000Z", "read": false,
    }]);
    team.cli.write(&format!("claude/teams/{TEAM}/inboxes/team-lead.json"), &entry.to_string());
    assert_snapshot!(team.run(&["approve", "perm-1"]), @r"
    --- stderr
    error: Claude Code runs nat of team session-e0c67a80, so only Claude Code can answer its requests
    hint: answer in Claude Code's dialog
    --- exit 1
    ");
    assert!(team.inbox("nat").is_empty());
}

#[test]
fn n3_n9_n10_members_that_claude_code_started_are_known_on_this_host() {
    let mut team = ClaudeTeam::new();
    let status: Value = serde_json::from_str(&team.cli.run_ok(&["status", "--json"])).unwrap();
    let (status, members) = (&status[0], &status[0]["members"]);
    assert_eq!(status["lead_session"]["cwd"], "/project");
    assert_eq!((&members[0]["name"], &members[0]["liveness"]), (&json!("rev"), &json!("idle")));
    assert_eq!(members[0]["pid"], team.rev.id());
    assert_eq!((&members[1]["name"], &members[1]["pid"]), (&json!("nat"), &Value::Null));
    let text = team.cli.run_ok(&["status"]);
    assert!(text.contains("Claude Code leads: busy, in /project"), "{text}");
    assert!(!text.contains("supervisor"), "{text}");
    assert_snapshot!(team.run(&["stop", "nat"]), @r"
    --- stderr
    error: Claude Code runs nat of team session-e0c67a80, so only Claude Code can stop it
    hint: ask Claude Code to stop it
    --- exit 1
    ");
    let stopped = team.run(&["stop", "rev", "--now"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    let status: Value = serde_json::from_str(&team.cli.run_ok(&["status", "--json"])).unwrap();
    assert_eq!(status[0]["members"].as_array().map(Vec::len), Some(1), "{status}");
    assert!(!team.cli.path("state/brigade/claude-led").join(TEAM).exists());
}

#[test]
fn n24_commands_in_a_session_of_claude_code_use_its_team() {
    let team = ClaudeTeam::new();
    team.cli.run_ok(&["team", "create", "other"]);
    let inside = |id: &str| {
        team.cli.run_with_env(&["team", "show", "--json"], &[("CLAUDE_CODE_SESSION_ID", id)])
    };
    let shown = inside(SESSION);
    assert!(shown.stdout.contains(TEAM), "{shown}");
    // After `/clear`, the session has another id, and the same process leads the same team.
    let cleared = "11111111-0000-4000-8000-000000000000";
    let session = json!({ "pid": std::process::id(), "sessionId": cleared });
    team.cli.write(&format!("claude/sessions/{}.json", std::process::id()), &session.to_string());
    let shown = inside(cleared);
    assert!(shown.stdout.contains(TEAM), "{shown}");
    assert_eq!(inside("22222222").code, Some(2));
}

/// Claude Code gives a session whose folder is occupied another team, but not another task list.
#[test]
fn n2_a_member_uses_the_task_list_of_its_lead() {
    let check = |team: &ClaudeTeam, list: &str, subject: &str| {
        team.cli.write(
            &format!("claude/tasks/{list}/1.json"),
            &json!({ "id": "1", "subject": subject, "description": "", "status": "pending", "blocks": [], "blockedBy": [] })
                .to_string(),
        );
        let listed = team.run(&["task", "list"]);
        assert!(listed.stdout.contains(subject), "{list}: {listed}");
    };
    let team = ClaudeTeam::new();
    // The lead works with the list of an earlier session of the same process.
    std::fs::create_dir_all(team.cli.path(&format!("claude/tasks/{TEAM}"))).unwrap();
    check(&team, TEAM, "own list");
    team.cli.write(&format!("claude/tasks/{TEAM}/.session-list"), "session-11111111");
    check(&team, "session-11111111", "list of the session before");
    // The team's folder has no list, and its lead has another session by now.
    std::fs::remove_dir_all(team.cli.path(&format!("claude/tasks/{TEAM}"))).unwrap();
    let session =
        json!({ "pid": std::process::id(), "sessionId": "22222222-0000-4000-8000-000000000000" });
    team.cli.write(&format!("claude/sessions/{}.json", std::process::id()), &session.to_string());
    check(&team, "session-22222222", "list of the current session");
    // The user named a list in Claude Code's settings.
    let settings = json!({ "env": { "CLAUDE_CODE_TASK_LIST_ID": "shared-list" } });
    team.cli.write("claude/settings.json", &settings.to_string());
    check(&team, "shared-list", "list of the user");
    // Claude Code named a list for the process of a member.
    let listed = team.cli.run_with_env(
        &["task", "list"],
        &[("BRIGADE_TEAM", TEAM), ("BRIGADE_TASK_LIST", "session-22222222")],
    );
    assert!(listed.stdout.contains("list of the current session"), "{listed}");
}

#[test]
fn n5_the_lead_is_told_when_the_pane_of_a_member_is_closed() {
    let mut team = ClaudeTeam::new();
    let pid = rustix::process::Pid::from_child(&team.rev);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert!(team.reports().contains("rev has left the team: its pane was closed"));
    assert!(!team.roster().contains(&"rev".to_owned()));
}

/// Claude Code closes the panes when its session ends. When the session is resumed, the member is back.
#[test]
fn a_member_waits_for_an_ended_session_and_joins_again() {
    let mut team = ClaudeTeam::new();
    team.lead_writes("REMEMBER");
    wait_until("the first turn", || team.heard().contains("REMEMBER"));
    wait_until("the end of the turn", || team.reports().contains("idle_notification"));
    team.end_session();
    let waiting = wait_for("rev to wait", || {
        let status = team.cli.run(&["status"]).stdout;
        status.contains("waits for Claude Code").then_some(status)
    });
    assert!(waiting.contains("`claude --resume <id>` continues"), "{waiting}");
    // A resumed session must find its name free.
    assert!(!team.cli.path(&format!("claude/teams/{TEAM}")).exists());
    assert_eq!(team.rev.try_wait().unwrap(), None);
    team.resume_session(TEAM);
    wait_until("rev to join again", || team.roster().contains(&"rev".to_owned()));
    wait_until("the report", || team.reports().contains("rev has joined the team again"));
    // The agent continues its session.
    wait_until("rev's agent", || team.heard().contains("loaded"));
    assert_eq!(team.heard().matches("begun").count(), 1);
    let status: Value = serde_json::from_str(&team.cli.run_ok(&["status", "--json"])).unwrap();
    assert_eq!(status[0]["members"][0]["pid"], team.rev.id(), "{status}");
    // The lead reaches the member at once. Claude Code does not sign its messages.
    team.lead_writes_unsigned("are you there?");
    wait_until("the message", || team.heard().contains("are you there?"));
    // The person can still answer and stop.
    let stopped = team.run(&["stop", "rev", "--now"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert!(!team.roster().contains(&"rev".to_owned()));
}

/// After a kill, the panes and the team's folder stay. A resumed lead deletes the folder and creates it again.
#[test]
fn a_member_joins_the_team_that_a_killed_lead_creates_again() {
    let team = ClaudeTeam::new();
    let task = json!({
        "id": "1", "subject": "build", "description": "", "status": "in_progress", "owner": "rev", "blocks": [],
        "blockedBy": [],
    });
    team.cli.write(&format!("claude/tasks/{TEAM}/1.json"), &task.to_string());
    std::fs::remove_dir_all(team.cli.path(&format!("claude/teams/{TEAM}"))).unwrap();
    team.resume_session(TEAM);
    wait_until("rev to join again", || team.roster().contains(&"rev".to_owned()));
    wait_until("rev's agent", || team.heard().contains("loaded"));
    let tasks = team.run(&["task", "list", "--json"]);
    assert!(tasks.stdout.contains("rev"), "{tasks}");
}

/// Claude Code gives a resumed session another team if the folder of its own team is occupied.
#[test]
fn a_member_joins_the_other_team_of_a_resumed_session() {
    let team = ClaudeTeam::new();
    team.end_session();
    team.resume_session("session-0badcafe");
    let other = team.cli.path("claude/teams/session-0badcafe/config.json");
    wait_until("rev to join", || std::fs::read_to_string(&other).unwrap().contains("rev@"));
    wait_until("rev's agent", || team.heard().contains("loaded"));
    let status: Value = serde_json::from_str(&team.cli.run_ok(&["status", "--json"])).unwrap();
    assert_eq!(status.as_array().map(Vec::len), Some(1), "{status}");
    assert_eq!(status[0]["members"][0]["pid"], team.rev.id(), "{status}");
}

/// A member that a person added joins again, too. The supervisor runs it until the session ends.
#[test]
fn a_late_joiner_waits_for_an_ended_session_and_joins_again() {
    let team = ClaudeTeam::new();
    team.spawn_luke();
    let pid_of_luke = || {
        let status: Value = serde_json::from_str(&team.run(&["status", "--json"]).stdout).unwrap();
        let members = status[0]["members"].as_array()?.clone();
        members.iter().find(|member| member["name"] == "luke")?["pid"].as_u64()
    };
    let pid = wait_for("luke's process", pid_of_luke);
    team.end_session();
    wait_until("luke to wait", || {
        team.cli.run(&["status"]).stdout.matches("waits for Claude Code").count() == 2
    });
    assert_eq!(pid_of_luke(), Some(pid));
    assert!(!team.cli.path(&format!("claude/teams/{TEAM}")).exists());
    team.resume_session(TEAM);
    wait_until("luke to join again", || team.roster().contains(&"luke".to_owned()));
    wait_until("the report", || team.reports().contains("luke has joined the team again"));
    assert_eq!(pid_of_luke(), Some(pid));
    let stopped = team.run(&["stop", "luke", "--now"]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    assert!(!team.roster().contains(&"luke".to_owned()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    wait_until("luke's process to end", || rustix::process::test_kill_process(pid).is_err());
}

/// N12: after a reboot, nothing runs, and the person wants the team back.
#[test]
fn resume_lets_the_members_wait_for_their_lead() {
    let mut team = ClaudeTeam::new();
    team.lead_writes("REMEMBER");
    wait_until("the end of the turn", || team.reports().contains("idle_notification"));
    team.end_session_and_wait();
    team.rev.kill().unwrap();
    team.rev.wait().unwrap();
    // No command may create the folder of the team: a resumed session would find its name taken.
    let folder = team.cli.path(&format!("claude/teams/{TEAM}"));
    assert_snapshot!(team.cli.run(&["resume", TEAM]), @r"
    waiting for Claude Code: rev of team session-e0c67a80
    --- stderr
    note: did not restart nat, which Claude Code ran itself; `brigade spawn nat --agent claude` replaces it
    hint: `claude --resume <id>` in <root>/work brings their lead back
    hint: `brigade resume session-e0c67a80 --take-over NAME` makes it a team of your own instead
    ");
    assert!(!folder.exists());
    team.resume_session(TEAM);
    wait_until("rev to join again", || team.roster().contains(&"rev".to_owned()));
    wait_until("rev's agent", || team.heard().contains("loaded"));
    assert_snapshot!(team.cli.run(&["resume", TEAM]), @"on the team of Claude Code again: rev");
    team.cli.run_ok(&["--team", TEAM, "stop", "rev", "--now"]);
}

/// The lead runs on, and the process of a member is killed.
#[test]
fn resume_restarts_a_killed_member_of_a_running_session() {
    let mut team = ClaudeTeam::new();
    team.lead_writes("REMEMBER");
    wait_until("the end of the turn", || team.reports().contains("idle_notification"));
    team.rev.kill().unwrap();
    team.rev.wait().unwrap();
    // Without a name, all teams are resumed.
    let resumed = team.cli.run(&["resume"]);
    assert_eq!(resumed.stdout, "on the team of Claude Code again: rev\n", "{resumed}");
    wait_until("rev's agent", || team.heard().contains("loaded"));
    assert_eq!(team.roster().iter().filter(|name| *name == "rev").count(), 1);
    team.cli.run_ok(&["--team", TEAM, "stop", "rev", "--now"]);
}

/// A message that the agent has not seen arrives after the session was resumed, once.
#[test]
fn unread_mail_is_carried_over() {
    let team = ClaudeTeam::new();
    // The agent waits for an answer, so the next message waits for the end of its turn.
    team.ask();
    team.lead_writes("NOT READ YET");
    wait_until("the message to be seen", || team.run(&["log"]).stdout.contains("NOT READ YET"));
    team.end_session_and_wait();
    team.resume_session(TEAM);
    // The agent does the interrupted turn again, and asks again. The earlier request has ended with the earlier turn.
    wait_until("the request", || team.reports().contains("permission_request"));
    assert_eq!(team.reports().matches("permission_request").count(), 1);
    let approved = team.run(&["approve", &team.requests()[0]]);
    assert_eq!(approved.code, Some(0), "{approved}");
    wait_until("the message", || team.heard().contains("NOT READ YET"));
    assert_eq!(team.heard().matches("NOT READ YET").count(), 1);
}

/// After a kill, a resumed lead may start a member of the same name, while the process of the earlier one still runs.
#[test]
fn a_new_member_of_the_same_name_replaces_the_earlier_process() {
    let mut team = ClaudeTeam::new();
    let config = team.cli.path(&format!("claude/teams/{TEAM}/config.json"));
    let mut roster: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    roster["members"][1]["joinedAt"] = json!(1_763_199_000_000_u64);
    std::fs::write(&config, roster.to_string()).unwrap();
    let mut new = ClaudeTeam::start_rev(&team.cli, &team.key);
    assert_eq!(wait_for("rev to end", || team.rev.try_wait().unwrap()).code(), Some(0));
    assert_eq!(team.reports(), "");
    wait_until("the new agent", || team.heard().matches("begun").count() == 2);
    new.kill().unwrap();
    new.wait().unwrap();
}

#[test]
fn n14_the_lead_is_told_that_an_agent_is_not_installed() {
    let team = ClaudeTeam::new();
    let arguments = ["--agent-id", "nat@x", "--agent-name", "nat", "--team-name", TEAM];
    let arguments = [&arguments[..], &["--agent-type", "codex"]].concat();
    let failed = team.cli.run(&arguments);
    assert_eq!(failed.code, Some(1), "{failed}");
    let reports = team.reports();
    let expected = "nat has left the team: it cannot start: not installed: codex; `npm install -g @openai/codex`";
    assert!(reports.contains(expected), "{reports}");
}
