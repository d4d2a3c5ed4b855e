//! Driver for agents that speak version 1 of the Agent Client Protocol (ACP). The differences between these agents
//! are data in [`Quirks`], not code.
//!
//! ACP has no acknowledgement for a prompt, so the first output after a prompt counts as its acknowledgement.

use serde_json::{Value, json};

use super::asks::OpenAsks;
use super::limit;
use super::rpc::{RpcError, RpcMessage, RpcPeer};
use super::text::text;
use super::{
    Access, AgentEvent, AskId, Driver, DriverOutput, Invocation, LaunchOptions, PermissionAnswer,
    TextNumber, TurnEnd, Usage, UsageRestarts,
};

mod calls;
mod interrupted;
mod opening;
mod permission;
mod quirks;
mod usage;

use calls::ToolCalls;
use interrupted::InterruptedTurns;
use permission::AcpPermission;
pub(super) use quirks::{COPILOT, GEMINI, GENERIC, OPENCODE, QWEN};
use quirks::{Quirks, ReplayEnd, Servers};

/// One session of an agent.
#[derive(Debug)]
pub(super) struct Acp {
    quirks: &'static Quirks,
    launch: LaunchOptions,
    peer: RpcPeer<AcpRequest>,
    asks: OpenAsks<AcpPermission>,
    calls: ToolCalls,
    session: Option<String>,
    /// Whether [`AgentEvent::Ready`] was emitted.
    ready: bool,
    /// How many settings the agent must still confirm before [`AgentEvent::Ready`] is emitted.
    outstanding: usize,
    /// Whether the agent is replaying a loaded session. [`AgentEvent::Ready`] is emitted only after the replay.
    replaying: bool,
    /// Whether the session already contains the instructions from `launch`.
    introduced: bool,
    turn: Option<AcpTurn>,
    /// A prompt to send once the agent has switched to the mode that the prompt needs.
    waiting_prompt: Option<(TextNumber, String)>,
    /// Only for agents that forget interrupted turns.
    interrupted: InterruptedTurns,
    mode: Option<String>,
    access: Access,
    used: Usage,
}

#[derive(Debug)]
struct AcpTurn {
    note: TextNumber,
    /// The text of the prompt, after the forgotten texts that the prompt repeats.
    texts: Vec<String>,
    /// Whether the prompt contains the instructions.
    introduces: bool,
    received: bool,
    interrupted: bool,
    /// Whether a tool call was open when the turn was interrupted.
    in_call: bool,
}

#[derive(Debug)]
enum AcpRequest {
    Initialize,
    Session,
    /// Changes a setting. The agent must confirm the change before [`AgentEvent::Ready`] is emitted.
    Setting,
    Mode(String),
    Prompt,
}

impl Acp {
    pub(super) fn new(quirks: &'static Quirks, launch: LaunchOptions) -> Self {
        Self {
            quirks,
            access: launch.access,
            launch,
            peer: RpcPeer::new(json!({ "jsonrpc": "2.0" })),
            asks: OpenAsks::new(),
            calls: ToolCalls::default(),
            session: None,
            ready: false,
            outstanding: 0,
            replaying: false,
            introduced: false,
            turn: None,
            waiting_prompt: None,
            interrupted: InterruptedTurns::default(),
            mode: None,
            used: Usage::default(),
        }
    }

    fn on_response(&mut self, purpose: AcpRequest, result: Result<Value, RpcError>) {
        match (purpose, result) {
            (AcpRequest::Initialize, Ok(result)) => self.open_session(&result),
            (AcpRequest::Session, Ok(result)) => self.session_opened(&result),
            (AcpRequest::Setting, Ok(_)) => self.setting_done(),
            (AcpRequest::Mode(mode), Ok(_)) => {
                self.mode = Some(mode);
                match self.waiting_prompt.take() {
                    Some((note, text)) => self.write_prompt(note, &text),
                    None => self.setting_done(),
                }
            }
            (AcpRequest::Prompt, result) => self.turn_ended(&result),
            (AcpRequest::Mode(mode), Err(error)) if self.waiting_prompt.is_some() => {
                self.waiting_prompt = None;
                let text = format!("cannot switch to mode {mode}: {}", error.text);
                self.turn_ended(&Err(RpcError { text, ..error }));
            }
            // The prompt that needed the mode was interrupted meanwhile, so the error does not matter.
            (AcpRequest::Mode(_), Err(_)) if self.ready => {}
            (_, Err(error)) => self.peer.emit(AgentEvent::Broken { why: error.text }),
        }
    }

