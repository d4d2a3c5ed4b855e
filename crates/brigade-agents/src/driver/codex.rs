//! Driver for Codex. Talks to `codex app-server` in lines of JSON-RPC without the `jsonrpc` field.
//!
//! Codex calls a session a thread. Each text that we send carries its number as the client id. A text counts as
//! received when it appears in the thread with that id. If Codex is killed within milliseconds after that, the
//! text may still be lost, so after a resume the content of the thread decides which texts Codex received.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::asks::OpenAsks;
use super::rpc::{RpcError, RpcMessage, RpcPeer};
use super::text::{count, text};
use super::{
    Access, AgentAsk, AgentEvent, AskId, Driver, DriverOutput, Invocation, LaunchOptions,
    PermissionAnswer, TOOL_SERVER_NAME, TextNumber, TurnEnd, Usage,
};

mod approval;
mod fault;
mod item;

use approval::CodexApproval;
use item::Items;

/// One thread of Codex.
#[derive(Debug)]
pub(super) struct Codex {
    launch: LaunchOptions,
    peer: RpcPeer<CodexRequest>,
    asks: OpenAsks<CodexApproval>,
    thread: Option<String>,
    turn: CodexTurn,
    /// The access level in the settings that we last sent to Codex.
    thread_access: Access,
    /// The access level for the next turn.
    access: Access,
    /// Texts that were sent and have not appeared in the thread yet.
    unconfirmed: BTreeSet<TextNumber>,
    items: Items,
}

#[derive(Debug)]
enum CodexRequest {
    Initialize,
    Thread,
    Turn(TextNumber),
    Steer(TextNumber),
    Interrupt,
    EndCommands,
}

#[derive(Debug)]
enum CodexTurn {
    Idle,
    /// We requested a turn, but Codex has not reported the turn's start. Until it does, Codex accepts neither an
    /// interrupt nor further text for the turn.
    Requested {
        interrupted: bool,
    },
    Running(String),
}

impl Codex {
    pub(super) fn new(launch: LaunchOptions) -> Self {
        Self {
            thread_access: launch.access,
            access: launch.access,
            launch,
            peer: RpcPeer::new(json!({})),
            asks: OpenAsks::new(),
            thread: None,
            turn: CodexTurn::Idle,
            unconfirmed: BTreeSet::new(),
            items: Items::default(),
        }
    }

    /// Starts or resumes a thread. A resumed thread needs all settings again, because Codex does not save them
    /// with the thread.
    fn open_thread(&mut self) {
        let tools = &self.launch.tools;
        let mut params = json!({
            "cwd": self.launch.cwd,
            "approvalPolicy": approval_policy(self.access),
            // Codex must send approval requests to us, not to a reviewing model.
            "approvalsReviewer": "user",
            "sandbox": sandbox_mode(self.access),
            "developerInstructions": self.launch.instructions,
            "config": {
                "mcp_servers": { TOOL_SERVER_NAME: {
                    "command": tools.command,
                    "args": tools.args,
                    "env": tools.env_object(),
                    "default_tools_approval_mode": "approve",
                    // Newer models see only a few tools and search for the others. The team's tools must
                    // always be visible.
                    "omit_tools_from": ["code_mode", "deferred"],
                } },
            },
        });
        if let Some(model) = &self.launch.model {
            set(&mut params, "model", json!(model));
        }
        let method = match &self.launch.resume {
            Some(thread) => {
                set(&mut params, "threadId", json!(thread));
                "thread/resume"
            }
            None => "thread/start",
        };
        self.peer.request(method, &params, CodexRequest::Thread);
    }

    fn on_response(&mut self, purpose: CodexRequest, result: Result<Value, RpcError>) {
        match (purpose, result) {
            (CodexRequest::Initialize, Ok(_)) => {
                self.peer.notify("initialized", &json!({}));
                self.open_thread();
            }
            (CodexRequest::Thread, Ok(result)) => self.thread_opened(&result),
            (CodexRequest::Initialize | CodexRequest::Thread, Err(error)) => {
                self.peer.emit(AgentEvent::Broken { why: error.text });
            }
            (CodexRequest::Turn(note), Err(error)) => {
                self.reject(note);
                self.turn = CodexTurn::Idle;
                self.peer.emit(AgentEvent::TurnEnded(TurnEnd::Failed(error.text)));
            }
            (CodexRequest::Steer(note), Err(_)) => self.reject(note),
            // Nothing to do: Codex reports the start of a turn, the arrival of a text and the end of an
            // interrupted turn in notifications. An interrupt fails only if the turn has already ended.
            (
                CodexRequest::Turn(_)
                | CodexRequest::Steer(_)
                | CodexRequest::Interrupt
                | CodexRequest::EndCommands,
                _,
            ) => {}
        }
    }

