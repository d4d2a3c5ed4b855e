//! Changes to a team file and its members, compared byte by byte.

use std::borrow::Cow;

use brigade_wire::change::Change::{Clear, Set};
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::member::{MemberChange, NewMember};
use brigade_wire::name::MemberName;
use brigade_wire::team::{NewTeam, Team, TeamChange};
use serde_json::{Value, json};

use crate::files::{self, text};

const VARIANT: &str = r#"{
  "teamName": "macos-cleaner-chat",
  "description": "macOS Cleaner AI Chat",
  "members": [
    {
      "name": "assistant",
      "agentId": "assistant@macos-cleaner-chat",
      "agentType": "claude-code",
      "prompt": "You are the AI assistant"
    }
  ]
}"#;

#[test]
fn renaming_a_team_changes_only_its_name_and_the_agent_ids() {
    let team = Team::read(VARIANT.as_bytes()).unwrap();
    let renamed = VARIANT.replace("\"macos-cleaner-chat\"", "\"copy\"");
    let renamed = renamed.replace("@macos-cleaner-chat", "@copy");
    assert_eq!(text(&team.renamed(&"copy".parse().unwrap())), renamed);
    let new = NewTeam {
        name: &"demo".parse().unwrap(),
        description: "demo@demo",
        created_at: 1,
        lead_session_id: "s",
        lead_model: "m",
        lead_cwd: "/demo",
    };
    let (demo, copy) = (new.to_bytes(), NewTeam { name: &"copy".parse().unwrap(), ..new });
    let team = Team::read(&demo).unwrap();
    assert_eq!(text(&team.renamed(&"copy".parse().unwrap())), text(&copy.to_bytes()));
    assert!(matches!(team.renamed(&"demo".parse().unwrap()), Cow::Borrowed(_)));
}

#[test]
fn a_file_with_team_name_keeps_that_key() {
    let team = Team::read(VARIANT.as_bytes()).unwrap();
    assert_eq!(team.name().unwrap(), "macos-cleaner-chat");
    assert_eq!(team.generation(), Generation::Old);
    assert_eq!((team.created_at(), team.lead_agent_id()), (None, None));
    assert!(team.lead().is_none());
    let renamed = team.with(&TeamChange { name: Some("x"), ..TeamChange::default() });
    assert_eq!(text(&renamed), VARIANT.replace("\"macos-cleaner-chat\"", "\"x\""));
    let idle = MemberChange { is_active: Some(false), ..MemberChange::default() };
    assert_eq!(
        text(&team.with_member_changed("assistant", &idle).unwrap()),
        VARIANT.replace("assistant\"\n    }", "assistant\",\n      \"isActive\": false\n    }")
    );
}

#[test]
fn teams_of_both_generations_are_recognised_and_read() {
    let new = files::one("claude-code/2.1.325/0030-teams__session-e04d42a1__config.json");
    let new = Team::read(&new).unwrap();
    assert_eq!(new.generation(), Generation::New);
    let lead = new.lead_process().unwrap();
    assert_eq!((lead.pid, lead.claimed_at), (Some(30460), Some(1_794_699_646_904)));
    assert_eq!(lead.pid_space.as_deref(), Some("vm#pid:[4026531836]"));
    assert_eq!(lead.proc_start.as_deref(), Some("81574"));
    assert!(new.lead().unwrap().is("team-lead"));
    assert_eq!(new.member("alice").unwrap().is_active(), Some(true));

    let old = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let old = Team::read(&old).unwrap();
    assert_eq!(old.generation(), Generation::Old);
    assert_eq!(old.lead_agent_id().unwrap(), "team-lead@tol");
    assert_eq!(old.field("x_top"), Some("{\n    \"keep\": 1\n  }"));
    assert_eq!(old.member("carol").unwrap().field("x_extra"), Some("\"keep me\""));
}

#[test]
fn a_late_change_does_not_restore_a_removed_member() {
    let bytes = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let gone = Team::read(&bytes).unwrap().without_member("carol");
    let gone = Team::read(&gone).unwrap();
    assert!(gone.member("carol").is_none());
    let active = MemberChange { is_active: Some(true), ..MemberChange::default() };
    assert_eq!(gone.with_member_changed("carol", &active), None);
    assert_eq!(gone.without_member("carol"), gone.bytes());
}

fn new_member(name: &MemberName) -> NewMember<'_> {
    NewMember {
        name,
        agent_type: "codex",
        model: "m",
        prompt: "p",
        color: Color::Green,
        plan_mode_required: false,
        joined_at: 5,
        tmux_pane_id: "",
        cwd: "/",
        backend_type: Some("process"),
        is_active: None,
    }
}