    fn open_session(&mut self, result: &Value) {
        let servers = match self.quirks.servers {
            Servers::ByProtocol => json!([opening::server(&self.launch.tools)]),
            Servers::ByFlag { .. } => json!([]),
        };
        let mut params = json!({ "cwd": self.launch.cwd, "mcpServers": servers });
        let Some(session) = self.launch.resume.clone() else {
            self.peer.request("session/new", &params, AcpRequest::Session);
            return;
        };
        if result.pointer("/agentCapabilities/loadSession") != Some(&Value::Bool(true)) {
            self.peer
                .emit(AgentEvent::Broken { why: "the agent cannot load a session".to_owned() });
            return;
        }
        if let Value::Object(fields) = &mut params {
            fields.insert("sessionId".to_owned(), json!(session));
        }
        self.replaying = true;
        self.session = Some(session);
        self.peer.request("session/load", &params, AcpRequest::Session);
    }

    fn session_opened(&mut self, result: &Value) {
        // The response to `session/load` may omit the session id.
        if let Some(session) = result.get("sessionId").and_then(Value::as_str) {
            self.session = Some(session.to_owned());
        }
        if self.quirks.replay_end == ReplayEnd::BeforeAnswer {
            self.replaying = false;
        }
        self.mode = opening::mode(result).map(str::to_owned);
        if let Some(model) = self.launch.model.clone() {
            self.outstanding += 1;
            let (method, params) = opening::model(self.session.as_deref(), result, &model);
            self.peer.request(method, &params, AcpRequest::Setting);
        }
        if let Some(mode) = self.missing_mode() {
            self.outstanding += 1;
            self.set_mode(mode);
        }
        self.emit_ready_if_done();
    }

