//! Tests of a member's current activity and busy periods.

use super::*;

fn ends(end: TurnOutcome, why: Option<&str>) -> WorkEvent {
    WorkEvent::TurnEnded { end, why: why.map(Into::into) }
}

fn check_person(steps: &[ScriptStep<'_>], expected: &str) {
    let mut script = EventScript::new(&["lead", "ada"]);
    for step in steps {
        step(&mut script);
    }
    assert_eq!(script.describe_member("ada"), expected);
}

fn begins(at: i64) -> impl Fn(&mut EventScript) {
    move |script| script.works(at, "ada", WorkEvent::TurnStarted {})
}

#[test]
fn records_periods_of_work() {
    let ends_at = |at: i64| {
        move |script: &mut EventScript| script.works(at, "ada", ends(TurnOutcome::Done, None))
    };
    check_person(&[], "Unknown since 0");
    check_person(&[&|s| s.works(1, "ada", WorkEvent::Started {})], "Starting since 1");
    let ready: &[ScriptStep<'_>] = &[&|s| s.works(1, "ada", WorkEvent::Started {}), &|s| {
        s.works(2, "ada", WorkEvent::Ready {});
    }];
    check_person(ready, "Idle since 2");
    // Each turn is a busy period; between turns the member is idle.
    check_person(&[&begins(5)], "Working since 5; Working 5..");
    check_person(&[&begins(5), &ends_at(9)], "Idle since 9; Working 5..9");
    check_person(
        &[&begins(5), &ends_at(9), &begins(12)],
        "Working since 12; Working 5..9; Working 12..",
    );
    // A permission request splits a turn into three periods.
    let plan = "plan_approval_request";
    let permission = "permission_request";
    check_person(
        &[&begins(5), &|s| s.asks(7, "ada", permission, "r1")],
        "Waiting since 7; Working 5..7; Waiting 7..",
    );
    check_person(
        &[
            &begins(5),
            &|s| s.asks(7, "ada", permission, "r1"),
            &|s| s.answers_permission(10, "ada", "r1", true),
            &ends_at(12),
        ],
        "Idle since 12; Working 5..7; Waiting 7..10; Working 10..12",
    );
    // With two open requests, the wait ends with the second answer. A request recorded twice counts once.
    check_person(
        &[
            &|s| s.asks(3, "ada", plan, "r1"),
            &|s| s.asks(4, "ada", permission, "r2"),
            &|s| s.asks(4, "ada", permission, "r2"),
            &|s| s.answers(6, "ada", "r1", true),
            &|s| s.answers_permission(8, "ada", "r2", false),
            &|s| s.answers_permission(9, "ada", "r2", false),
        ],
        "Unknown since 8; Waiting 3..8",
    );
    // A member does not wait for the answer to a shutdown request.
    check_person(&[&|s| s.asks(3, "ada", "shutdown_request", "r1")], "Unknown since 0");
}

#[test]
fn limits_and_leaving() {
    let limited = |s: &mut EventScript| s.works(7, "ada", WorkEvent::Limited { why: "429".into() });
    check_person(&[&begins(5), &limited], "Limited since 7; Working 5..7; Limited 7..");
    // Usage reports and trouble notices do not end a rate limit; any other activity does.
    check_person(
        &[
            &begins(5),
            &limited,
            &|s| s.works(8, "ada", WorkEvent::Used { input: 1, output: 2, cost: None }),
            &|s| s.works(9, "ada", WorkEvent::Trouble { why: "waiting".into() }),
            &|s| s.works(11, "ada", WorkEvent::Said { text: "on".into() }),
        ],
        "Working since 11; Working 5..7; Limited 7..11; Working 11..",
    );
    check_person(
        &[&begins(5), &|s| s.works(8, "ada", ends(TurnOutcome::Limited, Some("429"))), &begins(20)],
        "Working since 20; Working 5..8; Limited 8..20; Working 20..",
    );
    // A member that leaves stops working and has no open requests.
    check_person(&[&begins(5), &|s| s.leaves(8, "ada")], "Gone since 8; Working 5..8");
    check_person(
        &[&|s| s.asks(3, "ada", "permission_request", "r1"), &|s| s.leaves(8, "ada")],
        "Gone since 8; Waiting 3..8",
    );
    check_person(
        &[&begins(5), &|s| s.record(9, Event::TeamDeleted {})],
        "Gone since 9; Working 5..9",
    );
    check_person(
        &[&begins(5), &|s| s.leaves(8, "ada"), &|s| s.joins(20, "ada"), &begins(21)],
        "Working since 21; Working 5..8; Working 21..",
    );
}

/// Members that brigade does not run report no work events, so their activity comes from the roster entry.
#[test]
fn the_roster_entry_counts_for_members_without_reports() {
    let idle = r#"{"type":"idle_notification","from":"ada"}"#;
    check_person(
        &[&|s| s.is_active(3, "ada", true), &|s| s.is_active(8, "ada", false)],
        "Idle since 8; Working 3..8",
    );
    check_person(
        &[&|s| s.is_active(3, "ada", true), &|s| s.writes(6, "ada", "lead", idle)],
        "Idle since 6; Working 3..6",
    );
    // Reported work events take precedence over the roster entry.
    check_person(
        &[
            &|s| s.works(3, "ada", WorkEvent::TurnStarted {}),
            &|s| s.is_active(5, "ada", false),
            &|s| {
                s.writes(6, "ada", "lead", idle);
            },
        ],
        "Working since 3; Working 3..",
    );
}

#[test]
fn trouble_is_cleared_by_the_next_turn() {
    let check = |acts: Vec<WorkEvent>, trouble: Option<&str>| {
        let mut script = EventScript::new(&["ada"]);
        for act in acts {
            script.works(1, "ada", act);
        }
        assert_eq!(script.picture.member_named("ada").unwrap().trouble.as_deref(), trouble);
    };
    let trouble = || WorkEvent::Trouble { why: "it crashed".into() };
    check(vec![trouble()], Some("it crashed"));
    check(vec![trouble(), WorkEvent::Said { text: "hm".into() }], Some("it crashed"));
    check(vec![trouble(), WorkEvent::TurnStarted {}], None);
    check(vec![ends(TurnOutcome::Failed, Some("no key"))], Some("no key"));
    check(vec![trouble(), ends(TurnOutcome::Done, None)], None);
}