    fn thread_opened(&mut self, result: &Value) {
        let thread = text(result, "/thread/id").to_owned();
        let turns = result.pointer("/thread/turns").and_then(Value::as_array);
        let items = turns.into_iter().flatten().filter_map(|turn| turn.get("items")?.as_array());
        for item in items.flatten().filter(|item| text(item, "/type") == "userMessage") {
            self.peer.emit(AgentEvent::Remembers { text: item::user_text(item) });
        }
        // Codex first writes a user text to its session file. Later, it writes the turn that contains the text. If
        // Codex was killed in between, its model sees the text, but Codex does not report the text to us.
        let path = text(result, "/thread/path");
        if self.launch.resume.is_some() && !path.is_empty() {
            self.peer.emit(AgentEvent::RemembersIn { path: path.to_owned() });
        }
        self.thread = Some(thread.clone());
        self.peer.emit(AgentEvent::Ready { session: thread });
    }

    fn turn_started(&mut self, id: &str) {
        let previous = std::mem::replace(&mut self.turn, CodexTurn::Running(id.to_owned()));
        self.peer.emit(AgentEvent::TurnStarted);
        if matches!(previous, CodexTurn::Requested { interrupted: true }) {
            self.interrupt();
        }
    }

    fn on_notification(&mut self, method: &str, params: &Value) {
        // Codex also sends notifications about other threads, which it uses for titles and reviews.
        if self.thread.as_deref() != Some(text(params, "/threadId")) {
            return;
        }
        match method {
            "turn/started" => self.turn_started(text(params, "/turn/id")),
            "turn/completed" => self.turn_completed(params),
            "thread/tokenUsage/updated" => {
                self.peer.emit(AgentEvent::Used(usage(params)));
            }
            "serverRequest/resolved" => {
                let id = params.get("requestId");
                if let Some((ask, _)) =
                    self.asks.close_where(|approval| Some(approval.request()) == id)
                {
                    self.peer.emit(AgentEvent::AsksNoLonger(ask));
                }
            }
            "item/started" | "item/completed" => {
                let item = params.get("item").unwrap_or(&Value::Null);
                if let Some(note) = item::note(item).filter(|note| self.unconfirmed.remove(note)) {
                    self.peer.emit(AgentEvent::Taken(note));
                }
                for event in self.items.on_item(item, method == "item/completed") {
                    self.peer.emit(event);
                }
            }
            "error" if params.get("willRetry") == Some(&Value::Bool(true)) => {
                let error = params.get("error").unwrap_or(&Value::Null);
                let why = fault::error_text(error);
                self.peer.emit(match fault::is_limit(error) {
                    true => AgentEvent::Limited { why },
                    false => AgentEvent::Retries { why },
                });
            }
            "item/agentMessage/delta" => {
                let delta = text(params, "/delta").to_owned();
                self.items.mark_streamed(text(params, "/itemId"));
                self.peer.emit(AgentEvent::Said(delta));
            }
            _ => {}
        }
    }

    fn turn_completed(&mut self, params: &Value) {
        for note in std::mem::take(&mut self.unconfirmed) {
            self.peer.emit(AgentEvent::NotTaken(note));
        }
        for ask in self.asks.close_all().into_keys() {
            self.peer.emit(AgentEvent::AsksNoLonger(ask));
        }
        self.items = Items::default();
        self.turn = CodexTurn::Idle;
        if text(params, "/turn/status") == "interrupted" {
            // Codex leaves the commands of an interrupted turn running.
            let params = json!({ "threadId": self.thread });
            let method = "thread/backgroundTerminals/clean";
            self.peer.request(method, &params, CodexRequest::EndCommands);
        }
        self.peer.emit(AgentEvent::TurnEnded(match text(params, "/turn/status") {
            "completed" => TurnEnd::Done,
            "interrupted" => TurnEnd::Interrupted,
            _ => fault::end(params.pointer("/turn/error").unwrap_or(&Value::Null)),
        }));
    }

    /// Handles a request from Codex. The request may come from another thread that works for our thread and also
    /// waits for an answer.
    fn on_request(&mut self, id: &Value, method: &str, params: &Value) {
        let Some(approval) = CodexApproval::new(id.clone(), method, params) else {
            self.peer.refuse(id, "not supported by this client");
            return;
        };
        if approval.is_for_team(params) {
            self.peer.reply(id, &approval.allow());
            return;
        }
        let details = approval::details(method, params, &self.items);
        let ask = self.asks.open(approval);
        self.peer.emit(AgentEvent::Asks(AgentAsk {
            id: ask,
            tool: details.tool,
            tool_use_id: details.tool_use_id,
            description: details.description,
            input: details.input,
            request: details.request,
            plan: None,
        }));
    }