    /// Returns the mode for the current access level, or `None` if the agent is already in that mode.
    fn missing_mode(&self) -> Option<&'static str> {
        let modes = &self.quirks.modes;
        let mode = match self.access {
            Access::ReadOnly => modes.read_only,
            Access::Ask => modes.ask,
            Access::Full => modes.full.or(modes.ask),
        }?;
        (self.mode.as_deref() != Some(mode)).then_some(mode)
    }

    fn set_mode(&mut self, mode: &str) {
        let params = json!({ "sessionId": self.session, "modeId": mode });
        self.peer.request("session/set_mode", &params, AcpRequest::Mode(mode.to_owned()));
    }

    fn setting_done(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.emit_ready_if_done();
    }

    fn emit_ready_if_done(&mut self) {
        if self.ready || self.replaying || self.outstanding > 0 {
            return;
        }
        if let Some(session) = self.session.clone() {
            self.ready = true;
            self.peer.emit(AgentEvent::Ready { session });
        }
    }

    fn on_notification(&mut self, method: &str, params: &Value) {
        if method != "session/update" || self.session.as_deref() != Some(text(params, "/sessionId"))
        {
            return;
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        let kind = text(update, "/sessionUpdate");
        if let Some(cost) = usage::cost(update) {
            self.used.cost = Some(cost);
        }
        if self.replaying {
            match kind {
                "user_message_chunk" => self.on_replayed_text(text(update, "/content/text")),
                "available_commands_update"
                    if self.quirks.replay_end == ReplayEnd::UntilCommands =>
                {
                    self.replaying = false;
                    self.emit_ready_if_done();
                }
                _ => {}
            }
            return;
        }
        if self.turn.is_none() {
            return;
        }
        match kind {
            "user_message_chunk" | "agent_thought_chunk" | "plan" => self.mark_received(),
            "agent_message_chunk" => {
                self.mark_received();
                let chunk = text(update, "/content/text");
                if !chunk.is_empty() {
                    self.peer.emit(AgentEvent::Said(chunk.to_owned()));
                }
            }
            "tool_call" | "tool_call_update" => {
                self.mark_received();
                for event in self.calls.on_update(update) {
                    self.peer.emit(event);
                }
            }
            _ => {}
        }
    }

    fn on_replayed_text(&mut self, chunk: &str) {
        let chunk = match chunk.strip_prefix(self.launch.instructions.as_str()) {
            // Some agents insert text of their own between the instructions and the text of the first prompt.
            Some(rest) if !self.launch.instructions.is_empty() => {
                self.introduced = true;
                rest.trim_start()
            }
            _ => chunk,
        };
        if !chunk.is_empty() {
            self.peer.emit(AgentEvent::Remembers { text: chunk.to_owned() });
        }
    }

    fn mark_received(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.received) {
            turn.received = true;
            self.introduced = true;
            self.peer.emit(AgentEvent::Taken(turn.note));
        }
    }

    fn turn_ended(&mut self, result: &Result<Value, RpcError>) {
        let end = match result {
            Ok(result) => match text(result, "/stopReason") {
                "end_turn" if self.quirks.hides_failure && result.get("usage").is_none() => {
                    TurnEnd::Failed("the model gave no answer".to_owned())
                }
                "end_turn" => TurnEnd::Done,
                "cancelled" => TurnEnd::Interrupted,
                other => TurnEnd::Failed(format!("the agent stopped: {other}")),
            },
            // Some agents answer an interrupted prompt with an error.
            Err(_) if self.turn.as_ref().is_some_and(|turn| turn.interrupted) => {
                TurnEnd::Interrupted
            }
            Err(error) if limit::is_limit_status(error.code.unsigned_abs()) => {
                TurnEnd::Limited(error.text.clone())
            }
            Err(error) => limit::failed(error.text.clone()),
        };
        // An agent that has not answered yet reports nothing of a prompt that it received. If such a prompt counted as not
        // received, it would start the next turn.
        if matches!(end, TurnEnd::Done | TurnEnd::Interrupted) {
            self.mark_received();
        }
        self.cancel_asks();
        for event in self.calls.end() {
            self.peer.emit(event);
        }
        match self.turn.take() {
            Some(turn) if !turn.received => {
                self.peer.emit(AgentEvent::NotTaken(turn.note));
                self.interrupted.forgotten = turn.texts;
                self.interrupted.forgotten.pop();
            }
            Some(turn) if end == TurnEnd::Interrupted && self.quirks.forgets_interrupted => {
                self.interrupted.is_last = true;
                // The agent removes the whole turn from its session, unless the turn was interrupted in a tool call.
                if !turn.in_call {
                    self.introduced &= !turn.introduces;
                    self.interrupted.forgotten = turn.texts;
                }
            }
            _ => {}
        }
        if let Ok(result) = result
            && let Some(used) = self.quirks.usage.after(self.used, result)
        {
            self.used = used;
            self.peer.emit(AgentEvent::Used(used));
        }
        self.peer.emit(AgentEvent::TurnEnded(end));
    }

    /// Cancels all open permission requests.
    fn cancel_asks(&mut self) {
        for (ask, permission) in self.asks.close_all() {
            self.peer.reply(&permission.request, &permission::cancelled());
            self.peer.emit(AgentEvent::AsksNoLonger(ask));
        }
    }

    fn on_request(&mut self, id: Value, method: &str, params: &Value) {
        if method != "session/request_permission" {
            // Do not change this text: the recorded transcripts in `fixtures/agents` contain it.
            self.peer.refuse(&id, "not to be had here");
            return;
        }
        self.mark_received();
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        if let Some(event) = self.calls.on_permission_request(call) {
            self.peer.emit(event);
        }
        let permission = AcpPermission::new(id, params);
        let is_team_tool =
            (self.quirks.is_team_tool)(call, self.calls.name(text(call, "/toolCallId")));
        if is_team_tool || self.access == Access::Full {
            self.peer.reply(&permission.request, &permission.allow());
            return;
        }
        let id = self.asks.open(permission);
        let ask = permission::ask(id, call, &self.calls, self.quirks);
        self.peer.emit(AgentEvent::Asks(ask));
    }

    fn write_prompt(&mut self, note: TextNumber, text: &str) {
        let mut prompt = vec![json!({ "type": "text", "text": text })];
        let interrupted = std::mem::take(&mut self.interrupted);
        if let Some(note) = interrupted.note() {
            prompt.insert(0, json!({ "type": "text", "text": note }));
        }
        let introduces = !self.introduced && !self.launch.instructions.is_empty();
        if introduces {
            // ACP has no field for instructions.
            let text = format!("{}\n\n", self.launch.instructions);
            prompt.insert(0, json!({ "type": "text", "text": text }));
        }
        let mut texts = interrupted.forgotten;
        texts.push(text.to_owned());
        self.turn = Some(AcpTurn {
            note,
            texts,
            introduces,
            received: false,
            interrupted: false,
            in_call: false,
        });
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.peer.request("session/prompt", &params, AcpRequest::Prompt);
        self.peer.emit(AgentEvent::TurnStarted);
    }
}

