//! Changes to a team and its members, byte by byte.

use brigade_wire::change::Change::Set;
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::member::{MemberChange, NewMember, NewTeam};
use brigade_wire::name::AgentId;
use brigade_wire::team::{Team, TeamChange};
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
fn the_team_name_variant_is_read_and_written_under_its_own_key() {
    let team = Team::read(VARIANT.as_bytes()).unwrap();
    assert_eq!(team.name().unwrap(), "macos-cleaner-chat");
    assert_eq!(team.generation(), Generation::Old);
    assert_eq!((team.created_at(), team.lead_agent_id()), (None, None));
    assert!(!team.member("assistant").unwrap().is_lead());
    let renamed = team.with(&TeamChange { name: Set("x"), ..TeamChange::default() });
    assert_eq!(text(renamed), VARIANT.replace("\"macos-cleaner-chat\"", "\"x\""));
    let idle = MemberChange { is_active: Set(false), ..MemberChange::default() };
    assert_eq!(
        text(team.with_member_changed("assistant", &idle).unwrap()),
        VARIANT.replace("assistant\"\n    }", "assistant\",\n      \"isActive\": false\n    }")
    );
}

#[test]
fn a_team_of_each_generation_is_told_apart_and_read() {
    let new = files::one("claude-code/2.1.325/0030-teams__session-e04d42a1__config.json");
    let new = Team::read(&new).unwrap();
    assert_eq!(new.generation(), Generation::New);
    let lead = new.lead_process().unwrap();
    assert_eq!((lead.pid, lead.claimed_at), (Some(30460), Some(1_794_699_646_904)));
    assert_eq!(lead.pid_space.as_deref(), Some("vm#pid:[4026531836]"));
    assert_eq!(lead.proc_start.as_deref(), Some("81574"));
    assert!(new.member("team-lead").unwrap().is_lead());
    assert_eq!(new.member("alice").unwrap().is_active(), Some(true));

    let old = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let old = Team::read(&old).unwrap();
    assert_eq!(old.generation(), Generation::Old);
    assert_eq!(old.lead_agent_id().unwrap(), "team-lead@tol");
    assert_eq!(old.field("x_top"), Some("{\n    \"keep\": 1\n  }"));
    assert_eq!(old.member("carol").unwrap().field("x_extra"), Some("\"keep me\""));
}

#[test]
fn a_late_change_does_not_bring_back_a_removed_member() {
    let bytes = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let gone = Team::read(&bytes).unwrap().without_member("carol");
    let gone = Team::read(&gone).unwrap();
    assert!(gone.member("carol").is_none());
    let active = MemberChange { is_active: Set(true), ..MemberChange::default() };
    assert_eq!(gone.with_member_changed("carol", &active), None);
    assert_eq!(gone.without_member("carol"), gone.bytes());
}

#[test]
fn members_come_and_go_whatever_the_layout() {
    let agent_id: AgentId = "bob@t".parse().unwrap();
    let bob = NewMember {
        agent_id: &agent_id,
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
    };
    let old = r#"{"agentId":"bob@t","name":"bob","agentType":"codex","model":"m","prompt":"p","color":"green","planModeRequired":false,"joinedAt":5,"tmuxPaneId":"","cwd":"/","subscriptions":[],"backendType":"process"}"#;
    let new = r#"{"agentId":"bob@t","name":"bob","color":"green","joinedAt":5,"tmuxPaneId":"","subscriptions":[],"agentType":"codex","model":"m","prompt":"p","planModeRequired":false,"cwd":"/","backendType":"process"}"#;
    let check = |before: &str, after: String| {
        let with = Team::read(before.as_bytes()).unwrap().with_member(&bob);
        assert_eq!(text(with.clone()), after);
        Team::read(&with).unwrap().without_member("bob")
    };
    let empty = r#"{"name":"t","members":[]}"#;
    assert_eq!(check(empty, format!(r#"{{"name":"t","members":[{old}]}}"#)), empty.as_bytes());
    let one = r#"{"name":"session-0123abcd","members":[{"name":"x"}],"y":1}"#;
    let both = format!(r#"{{"name":"session-0123abcd","members":[{{"name":"x"}},{new}],"y":1}}"#);
    assert_eq!(check(one, both), one.as_bytes());
    check(r#"{"name":"t"}"#, format!(r#"{{"name":"t","members":[{old}]}}"#));
    let lines: Value = serde_json::from_str(old).unwrap();
    let added =
        Team::read(b"{\n  \"name\": \"t\",\n  \"members\": []\n}").unwrap().with_member(&bob);
    let added: Value = serde_json::from_slice(&added).unwrap();
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
    assert_eq!(team.members().map(|member| member.is_lead()).collect::<Vec<_>>(), [true]);
}

#[test]
fn numbers_are_read_as_javascript_reads_them() {
    let created_at = |number: &str| {
        let bytes = format!("{{\"createdAt\":{number}}}");
        Team::read(bytes.as_bytes()).unwrap().created_at()
    };
    assert_eq!(created_at("1770535107409"), Some(1_770_535_107_409));
    assert_eq!(created_at("1770535107409.0"), Some(1_770_535_107_409));
    assert_eq!(created_at("1.770535107409e12"), Some(1_770_535_107_409));
    for odd in ["-1", "0.5", "1e300", "1e999", "\"1\"", "null"] {
        assert_eq!(created_at(odd), None, "{odd}");
    }
}
