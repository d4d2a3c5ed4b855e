use brigade_core::event::{TurnOutcome, WorkEvent};
use brigade_core::projection::BusyKind;

use super::axis::Axis;
use super::cells::{TimelineCell, cells, count_turns, symbol, time_spent};
use super::details::shares;
use super::{MailRows, RowPlan, axis};
use crate::keys::KeyCommand;
use crate::screen::test_support::{ScriptedTeam, at};
use crate::view::View;

const DONE: WorkEvent = WorkEvent::TurnEnded { end: TurnOutcome::Done, why: None };

/// Returns a team with the member ada, who joined at noon. `activity` lists her events, each with its time in
/// seconds after noon.
fn team_with_ada(activity: &[(i64, WorkEvent)]) -> ScriptedTeam {
    let mut team = ScriptedTeam::new(View::Timeline);
    team.join(0, "ada");
    for (second, act) in activity {
        team.work(second * 1000, "ada", act.clone());
    }
    team
}

fn noon() -> i64 {
    at(0).as_millisecond()
}

#[test]
fn block_height_is_the_share_of_the_column() {
    let check = |activity: &[(i64, WorkEvent)], end: i64, expected: &str| {
        let team = team_with_ada(activity);
        let end = noon() + end * 1000;
        let axis = Axis { left: noon() - 8_000, step: 8_000, columns: 8 };
        let cells = cells(team.screen.projection.member_named("ada").unwrap(), &axis, end);
        let signs: String = cells.iter().map(|cell| symbol(*cell, true)).collect();
        assert_eq!(signs, expected, "{activity:?}");
    };
    let limited = || WorkEvent::Limited { why: "too much".into() };
    let tool =
        || WorkEvent::ToolStarted { id: "1".into(), tool: "Bash".into(), about: String::new() };
    let begun = || WorkEvent::TurnStarted {};
    check(&[(8, begun()), (16, DONE)], 40, " ├█───  ");
    check(&[(8, begun()), (12, DONE)], 39, " ├▄───  ");
    // This turn spans two columns.
    check(&[(14, begun()), (17, DONE)], 40, " ├▂▁──  ");
    // Even a very short turn is visible.
    check(&[(8, begun()), (9, DONE), (24, begun()), (24, DONE)], 40, " ├▁───  ");
    // An unfinished turn fills the last column up to the current time.
    check(&[(17, begun())], 25, " ├─▇█   ");
    check(&[(17, begun()), (21, limited())], 33, " ├─■■■  ");
    check(&[(17, begun()), (21, limited()), (24, tool())], 33, " ├─■██  ");
    // The time under a rate limit counts twice.
    check(&[(16, begun()), (21, limited()), (24, tool()), (26, DONE)], 40, " ├─■▂─  ");
    check(&[(16, begun()), (22, limited()), (24, tool()), (26, DONE)], 40, " ├─▆▂─  ");
    check(&[(0, begun()), (4, DONE)], 8, " ▄      ");
}

#[test]
fn a_lane_ends_when_the_member_leaves() {
    let mut team = team_with_ada(&[(10, WorkEvent::TurnStarted {}), (20, DONE)]);
    team.leave(44_000, "ada");
    let axis = Axis { left: noon(), step: 10_000, columns: 7 };
    let person = team.screen.projection.member_named("ada").unwrap();
    let cells = cells(person, &axis, noon() + 60_000);
    let at_work = TimelineCell::Spent(BusyKind::Working, 8);
    assert_eq!(
        cells,
        [
            TimelineCell::Joined,
            at_work,
            TimelineCell::Idle,
            TimelineCell::Idle,
            TimelineCell::Left,
            TimelineCell::Away,
            TimelineCell::Away
        ]
    );
    let drawn = team.drawn(80, 24).join("\n");
    assert!(drawn.contains("– ada"), "{drawn}");
}

#[test]
fn sampled_columns_are_estimated_well() {
    let activity: Vec<(i64, WorkEvent)> = (0..400)
        .flat_map(|turn| [(turn * 4, WorkEvent::TurnStarted {}), (turn * 4 + 2, DONE)])
        .collect();
    let team = team_with_ada(&activity);
    let axis = Axis { left: noon(), step: 1_600_000, columns: 1 };
    let person = team.screen.projection.member_named("ada").unwrap();
    assert_eq!(cells(person, &axis, axis.right()), [TimelineCell::Spent(BusyKind::Working, 4)]);
    let all = time_spent(&person.busy_spans, noon(), axis.right());
    assert_eq!((all.working, all.waiting, all.limited), (800_000, 0, 0));
    assert_eq!(count_turns(&person.busy_spans, noon(), axis.right()), 400);
    // Turns that started before the range are not counted.
    assert_eq!(count_turns(&person.busy_spans, noon() + 1_000, noon() + 9_000), 2);
}