#[test]
fn members_can_be_added_and_removed_in_any_layout() {
    let name: MemberName = "bob".parse().unwrap();
    let bob = new_member(&name);
    let old = r#"{"agentId":"bob@t","name":"bob","agentType":"codex","model":"m","prompt":"p","color":"green","planModeRequired":false,"joinedAt":5,"tmuxPaneId":"","cwd":"/","subscriptions":[],"backendType":"process"}"#;
    let new = r#"{"agentId":"bob@session-0123abcd","name":"bob","color":"green","joinedAt":5,"tmuxPaneId":"","subscriptions":[],"agentType":"codex","model":"m","prompt":"p","planModeRequired":false,"cwd":"/","backendType":"process"}"#;
    let check = |before: &str, after: String| {
        let with = Team::read(before.as_bytes()).unwrap().with_member(&bob).unwrap();
        assert_eq!(text(&with), after);
        text(&Team::read(&with).unwrap().without_member("bob")).to_owned()
    };
    let empty = r#"{"name":"t","members":[]}"#;
    assert_eq!(check(empty, format!(r#"{{"name":"t","members":[{old}]}}"#)), empty);
    let one = r#"{"name":"session-0123abcd","members":[{"name":"x"}],"y":1}"#;
    let both = format!(r#"{{"name":"session-0123abcd","members":[{{"name":"x"}},{new}],"y":1}}"#);
    assert_eq!(check(one, both), one);
    // Fault D: Claude Code 2.1.108 to 2.1.177 writes named teams with the newer order of a member's fields.
    let teammate = r#"{"name":"x","color":"blue","agentType":"codex"}"#;
    let named = format!(r#"{{"name":"t","description":"d","members":[{teammate}]}}"#);
    let newer = new.replace("session-0123abcd", "t");
    let both = format!(r#"{{"name":"t","description":"d","members":[{teammate},{newer}]}}"#);
    assert_eq!(check(&named, both), named);
    check(r#"{"name":"t"}"#, format!(r#"{{"name":"t","members":[{old}]}}"#));
    let lines: Value = serde_json::from_str(old).unwrap();
    let added =
        Team::read(b"{\n  \"name\": \"t\",\n  \"members\": []\n}").unwrap().with_member(&bob);
    let added: Value = serde_json::from_slice(&added.unwrap()).unwrap();
    assert_eq!(added["members"], json!([lines]));
}

#[test]
fn a_new_team_can_be_read_back() {
    let name = "demo".parse().unwrap();
    let bytes = NewTeam {
        name: &name,
        description: "a \"demo\"",
        created_at: 1_794_700_808_289,
        lead_session_id: "s",
        lead_model: "m",
        lead_cwd: "/p",
    }
    .to_bytes();
    let team = Team::read(&bytes).unwrap();
    assert_eq!(team.description().unwrap(), "a \"demo\"");
    assert_eq!(team.created_at(), Some(1_794_700_808_289));
    assert_eq!((team.members().len(), team.lead().unwrap().is("team-lead")), (1, true));
}

/// Checks which Claude Code generation a team file with these fields belongs to.
#[track_caller]
fn check_generation(fields: &str, expected: Generation) {
    assert_eq!(Team::read(fields.as_bytes()).unwrap().generation(), expected, "{fields}");
}

#[test]
fn the_generation_does_not_depend_on_the_name_alone() {
    check_generation(r#"{"name":"t"}"#, Generation::Old);
    check_generation(r#"{"name":"session-0123abcd"}"#, Generation::New);
    check_generation(r#"{"name":"t","leadProcess":{}}"#, Generation::New);
    // In the old generation, users choose team names and may choose one like `session-0123abcd`.
    check_generation(r#"{"name":"session-0123abcd","description":""}"#, Generation::Old);
    let name = "session-0123abcd".parse().unwrap();
    let (description, lead_session_id, lead_model, lead_cwd) = ("", "", "", "");
    let created_at = 0;
    let team =
        NewTeam { name: &name, description, created_at, lead_session_id, lead_model, lead_cwd };
    check_generation(text(&team.to_bytes()), Generation::Old);
}

#[test]
fn a_member_cannot_claim_to_be_the_lead() {
    let lead = |fields: &str| {
        let team = Team::read(fields.as_bytes()).unwrap();
        team.lead().and_then(|lead| lead.name().map(Cow::into_owned))
    };
    let eve = r#"{"name":"eve","agentId":"eve@t","agentType":"team-lead"}"#;
    let anna = r#"{"name":"anna","agentId":"anna@t","agentType":"Explore"}"#;
    let with_lead_id = format!(r#"{{"leadAgentId":"anna@t","members":[{eve},{anna}]}}"#);
    assert_eq!(lead(&with_lead_id).as_deref(), Some("anna"));
    assert_eq!(lead(&format!(r#"{{"leadAgentId":"x@t","members":[{eve}]}}"#)), None);
    assert_eq!(lead(&format!(r#"{{"members":[{eve}]}}"#)), None);
    let by_name = format!(r#"{{"members":[{eve},{{"name":"team-lead"}}]}}"#);
    assert_eq!(lead(&by_name).as_deref(), Some("team-lead"));
}

#[test]
fn new_fields_are_added_at_the_end() {
    let team =
        Team::read(br#"{"name":"t","createdAt":1,"members":[{"name":"a","isActive":true}]}"#);
    let team = team.unwrap();
    let described = TeamChange { description: Set("d"), ..TeamChange::default() };
    assert_eq!(
        text(&team.with(&described)),
        r#"{"name":"t","createdAt":1,"members":[{"name":"a","isActive":true}],"description":"d"}"#
    );
    let moved = MemberChange {
        backend_type: Some("tmux"),
        tmux_pane_id: Some("%1"),
        ..MemberChange::default()
    };
    assert_eq!(
        text(&team.with_member_changed("a", &moved).unwrap()),
        r#"{"name":"t","createdAt":1,"members":[{"name":"a","isActive":true,"tmuxPaneId":"%1","backendType":"tmux"}]}"#
    );
}

#[test]
fn with_both_name_keys_the_one_with_a_string_counts() {
    let check = |before: &str, after: &str| {
        let team = Team::read(before.as_bytes()).unwrap();
        assert_eq!(team.name().unwrap(), "t");
        let change = TeamChange { name: Some("x"), description: Clear, ..TeamChange::default() };
        assert_eq!(text(&team.with(&change)), after);
    };
    check(r#"{"teamName":"u","name":"t"}"#, r#"{"teamName":"u","name":"x"}"#);
    check(r#"{"name":null,"teamName":"t"}"#, r#"{"name":null,"teamName":"x"}"#);
}

#[test]
fn a_new_member_never_shares_an_inbox() {
    let before = r#"{"name":"t","members":[{"name":"b.b"}]}"#;
    let name: MemberName = "B-b".parse().unwrap();
    assert_eq!(
        Team::read(before.as_bytes())
            .unwrap()
            .with_member(&new_member(&name))
            .unwrap_err()
            .to_string(),
        "'B-b' would share an inbox with \"b.b\"; choose another name"
    );
}

#[test]
fn duplicate_members_are_all_changed() {
    let team = Team::read(br#"{"members":[{"name":"a"},{"name":"b"},{"name":"a"}]}"#).unwrap();
    let idle = MemberChange { is_active: Some(false), ..MemberChange::default() };
    assert_eq!(
        text(&team.with_member_changed("a", &idle).unwrap()),
        r#"{"members":[{"name":"a","isActive":false},{"name":"b"},{"name":"a","isActive":false}]}"#
    );
    assert_eq!(text(&team.without_member("a")), r#"{"members":[{"name":"b"}]}"#);
}

#[test]
fn recorded_teammates_have_the_colours_in_order() {
    for version in ["2.1.50", "2.1.325"] {
        let bytes = files::one(&format!("claude-code/{version}/colours/config.json"));
        let team = Team::read(&bytes).unwrap();
        let colors: Vec<Color> = team
            .members()
            .filter_map(|member| member.color().map(|color| color.parse().unwrap()))
            .collect();
        assert_eq!(colors, (0..9).map(Color::nth).collect::<Vec<_>>());
    }
}

#[test]
fn numbers_are_parsed_as_in_javascript() {
    let created_at = |number: &str| {
        let bytes = format!("{{\"createdAt\":{number}}}");
        Team::read(bytes.as_bytes()).unwrap().created_at()
    };
    assert_eq!(created_at("1770535107409"), Some(1_770_535_107_409));
    assert_eq!(created_at("1770535107409.0"), Some(1_770_535_107_409));
    assert_eq!(created_at("1.770535107409e12"), Some(1_770_535_107_409));
    assert_eq!(created_at("9007199254740991.0"), Some(9_007_199_254_740_991));
    for odd in ["9007199254740992.0", "-1", "0.5", "1e300", "1e999", "\"1\"", "null"] {
        assert_eq!(created_at(odd), None, "{odd}");
    }
}
