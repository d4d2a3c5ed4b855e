//! What somebody does, and did when.

use super::*;

fn ends(end: Ending, why: Option<&str>) -> Did {
    Did::TurnEnded { end, why: why.map(Into::into) }
}

fn check_person(steps: &[Step<'_>], expected: &str) {
    let mut script = Script::of(&["lead", "ada"]);
    for step in steps {
        step(&mut script);
    }
    assert_eq!(script.of_person("ada"), expected);
}

#[test]
fn what_somebody_did_when() {
    let begins = |at: i64| move |script: &mut Script| script.works(at, "ada", Did::TurnStarted {});
    let ends_at =
        |at: i64| move |script: &mut Script| script.works(at, "ada", ends(Ending::Done, None));
    check_person(&[], "Unknown since 0");
    check_person(&[&|s| s.works(1, "ada", Did::Started {})], "Starting since 1");
    let ready: &[Step<'_>] =
        &[&|s| s.works(1, "ada", Did::Started {}), &|s| s.works(2, "ada", Did::Ready {})];
    check_person(ready, "Idle since 2");
    // Turns, and the time between them.
    check_person(&[&begins(5)], "Working since 5; Working 5..");
    check_person(&[&begins(5), &ends_at(9)], "Idle since 9; Working 5..9");
    check_person(
        &[&begins(5), &ends_at(9), &begins(12)],
        "Working since 12; Working 5..9; Working 12..",
    );
    // A turn in which leave is asked for is cut in three.
    let plan = "plan_approval_request";
    let leave = "permission_request";
    check_person(
        &[&begins(5), &|s| s.asks(7, "ada", leave, "r1")],
        "Waiting since 7; Working 5..7; Waiting 7..",
    );
    check_person(
        &[
            &begins(5),
            &|s| s.asks(7, "ada", leave, "r1"),
            &|s| s.answers(10, "ada", "r1", true),
            &ends_at(12),
        ],
        "Idle since 12; Working 5..7; Waiting 7..10; Working 10..12",
    );
    // Of two requests the last answer ends the wait; one request told twice is one.
    check_person(
        &[
            &|s| s.asks(3, "ada", plan, "r1"),
            &|s| s.asks(4, "ada", leave, "r2"),
            &|s| s.asks(4, "ada", leave, "r2"),
            &|s| s.answers(6, "ada", "r1", true),
            &|s| s.answers(8, "ada", "r2", false),
            &|s| s.answers(9, "ada", "r2", false),
        ],
        "Unknown since 8; Waiting 3..8",
    );
    // To be asked to stop is no wait.
    check_person(&[&|s| s.asks(3, "ada", "shutdown_request", "r1")], "Unknown since 0");
}

#[test]
fn limits_and_leaving() {
    let begins = |at: i64| move |script: &mut Script| script.works(at, "ada", Did::TurnStarted {});
    let limited = |s: &mut Script| s.works(7, "ada", Did::Limited { why: "429".into() });
    check_person(&[&begins(5), &limited], "Limited since 7; Working 5..7; Limited 7..");
    // What it used, or a word about it, does not end a limit; whatever it does, does.
    check_person(
        &[
            &begins(5),
            &limited,
            &|s| s.works(8, "ada", Did::Used { input: 1, output: 2, cost: None }),
            &|s| s.works(9, "ada", Did::Trouble { why: "waits".into() }),
            &|s| s.works(11, "ada", Did::Said { text: "on".into() }),
        ],
        "Working since 11; Working 5..7; Limited 7..11; Working 11..",
    );
    check_person(
        &[&begins(5), &|s| s.works(8, "ada", ends(Ending::Limited, Some("429"))), &begins(20)],
        "Working since 20; Working 5..8; Limited 8..20; Working 20..",
    );
    // Who leaves does nothing any more, and asks for nothing.
    check_person(&[&begins(5), &|s| s.leaves(8, "ada")], "Gone since 8; Working 5..8");
    check_person(
        &[&|s| s.asks(3, "ada", "permission_request", "r1"), &|s| s.leaves(8, "ada")],
        "Gone since 8; Waiting 3..8",
    );
    check_person(
        &[&begins(5), &|s| s.then(9, Event::TeamDeleted {})],
        "Gone since 9; Working 5..9",
    );
    check_person(
        &[&begins(5), &|s| s.leaves(8, "ada"), &|s| s.joins(20, "ada"), &begins(21)],
        "Working since 21; Working 5..8; Working 21..",
    );
}

/// Those that no process of ours plays are believed what their entry says.
#[test]
fn the_roster_is_believed_of_those_who_say_nothing() {
    let idle = r#"{"type":"idle_notification","from":"ada"}"#;
    check_person(
        &[&|s| s.is_active(3, "ada", true), &|s| s.is_active(8, "ada", false)],
        "Idle since 8; Working 3..8",
    );
    check_person(
        &[&|s| s.is_active(3, "ada", true), &|s| s.writes(6, "ada", "lead", idle)],
        "Idle since 6; Working 3..6",
    );
    // But who says what it does is believed that.
    check_person(
        &[&|s| s.works(3, "ada", Did::TurnStarted {}), &|s| s.is_active(5, "ada", false), &|s| {
            s.writes(6, "ada", "lead", idle);
        }],
        "Working since 3; Working 3..",
    );
}

#[test]
fn trouble_stays_as_long_as_it_matters() {
    let check = |acts: Vec<Did>, trouble: Option<&str>| {
        let mut script = Script::of(&["ada"]);
        for act in acts {
            script.works(1, "ada", act);
        }
        assert_eq!(script.picture.called("ada").unwrap().trouble.as_deref(), trouble);
    };
    let trouble = || Did::Trouble { why: "it fell".into() };
    check(vec![trouble()], Some("it fell"));
    check(vec![trouble(), Did::Said { text: "hm".into() }], Some("it fell"));
    check(vec![trouble(), Did::TurnStarted {}], None);
    check(vec![ends(Ending::Failed, Some("no key"))], Some("no key"));
    check(vec![trouble(), ends(Ending::Done, None)], None);
}
