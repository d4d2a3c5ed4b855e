//! Tests of the keys of the member view.

use brigade_core::event::WorkEvent;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::actions::TeamAction;
use crate::screen::test_support::{ScriptedTeam, draw_text};
use crate::screen::{Effect, ScreenEvent};
use crate::view::View;

/// Returns the view of bob, who said 200 things.
fn view() -> ScriptedTeam {
    let mut team = ScriptedTeam::new(View::Member);
    team.create(0);
    team.join(0, "bob");
    team.screen.me = Some("team-lead".parse().unwrap());
    team.screen.member = Some("bob".to_owned());
    for number in 0..200 {
        let text =
            if number % 50 == 7 { format!("Needle {number}") } else { format!("hay {number}") };
        team.work(i64::from(number) * 1_000, "bob", WorkEvent::Said { text });
    }
    team
}

fn key(team: &mut ScriptedTeam, code: KeyCode) -> Vec<Effect> {
    team.screen.update(ScreenEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn drawn(team: &mut ScriptedTeam) -> String {
    draw_text(&mut team.screen, 80, 24)
}

#[test]
fn the_search_goes_from_match_to_match() {
    let mut team = view();
    drawn(&mut team);
    // While the person searches, letters are not commands.
    for letter in "/need".chars() {
        assert_eq!(key(&mut team, KeyCode::Char(letter)), []);
    }
    team.screen.update(ScreenEvent::Paste("le\nx".to_owned()));
    let text = drawn(&mut team);
    assert!(text.contains("search: needle\n") && text.contains("esc end the search"), "{text}");
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
    steps(KeyCode::Esc, "/ search");
    steps(KeyCode::End, "hay 199");
}

#[test]
fn the_turn_is_interrupted_and_the_member_is_paused() {
    let mut team = view();
    let name = || "bob".parse().unwrap();
    assert_eq!(key(&mut team, KeyCode::Char('i')), []);
    assert!(drawn(&mut team).contains("Interrupt the turn of bob?"));
    let interrupt = TeamAction::Interrupt { name: name(), if_idle: "" };
    assert_eq!(key(&mut team, KeyCode::Char('y')), [Effect::Run(interrupt)]);
    let pause = TeamAction::TogglePaused { name: name() };
    assert_eq!(key(&mut team, KeyCode::Char('p')), [Effect::Run(pause)]);
    // Brigade does not run the lead.
    team.screen.member = Some("team-lead".to_owned());
    assert_eq!(key(&mut team, KeyCode::Char('p')), []);
    assert!(drawn(&mut team).contains("brigade does not run the lead"));
}
