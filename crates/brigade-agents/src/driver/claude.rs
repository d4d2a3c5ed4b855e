//! Driver for Claude Code, for members whose Claude Code does not read the team's files itself. Runs `claude -p`
//! with lines of JSON as input and output.
//!
//! Each text that we send has an id, which is derived from the text's content and number. Claude Code stores the
//! id in the session, and echoes each text that it has received. If a resumed session already contains the text,
//! Claude Code echoes the text immediately and starts no turn. So if Claude Code is killed before the echo, we can
//! safely send the text again. This does not work for texts that were added to a running turn. To find those
//! texts, the member reads Claude Code's session record.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use uuid::Uuid;

use super::asks::OpenAsks;
use super::lines::{JsonLines, line};
use super::text::{input_line, one_line, other_fields, text};
use super::{
    Access, AgentAsk, AgentEvent, AskId, Driver, DriverOutput, Invocation, LaunchOptions,
    PermissionAnswer, TOOL_SERVER_NAME, TextNumber, TurnEnd, UsageRestarts,
};
use brigade_core::hash::derived_uuid;

mod args;
mod record;
mod result;

/// The tool with which Claude Code submits its plan for approval.
const EXIT_PLAN: &str = "ExitPlanMode";

/// One session of Claude Code.
#[derive(Debug)]
pub(super) struct Claude {
    launch: LaunchOptions,
    session: String,
    lines: JsonLines,
    out: VecDeque<DriverOutput>,
    last_request: u64,
    pending: BTreeMap<String, ClaudeRequest>,
    asks: OpenAsks<ClaudePermission>,
    /// Texts that were sent but not echoed yet, by id.
    unconfirmed: BTreeMap<String, TextNumber>,
    turn: ClaudeTurn,
    /// The id of the text that started the current turn.
    turn_text: String,
    /// A prompt to send once Claude Code has switched to the mode that the prompt needs.
    waiting_prompt: Option<(TextNumber, String)>,
    mode: String,
    access: Access,
    /// The plan that Claude Code last submitted, needed for the permission request that follows.
    plan: String,
}

#[derive(Debug)]
enum ClaudeRequest {
    Initialize,
    Mode,
    Interrupt,
}

/// A permission request: its id and the tool's input.
#[derive(Debug)]
struct ClaudePermission {
    request: Value,
    input: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaudeTurn {
    Idle,
    /// We sent a prompt, but the turn has not started. An interrupt would have no effect yet, so it is sent later.
    Requested {
        interrupted: bool,
    },
    Running {
        interrupted: bool,
    },
}

impl Claude {
    pub(super) fn new(launch: LaunchOptions) -> Self {
        Self {
            // We choose the session id, because an id chosen by Claude Code is known only after the first turn.
            session: launch.resume.clone().unwrap_or_else(|| Uuid::new_v4().to_string()),
            mode: args::mode(launch.access).to_owned(),
            access: launch.access,
            launch,
            lines: JsonLines::default(),
            out: VecDeque::new(),
            last_request: 0,
            pending: BTreeMap::new(),
            asks: OpenAsks::new(),
            unconfirmed: BTreeMap::new(),
            turn: ClaudeTurn::Idle,
            turn_text: String::new(),
            waiting_prompt: None,
            plan: String::new(),
        }
    }

    fn emit(&mut self, event: AgentEvent) {
        self.out.push_back(DriverOutput::Event(event));
    }

    fn write(&mut self, message: &Value) {
        self.out.push_back(DriverOutput::Write(line(message)));
    }

    fn request(&mut self, request: &Value, purpose: ClaudeRequest) {
        self.last_request += 1;
        let id = format!("brigade-{}", self.last_request);
        self.write(&json!({ "type": "control_request", "request_id": id, "request": request }));
        self.pending.insert(id, purpose);
    }

