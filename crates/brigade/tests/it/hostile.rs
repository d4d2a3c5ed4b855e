//! Text of members must not control the terminal, or hide anything, in the output of any command.

use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal, long_strings};
use brigade_wire::name::{MemberName, TeamName};
use serde_json::json;

use crate::env::CliEnv;

/// Runs a command with colours, as on a terminal, and checks its output.
fn check(cli: &CliEnv, args: &[&str]) {
    let mut command = cli.command(args);
    let output = command.env("CLICOLOR_FORCE", "1").output().unwrap();
    let what = format!("brigade {}", args.join(" "));
    for bytes in [output.stdout, output.stderr] {
        assert_safe_for_terminal(&String::from_utf8(bytes).unwrap(), &what);
    }
}

#[test]
fn finding_15_no_command_passes_hostile_text_to_the_terminal() {
    let cli = CliEnv::with_team();
    let mut inbox = Vec::new();
    let mut entry = |from: &str, text: &str, summary: &str| {
        inbox.push(json!({
            "from": from, "text": text, "summary": summary, "timestamp": "2026-11-15T12:00:00.000Z",
            "read": false,
        }));
    };
    let hostile: Vec<String> =
        HOSTILE.iter().map(|text| (*text).to_owned()).chain(long_strings()).collect();
    for (index, text) in hostile.iter().enumerate() {
        entry("bob", text, text);
        entry(text, text, "");
        let request = json!({
            "type": "permission_request", "request_id": format!("perm-{index}{text}"), "agent_id": "bob",
            "tool_name": text, "tool_use_id": text, "description": text,
            "input": { text: text, "command": text }, "permission_suggestions": [],
            "brigade": { "tool": text, "input": { text: text, "a": [text] }, "cwd": text, "request": { text: text } },
        });
        entry("bob", &request.to_string(), "");
        let plan = json!({
            "type": "plan_approval_request", "from": "bob", "timestamp": text, "planFilePath": text,
            "planContent": text, "requestId": format!("plan-{index}{text}"),
        });
        entry("bob", &plan.to_string(), text);
        entry("bob", &json!({ "type": text, "a": text }).to_string(), "");
        cli.write(
            &format!("claude/tasks/demo/{}.json", index + 1),
            &json!({
                "id": (index + 1).to_string(), "subject": text, "description": text, "activeForm": text,
                "owner": text, "status": "pending", "blocks": [], "blockedBy": [],
            })
            .to_string(),
        );
    }
    cli.write(
        "claude/teams/demo/inboxes/team-lead.json",
        &serde_json::Value::Array(inbox).to_string(),
    );
    for args in [
        &["inbox"][..],
        &["approvals"],
        &["approvals", "1"],
        &["log"],
        &["log", "--work"],
        &["status"],
        &["task", "list"],
        &["task", "show", "1"],
        &["team", "show"],
        &[],
    ] {
        check(&cli, args);
    }
    for text in hostile.iter().filter(|text| !text.contains('\0')) {
        check(&cli, &["approve", text]);
    }
}

/// The names of windows and sessions in tmux are names of members and teams.
#[test]
fn finding_15_names_of_tmux_windows_contain_nothing_hidden() {
    for text in HOSTILE {
        for name in [
            text.parse::<MemberName>().map(|name| name.to_string()).ok(),
            text.parse::<TeamName>().map(|name| name.to_string()).ok(),
        ] {
            assert_safe_for_terminal(&name.unwrap_or_default().replace('\n', "\u{1b}"), text);
        }
    }
}
