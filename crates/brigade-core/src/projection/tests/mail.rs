//! Tests of the delivery status of messages, and of requests and their answers.

use super::*;
use crate::store::event_log::RecordLookup;

#[test]
fn delivery_status_of_messages() {
    let check = |steps: &[ScriptStep<'_>], fate: DeliveryStatus, unread: usize| {
        let mut script = EventScript::new(&["lead", "ada"]);
        script.writes(1, "lead", "ada", "hello");
        for step in steps {
            step(&mut script);
        }
        let [letter] = script.picture.messages() else { panic!("expected one message") };
        assert_eq!(letter.status(), fate);
        assert_eq!(script.picture.name(letter.from), "lead");
        assert_eq!(script.picture.member_named("ada").unwrap().unread, unread);
        for name in ["lead", "ada"] {
            assert_eq!(script.picture.member_named(name).unwrap().messages, [0], "{name}");
        }
        let words = script.held.record(letter.record).unwrap();
        assert!(matches!(&words.event, Event::Seen { to, .. } if to == "ada"));
    };
    let at = |second: i64| Millis(second * 1000);
    check(&[], DeliveryStatus::Written, 1);
    check(&[&|s| s.reads(2, "lead", "ada", "hello")], DeliveryStatus::Read(at(2)), 0);
    check(&[&|s| s.is_shown(3, "lead", "ada", "hello")], DeliveryStatus::Shown(at(3)), 0);
    let both: &[ScriptStep<'_>] = &[&|s| s.reads(2, "lead", "ada", "hello"), &|s| {
        s.is_shown(3, "lead", "ada", "hello");
    }];
    check(both, DeliveryStatus::Shown(at(3)), 0);
    // A message may be shown before it is marked as read. The first time at which it was shown counts.
    let turned: &[ScriptStep<'_>] = &[
        &|s| s.is_shown(3, "lead", "ada", "hello"),
        &|s| s.reads(4, "lead", "ada", "hello"),
        &|s| s.is_shown(9, "lead", "ada", "hello"),
    ];
    check(turned, DeliveryStatus::Shown(at(3)), 0);
    // A message recorded twice is one message. Reading an unknown message changes nothing.
    check(&[&|s| s.writes(5, "lead", "ada", "hello")], DeliveryStatus::Written, 1);
    check(&[&|s| s.reads(5, "lead", "ada", "another")], DeliveryStatus::Written, 1);
}

