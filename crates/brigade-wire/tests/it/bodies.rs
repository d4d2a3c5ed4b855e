//! Checks that recorded protocol messages are parsed, and that writing them again gives the same bytes.

use std::collections::BTreeMap;

use brigade_wire::body::Body;
use brigade_wire::inbox::Inbox;
use brigade_wire::permission::*;
use brigade_wire::protocol::*;

use crate::envelopes::recorded_envelopes;
use crate::files::{self, FileType};

/// Returns every message text in the fixtures of one Claude Code version, from inboxes and from envelopes.
fn texts(version: &str) -> Vec<String> {
    let mut texts: Vec<String> =
        recorded_envelopes(version).into_iter().map(|envelope| envelope.text).collect();
    for fixture in files::all() {
        if fixture.file_type == FileType::Inbox
            && fixture.path.contains(&format!("/{version}/"))
            && let Ok(inbox) = Inbox::read(&fixture.bytes)
        {
            texts.extend(inbox.messages().map(|message| message.text().into_owned()));
        }
    }
    texts
}

/// Counts the recorded protocol messages of each type, and checks that writing them again gives the same bytes.
fn count_types(version: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for text in texts(version) {
        match Body::parse(&text) {
            Body::Protocol(protocol) => {
                *counts.entry(protocol.kind()).or_default() += 1;
                let written_by_another_program = text.starts_with("{\"type\": ");
                if !written_by_another_program {
                    assert_eq!(protocol.to_text(), text, "other bytes are written");
                }
            }
            Body::Malformed { kind, reason } => panic!("{kind}: {reason}: {text}"),
            Body::Text | Body::Unknown { .. } => {}
        }
    }
    println!("{version}: {counts:?}");
    counts
}

#[test]
fn every_type_was_recorded_with_each_generation_that_has_it() {
    let mut new: Vec<&str> = Protocol::KINDS.to_vec();
    new.sort_unstable();
    assert_eq!(count_types("2.1.325").into_keys().collect::<Vec<_>>(), new);
    // Claude Code 2.1.50 does not write `teammate_terminated`.
    let old: Vec<&str> = new.into_iter().filter(|&kind| kind != "teammate_terminated").collect();
    assert_eq!(count_types("2.1.50").into_keys().collect::<Vec<_>>(), old);
}

/// Checks that a recorded text is parsed as this message, and that the message is written as the same text.
#[track_caller]
fn check(version: &str, text: &str, expected: impl Into<Protocol>) {
    let expected = expected.into();
    assert!(texts(version).iter().any(|real| real == text), "not found in the fixtures: {text}");
    assert_eq!(Body::parse(text), Body::Protocol(expected.clone()));
    assert_eq!(expected.to_text(), text);
}

pub(crate) fn s(text: &str) -> String {
    text.to_owned()
}

#[test]
fn idle_notification() {
    let idle = |from: &str, timestamp: &str| IdleNotification {
        from: s(from),
        timestamp: s(timestamp),
        idle_reason: IdleReason::Available,
        summary: None,
        completed_task_id: None,
        completed_status: None,
        failure_reason: None,
        result: None,
    };
    check(
        "2.1.50",
        r#"{"type":"idle_notification","from":"alice","timestamp":"2026-11-15T00:00:29.533Z","idleReason":"available","summary":"[to bob] peer dm"}"#,
        IdleNotification {
            summary: Some(s("[to bob] peer dm")),
            ..idle("alice", "2026-11-15T00:00:29.533Z")
        },
    );
    check(
        "2.1.325",
        r#"{"type":"idle_notification","from":"alice","timestamp":"2026-11-14T23:40:57.620Z","idleReason":"available","summary":"[to bob] peer dm","result":"alice idle now"}"#,
        IdleNotification {
            summary: Some(s("[to bob] peer dm")),
            result: Some(s("alice idle now")),
            ..idle("alice", "2026-11-14T23:40:57.620Z")
        },
    );
    check(
        "2.1.325",
        r#"{"type":"idle_notification","from":"bob","timestamp":"2026-11-15T01:55:43.346Z","idleReason":"failed","failureReason":"API Error: 400 lab says no"}"#,
        IdleNotification {
            idle_reason: IdleReason::Failed,
            failure_reason: Some(s("API Error: 400 lab says no")),
            ..idle("bob", "2026-11-15T01:55:43.346Z")
        },
    );
}

#[test]
fn task_assignment() {
    for (version, timestamp) in
        [("2.1.50", "2026-11-15T00:00:28.319Z"), ("2.1.325", "2026-11-14T23:40:56.398Z")]
    {
        check(
            version,
            &format!(
                r#"{{"type":"task_assignment","taskId":"1","subject":"T1","description":"d1","assignedBy":"team-lead","timestamp":"{timestamp}"}}"#
            ),
            TaskAssignment {
                task_id: s("1"),
                subject: s("T1"),
                description: s("d1"),
                assigned_by: s("team-lead"),
                timestamp: s(timestamp),
            },
        );
    }
}

