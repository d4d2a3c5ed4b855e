//! Tests that drivers report everything that an agent asks for.
//!
//! Each line of `requests.jsonl` has an agent and lines of its protocol, the last of which asks for permission. The
//! agents' programs wrote most of them; those of Codex with fields that no program wrote in our recordings follow its
//! schema. `fixtures/agents/requests.jsonl` has what the drivers report for them.

use brigade_agents::driver::{
    Access, AgentAsk, AgentEvent, Driver, DriverOutput, PermissionAnswer,
};
use brigade_testkit::permission_requests;
use serde_json::{Value, json};

use super::permission::prompted;

const REQUESTS: &str = include_str!("requests.jsonl");

/// Passes the lines of a request to the agent's driver. Returns the driver and the request that it reports.
fn asked(agent: &str, lines: &[Value]) -> (Box<dyn Driver>, AgentAsk) {
    let opened: &[Value] = match agent {
        "claude" => &[],
        "codex" => &[
            json!({ "id": 1, "result": {} }),
            json!({ "id": 2, "result": { "thread": { "id": "t", "turns": [] } } }),
        ],
        _ => {
            &[json!({ "id": 1, "result": {} }), json!({ "id": 2, "result": { "sessionId": "s" } })]
        }
    };
    let mut driver = prompted(agent, Access::Ask, opened);
    let mut asked = None;
    for line in lines {
        driver.on_output(format!("{line}\n").as_bytes());
        while let Some(output) = driver.next() {
            if let DriverOutput::Event(AgentEvent::Asks(ask)) = output {
                asked = Some(ask);
            }
        }
    }
    (driver, asked.unwrap_or_else(|| panic!("{agent} asks nothing: {lines:?}")))
}

fn requests() -> impl Iterator<Item = (String, Vec<Value>)> {
    REQUESTS.lines().map(|line| {
        let request: Value = serde_json::from_str(line).unwrap();
        let agent = request["agent"].as_str().unwrap().to_owned();
        (agent, request["lines"].as_array().unwrap().clone())
    })
}

#[test]
fn finding_15_drivers_report_everything_that_an_agent_asks_for() {
    let report = |(agent, lines): (String, Vec<Value>)| {
        let (_, ask) = asked(&agent, &lines);
        let AgentAsk { tool, description, input, request, .. } = ask;
        let report = json!({
            "agent": agent, "tool": tool, "description": description, "input": input, "request": request,
        });
        format!("{report}\n")
    };
    let reported: String = requests().map(report).collect();
    assert!(
        reported == permission_requests::RECORDED,
        "fixtures/agents/requests.jsonl should be:\n{reported}"
    );
}

/// The driver reports everything that Codex asks for in addition, whatever it is called.
#[test]
fn finding_15_unknown_fields_of_a_codex_request_are_reported() {
    let line = json!({
        "id": 1, "method": "item/commandExecution/requestApproval",
        "params": { "threadId": "t", "command": "ls", "cwd": "/w", "newPower": { "root": true } },
    });
    let (_, ask) = asked("codex", &[line]);
    assert_eq!(ask.input, json!({ "command": "ls", "cwd": "/w" }));
    assert_eq!(ask.request, json!({ "newPower": { "root": true } }));
}

#[test]
fn n23_geminis_shell_command_is_the_command_of_the_request() {
    let (_, ask) = requests()
        .filter(|(agent, _)| agent == "gemini")
        .map(|(agent, lines)| asked(&agent, &lines))
        .next()
        .unwrap();
    assert_eq!(ask.tool, "execute");
    assert_eq!(ask.input, json!({ "command": "touch one" }));
}

/// A title is the model's text, so it must not decide which rules match.
#[test]
fn finding_15_the_tools_name_is_not_the_title() {
    let check = |agent: &str, call: Value, tool: &str| {
        let options = json!([{ "optionId": "yes", "kind": "allow_once" }]);
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        let line = json!({ "id": 7, "method": "session/request_permission", "params": params });
        let (_, ask) = asked(agent, &[line]);
        assert_eq!((ask.tool.as_str(), ask.description.as_str()), (tool, "Read a file"));
    };
    let call =
        |kind: &str| json!({ "toolCallId": "drop__1", "title": "Read a file", "kind": kind });
    check("acp:own", call("other"), "other");
    check("acp:own", call("execute"), "execute");
    check("gemini", call("other"), "drop");
    let mut named = call("other");
    named["_meta"] = json!({ "toolName": "drop" });
    check("qwen", named, "drop");
}

#[test]
fn finding_15_an_edited_input_runs_or_is_denied() {
    for (agent, lines) in requests() {
        let (mut driver, ask) = asked(&agent, &lines);
        let edited = json!({ "command": "true" });
        driver.answer(ask.id, &PermissionAnswer::AllowEdited(edited.clone()));
        let Some(DriverOutput::Write(bytes)) = driver.next() else { panic!("{agent}: no answer") };
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        if driver.accepts_edited_input() {
            assert_eq!(answer["response"]["response"]["updatedInput"], edited, "{agent}");
            continue;
        }
        let denies = match agent.as_str() {
            "codex" => {
                let result = &answer["result"];
                result["decision"] == "decline"
                    || result["action"] == "decline"
                    || result["permissions"] == json!({})
            }
            _ => {
                let option = &answer["result"]["outcome"]["optionId"];
                ["reject", "reject_once", "cancel"].iter().any(|no| option == no)
            }
        };
        assert!(denies, "{agent}: {answer}");
    }
}