    fn on_message(&mut self, message: &Value) {
        // Ignore messages of subagents. A subagent's result appears in the main conversation.
        let is_subagent = message.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        match text(message, "/type") {
            "control_response" => self.on_response(message),
            "control_request" => self.on_request(message),
            "control_cancel_request" => {
                let id = message.get("request_id");
                let withdrawn = self.asks.close_where(|permission| Some(&permission.request) == id);
                if let Some((ask, _)) = withdrawn {
                    self.emit(AgentEvent::AsksNoLonger(ask));
                }
            }
            "system" => self.on_system_message(message),
            "command_lifecycle" => self.on_text_status(message),
            "assistant" if !is_subagent => self.on_assistant_message(message),
            "user" if !is_subagent => self.on_user_message(message),
            "result" => self.turn_ended(message),
            _ => {}
        }
    }

    fn on_response(&mut self, message: &Value) {
        // Claude Code also echoes our own responses, which match no pending request.
        let Some(purpose) = self.pending.remove(text(message, "/response/request_id")) else {
            return;
        };
        let ok = text(message, "/response/subtype") == "success";
        match (purpose, ok) {
            (ClaudeRequest::Initialize, true) => {
                if let (Some(folder), Some(session)) =
                    (&self.launch.claude_dir, &self.launch.resume)
                {
                    // `*` is a folder named after the working directory. Claude Code shortens long names.
                    let path = format!("{folder}/projects/*/{session}.jsonl");
                    self.emit(AgentEvent::RemembersIn { path });
                }
                self.emit(AgentEvent::Ready { session: self.session.clone() });
            }
            (ClaudeRequest::Initialize, false) => {
                self.emit(AgentEvent::Broken { why: text(message, "/response/error").to_owned() });
            }
            (ClaudeRequest::Mode, true) => {
                text(message, "/response/response/mode").clone_into(&mut self.mode);
                if let Some((note, text)) = self.waiting_prompt.take() {
                    self.write_prompt(note, &text);
                }
            }
            (ClaudeRequest::Mode, false) => {
                if let Some((note, _)) = self.waiting_prompt.take() {
                    self.emit(AgentEvent::NotTaken(note));
                    let why = text(message, "/response/error").to_owned();
                    self.emit(AgentEvent::TurnEnded(TurnEnd::Failed(why)));
                }
            }
            (ClaudeRequest::Interrupt, _) => {}
        }
    }

    fn on_system_message(&mut self, message: &Value) {
        // Claude Code may change its mode by itself: it leaves plan mode when a plan is approved.
        if let Some(mode) = message.get("permissionMode").and_then(Value::as_str) {
            mode.clone_into(&mut self.mode);
        }
        match text(message, "/subtype") {
            // Each turn starts with this message.
            "init" => self.on_turn_started(),
            // Claude Code retries for minutes, with growing delays.
            "api_retry" => {
                self.emit(result::retry(message));
            }
            _ => {}
        }
    }

    fn on_turn_started(&mut self) {
        match self.turn {
            ClaudeTurn::Idle => self.turn = ClaudeTurn::Running { interrupted: false },
            ClaudeTurn::Requested { interrupted } => {
                self.turn = ClaudeTurn::Running { interrupted: false };
                if interrupted {
                    self.interrupt();
                }
            }
            ClaudeTurn::Running { .. } => return,
        }
        self.emit(AgentEvent::TurnStarted);
    }

    /// Handles a status change of one of our texts.
    fn on_text_status(&mut self, message: &Value) {
        let id = text(message, "/command_uuid");
        let end = match text(message, "/state") {
            // Claude Code started no turn for the text, because the session already contained the text.
            "completed" => TurnEnd::Done,
            state @ ("cancelled" | "discarded" | "refused") => {
                if let Some(note) = self.unconfirmed.remove(id) {
                    self.emit(AgentEvent::NotTaken(note));
                }
                TurnEnd::Failed(format!("the prompt was {state}"))
            }
            _ => return,
        };
        if matches!(self.turn, ClaudeTurn::Requested { .. }) && self.turn_text == id {
            self.turn = ClaudeTurn::Idle;
            self.emit(AgentEvent::TurnEnded(end));
        }
    }