#[test]
fn shares_are_relative_to_the_time_on_the_team() {
    let team = team_with_ada(&[(60, WorkEvent::TurnStarted {}), (90, DONE)]);
    let person = team.screen.projection.member_named("ada").unwrap();
    let check = |from: i64, to: i64, expected: &str| {
        let time = (noon() + from * 1000, noon() + to * 1000);
        assert_eq!(shares(person, time, 80), expected);
    };
    check(-600, 100, "worked 30 s (30 %), idle 1 min (70 %)");
    check(60, 80, "worked 20 s (100 %)");
    check(100, 110, "idle 10 s (100 %)");
    check(-20, -10, "was not on the team in this period");
    assert_eq!(shares(person, (noon(), noon() + 100_000), 30), "worked 30 %, idle 70 %");
}

#[test]
fn a_turn_continues_after_an_answered_request() {
    let mut team = ScriptedTeam::new(View::Timeline);
    team.join(0, "lead");
    team.join(0, "ada");
    team.work(1_000, "ada", WorkEvent::TurnStarted {});
    let ask = r#"{"type":"permission_request","request_id":"q","agent_id":"ada","tool_name":"Bash","tool_use_id":"t","description":"tests","input":{"command":"cargo test"}}"#;
    team.write(2_000, "ada", "lead", ask);
    let grant =
        r#"{"type":"permission_response","request_id":"q","subtype":"success","response":{}}"#;
    team.write(5_000, "lead", "ada", grant);
    team.work(7_000, "ada", DONE);
    let person = team.screen.projection.member_named("ada").unwrap();
    let spent = time_spent(&person.busy_spans, noon(), noon() + 10_000);
    assert_eq!((spent.working, spent.waiting), (3_000, 3_000));
    assert_eq!(count_turns(&person.busy_spans, noon(), noon() + 10_000), 1);
}

#[test]
fn lanes_get_rows_first() {
    let check = |lanes: usize, height: u16, expected: (usize, MailRows, u16)| {
        let plan = RowPlan::new(lanes, height);
        assert_eq!((plan.lanes, plan.mail, plan.details), expected, "{lanes} in {height}");
    };
    check(5, 0, (0, MailRows::None, 0));
    check(5, 3, (3, MailRows::None, 0));
    check(5, 8, (5, MailRows::None, 3));
    check(5, 9, (5, MailRows::None, 4));
    check(5, 10, (5, MailRows::Selected, 4));
    check(5, 14, (5, MailRows::All, 4));
    check(5, 30, (5, MailRows::All, 20));
    check(0, 30, (0, MailRows::None, 30));
}

#[test]
fn current_time_is_followed_until_scrolling_and_again_at_the_end() {
    let mut team = team_with_ada(&[(0, WorkEvent::TurnStarted {}), (36_000, DONE)]);
    let right = |team: &mut ScriptedTeam| {
        team.drawn(80, 24);
        axis(&team.screen, team.screen.frame.columns).right() - noon()
    };
    let minutes = |minutes: i64| minutes * 60_000;
    // The last column is the current minute.
    assert_eq!(right(&mut team), minutes(601));
    team.work(minutes(610), "ada", WorkEvent::TurnStarted {});
    assert_eq!(right(&mut team), minutes(611));
    assert_eq!(team.screen.frame.columns, 73);
    team.press(&[KeyCommand::Left]);
    assert_eq!(right(&mut team), minutes(611 - 18), "scrolling moves by a quarter of the columns");
    team.work(minutes(620), "ada", DONE);
    assert_eq!(
        right(&mut team),
        minutes(611 - 18),
        "the visible part stays in place when time passes"
    );
    team.press(&[KeyCommand::Right, KeyCommand::Right]);
    assert_eq!(right(&mut team), minutes(621));
    assert_eq!(team.screen.states.timeline.right, None);
    team.press(&[KeyCommand::First]);
    assert_eq!(right(&mut team), minutes(73), "the first column is the start of the history");
    team.press(&[KeyCommand::Left]);
    assert_eq!(right(&mut team), minutes(73), "scrolling stops at the start of the history");
    team.press(&[KeyCommand::Last]);
    assert_eq!(right(&mut team), minutes(621));
}

