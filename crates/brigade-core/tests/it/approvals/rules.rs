//! Rules check more than the command: also the fields of the request, and the files that it names.

use std::path::Path;

use brigade_core::approvals::{self, MemberRules};
use brigade_core::handshake::{self, PermissionAsk};
use brigade_core::policy::{Rule, RuleDecision};
use brigade_testkit::files::in_memory;
use brigade_testkit::permission_requests::recorded;
use brigade_wire::name::MemberName;
use serde_json::{Value, json};

use super::{apply, ask_with};

/// A field that brigade does not know could change what the command does.
#[test]
fn a_rule_allows_only_requests_with_known_fields() {
    in_memory(async |env| {
        let harmless = [
            Value::Null,
            json!({ "unknown": null, "escalate": false }),
            json!({ "_meta": { "toolName": "run_shell_command" } }),
        ];
        let others = [
            json!({ "unknown": true }),
            json!({ "runAs": "root" }),
            json!({ "environmentId": "remote" }),
            json!({ "_meta": { "toolName": "run_shell_command", "shell": "./x" } }),
            json!("text"),
        ];
        for request in harmless.iter().chain(&others) {
            ask_with(&env, "bob", "git status", request).await;
        }
        let ruled = apply(&env.seat("team-lead")).await.unwrap();
        let numbers: Vec<usize> = ruled.iter().map(|found| found.approval.number).collect();
        assert_eq!(numbers, (1..=harmless.len()).collect::<Vec<_>>());
    });
}

/// The requests that the vendors' programs really write are allowed, except those that grant more than the call.
#[test]
fn recorded_requests_match_rules_for_their_tools() {
    in_memory(async |env| {
        let recorded = recorded();
        for request in &recorded {
            let permission = PermissionAsk {
                tool: &request.tool,
                tool_use_id: "t",
                description: "to see",
                input: &request.input,
                request: &request.request,
                cwd: "/home/dev/project",
            };
            handshake::request_permission(&env.seat("bob"), &permission).await.unwrap();
        }
        let any = |_: &MemberName| MemberRules {
            rules: vec![Rule {
                ruling: RuleDecision::Allow,
                tool: Some("*".into()),
                command: None,
            }],
            folder: "/home/dev/project".into(),
            ..MemberRules::default()
        };
        let lead = env.seat("team-lead");
        approvals::apply_rules(&lead, any, Path::to_owned).await.unwrap();
        let waiting = approvals::waiting(&lead).await.unwrap();
        let waiting: Vec<String> = waiting
            .iter()
            .filter_map(|found| recorded.get(found.number - 1))
            .map(|request| format!("{} {} {}", request.agent, request.tool, request.request))
            .collect();
        let starts = [
            // The file is in another folder.
            "codex fileChange null",
            "codex commandExecution {\"additionalPermissions\":",
            "codex fileChange {\"grantRoot\":",
            "codex permissions {",
            "codex commandExecution {\"kind\":\"writeStdin\"",
        ];
        assert_eq!(waiting.len(), starts.len(), "{waiting:#?}");
        for (waiting, start) in waiting.iter().zip(starts) {
            assert!(waiting.starts_with(start), "{waiting}");
        }
    });
}

/// A symbolic link in the member's folder must not lead a file tool out of it.
#[test]
fn the_real_path_of_a_file_counts() {
    in_memory(async |env| {
        for path in ["link/x", "plain/x"] {
            let permission = PermissionAsk {
                tool: "edit",
                tool_use_id: "t",
                description: "to see",
                input: &json!({ "path": path }),
                request: &Value::Null,
                cwd: "/project",
            };
            handshake::request_permission(&env.seat("bob"), &permission).await.unwrap();
        }
        let edits = |_: &MemberName| MemberRules {
            rules: vec![Rule {
                ruling: RuleDecision::Allow,
                tool: Some("edit".into()),
                command: None,
            }],
            folder: "/project".into(),
            ..MemberRules::default()
        };
        let real_path = |path: &Path| match path.strip_prefix("/project/link") {
            Ok(rest) => Path::new("/outside").join(rest),
            Err(_) => path.to_owned(),
        };
        let ruled = approvals::apply_rules(&env.seat("team-lead"), edits, real_path).await.unwrap();
        let numbers: Vec<usize> = ruled.iter().map(|found| found.approval.number).collect();
        assert_eq!(numbers, [2]);
    });
}
