//! Validation of names, ids and colours.

use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::name::{AgentId, MemberName, TaskId, TeamName, inbox_stem, team_dir};
use brigade_wire::request_id::{RequestId, Token};

/// Asserts that a name is rejected with this message.
#[track_caller]
fn assert_rejected<T: std::str::FromStr<Err: ToString> + std::fmt::Debug>(
    name: &str,
    reason: &str,
) {
    assert_eq!(name.parse::<T>().map_err(|error| error.to_string()).unwrap_err(), reason);
}

#[test]
fn valid_names_are_accepted() {
    for name in ["a", "7", "labtui", "session-e04d42a1", "a-b-c", &"x".repeat(64)] {
        assert_eq!(name.parse::<TeamName>().unwrap().as_str(), name);
        assert_eq!(name.parse::<MemberName>().unwrap().as_str(), name);
    }
    for name in ["alice-2", "Alice", "a_b", "team-lead"] {
        assert_eq!(name.parse::<MemberName>().unwrap().as_str(), name);
    }
}

#[test]
fn invalid_member_names_are_rejected_with_a_reason() {
    const USE: &str = "use A-Z, a-z, 0-9, '-' and '_', beginning with a letter or digit";
    let at = |shown: &str, at: usize| {
        let begin = if at == 0 { "begin with" } else { "contain" };
        format!("the member name must not {begin} {shown}; {USE}")
    };
    let check =
        |name: &str, shown: &str, place| assert_rejected::<MemberName>(name, &at(shown, place));
    check("../x", "'.'", 0);
    check("a/b", "'/'", 1);
    check("a\\b", "'\\'", 1);
    check("a\0b", "U+0000", 1);
    check("bob\n", "U+000A", 3);
    check("\u{202e}bob", "U+202E", 0);
    check("bob\u{200f}", "U+200F", 3);
    check("a.b", "'.'", 1);
    check("a b", "a space", 1);
    check("bob@team", "'@'", 3);
    check("-rf", "'-'", 0);
    check("_x", "'_'", 0);
    check("naïve", "U+00EF", 2);
    check("研究者", "U+7814", 0);
    assert_rejected::<MemberName>("", "the member name is empty");
    let long = "the member name is 300 bytes long; at most 64 are allowed";
    assert_rejected::<MemberName>(&"x".repeat(300), long);
    // An earlier version truncated this name in the middle of a character and panicked.
    assert_rejected::<MemberName>(&"研".repeat(100), long);
    let reserved = "the member name 'system' is reserved: Claude Code's own notices come from it";
    assert_rejected::<MemberName>("system", reserved);
    assert_rejected::<MemberName>("SYSTEM", reserved);
}

#[test]
fn invalid_team_names_are_rejected_with_a_reason() {
    const USE: &str = "use a-z, 0-9 and '-', beginning with a letter or digit";
    let at = |shown: &str, at: usize| {
        let begin = if at == 0 { "begin with" } else { "contain" };
        format!("the team name must not {begin} {shown}; {USE}")
    };
    let check =
        |name: &str, shown: &str, place| assert_rejected::<TeamName>(name, &at(shown, place));
    check("..", "'.'", 0);
    check("../..", "'.'", 0);
    check("My_Team", "'M'", 0);
    check("my_team", "'_'", 2);
    check("team\n", "U+000A", 4);
    check("x.deleted-4d2221a5", "'.'", 1);
}

#[test]
fn names_that_would_share_an_inbox_are_rejected() {
    let member = |name: &str| name.parse::<MemberName>().unwrap();
    let others = ["team-lead", "a.b", "Bob"];
    assert_eq!(member("carol").check_free(others), Ok(()));
    let error = |name: &str| member(name).check_free(others).unwrap_err().to_string();
    assert_eq!(error("a-b"), "'a-b' would share an inbox with \"a.b\"; choose another name");
    assert_eq!(error("bob"), "'bob' would share an inbox with \"Bob\"; choose another name");
    assert_eq!(
        member("a-b").check_free(["a\u{202e}b"]).unwrap_err().to_string(),
        "'a-b' would share an inbox with \"a\\u{202e}b\"; choose another name"
    );
}

#[test]
fn other_names_map_to_the_paths_that_claude_code_uses() {
    let check = |name: &str, dir: &str, stem: &str| {
        assert_eq!((team_dir(name).as_str(), inbox_stem(name).as_str()), (dir, stem));
    };
    check("My_Team X!é", "my-team-x--", "My_Team-X--");
    check("../../etc", "------etc", "------etc");
    check("a.b", "a-b", "a-b");
    check("😀", "--", "--");
    check("", "", "");
}

#[test]
fn agent_ids_are_parsed() {
    let id: AgentId = "alice@labtui".parse().unwrap();
    assert_eq!((id.name.as_str(), id.team.as_str()), ("alice", "labtui"));
    assert_eq!(id.to_string(), "alice@labtui");
    assert_rejected::<AgentId>("alice", "not an agent id; expected name@team");
    assert_rejected::<AgentId>("@labtui", "the member name is empty");
    assert_rejected::<AgentId>("alice@", "the team name is empty");
    assert!("alice@lab@tui".parse::<AgentId>().is_err());
}

#[test]
fn task_ids_are_parsed() {
    assert_eq!("33".parse::<TaskId>().unwrap().get(), 33);
    let reason = "not a task id; expected a whole number, 1 or more";
    for id in
        ["", "0", "01", "-1", "+1", " 1", "1\n", "xyz", "../../secret", "18446744073709551616"]
    {
        assert_rejected::<TaskId>(id, reason);
    }
}

#[test]
fn request_ids_of_each_form_are_parsed_and_written() {
    for id in [
        "shutdown-1794700838681@alice",
        "plan_approval-1794700123727@plan@own",
        "perm-1794700022860-zmxmhrl",
        "perm-1-abc",
    ] {
        assert_eq!(id.parse::<RequestId>().unwrap().to_string(), id);
    }
    for id in [
        "",
        "join-1",
        "shutdown-@alice",
        "shutdown-1",
        "shutdown-1@../x",
        "shutdown-01@alice",
        "shutdown-+1@alice",
        "plan_approval-1@plan",
        "perm-1-",
        "perm-1-ABC",
        "perm-1-a b",
        "perm-99999999999999999999-abc",
    ] {
        assert!(id.parse::<RequestId>().is_err(), "{id}");
    }
}

#[test]
fn a_token_has_at_most_32_characters() {
    let id = |len: usize| format!("perm-1-{}", "a".repeat(len)).parse::<RequestId>();
    assert!(id(32).is_ok());
    assert!(id(33).is_err());
}

#[test]
fn a_new_permission_token_has_seven_characters() {
    for bits in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let id = RequestId::Permission { at: 7, token: Token::from_random(bits) }.to_string();
        assert_eq!(id.len(), "perm-7-".len() + 7, "{id}");
        assert!(id.parse::<RequestId>().is_ok(), "{id}");
    }
}

#[test]
fn colours_are_assigned_in_order() {
    let names: Vec<&str> = (0..9).map(|index| Color::nth(index).as_str()).collect();
    let order = ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red", "blue"];
    assert_eq!(names, order);
    assert_eq!("pink".parse(), Ok(Color::Pink));
    assert!("Pink".parse::<Color>().is_err());
}

#[test]
fn only_session_names_indicate_the_generation() {
    assert_eq!(Generation::from_team_name("session-e04d42a1"), Some(Generation::New));
    for name in ["labtui", "session-", "session-e04d42a", "session-E04D42A1", "session-e04d42a12"] {
        assert_eq!(Generation::from_team_name(name), None, "{name}");
    }
}
