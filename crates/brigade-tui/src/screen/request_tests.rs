//! Tests that the dashboard shows the whole of a permission request, and that no text can attack the terminal.

use brigade_core::action::text_of;
use brigade_core::approvals::ApprovalSubject;
use brigade_core::event::WorkEvent;
use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal, long_strings};
use brigade_testkit::permission_requests::recorded;
use serde_json::json;

use super::dialog::Dialog;
use super::test_support::{ScriptedTeam, draw_text};
use crate::keys::KeyCommand;
use crate::view::View;

fn team() -> ScriptedTeam {
    let mut team = ScriptedTeam::new(View::Approvals);
    team.join(0, "team-lead");
    team.join(0, "bob");
    team
}

#[test]
fn finding_15_every_vendors_request_is_shown_whole() {
    for request in recorded() {
        let mut team = team();
        team.write(1_000, "bob", "team-lead", &request.message("perm-1").to_string());
        let drawn = team.drawn(300, 120).join("\n");
        request.assert_shown_in(&drawn, "the approvals view");
        let ApprovalSubject::Permission { action, .. } = &team.screen.approvals[0].subject else {
            panic!("not a permission")
        };
        let whole = text_of(&action.render(None)).replace([' ', '\n'], "");
        team.screen.me = Some("team-lead".parse().unwrap());
        team.press(&[KeyCommand::Approve]);
        let Some(Dialog::Confirm(confirm)) = &team.screen.dialog else { panic!("no dialog") };
        let lines = confirm.lines.concat().replace(' ', "");
        assert!(lines == whole || lines.contains("pressn,thenenter"), "{lines}\n{whole}");
        let beginning: String = whole.chars().take(60).collect();
        assert!(lines.starts_with(&beginning), "{lines}\n{whole}");
    }
}

/// A dialog that is higher than the screen must not hide its last lines silently.
#[test]
fn finding_15_a_dialog_says_how_many_lines_do_not_fit() {
    let mut team = team();
    let fields: serde_json::Map<_, _> =
        (0..18).map(|number| (format!("f{number:02}"), json!(number))).collect();
    let request = json!({
        "type": "permission_request", "request_id": "perm-1", "agent_id": "bob", "tool_name": "x",
        "tool_use_id": "t", "description": "d", "input": fields, "permission_suggestions": [],
    });
    team.write(1_000, "bob", "team-lead", &request.to_string());
    team.screen.me = Some("team-lead".parse().unwrap());
    team.press(&[KeyCommand::Approve]);
    let drawn = draw_text(&mut team.screen, 80, 20);
    assert!(drawn.contains("more lines: press n and read all before you answer"), "{drawn}");
    assert!(draw_text(&mut team.screen, 80, 50).contains("f17: 17"));
}

#[test]
fn finding_15_no_view_passes_hostile_text_to_the_terminal() {
    let mut team = team();
    let hostile = HOSTILE.iter().map(|text| (*text).to_owned()).chain(long_strings());
    for (index, text) in (1_i64..).zip(hostile) {
        let at = index * 1_000;
        team.write(at, "bob", "team-lead", &text);
        let request = json!({
            "type": "permission_request", "request_id": format!("perm-{index}"), "agent_id": "bob",
            "tool_name": text, "tool_use_id": "t", "description": text,
            "input": { &text: text, "command": text }, "permission_suggestions": [],
        });
        team.write(at, "bob", "team-lead", &request.to_string());
        let plan = json!({
            "type": "plan_approval_request", "from": "bob", "timestamp": "t", "planFilePath": text,
            "planContent": text, "requestId": format!("plan-{index}"),
        });
        team.write(at, "bob", "team-lead", &plan.to_string());
        team.work(at, "bob", WorkEvent::Said { text: text.clone() });
        team.work(at, "bob", WorkEvent::Trouble { why: text.clone() });
        let tool = WorkEvent::ToolStarted { id: text.clone(), tool: text.clone(), about: text };
        team.work(at, "bob", tool);
        for view in [View::Team, View::Mail, View::Approvals, View::Timeline, View::Member] {
            team.screen.view = view;
            let drawn = draw_text(&mut team.screen, 100, 30);
            assert_safe_for_terminal(&drawn, &format!("{view:?}"));
        }
        team.screen.view = View::Approvals;
        team.screen.me = Some("team-lead".parse().unwrap());
        for request in 0..team.screen.approvals.len() {
            team.screen.request = Some(team.screen.approvals[request].request_id.clone());
            team.press(&[KeyCommand::Approve]);
            let drawn = draw_text(&mut team.screen, 100, 30);
            assert_safe_for_terminal(&drawn, "the dialog");
            team.screen.dialog = None;
            if index % 8 != 0 {
                break;
            }
        }
        team.screen.me = None;
    }
}
