use brigade_core::event::MessageKey;
use brigade_wire::protocol::{Protocol, TaskAssignment, TeammateTerminated};
use ratatui::style::Modifier;

use super::entries::{MailEntry, MessageList};
use super::lines::wrap_text;
use super::protocol::idle_notices;
use crate::keys::KeyCommand;
use crate::screen::test_support::{ScriptedTeam, draw};
use crate::view::View;

fn new_team() -> ScriptedTeam {
    let mut team = ScriptedTeam::new(View::Mail);
    for name in ["lead", "ada", "ben", "cy"] {
        team.join(0, name);
    }
    team
}

/// Returns the entries in order, and checks that a backward search finds the same entries.
fn entries(team: &ScriptedTeam) -> Vec<(usize, usize)> {
    let list = MessageList::new(&team.screen);
    let pair = |entry: &MailEntry| (entry.from, entry.to);
    let forward = std::iter::successors(list.after(0), |entry| list.after(entry.to));
    let forward: Vec<MailEntry> = forward.collect();
    let backward = std::iter::successors(list.last(), |entry| list.before(entry.from));
    let mut backward: Vec<MailEntry> = backward.collect();
    backward.reverse();
    assert_eq!(forward, backward, "both directions find the same entries");
    for entry in &forward {
        for index in entry.from..entry.to {
            let number = list.number(index).unwrap();
            assert_eq!(list.find(number), Some(*entry), "the entry of each message can be found");
        }
    }
    forward.iter().map(pair).collect()
}

#[test]
fn idle_notices_in_a_row_are_one_entry() {
    let mut team = new_team();
    team.idle(1_000, "ada", "lead");
    team.write(2_000, "ada", "lead", "done");
    for (second, name) in [(3, "ada"), (4, "ben"), (900, "ada")] {
        team.idle(second * 1000, name, "lead");
    }
    team.write(901_000, "lead", "ada", "thanks");
    assert_eq!(entries(&team), [(0, 1), (1, 2), (2, 5), (5, 6)]);
    let drawn = team.drawn(80, 24).join("\n");
    assert!(drawn.contains("12:00:01  ada is idle"), "{drawn}");
    assert!(drawn.contains("12:00:03  3 idle notices (ada, ben)"), "{drawn}");
}

#[test]
fn idle_notices_are_split_by_day_and_at_the_size_limit() {
    let mut team = new_team();
    let day = 24 * 3600 * 1000;
    for time in [1, 2, day, day + 1] {
        team.idle(time, "ada", "lead");
    }
    assert_eq!(entries(&team), [(0, 2), (2, 4)]);
    for _ in 0..300 {
        team.idle(day + 2, "ben", "lead");
    }
    assert_eq!(entries(&team), [(0, 2), (2, 256), (256, 304)]);
}

#[test]
fn one_message_to_several_members_is_one_entry() {
    let check = |sent: &[(i64, &str, &str, &str)], expected: &[(usize, usize)]| {
        let mut team = new_team();
        for (time, from, to, text) in sent {
            team.write(*time, from, to, text);
        }
        assert_eq!(entries(&team), expected, "{sent:?}");
    };
    check(
        &[(0, "lead", "ada", "go"), (5, "lead", "ben", "go"), (9, "lead", "cy", "go")],
        &[(0, 3)],
    );
    check(&[(0, "lead", "ada", "go"), (5, "lead", "ben", "no")], &[(0, 1), (1, 2)]);
    check(&[(0, "lead", "ada", "go"), (5, "cy", "ben", "go")], &[(0, 1), (1, 2)]);
    check(&[(0, "lead", "ada", "go"), (5, "lead", "ada", "go")], &[(0, 1), (1, 2)]);
    check(&[(0, "lead", "ada", "go"), (1_001, "lead", "ben", "go")], &[(0, 1), (1, 2)]);
}

