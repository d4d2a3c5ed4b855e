//! Tests which tool calls need no permission. A model must not be able to disguise other calls as these.

use brigade_agents::driver::{
    Access, AgentEvent, Driver, DriverOutput, LaunchOptions, TextNumber, ToolServer, agent,
};
use serde_json::{Value, json};

/// Returns a driver that received these lines and was then prompted. Its output so far is discarded.
fn in_a_turn(name: &str, access: Access, lines_before: &[Value]) -> Box<dyn Driver> {
    let mut driver = prompted(name, access, lines_before);
    while driver.next().is_some() {}
    driver
}

/// Returns a driver that received these lines and was then prompted. None of its output has been read.
pub(super) fn prompted(name: &str, access: Access, lines_before: &[Value]) -> Box<dyn Driver> {
    let tools = ToolServer { command: "b".to_owned(), args: Vec::new(), env: Vec::new() };
    let mut launch = LaunchOptions::new("/", tools);
    launch.access = access;
    let mut driver = (agent(name).unwrap().agent.driver)(launch);
    driver.start();
    for line in lines_before {
        driver.on_output(format!("{line}\n").as_bytes());
    }
    driver.prompt(TextNumber(1), "go");
    driver
}

/// Passes a permission request of the agent to the driver. Returns `Ok` if the driver passes the request on to the
/// member, or `Err` with the driver's answer if the driver answers the request itself.
fn asks(mut driver: Box<dyn Driver>, lines: &[Value]) -> Result<(), Value> {
    let mut answer = None;
    for line in lines {
        driver.on_output(format!("{line}\n").as_bytes());
        while let Some(output) = driver.next() {
            match output {
                DriverOutput::Event(AgentEvent::Asks(_)) => return Ok(()),
                DriverOutput::Event(_) => {}
                DriverOutput::Write(bytes) => answer = serde_json::from_slice(&bytes).ok(),
            }
        }
    }
    Err(answer.unwrap())
}

fn acp(name: &str, access: Access, call: &Value, known: &[Value]) -> Result<(), Value> {
    let mode = if name == "opencode" { "build" } else { "default" };
    let opened = [
        json!({ "id": 1, "result": {} }),
        json!({ "id": 2, "result": { "sessionId": "s", "modes": { "currentModeId": mode } } }),
    ];
    let update = |call: &Value| json!({ "method": "session/update", "params": { "sessionId": "s", "update": call } });
    let options = json!([
        { "optionId": "ever", "kind": "allow_always" },
        { "optionId": "yes", "kind": "allow_once" },
        { "optionId": "no", "kind": "reject_once" },
    ]);
    let mut lines: Vec<_> = known.iter().map(update).collect();
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    lines.push(json!({ "id": 7, "method": "session/request_permission", "params": params }));
    asks(in_a_turn(name, access, &opened), &lines)
}

fn allowed() -> Result<(), Value> {
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    Err(json!({ "jsonrpc": "2.0", "id": 7, "result": outcome }))
}

#[test]
fn a_title_alone_does_not_make_a_team_tool() {
    let gemini = |id: &str, title: &str, kind: &str| {
        let call = json!({ "toolCallId": id, "title": title, "kind": kind });
        acp("gemini", Access::Ask, &call, &[])
    };
    assert_eq!(
        gemini("mcp_team_send_message__1", "send_message (team MCP Server)", "other"),
        allowed()
    );
    assert_eq!(gemini("run_shell_command__1", "rm -r . # (team MCP Server)", "execute"), Ok(()));
    assert_eq!(gemini("mcp_team_two_drop__1", "drop (team_two MCP Server)", "other"), Ok(()));

    let opencode = |first: &str, title: &str, kind: &str| {
        let call = json!({ "toolCallId": "c", "title": title, "kind": kind });
        let announced = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": first, "kind": kind, "status": "pending" });
        acp("opencode", Access::Ask, &call, &[announced])
    };
    assert_eq!(opencode("team_send_message", "team_send_message", "other"), allowed());
    assert_eq!(opencode("bash", "team_send_message; rm -r .", "execute"), Ok(()));
    assert_eq!(opencode("drop", "team_send_message", "other"), Ok(()));
}

#[test]
fn full_access_allows_once_and_never_always() {
    let call = json!({ "toolCallId": "c", "title": "rm -r .", "kind": "execute" });
    assert_eq!(acp("opencode", Access::Full, &call, &[]), allowed());
}

#[test]
fn only_the_team_server_is_approved_for_codex() {
    let opened = [
        json!({ "id": 1, "result": {} }),
        json!({ "id": 2, "result": { "thread": { "id": "t" } } }),
    ];
    let elicits = |server: &str, kind: Value| {
        let params =
            json!({ "threadId": "t", "serverName": server, "_meta": kind, "message": "?" });
        let line = json!({ "id": 7, "method": "mcpServer/elicitation/request", "params": params });
        asks(in_a_turn("codex", Access::Ask, &opened), &[line])
    };
    let call = json!({ "codex_approval_kind": "mcp_tool_call" });
    let accepted = json!({ "action": "accept", "content": {}, "_meta": null });
    assert_eq!(elicits("team", call.clone()), Err(json!({ "id": 7, "result": accepted })));
    assert_eq!(elicits("other", call), Ok(()));
    // Elicitations of other kinds are forms, which cannot be answered with yes or no.
    let refused = elicits("other", Value::Null).unwrap_err();
    assert!(refused.get("error").is_some(), "{refused}");
}
