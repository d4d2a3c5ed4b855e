//! Tests of the screen of one member.

use std::time::Duration;

use brigade_core::event::WorkEvent;
use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal};
use brigade_testkit::permission_requests::recorded;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::AttachedState;
use crate::actions::TeamAction;
use crate::screen::test_support::{ScriptedTeam, at, draw, draw_text};
use crate::screen::{Effect, ScreenEvent};
use crate::view::View;

/// Returns the screen of bob, for the person who leads.
fn attached() -> ScriptedTeam {
    let mut team = ScriptedTeam::new(View::Member);
    team.create(0);
    team.join(0, "bob");
    team.screen.me = Some("team-lead".parse().unwrap());
    team.screen.attached = Some(AttachedState::new("bob".parse().unwrap(), None));
    team
}

fn said(text: impl Into<String>) -> WorkEvent {
    WorkEvent::Said { text: text.into() }
}

fn key(team: &mut ScriptedTeam, code: KeyCode) -> Vec<Effect> {
    team.screen.update(ScreenEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn ctrl(team: &mut ScriptedTeam, letter: char) -> Vec<Effect> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    team.screen.update(ScreenEvent::Key(key))
}

fn type_text(team: &mut ScriptedTeam, text: &str) {
    for letter in text.chars() {
        key(team, KeyCode::Char(letter));
    }
}

fn drawn(team: &mut ScriptedTeam) -> String {
    draw_text(&mut team.screen, 80, 24)
}

/// Adds an open permission request of bob.
fn ask(team: &mut ScriptedTeam, id: &str, command: &str) {
    let request = json!({
        "type": "permission_request", "request_id": id, "agent_id": "bob", "tool_name": "Bash",
        "tool_use_id": "t", "description": "d", "input": { "command": command },
        "permission_suggestions": [],
    });
    team.write(1_000, "bob", "team-lead", &request.to_string());
    let open = team.screen.approvals_from_history();
    team.screen.update(ScreenEvent::Approvals(Ok(open)));
}

#[test]
fn text_is_sent_to_the_member_and_comes_back_if_it_is_not_sent() {
    let mut team = attached();
    type_text(&mut team, "please q");
    assert!(drawn(&mut team).contains("> please q"));
    let to = "bob".parse().unwrap();
    let write = Effect::Run(TeamAction::Write { to, text: "please q".into() });
    assert_eq!(key(&mut team, KeyCode::Enter), [write]);
    assert!(drawn(&mut team).contains("> write to bob"));
    let (text, why) = ("please q".into(), "the disk is full".into());
    team.screen.update(ScreenEvent::NotSent { text, why });
    let failed = drawn(&mut team);
    assert!(
        failed.contains("> please q") && failed.contains("not sent: the disk is full"),
        "{failed}"
    );
    // Unsent text is not dropped without a warning.
    assert_eq!(ctrl(&mut team, 'd'), []);
    assert!(drawn(&mut team).contains("ctrl-d again"));
    assert_eq!(ctrl(&mut team, 'd'), [Effect::Quit]);
}

#[test]
fn ctrl_c_interrupts_the_turn_and_ctrl_d_detaches() {
    let mut team = attached();
    let name = "bob".parse().unwrap();
    let if_idle = "; ctrl-d detaches";
    assert_eq!(ctrl(&mut team, 'c'), [Effect::Run(TeamAction::Interrupt { name, if_idle })]);
    assert_eq!(ctrl(&mut team, 'd'), [Effect::Quit]);
}

#[test]
fn a_notice_disappears_with_the_next_key() {
    let mut team = attached();
    team.screen.update(ScreenEvent::Done(Ok("sent to bob".into())));
    assert!(drawn(&mut team).contains("sent to bob"));
    key(&mut team, KeyCode::Up);
    assert!(!drawn(&mut team).contains("sent to bob"));
    // An error that arrives while the person types stays for a moment.
    team.screen.update(ScreenEvent::Done(Err("the disk is full".into())));
    key(&mut team, KeyCode::Up);
    assert!(drawn(&mut team).contains("the disk is full"));
    team.screen.update(ScreenEvent::Time(at(3_000)));
    key(&mut team, KeyCode::Up);
    assert!(!drawn(&mut team).contains("the disk is full"));
    team.screen.show_progress("sending to bob …".into());
    key(&mut team, KeyCode::Up);
    assert!(drawn(&mut team).contains("sending to bob"));
}

#[test]
fn a_person_without_a_seat_only_watches() {
    let mut team = attached();
    team.screen.me = None;
    let why = Some("Claude Code leads this team".to_owned());
    team.screen.attached = Some(AttachedState::new("bob".parse().unwrap(), why));
    type_text(&mut team, "hello");
    assert_eq!(key(&mut team, KeyCode::Enter), []);
    assert_eq!(ctrl(&mut team, 'c'), []);
    let text = drawn(&mut team);
    assert!(text.contains("view only: Claude Code leads this team"), "{text}");
    ask(&mut team, "perm-1", "make");
    assert!(drawn(&mut team).contains("the lead answers this request"));
    assert_eq!(ctrl(&mut team, 'y'), []);
}

#[test]
fn a_request_is_shown_exactly_and_answered_once() {
    let mut team = attached();
    ask(&mut team, "perm-1", "cargo publish  --dry-run");
    // A request that is not on the screen yet cannot be answered.
    assert_eq!(ctrl(&mut team, 'y'), []);
    let text = drawn(&mut team);
    assert!(text.contains("$ cargo publish  --dry-run") && text.contains("ctrl-y allow"), "{text}");
    let effects = ctrl(&mut team, 'y');
    let [Effect::Run(TeamAction::Answer { approval, denial: None })] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(approval.request_id, "perm-1");
    // The screen does not claim an answer that is not confirmed.
    let text = drawn(&mut team);
    assert!(text.contains("answering …") && !text.contains("approved"), "{text}");
    assert_eq!(ctrl(&mut team, 'n'), []);
    team.screen.update(ScreenEvent::AnswerDone(Err("bob is not running".into())));
    assert!(drawn(&mut team).contains("bob is not running"));
    let effects = ctrl(&mut team, 'n');
    assert!(matches!(&effects[..], [Effect::Run(TeamAction::Answer { denial: Some(_), .. })]));
}

#[test]
fn a_long_request_must_be_read_to_its_end_before_it_is_allowed() {
    let mut team = attached();
    let command: Vec<String> = (0..60).map(|number| format!("echo {number}")).collect();
    ask(&mut team, "perm-1", &command.join("\n"));
    let text = drawn(&mut team);
    assert!(text.contains("ctrl-r read") && !text.contains("ctrl-y"), "{text}");
    assert_eq!(ctrl(&mut team, 'y'), []);
    drawn(&mut team);
    for _ in 0..10 {
        assert_eq!(ctrl(&mut team, 'y'), []);
        key(&mut team, KeyCode::PageDown);
        let text = drawn(&mut team);
        if text.contains("echo 59") {
            break;
        }
    }
    let text = drawn(&mut team);
    assert!(text.contains("echo 59") && text.contains("ctrl-y allow"), "{text}");
    assert_eq!(ctrl(&mut team, 'y').len(), 1);
}

#[test]
fn every_vendors_request_is_shown_whole() {
    for request in recorded() {
        let mut team = attached();
        team.write(1_000, "bob", "team-lead", &request.message("perm-1").to_string());
        let open = team.screen.approvals_from_history();
        team.screen.update(ScreenEvent::Approvals(Ok(open)));
        ctrl(&mut team, 'r');
        let text = draw_text(&mut team.screen, 300, 120);
        request.assert_shown_in(&text, "the screen of one member");
    }
}

#[test]
fn tool_calls_and_diffs_are_folded_until_the_person_unfolds_them() {
    let mut team = attached();
    let about = format!("cargo test {}", "--package x ".repeat(12));
    let (id, tool) = ("1".to_owned(), "Bash".to_owned());
    team.work(1_000, "bob", WorkEvent::ToolStarted { id, tool, about: format!("{about}last") });
    let diff: Vec<String> = (0..20).map(|number| format!("+line {number}")).collect();
    let (path, diff) = ("src/lib.rs".to_owned(), Some(diff.join("\n")));
    team.work(2_000, "bob", WorkEvent::Changed { path, added: 20, removed: 0, diff });
    let folded = draw_text(&mut team.screen, 80, 40);
    assert!(!folded.contains("last") && folded.contains("… 8 more lines"), "{folded}");
    ctrl(&mut team, 'o');
    let unfolded = draw_text(&mut team.screen, 80, 60);
    assert!(unfolded.contains("last") && unfolded.contains("+line 19"), "{unfolded}");
}

#[test]
fn texts_keep_their_lines() {
    let mut team = attached();
    team.write(1_000, "team-lead", "bob", "Check:\nthe lexer\nthe parser");
    team.work(2_000, "bob", said("Done:\n  lexer  ok\n  parser ok"));
    let (id, tool, about) = ("1".into(), "Bash".into(), "cat <<X\none\nX".into());
    team.work(3_000, "bob", WorkEvent::ToolStarted { id, tool, about });
    team.work(4_000, "bob", WorkEvent::Trouble { why: "cannot start:\nno such file".into() });
    let transcript = |team: &mut ScriptedTeam| {
        let text = drawn(team);
        // Without the column of the times.
        let line = |line: &str| line.chars().skip(10).collect::<String>();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let text = transcript(&mut team);
    for lines in [
        "  Check:\n  the lexer\n  the parser\n",
        "  Done:\n    lexer  ok\n    parser ok\n",
        "cat <<X … (+2 lines)",
        "✕ cannot start:\n  no such file\n",
    ] {
        assert!(text.contains(lines), "{lines}: {text}");
    }
    ctrl(&mut team, 'o');
    let text = transcript(&mut team);
    assert!(text.contains("run   cat <<X  ") && text.contains("\n  one\n  X\n"), "{text}");
}

#[test]
fn the_search_goes_from_match_to_match() {
    let mut team = attached();
    for number in 0..200 {
        let text =
            if number % 50 == 7 { format!("Needle {number}") } else { format!("hay {number}") };
        team.work(i64::from(number) * 1_000, "bob", said(text));
    }
    drawn(&mut team);
    ctrl(&mut team, 'f');
    type_text(&mut team, "needle");
    let mut steps = |code, expected: &str| {
        key(&mut team, code);
        let text = drawn(&mut team);
        assert!(text.contains(expected), "{expected}: {text}");
    };
    for number in [157, 107, 57, 7] {
        steps(KeyCode::Enter, &format!("Needle {number}"));
    }
    steps(KeyCode::Enter, "no earlier match");
    steps(KeyCode::Down, "Needle 57");
    steps(KeyCode::Up, "Needle 7");
    steps(KeyCode::Esc, "> write to bob");
    steps(KeyCode::Esc, "hay 199");
}

#[test]
fn the_wheel_scrolls_and_new_activity_does_not_move_the_text() {
    let mut team = attached();
    for number in 0..100 {
        team.work(number * 1_000, "bob", said(format!("line {number}")));
    }
    drawn(&mut team);
    let mouse = |kind| MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE };
    team.screen.update(ScreenEvent::Mouse(mouse(MouseEventKind::ScrollUp)));
    let before = drawn(&mut team);
    assert!(before.contains("line 96") && !before.contains("line 97"), "{before}");
    team.work(200_000, "bob", said("new"));
    let after = drawn(&mut team);
    assert!(after.contains("line 96") && after.contains("newer activity below"), "{after}");
    key(&mut team, KeyCode::Esc);
    assert!(drawn(&mut team).contains("new"));
}

#[test]
fn the_screen_can_be_drawn_at_any_size_and_shows_no_hostile_text() {
    let mut team = attached();
    for (at, text) in (1_i64..).zip(HOSTILE) {
        team.work(at * 1_000, "bob", said(*text));
        let (path, diff) = ((*text).to_owned(), Some(format!("+{text}")));
        team.work(at * 1_000, "bob", WorkEvent::Changed { path, added: 1, removed: 0, diff });
        team.write(at * 1_000, "team-lead", "bob", text);
        ask(&mut team, &format!("perm-{at}"), text);
        team.screen.update(ScreenEvent::Paste((*text).to_owned()));
        for (width, height) in [(0, 0), (1, 1), (40, 10), (80, 24), (200, 50)] {
            let text = draw_text(&mut team.screen, width, height);
            assert_safe_for_terminal(&text, "the screen of one member");
        }
        ctrl(&mut team, 'o');
        ctrl(&mut team, 'f');
    }
}

/// Returns the mean time of a frame while scrolling up through a transcript of this many lines.
fn frame_time(lines: i64) -> Duration {
    const FRAMES: u32 = 60;
    let mut team = attached();
    for number in 0..lines / 5 {
        let at = number * 1_000;
        let id = number.to_string();
        let about = format!("cargo test --package core number-{number}");
        team.work(at, "bob", said(format!("Step {number}: **two** lines of\n\n- text `code`")));
        let tool = "Bash".to_owned();
        team.work(at + 1, "bob", WorkEvent::ToolStarted { id: id.clone(), tool, about });
        team.work(at + 2, "bob", WorkEvent::ToolEnded { id, ok: true });
        let (path, diff) = ("src/lib.rs".to_owned(), None);
        team.work(at + 3, "bob", WorkEvent::Changed { path, added: 1, removed: 1, diff });
    }
    draw(&mut team.screen, 200, 50);
    let began = processor_time();
    for number in 0..FRAMES {
        let code = if number % 10 < 5 { KeyCode::PageUp } else { KeyCode::Up };
        key(&mut team, code);
        draw(&mut team.screen, 200, 50);
    }
    (processor_time() - began) / FRAMES
}

/// Returns the processor time of this thread, which does not depend on other programs.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are the result of this test")]
fn scrolling_costs_the_same_in_a_long_transcript() {
    let (short, long) = (frame_time(500), frame_time(10_000));
    println!("a frame of 200 x 50 takes {short:?} in 500 lines and {long:?} in 10,000 lines");
    assert!(long < short * 4 + Duration::from_millis(4), "{short:?} and {long:?}");
}