#[test]
fn zooming_keeps_the_middle_in_place() {
    let mut team = team_with_ada(&[(0, WorkEvent::TurnStarted {}), (36_000, DONE)]);
    let drawn = |team: &mut ScriptedTeam| {
        team.drawn(80, 24);
        axis(&team.screen, team.screen.frame.columns)
    };
    drawn(&mut team);
    team.press(&[KeyCommand::Left, KeyCommand::Left]);
    let before = drawn(&mut team);
    team.press(&[KeyCommand::ZoomIn]);
    let after = drawn(&mut team);
    assert_eq!((before.step, after.step), (60_000, 45_000));
    let middle = |axis: &Axis| (axis.left + axis.right()) / 2;
    assert!(middle(&before).abs_diff(middle(&after)) <= 45_000);
    team.press(&[KeyCommand::ZoomAll]);
    let all = drawn(&mut team);
    assert!(all.left <= noon() && all.right() >= noon() + 36_000_000);
    // After zooming, the view still follows the current time.
    team.press(&[KeyCommand::ZoomIn]);
    assert_eq!(team.screen.states.timeline.right, None);
    for _ in 0..50 {
        team.press(&[KeyCommand::ZoomIn]);
    }
    assert_eq!(drawn(&mut team).step, 100);
    for _ in 0..50 {
        team.press(&[KeyCommand::ZoomOut]);
    }
    assert_eq!(drawn(&mut team).step, 7 * 24 * 3_600_000);
}

#[test]
fn messages_are_marked_in_lanes_and_listed_below() {
    let mut team = ScriptedTeam::new(View::Timeline);
    for name in ["ada", "ben", "cy"] {
        team.join(0, name);
    }
    team.write(10_000, "ada", "ben", "to ben");
    team.write(20_000, "ben", "ada", "to ada");
    team.idle(30_000, "ben", "ada");
    for name in ["ben", "cy"] {
        team.write(40_000, "ada", name, "to both");
    }
    let drawn = team.drawn(80, 24);
    let marks = |line: &str| line.chars().filter(|sign| "↑↓↕".contains(*sign)).collect::<String>();
    assert_eq!(marks(&drawn[3]), "↑↓↑", "{drawn:#?}");
    assert_eq!(marks(&drawn[5]), "↓↑↓", "{drawn:#?}");
    assert_eq!(marks(&drawn[7]), "↓", "{drawn:#?}");
    let all = drawn.join("\n");
    assert!(all.contains("sent 3 and received 1 messages"), "{all}");
    assert!(all.contains("12:00:10 ↑ to ben: to ben"), "{all}");
    assert!(all.contains("12:00:20 ↓ from ben: to ada"), "{all}");
    assert!(all.contains("12:00:40 ↑ to ben, cy: to both"), "{all}");
    assert!(!all.contains("12:00:30 ↓"), "{all}");
}

#[test]
fn up_and_down_select_a_lane_and_enter_opens_it() {
    let mut team = ScriptedTeam::new(View::Timeline);
    for name in ["ada", "ben", "cy"] {
        team.join(0, name);
    }
    team.leave(1_000, "ben");
    team.drawn(80, 24);
    team.press(&[KeyCommand::Down]);
    assert_eq!(team.screen.member.as_deref(), Some("cy"));
    team.press(&[KeyCommand::Down]);
    assert_eq!(team.screen.member.as_deref(), Some("ben"), "members who left come last");
    team.press(&[KeyCommand::Up, KeyCommand::Open]);
    assert_eq!((team.screen.view, team.screen.member.as_deref()), (View::Member, Some("cy")));
}

#[test]
fn any_size_can_be_drawn() {
    let mut team = team_with_ada(&[(0, WorkEvent::TurnStarted {}), (36_000, DONE)]);
    for name in ["ben", "cy", "dora", "a-member-with-a-very-long-name-indeed"] {
        team.join(36_000_000, name);
    }
    for (width, height) in [(20, 5), (1, 1), (3, 4), (200, 60), (80, 3), (5, 50), (9, 9)] {
        team.drawn(width, height);
        team.press(&[KeyCommand::Left, KeyCommand::ZoomOut, KeyCommand::Down, KeyCommand::ZoomIn]);
    }
}