    fn reject(&mut self, note: TextNumber) {
        if self.unconfirmed.remove(&note) {
            self.peer.emit(AgentEvent::NotTaken(note));
        }
    }
}

impl Driver for Codex {
    fn invocation(&self) -> Invocation {
        let mut args = self.launch.arguments.clone();
        args.push("app-server".to_owned());
        Invocation { args, env: Vec::new() }
    }

    fn start(&mut self) {
        let hello = json!({
            "clientInfo": { "name": "brigade", "title": "Brigade", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "experimentalApi": true },
        });
        self.peer.request("initialize", &hello, CodexRequest::Initialize);
    }

    fn on_output(&mut self, bytes: &[u8]) {
        self.peer.push(bytes);
        while let Some(message) = self.peer.next_message() {
            match message {
                RpcMessage::Answer { purpose, result } => self.on_response(purpose, result),
                RpcMessage::Request { id, method, params } => {
                    self.on_request(&id, &method, &params);
                }
                RpcMessage::Notification { method, params } => {
                    self.on_notification(&method, &params);
                }
            }
        }
    }

    fn prompt(&mut self, note: TextNumber, text: &str) {
        let (Some(thread), CodexTurn::Idle) = (&self.thread, &self.turn) else {
            self.peer.emit(AgentEvent::NotTaken(note));
            return;
        };
        let mut params = json!({
            "threadId": thread,
            "clientUserMessageId": item::client_id(note),
            "input": input(text),
        });
        // A thread keeps the settings of its last turn. To keep the user's own sandbox configuration, we send
        // settings only when the access level changes. But read-only access is sent with every turn.
        if self.access != self.thread_access || self.access == Access::ReadOnly {
            set(&mut params, "approvalPolicy", json!(approval_policy(self.access)));
            set(&mut params, "sandboxPolicy", sandbox_policy(self.access));
            self.thread_access = self.access;
        }
        self.turn = CodexTurn::Requested { interrupted: false };
        self.unconfirmed.insert(note);
        self.peer.request("turn/start", &params, CodexRequest::Turn(note));
    }

    fn steer(&mut self, note: TextNumber, text: &str) {
        let (Some(thread), CodexTurn::Running(turn)) = (&self.thread, &self.turn) else {
            self.peer.emit(AgentEvent::NotTaken(note));
            return;
        };
        let params = json!({
            "threadId": thread,
            "expectedTurnId": turn,
            "clientUserMessageId": item::client_id(note),
            "input": input(text),
        });
        self.unconfirmed.insert(note);
        self.peer.request("turn/steer", &params, CodexRequest::Steer(note));
    }

    fn answer(&mut self, ask: AskId, verdict: &PermissionAnswer) {
        let Some(approval) = self.asks.close(ask) else { return };
        let result = match verdict {
            PermissionAnswer::Allow => approval.allow(),
            PermissionAnswer::AllowEdited(_) | PermissionAnswer::Deny(_) => approval.deny(),
        };
        self.peer.reply(approval.request(), &result);
    }

    fn interrupt(&mut self) {
        match &mut self.turn {
            CodexTurn::Idle => {}
            CodexTurn::Requested { interrupted } => *interrupted = true,
            CodexTurn::Running(turn) => {
                let params = json!({ "threadId": self.thread, "turnId": turn });
                self.peer.request("turn/interrupt", &params, CodexRequest::Interrupt);
            }
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<DriverOutput> {
        self.peer.next()
    }
}

fn set(params: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = params {
        fields.insert(field.to_owned(), value);
    }
}

fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text, "text_elements": [] }])
}

/// Returns Codex's approval policy. With read-only access Codex never asks, because an approval would lift
/// the sandbox.
fn approval_policy(access: Access) -> &'static str {
    match access {
        Access::Ask => "on-request",
        Access::ReadOnly | Access::Full => "never",
    }
}

fn sandbox_mode(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "read-only",
        Access::Ask => "workspace-write",
        Access::Full => "danger-full-access",
    }
}

fn sandbox_policy(access: Access) -> Value {
    match access {
        Access::ReadOnly => json!({ "type": "readOnly", "networkAccess": false }),
        Access::Ask => json!({
            "type": "workspaceWrite",
            "writableRoots": [],
            "networkAccess": false,
            "excludeTmpdirEnvVar": false,
            "excludeSlashTmp": false,
        }),
        Access::Full => json!({ "type": "dangerFullAccess" }),
    }
}

fn usage(params: &Value) -> Usage {
    Usage {
        input: count(params, "/tokenUsage/total/inputTokens"),
        cached: count(params, "/tokenUsage/total/cachedInputTokens"),
        output: count(params, "/tokenUsage/total/outputTokens"),
        cost: None,
    }
}