    fn on_assistant_message(&mut self, message: &Value) {
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            match text(part, "/type") {
                "text" => self.emit(AgentEvent::Said(text(part, "/text").to_owned())),
                "tool_use" => {
                    let tool = text(part, "/name").to_owned();
                    if tool == EXIT_PLAN {
                        text(part, "/input/plan").clone_into(&mut self.plan);
                    }
                    let about = about(part.get("input").unwrap_or(&Value::Null));
                    self.emit(AgentEvent::ToolStarted {
                        id: text(part, "/id").to_owned(),
                        tool,
                        about,
                    });
                }
                _ => {}
            }
        }
    }

    /// Handles a user message: the echo of one of our texts, or tool results.
    fn on_user_message(&mut self, message: &Value) {
        if let Some(note) = self.unconfirmed.remove(text(message, "/uuid")) {
            self.emit(AgentEvent::Taken(note));
        }
        let mut change = result::change(message);
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten().filter(|part| text(part, "/type") == "tool_result")
        {
            let ok = part.get("is_error") != Some(&Value::Bool(true));
            if let Some(change) = change.take().filter(|_| ok) {
                self.emit(AgentEvent::Changed(change));
            }
            let reasons = [text(part, "/content"), text(part, "/content/0/text")];
            let why = reasons.into_iter().find(|reason| !reason.is_empty() && !ok);
            let why = why.map(one_line).unwrap_or_default();
            self.emit(AgentEvent::ToolEnded { id: text(part, "/tool_use_id").to_owned(), ok, why });
        }
    }

    fn turn_ended(&mut self, message: &Value) {
        let interrupted = matches!(self.turn, ClaudeTurn::Running { interrupted: true });
        self.turn = ClaudeTurn::Idle;
        for ask in self.asks.close_all().into_keys() {
            self.emit(AgentEvent::AsksNoLonger(ask));
        }
        self.emit(AgentEvent::Used(result::usage(message)));
        self.emit(AgentEvent::TurnEnded(result::end(message, interrupted)));
    }

    fn on_request(&mut self, message: &Value) {
        let request = message.get("request_id").cloned().unwrap_or_default();
        if text(message, "/request/subtype") != "can_use_tool" {
            let why = "not supported by this client";
            let error = json!({ "subtype": "error", "request_id": request, "error": why });
            self.write(&json!({ "type": "control_response", "response": error }));
            return;
        }
        let tool = text(message, "/request/tool_name").to_owned();
        let input = message.pointer("/request/input").cloned().unwrap_or_default();
        let permission = ClaudePermission { request, input: input.clone() };
        let is_team_tool = tool.starts_with(&format!("mcp__{TOOL_SERVER_NAME}__"));
        if is_team_tool || self.access == Access::Full {
            self.allow(&permission);
            return;
        }
        let raw_request = message.get("request").unwrap_or(&Value::Null);
        let description = match text(raw_request, "/description") {
            "" => about(&input),
            description => one_line(description),
        };
        let request = other_request_fields(raw_request, &tool, &description);
        let plan = (tool == EXIT_PLAN).then(|| match text(&input, "/plan") {
            "" => self.plan.clone(),
            plan => plan.to_owned(),
        });
        let ask = AgentAsk {
            id: self.asks.open(permission),
            tool_use_id: text(message, "/request/tool_use_id").to_owned(),
            description,
            tool,
            input,
            request,
            plan,
        };
        self.emit(AgentEvent::Asks(ask));
    }

    fn allow(&mut self, permission: &ClaudePermission) {
        self.respond(permission, &json!({ "behavior": "allow", "updatedInput": permission.input }));
    }

    fn respond(&mut self, permission: &ClaudePermission, response: &Value) {
        let success = json!({
            "subtype": "success",
            "request_id": permission.request,
            "response": response,
        });
        self.write(&json!({ "type": "control_response", "response": success }));
    }

    fn write_prompt(&mut self, note: TextNumber, content: &str) {
        self.turn = ClaudeTurn::Requested { interrupted: false };
        self.turn_text = self.send_text(note, content);
    }

    fn send_text(&mut self, note: TextNumber, content: &str) -> String {
        let id = text_id(note, content);
        self.unconfirmed.insert(id.clone(), note);
        self.write(&json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": id,
        }));
        id
    }
}