#[test]
fn shutdown_request() {
    for (version, id, timestamp) in [
        ("2.1.50", "shutdown-1794700838681@alice", "2026-11-15T00:00:38.681Z"),
        ("2.1.325", "shutdown-1794699666243@alice", "2026-11-14T23:41:06.243Z"),
    ] {
        check(
            version,
            &format!(
                r#"{{"type":"shutdown_request","requestId":"{id}","from":"team-lead","reason":"all done","timestamp":"{timestamp}"}}"#
            ),
            ShutdownRequest {
                request_id: s(id),
                from: s("team-lead"),
                reason: Some(s("all done")),
                timestamp: s(timestamp),
            },
        );
    }
}

#[test]
fn shutdown_approved() {
    for (version, id, timestamp) in [
        ("2.1.50", "shutdown-1794700840153@alice", "2026-11-15T00:00:40.969Z"),
        ("2.1.325", "shutdown-1794699668236@alice", "2026-11-14T23:41:09.195Z"),
    ] {
        check(
            version,
            &format!(
                r#"{{"type":"shutdown_approved","requestId":"{id}","from":"alice","timestamp":"{timestamp}","paneId":"%1","backendType":"tmux"}}"#
            ),
            ShutdownApproved {
                request_id: s(id),
                from: s("alice"),
                timestamp: s(timestamp),
                pane_id: Some(s("%1")),
                backend_type: Some(s("tmux")),
            },
        );
    }
    check(
        "2.1.325",
        r#"{"type":"shutdown_approved","requestId":"shutdown-2@alice","from":"alice","timestamp":"2026-11-14T23:46:55.106Z"}"#,
        ShutdownApproved {
            request_id: s("shutdown-2@alice"),
            from: s("alice"),
            timestamp: s("2026-11-14T23:46:55.106Z"),
            pane_id: None,
            backend_type: None,
        },
    );
}

#[test]
fn shutdown_rejected() {
    for (version, id, timestamp) in [
        ("2.1.50", "shutdown-1794700838681@alice", "2026-11-15T00:00:39.008Z"),
        ("2.1.325", "shutdown-1794699666243@alice", "2026-11-14T23:41:07.118Z"),
    ] {
        check(
            version,
            &format!(
                r#"{{"type":"shutdown_rejected","requestId":"{id}","from":"alice","reason":"not yet","timestamp":"{timestamp}"}}"#
            ),
            ShutdownRejected {
                request_id: s(id),
                from: s("alice"),
                reason: Some(s("not yet")),
                timestamp: s(timestamp),
            },
        );
    }
}

#[test]
fn plan_approval_request() {
    for (version, at, path, timestamp) in [
        ("2.1.50", "1794700123727", "shiny-scribbling-lark", "2026-11-14T23:48:43.727Z"),
        ("2.1.325", "1794700129907", "generic-yawning-sphinx", "2026-11-14T23:48:49.907Z"),
    ] {
        let path = format!("/home/dev/home/.claude/plans/{path}.md");
        check(
            version,
            &format!(
                r##"{{"type":"plan_approval_request","from":"plan","timestamp":"{timestamp}","planFilePath":"{path}","planContent":"# the plan\n1. do it\n","requestId":"plan_approval-{at}@plan@own"}}"##
            ),
            PlanApprovalRequest {
                from: s("plan"),
                timestamp: s(timestamp),
                plan_file_path: Some(path),
                plan_content: s("# the plan\n1. do it\n"),
                request_id: format!("plan_approval-{at}@plan@own"),
            },
        );
    }
}