impl Driver for Acp {
    fn usage_restarts(&self) -> UsageRestarts {
        UsageRestarts { tokens: self.quirks.usage.counts_prompts(), cost: false }
    }

    fn invocation(&self) -> Invocation {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut args = self.launch.arguments.clone();
        args.extend(self.quirks.args.iter().map(|arg| (*arg).to_owned()));
        if let (Some(resume), Some(session)) = (self.quirks.resume, &self.launch.resume) {
            args.extend([resume.flag.to_owned(), session.clone()]);
        }
        if let Servers::ByFlag { flag, config } = self.quirks.servers {
            args.push(flag.to_owned());
            args.push(config(&self.launch.tools).to_string());
        }
        Invocation { args, env: self.quirks.env.iter().map(own).collect() }
    }

    fn start(&mut self) {
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": { "name": "brigade", "title": "Brigade", "version": env!("CARGO_PKG_VERSION") },
        });
        self.peer.request("initialize", &hello, AcpRequest::Initialize);
    }

    fn on_output(&mut self, bytes: &[u8]) {
        self.peer.push(bytes);
        while let Some(message) = self.peer.next_message() {
            match message {
                RpcMessage::Answer { purpose, result } => self.on_response(purpose, result),
                RpcMessage::Request { id, method, params } => self.on_request(id, &method, &params),
                RpcMessage::Notification { method, params } => {
                    self.on_notification(&method, &params);
                }
            }
        }
    }

    fn on_exit(&mut self, code: i32) {
        let resume = self.quirks.resume.filter(|_| self.launch.resume.is_some());
        if !self.ready && resume.is_some_and(|resume| resume.unknown_session_code == code) {
            self.peer.emit(AgentEvent::Broken {
                why: "the agent does not know this session".to_owned(),
            });
        }
    }

    fn prompt(&mut self, note: TextNumber, text: &str) {
        if !self.ready || self.turn.is_some() || self.waiting_prompt.is_some() {
            self.peer.emit(AgentEvent::NotTaken(note));
            return;
        }
        match self.missing_mode() {
            // Agents handle several requests concurrently, so wait for the new mode before sending the prompt.
            Some(mode) => {
                self.waiting_prompt = Some((note, text.to_owned()));
                self.set_mode(mode);
            }
            None => self.write_prompt(note, text),
        }
    }

    /// Rejects the text, because ACP cannot add text to a running turn. If the text were sent as a second prompt,
    /// some agents would end the running turn, and others would queue the prompt.
    fn steer(&mut self, note: TextNumber, _text: &str) {
        self.peer.emit(AgentEvent::NotTaken(note));
    }

    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer) {
        let Some(permission) = self.asks.close(ask) else { return };
        let result = match verdict {
            PermissionAnswer::Allow => permission.allow(),
            PermissionAnswer::AllowEdited(_) | PermissionAnswer::Deny(_) => permission.deny(),
        };
        self.peer.reply(&permission.request, &result);
    }

    fn interrupt(&mut self) {
        if let Some((note, _)) = self.waiting_prompt.take() {
            self.peer.emit(AgentEvent::NotTaken(note));
            self.peer.emit(AgentEvent::TurnEnded(TurnEnd::Interrupted));
        } else if let Some(turn) = &mut self.turn {
            turn.interrupted = true;
            turn.in_call = self.calls.has_open();
            self.peer.notify("session/cancel", &json!({ "sessionId": self.session }));
            self.cancel_asks();
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<DriverOutput> {
        self.peer.next()
    }
}