impl Driver for Claude {
    fn usage_restarts(&self) -> UsageRestarts {
        UsageRestarts { tokens: true, cost: true }
    }

    fn invocation(&self) -> Invocation {
        Invocation { args: args::args(&self.launch, &self.session), env: Vec::new() }
    }

    fn start(&mut self) {
        self.request(&json!({ "subtype": "initialize" }), ClaudeRequest::Initialize);
    }

    fn on_output(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        while let Some(message) = self.lines.next() {
            self.on_message(&message);
        }
    }

    fn prompt(&mut self, note: TextNumber, text: &str) {
        if self.waiting_prompt.is_some() {
            self.emit(AgentEvent::NotTaken(note));
            return;
        }
        if self.turn != ClaudeTurn::Idle {
            // An earlier text came too late for its turn and started another turn. The new text joins that turn.
            self.send_text(note, text);
            return;
        }
        let mode = args::mode(self.access);
        if self.mode == mode {
            self.write_prompt(note, text);
        } else {
            self.waiting_prompt = Some((note, text.to_owned()));
            self.request(
                &json!({ "subtype": "set_permission_mode", "mode": mode }),
                ClaudeRequest::Mode,
            );
        }
    }

    /// Adds the text to the running turn. If the text comes too late, Claude Code starts another turn with it.
    fn steer(&mut self, note: TextNumber, text: &str) {
        if self.turn == ClaudeTurn::Idle {
            self.emit(AgentEvent::NotTaken(note));
        } else {
            self.send_text(note, text);
        }
    }

    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer) {
        let Some(permission) = self.asks.close(ask) else { return };
        match verdict {
            PermissionAnswer::Allow => self.allow(&permission),
            PermissionAnswer::AllowEdited(input) => {
                self.respond(&permission, &json!({ "behavior": "allow", "updatedInput": input }));
            }
            PermissionAnswer::Deny(why) => {
                self.respond(&permission, &json!({ "behavior": "deny", "message": why }));
            }
        }
    }

    fn passes_on_reasons(&self) -> bool {
        true
    }

    fn accepts_edited_input(&self) -> bool {
        true
    }

    fn interrupt(&mut self) {
        if let Some((note, _)) = self.waiting_prompt.take() {
            self.emit(AgentEvent::NotTaken(note));
            self.emit(AgentEvent::TurnEnded(TurnEnd::Interrupted));
            return;
        }
        match &mut self.turn {
            ClaudeTurn::Idle => {}
            ClaudeTurn::Requested { interrupted } => *interrupted = true,
            ClaudeTurn::Running { interrupted } => {
                *interrupted = true;
                self.request(&json!({ "subtype": "interrupt" }), ClaudeRequest::Interrupt);
            }
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn recalled<'a>(&self, record: &'a str) -> Cow<'a, str> {
        record::conversation(record).into()
    }

    fn next(&mut self) -> Option<DriverOutput> {
        self.out.pop_front()
    }
}

/// Returns the fields of a permission request that are shown with the tool's input, such as the path that caused the
/// request. Leaves out what is shown already, and Claude Code's suggestions for permanent permissions: brigade never
/// accepts them.
fn other_request_fields(request: &Value, tool: &str, description: &str) -> Value {
    let mut without =
        vec!["subtype", "tool_name", "tool_use_id", "input", "permission_suggestions"];
    if text(request, "/description") == description {
        without.push("description");
    }
    if text(request, "/display_name") == tool {
        without.push("display_name");
    }
    other_fields(request, &without)
}

/// Describes a tool use in one line: returns the most informative field of the tool's input.
fn about(input: &Value) -> String {
    let fields = ["/command", "/file_path", "/path", "/pattern", "/url", "/query", "/description"];
    match fields.iter().map(|field| text(input, field)).find(|value| !value.is_empty()) {
        Some(value) => one_line(value),
        None => input_line(input),
    }
}

/// Returns a UUID as the text's id. The same text and number always give the same id.
fn text_id(note: TextNumber, content: &str) -> String {
    derived_uuid(&[&note.0.to_le_bytes(), content.as_bytes()]).to_string()
}