#[test]
fn broadcast_heading_shows_recipients_and_delivery_state() {
    let mut team = new_team();
    let send = |team: &mut ScriptedTeam, time: i64, to: &[&str], text: &str| -> Vec<MessageKey> {
        to.iter().map(|to| team.write(time, "lead", to, text)).collect()
    };
    let keys = send(&mut team, 1_000, &["ada", "ben", "cy"], "one");
    send(&mut team, 9_000, &["ada", "ben"], "two");
    let head = |team: &mut ScriptedTeam, text: &str| {
        let drawn = team.drawn(80, 24);
        let index = drawn.iter().position(|line| line.trim_start_matches([' ', '▌']) == text);
        drawn[index.unwrap() - 1].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(head(&mut team, "one"), "12:00:01 lead → all members (3) ○ sent 8 s ago");
    assert_eq!(head(&mut team, "two"), "▌12:00:09 lead → ada, ben ○ sent 0 s ago");
    team.read(10_000, "ada", keys[0]);
    team.read(10_000, "ben", keys[1]);
    assert_eq!(head(&mut team, "one"), "12:00:01 lead → all members (3) ○ read by 2 of 3");
    team.read(10_000, "cy", keys[2]);
    assert_eq!(head(&mut team, "one"), "12:00:01 lead → all members (3) ◐ read after 9 s");
    team.show(11_000, "cy", keys[2]);
    assert_eq!(head(&mut team, "one"), "12:00:01 lead → all members (3) ◐ shown to 1 of 3");
    team.show(11_000, "ada", keys[0]);
    team.show(31_000, "ben", keys[1]);
    assert_eq!(head(&mut team, "one"), "12:00:01 lead → all members (3) ● shown after 30 s");
}

#[test]
fn new_mail_is_followed_until_scrolling_up_and_again_at_the_end() {
    let mut team = new_team();
    for number in 0..30 {
        team.write(number * 2_000, "ada", "lead", &format!("words {number}"));
    }
    let sees = |team: &mut ScriptedTeam, number: i64| {
        let drawn = team.drawn(80, 24);
        drawn.iter().any(|line| line.ends_with(&format!(" words {number}")))
    };
    assert!(sees(&mut team, 29));
    team.write(60_000, "ada", "lead", "words 30");
    assert!(sees(&mut team, 30));
    team.press(&[KeyCommand::Up]);
    assert_eq!(team.screen.message, Some(29));
    for number in 31..60 {
        team.write(number * 2_000, "ada", "lead", &format!("words {number}"));
    }
    assert!(sees(&mut team, 29) && !sees(&mut team, 59));
    assert_eq!(team.screen.message, Some(29), "new mail does not move the selection");
    let last = team.drawn(80, 24).pop().unwrap();
    assert_eq!(last, " ↓ 25 newer below, end: follow");
    team.press(&[KeyCommand::Last]);
    assert_eq!(team.screen.message, None);
    assert!(sees(&mut team, 59));
    team.press(&[KeyCommand::First, KeyCommand::Down]);
    assert_eq!(team.screen.message, Some(1));
    team.press(&[KeyCommand::PageDown]);
    assert!(team.screen.message.unwrap() > 8);
    team.press(&[KeyCommand::Last, KeyCommand::Up, KeyCommand::Down]);
    assert_eq!(
        team.screen.message, None,
        "after moving down to the last message, the view follows new mail again"
    );
}

#[test]
fn hidden_protocol_messages_are_skipped() {
    let mut team = new_team();
    team.write(0, "ada", "lead", "one");
    team.idle(1_000, "ada", "lead");
    team.write(2_000, "ben", "lead", "two");
    team.idle(3_000, "ben", "lead");
    team.press(&[KeyCommand::Up, KeyCommand::Up]);
    assert_eq!(team.screen.message, Some(1));
    team.press(&[KeyCommand::Protocol]);
    assert_eq!(entries(&team), [(0, 1), (2, 3)]);
    let drawn = team.drawn(80, 24).join("\n");
    assert!(!drawn.contains("idle"), "{drawn}");
    // The message that was selected is now hidden, so the message before it is selected.
    team.press(&[KeyCommand::Down]);
    assert_eq!(team.screen.message, None);
    team.press(&[KeyCommand::Up]);
    assert_eq!(team.screen.message, Some(0));
}

#[test]
fn the_filter_shows_mail_from_and_to_the_member() {
    let mut team = new_team();
    team.write(0, "ada", "lead", "from ada");
    team.write(1_000, "ben", "lead", "from ben");
    team.write(2_000, "ben", "ada", "to ada");
    team.screen.states.mail.filter = Some("ada".into());
    let drawn = team.drawn(80, 24).join("\n");
    assert!(drawn.contains("from ada") && drawn.contains("to ada"), "{drawn}");
    assert!(!drawn.contains("from ben"), "{drawn}");
    assert!(drawn.contains("Mail of ada, 2 messages, esc: show all"), "{drawn}");
    team.press(&[KeyCommand::Up]);
    assert_eq!(team.screen.message, Some(0));
    team.press(&[KeyCommand::Back]);
    assert_eq!(team.screen.states.mail.filter, None);
    team.press(&[KeyCommand::Filter]);
    assert!(team.screen.dialog.is_some());
}

#[test]
fn a_long_message_is_folded_and_scrolls_when_opened() {
    let mut team = new_team();
    let text: Vec<String> = (0..50).map(|number| format!("line {number}")).collect();
    team.write(0, "ada", "lead", &text.join("\n"));
    let drawn = team.drawn(80, 24);
    assert_eq!(drawn[8].trim_start_matches(['▌', ' ']), "line 5");
    assert_eq!(drawn[9].trim_start_matches(['▌', ' ']), "… 44 more lines, enter: show all");
    team.press(&[KeyCommand::Open]);
    let drawn = team.drawn(80, 24);
    assert_eq!(drawn[19].trim_start_matches(['▌', ' ']), "line 16");
    assert_eq!(drawn[20], " ↓ 33 more lines of the message");
    team.press(&[KeyCommand::Down, KeyCommand::PageDown, KeyCommand::PageDown]);
    assert_eq!(team.drawn(80, 24)[20], " end of the message");
    team.press(&[KeyCommand::Up]);
    assert_eq!(team.drawn(80, 24)[20], " ↓ 1 more line of the message");
    team.press(&[KeyCommand::Back]);
    assert_eq!(team.drawn(80, 24)[8].trim_start_matches(['▌', ' ']), "line 5");
}

#[test]
fn protocol_messages_are_described() {
    let check = |from: &str, to: &str, text: &str, expected: &str| {
        let mut team = new_team();
        team.write(0, from, to, text);
        let drawn = team.drawn(100, 24);
        let line = drawn[2].split_once("  ").map(|(_, rest)| rest);
        let line = line.and_then(|line| line.split_once("  ")).map(|(line, _)| line);
        assert_eq!(line, Some(expected), "{text}");
    };
    let task = TaskAssignment {
        task_id: "3".into(),
        subject: "Write the docs".into(),
        description: "All of them.".into(),
        assigned_by: "another".into(),
        timestamp: String::new(),
    };
    check(
        "lead",
        "ada",
        &Protocol::from(task).to_text(),
        "lead assigned task 3 to ada: Write the docs",
    );
    let plan = r##"{"type":"plan_approval_request","from":"ben","timestamp":"","planContent":"\n# Split it\n\n1.","requestId":"p"}"##;
    check("ben", "lead", plan, "ben submits a plan: Split it");
    let yes = r#"{"type":"plan_approval_response","requestId":"p","approved":true,"timestamp":""}"#;
    check("lead", "ben", yes, "lead approved ben's plan");
    let ask = r#"{"type":"permission_request","request_id":"q","agent_id":"ada","tool_name":"Bash","tool_use_id":"t","description":"tests","input":{"command":"cargo test"}}"#;
    check("ada", "lead", ask, "ada asks to run: cargo test");
    let grant =
        r#"{"type":"permission_response","request_id":"q","subtype":"success","response":{}}"#;
    check("lead", "ada", grant, "lead approved ada's request");
    let no =
        r#"{"type":"permission_response","request_id":"q","subtype":"error","error":"not now"}"#;
    check("lead", "ada", no, "lead denied ada's request: not now");
    let stop = r#"{"type":"shutdown_request","requestId":"s","from":"lead","reason":"all done","timestamp":""}"#;
    check("lead", "cy", stop, "lead asks cy to stop: all done");
    let gone = TeammateTerminated { message: "cy\nhas gone \u{1b}[2J".into() };
    check("system", "lead", &Protocol::from(gone).to_text(), "cy has gone \\u{1b}[2J");
    let strange = r#"{"type":"song","verse":1}"#;
    check("ada", "lead", strange, "ada sent lead a message of unknown type song");
}

#[test]
fn long_name_lists_are_shortened() {
    let check = |names: &[&str], expected: &str| {
        assert_eq!(idle_notices(names.iter().copied()), expected);
    };
    check(&["a", "b", "a"], "3 idle notices (a, b)");
    check(&["a", "b", "c", "d", "e", "f", "g"], "7 idle notices (a, b, c, d, e and 2 more)");
}

#[test]
fn text_is_wrapped_and_control_characters_are_escaped() {
    let check = |text: &str, width: usize, expected: &[&str]| {
        assert_eq!(wrap_text(text, width), expected, "{text:?}");
    };
    check("one two three", 7, &["one two", "three"]);
    check("a\n\nb\n\n", 7, &["a", "", "b"]);
    check("abcdefgh ij", 3, &["abc", "def", "gh", "ij"]);
    check("日本語", 4, &["日本", "語"]);
    check("\u{1b}[2J", 40, &["\\u{1b}[2J"]);
    check("", 7, &[]);
    check("ab", 0, &["a", "b"]);
}

#[test]
fn message_text_has_no_style() {
    let mut team = new_team();
    team.write(0, "ada", "lead", "words");
    team.write(1_000, "ada", "lead", "other words");
    let buffer = draw(&mut team.screen, 80, 24);
    let at = |text: &str| {
        let line = |y: u16| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..24).find(|y| line(*y).trim_matches([' ', '▌']) == text).unwrap()
    };
    for text in ["words", "other words"] {
        assert_eq!(buffer[(11, at(text))].modifier, Modifier::empty(), "{text}");
    }
}

#[test]
fn any_size_can_be_drawn() {
    let mut team = new_team();
    for number in 0..9 {
        team.write(number * 2_000, "ada", "lead", &"many words ".repeat(40));
        team.idle(number * 2_000, "ada", "lead");
    }
    team.press(&[KeyCommand::Up, KeyCommand::Up, KeyCommand::Open]);
    for (width, height) in [(20, 5), (1, 1), (3, 4), (200, 60), (80, 3), (5, 50)] {
        team.drawn(width, height);
        team.press(&[KeyCommand::Down, KeyCommand::PageUp, KeyCommand::PageDown]);
    }
}