#[test]
fn plan_approval_response() {
    let answers = [
        ("2.1.50", "plan_approval-1794708852272@carol@om", ["14.785", "14.836"], None),
        (
            "2.1.325",
            "plan_approval-1794707692952@carol@session-24f13def",
            ["01:54:55.494", "01:54:55.620"],
            Some("b7be4996b30cadee1a976ae6d4fdfe0ef50c2bce91d7d3d5a171e362e23020b8"),
        ),
    ];
    for (version, id, times, digest) in answers {
        let [no, yes] = times.map(|time| match time.len() {
            6 => format!("2026-11-15T02:14:{time}Z"),
            _ => format!("2026-11-15T{time}Z"),
        });
        check(
            version,
            &format!(
                r#"{{"type":"plan_approval_response","requestId":"{id}","approved":false,"feedback":"more detail","timestamp":"{no}"}}"#
            ),
            PlanApprovalResponse {
                request_id: s(id),
                approved: false,
                feedback: Some(s("more detail")),
                timestamp: no.clone(),
                permission_mode: None,
                plan_digest: None,
            },
        );
        let tail = digest.map(|digest| format!(r#","planDigest":"{digest}""#)).unwrap_or_default();
        check(
            version,
            &format!(
                r#"{{"type":"plan_approval_response","requestId":"{id}","approved":true,"timestamp":"{yes}","permissionMode":"bypassPermissions"{tail}}}"#
            ),
            PlanApprovalResponse {
                request_id: s(id),
                approved: true,
                feedback: None,
                timestamp: yes.clone(),
                permission_mode: Some(s("bypassPermissions")),
                plan_digest: digest.map(s),
            },
        );
    }
}

#[test]
fn permission_request() {
    for (version, id, call) in [
        ("2.1.50", "perm-1794700029486-afwy1mc", "toolu_b0aa34ec74804ef2a5b1bd5d"),
        ("2.1.325", "perm-1794700022860-zmxmhrl", "toolu_92c4d74dab2f4e978363544d"),
    ] {
        let input =
            r#"{"command":"touch /home/dev/perm-0 && echo done","description":"touch a file"}"#;
        let suggestions = [
            r#"{"type":"addDirectories","directories":["/home/dev"],"destination":"session"}"#,
            r#"{"type":"setMode","mode":"acceptEdits","destination":"session"}"#,
        ];
        check(
            version,
            &format!(
                r#"{{"type":"permission_request","request_id":"{id}","agent_id":"perm","tool_name":"Bash","tool_use_id":"{call}","description":"touch a file","input":{input},"permission_suggestions":[{}]}}"#,
                suggestions.join(",")
            ),
            PermissionRequest {
                request_id: s(id),
                agent_id: s("perm"),
                tool_name: s("Bash"),
                tool_use_id: s(call),
                description: s("touch a file"),
                input: Json::parse(input).unwrap(),
                permission_suggestions: suggestions.map(|json| Json::parse(json).unwrap()).to_vec(),
                brigade: None,
            },
        );
    }
}

/// The field `brigade` may be absent. If it is not an object, the message is malformed.
#[test]
fn a_permission_request_can_contain_the_original_request() {
    let with = |original: &str| {
        format!(
            r#"{{"type":"permission_request","request_id":"r","agent_id":"bob","tool_name":"Bash","tool_use_id":"t","description":"d","input":{{}},"permission_suggestions":[],"brigade":{original}}}"#
        )
    };
    let text = with(r#"{"tool":"commandExecution","input":{"command": "ls"},"cwd":"/work"}"#);
    let Body::Protocol(body @ Protocol::PermissionRequest(_)) = Body::parse(&text) else {
        panic!("not a request")
    };
    assert_eq!(body.to_text(), text);
    for original in ["1", "null", r#"["x",{},"/"]"#, "{}", r#"{"tool":1,"input":{},"cwd":"/"}"#] {
        let body = Body::parse(&with(original));
        assert!(matches!(body, Body::Malformed { .. }), "{original}: {body:?}");
    }
}

#[test]
fn permission_response() {
    const DIGEST: &str = "66ffeddb109c88ba139fa25dc8ae286e9ae500000760cd29d8be267c382818d3";
    let input = Json::parse(r#"{"timeout":5,"command":"ls /tmp"}"#).unwrap();
    let yes = PermissionResponse {
        request_id: s("perm-1794699000001-abcdefg"),
        tool_use_id: None,
        approved_request: None,
        verdict: PermissionVerdict::Success(Grant {
            updated_input: Some(input.clone()),
            permission_updates: Some(Vec::new()),
        }),
    };
    let no = PermissionResponse {
        request_id: s("perm-1794699000000-abcdefg"),
        verdict: PermissionVerdict::Error(s("Permission denied")),
        ..yes.clone()
    };
    check(
        "2.1.50",
        r#"{"type":"permission_response","request_id":"perm-1794699000001-abcdefg","subtype":"success","response":{"updated_input":{"timeout":5,"command":"ls /tmp"},"permission_updates":[]}}"#,
        yes.clone(),
    );
    check(
        "2.1.50",
        r#"{"type":"permission_response","request_id":"perm-1794699000000-abcdefg","subtype":"error","error":"Permission denied"}"#,
        no.clone(),
    );
    let asked = |call: &str| {
        let [tool_use_id, tool_name, input_digest] = [call, "Bash", DIGEST].map(s);
        Some(ApprovedRequest { tool_use_id, tool_name, input_digest })
    };
    let grant = Grant { updated_input: Some(input), permission_updates: None };
    check(
        "2.1.325",
        &format!(
            r#"{{"type":"permission_response","request_id":"perm-1794699000001-abcdefg","subtype":"success","tool_use_id":"toolu_y","approved_request":{{"tool_use_id":"toolu_y","tool_name":"Bash","input_digest":"{DIGEST}"}},"response":{{"updated_input":{{"timeout":5,"command":"ls /tmp"}}}}}}"#
        ),
        PermissionResponse {
            tool_use_id: Some(s("toolu_y")),
            approved_request: asked("toolu_y"),
            verdict: PermissionVerdict::Success(grant),
            ..yes
        },
    );
    check(
        "2.1.325",
        &format!(
            r#"{{"type":"permission_response","request_id":"perm-1794699000000-abcdefg","subtype":"error","tool_use_id":"toolu_x","approved_request":{{"tool_use_id":"toolu_x","tool_name":"Bash","input_digest":"{DIGEST}"}},"error":"Permission denied"}}"#
        ),
        PermissionResponse {
            tool_use_id: Some(s("toolu_x")),
            approved_request: asked("toolu_x"),
            ..no
        },
    );
}

#[test]
fn teammate_terminated() {
    check(
        "2.1.325",
        r#"{"type":"teammate_terminated","message":"alice has shut down."}"#,
        TeammateTerminated { message: s("alice has shut down.") },
    );
}