/// The same rule as in `brigade status`: requests count as approvals, and idle notices do not count.
#[test]
fn requests_and_idle_notices_are_not_counted_as_unread() {
    let idle =
        r#"{"type":"idle_notification","from":"ada","timestamp":"t","idleReason":"available"}"#;
    let turn = idle.replace('}', r#","result":"done"}"#);
    let failed = idle.replace("available", "failed");
    let ask = r#"{"type":"permission_request","request_id":"q","agent_id":"ada","tool_name":"Bash","tool_use_id":"t","description":"","input":{}}"#;
    for (text, counted) in [(idle, 0), (&turn, 1), (&failed, 1), (ask, 0), ("hello", 1)] {
        let mut script = EventScript::new(&["lead", "ada"]);
        script.writes(1, "ada", "lead", text);
        assert_eq!(script.picture.member_named("lead").unwrap().unread, counted, "{text}");
        script.writes(2, "ada", "lead", "more");
        script.reads(3, "ada", "lead", text);
        assert_eq!(script.picture.member_named("lead").unwrap().unread, 1, "{text}");
    }
}

#[test]
fn a_new_team_of_the_same_name_starts_empty() {
    let mut script = EventScript::new(&["lead", "ada"]);
    script.writes(1, "lead", "ada", "hello");
    script.task(1, "1 p -");
    script.task(1, "2 p -");
    script.record(2, Event::TeamDeleted {});
    assert_eq!(script.picture.tasks().count(), 2, "a deleted team's board stays visible");
    let team = raw(&json!({"name": "demo", "createdAt": 3000, "members": [{"name": "ada"}]}));
    script.record(3, Event::TeamCreated { team });
    script.reads(4, "lead", "ada", "hello");
    script.task(4, "1 p -");
    script.writes(5, "lead", "ada", "again");
    let fates: Vec<DeliveryStatus> =
        script.picture.messages().iter().map(MessageRef::status).collect();
    assert_eq!(fates, [DeliveryStatus::Written, DeliveryStatus::Written], "both are unread");
    assert_eq!(script.picture.member_named("ada").unwrap().unread, 1);
    assert_eq!(script.picture.tasks().map(|card| card.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn messages_are_told_apart_by_their_type() {
    let check = |text: &str, kind: MessageKind| {
        let mut script = EventScript::new(&["lead", "ada"]);
        script.writes(1, "lead", "ada", text);
        assert_eq!(script.picture.messages().first().unwrap().kind, kind, "{text}");
    };
    check("hello", MessageKind::Text);
    check("{not json", MessageKind::Text);
    check(r#"{"some":"json"}"#, MessageKind::Text);
    check(r#"{"type":"idle_notification"}"#, MessageKind::Idle);
    check(r#" {"type":"task_assignment","taskId":"3"}"#, MessageKind::Assignment);
    check(r#"{"type":"of_another_time"}"#, MessageKind::Other);
}

#[test]
fn requests_and_their_answers() {
    /// Formats each request as `kind from id`, followed by `yes|no decider at` if it has an answer.
    fn describe(script: &EventScript) -> Vec<String> {
        let of = |asked: &RequestEntry| {
            let from = script.picture.name(asked.from);
            let mut text = format!("{:?} {from} {}", asked.kind, asked.id);
            if let Some(reply) = &asked.reply {
                let yes = if reply.yes { "yes" } else { "no" };
                let hand = reply.decided_by.as_deref().unwrap_or("?");
                text += &format!(" {yes} {hand} {}", second(reply.at));
            }
            text
        };
        script.picture.requests().iter().map(of).collect()
    }
    let check = |steps: &[ScriptStep<'_>], expected: &[&str]| {
        let mut script = EventScript::new(&["lead", "ada", "ben"]);
        for step in steps {
            step(&mut script);
        }
        assert_eq!(describe(&script), expected);
    };
    let (plan, permission) = ("plan_approval_request", "permission_request");
    let answered = |at: i64, to: &'static str, hand: &'static str| {
        move |script: &mut EventScript| {
            let (id, kind) = ("r1".to_owned(), "permission".to_owned());
            script.record(
                at,
                Event::Answered {
                    request_id: id,
                    kind,
                    to: to.into(),
                    yes: true,
                    reason: None,
                    hand: hand.into(),
                },
            );
        }
    };
    check(&[&|s| s.asks(1, "ada", plan, "r1")], &["PlanRequest ada r1"]);
    check(
        &[&|s| s.asks(1, "ada", plan, "r1"), &|s| s.answers(2, "ada", "r1", false)],
        &["PlanRequest ada r1 no ? 2"],
    );
    // If a member answers through brigade, the record says who decided. The answer message then changes nothing.
    check(
        &[&|s| s.asks(1, "ada", permission, "r1"), &answered(2, "ada", "rule 1 of safe"), &|s| {
            s.answers_permission(3, "ada", "r1", true);
        }],
        &["PermissionRequest ada r1 yes rule 1 of safe 2"],
    );
    // Two members may use the same request id. Each gets its own answer.
    check(
        &[
            &|s| s.asks(1, "ada", permission, "r1"),
            &|s| s.asks(2, "ben", permission, "r1"),
            &answered(3, "ben", "person"),
        ],
        &["PermissionRequest ada r1", "PermissionRequest ben r1 yes person 3"],
    );
    // When a member leaves, its open requests are closed.
    check(
        &[&|s| s.asks(1, "ada", permission, "r1"), &|s| s.leaves(4, "ada")],
        &["PermissionRequest ada r1 no left 4"],
    );
    // A shutdown request is answered by a message from the member that must shut down.
    let stop = r#"{"type":"shutdown_request","requestId":"r9"}"#;
    let stops = r#"{"type":"shutdown_approved","requestId":"r9"}"#;
    check(
        &[&|s| s.writes(1, "lead", "ada", stop), &|s| s.writes(5, "ada", "lead", stops)],
        &["ShutdownRequest lead r9 yes ? 5"],
    );
    // An answer counts only from the member that was asked, and only for a request of its type.
    check(
        &[&|s| s.writes(1, "lead", "ada", stop), &|s| s.writes(5, "ben", "lead", stops)],
        &["ShutdownRequest lead r9"],
    );
    let approves = r#"{"type":"plan_approval_response","requestId":"r1","approved":true}"#;
    check(
        &[&|s| s.asks(1, "ada", plan, "r1"), &|s| s.writes(2, "ben", "ada", approves)],
        &["PlanRequest ada r1"],
    );
    check(
        &[&|s| s.asks(1, "ada", permission, "r1"), &|s| s.answers(2, "ada", "r1", true)],
        &["PermissionRequest ada r1"],
    );
    check(&[&|s| s.answers(1, "ada", "never asked", true)], &[]);
}
