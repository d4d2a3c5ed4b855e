//! Codex, by `codex app-server`: JSON-RPC on lines, without the `jsonrpc` member.
//!
//! A thread is a session. A text we give bears our number as its client id, and the thread's own copy
//! of the text shows that number again: then it is taken. A thread that is killed within milliseconds of
//! it may yet have forgotten it: what a resumed thread remembers is the last word.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::asks::Asks;
use super::rpc::{Fault, Heard, Peer};
use super::words::{count, text};
use super::{
    Access, Ask, AskId, Driver, End, Event, Invocation, Launch, Note, Output, TOOLS, Usage, Verdict,
};

mod approval;
mod fault;
mod item;

use approval::Approval;
use item::Items;

/// One thread of Codex.
#[derive(Debug)]
pub(super) struct Codex {
    launch: Launch,
    peer: Peer<Purpose>,
    asks: Asks<Approval>,
    thread: Option<String>,
    turn: Turn,
    /// What the thread itself is set to.
    applied: Access,
    /// What it shall be from the next turn on.
    access: Access,
    /// Given, and not yet seen in the thread.
    given: BTreeSet<Note>,
    items: Items,
}

#[derive(Debug)]
enum Purpose {
    Initialize,
    Thread,
    Turn(Note),
    Steer(Note),
    Interrupt,
}

#[derive(Debug)]
enum Turn {
    Off,
    /// Asked for, and not yet said to have started: until then Codex takes no word for it.
    Begun {
        interrupted: bool,
    },
    On(String),
}

impl Codex {
    pub(super) fn new(launch: Launch) -> Self {
        Self {
            applied: launch.access,
            access: launch.access,
            launch,
            peer: Peer::new(json!({})),
            asks: Asks::new(),
            thread: None,
            turn: Turn::Off,
            given: BTreeSet::new(),
            items: Items::default(),
        }
    }

    /// Begins a thread, or goes on with one: the same settings either way, for none is kept with it.
    fn open_thread(&mut self) {
        let tools = &self.launch.tools;
        let env: serde_json::Map<_, _> =
            tools.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let mut params = json!({
            "cwd": self.launch.cwd,
            "approvalPolicy": approval_policy(self.access),
            // What is asked shall come to us, and not to a model that reviews.
            "approvalsReviewer": "user",
            "sandbox": sandbox_mode(self.access),
            "developerInstructions": self.launch.instructions,
            "config": {
                "mcp_servers": { TOOLS: {
                    "command": tools.command,
                    "args": tools.args,
                    "env": env,
                    "default_tools_approval_mode": "approve",
                    // The newer models are told of few tools, and have to look for the others; of
                    // these they shall be told.
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
        self.peer.request(method, &params, Purpose::Thread);
    }

    fn answered(&mut self, purpose: Purpose, result: Result<Value, Fault>) {
        match (purpose, result) {
            (Purpose::Initialize, Ok(_)) => {
                self.peer.notify("initialized", &json!({}));
                self.open_thread();
            }
            (Purpose::Thread, Ok(result)) => self.thread_opened(&result),
            (Purpose::Initialize | Purpose::Thread, Err(fault)) => {
                self.peer.tell(Event::Broken { why: fault.words });
            }
            (Purpose::Turn(note), Err(fault)) => {
                self.not_taken(note);
                self.turn = Turn::Off;
                self.peer.tell(Event::TurnEnded(End::Failed(fault.words)));
            }
            (Purpose::Steer(note), Err(_)) => self.not_taken(note),
            // A turn begins when it says so, a text is taken when it is seen in the thread, and an
            // interrupted turn is over when it says so. One that could not be interrupted had ended.
            (Purpose::Turn(_) | Purpose::Steer(_) | Purpose::Interrupt, _) => {}
        }
    }

    fn thread_opened(&mut self, result: &Value) {
        let thread = text(result, "/thread/id").to_owned();
        let turns = result.pointer("/thread/turns").and_then(Value::as_array);
        let items = turns.into_iter().flatten().filter_map(|turn| turn.get("items")?.as_array());
        for item in items.flatten().filter(|item| text(item, "/type") == "userMessage") {
            self.peer.tell(Event::Remembers { text: item::user_text(item) });
        }
        // The turns it tells of are made from one line of its record, what its model sees from another
        // that is written before it; killed in between, it has a text of which it does not tell.
        let path = text(result, "/thread/path");
        if self.launch.resume.is_some() && !path.is_empty() {
            self.peer.tell(Event::RemembersIn { path: path.to_owned() });
        }
        self.thread = Some(thread.clone());
        self.peer.tell(Event::Ready { session: thread });
    }

    fn turn_started(&mut self, id: &str) {
        let begun = std::mem::replace(&mut self.turn, Turn::On(id.to_owned()));
        self.peer.tell(Event::TurnStarted);
        if matches!(begun, Turn::Begun { interrupted: true }) {
            self.interrupt();
        }
    }

    fn noticed(&mut self, method: &str, params: &Value) {
        // Threads of other kinds, for titles or reviews, tell of themselves too.
        if self.thread.as_deref() != Some(text(params, "/threadId")) {
            return;
        }
        match method {
            "turn/started" => self.turn_started(text(params, "/turn/id")),
            "turn/completed" => self.turn_completed(params),
            "thread/tokenUsage/updated" => {
                self.peer.tell(Event::Used(usage(params)));
            }
            "serverRequest/resolved" => {
                let id = params.get("requestId");
                if let Some((ask, _)) = self.asks.close_where(|asked| Some(asked.request()) == id) {
                    self.peer.tell(Event::AsksNoLonger(ask));
                }
            }
            "item/started" | "item/completed" => {
                let item = params.get("item").unwrap_or(&Value::Null);
                if let Some(note) = item::note(item).filter(|note| self.given.remove(note)) {
                    self.peer.tell(Event::Taken(note));
                }
                for event in self.items.heard(item, method == "item/completed") {
                    self.peer.tell(event);
                }
            }
            "error" if params.get("willRetry") == Some(&Value::Bool(true)) => {
                let error = params.get("error").unwrap_or(&Value::Null);
                let why = fault::words(error);
                self.peer.tell(match fault::is_limit(error) {
                    true => Event::Limited { why },
                    false => Event::Retries { why },
                });
            }
            "item/agentMessage/delta" => {
                let said = text(params, "/delta").to_owned();
                self.items.said(text(params, "/itemId"));
                self.peer.tell(Event::Said(said));
            }
            _ => {}
        }
    }

    fn turn_completed(&mut self, params: &Value) {
        for note in std::mem::take(&mut self.given) {
            self.peer.tell(Event::NotTaken(note));
        }
        for ask in self.asks.close_all().into_keys() {
            self.peer.tell(Event::AsksNoLonger(ask));
        }
        self.items = Items::default();
        self.turn = Turn::Off;
        self.peer.tell(Event::TurnEnded(match text(params, "/turn/status") {
            "completed" => End::Done,
            "interrupted" => End::Interrupted,
            _ => fault::end(params.pointer("/turn/error").unwrap_or(&Value::Null)),
        }));
    }

    /// A question. It is heard from any thread: what works for ours waits for its answer.
    fn asked(&mut self, id: &Value, method: &str, params: &Value) {
        let Some(approval) = Approval::new(id.clone(), method, params) else {
            self.peer.refuse(id, "not to be had here");
            return;
        };
        if approval.is_for_team(params) {
            self.peer.reply(id, &approval.allow());
            return;
        }
        let about = approval::about(method, params, &self.items);
        let ask = self.asks.open(approval);
        self.peer.tell(Event::Asks(Ask {
            id: ask,
            tool: about.tool,
            tool_use_id: about.tool_use_id,
            description: about.description,
            input: about.input,
            plan: None,
        }));
    }

    fn not_taken(&mut self, note: Note) {
        if self.given.remove(&note) {
            self.peer.tell(Event::NotTaken(note));
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
        self.peer.request("initialize", &hello, Purpose::Initialize);
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.peer.hear(bytes);
        while let Some(heard) = self.peer.heard() {
            match heard {
                Heard::Answer { purpose, result } => self.answered(purpose, result),
                Heard::Request { id, method, params } => self.asked(&id, &method, &params),
                Heard::Notice { method, params } => self.noticed(&method, &params),
            }
        }
    }

    fn prompt(&mut self, note: Note, text: &str) {
        let (Some(thread), Turn::Off) = (&self.thread, &self.turn) else {
            self.peer.tell(Event::NotTaken(note));
            return;
        };
        let mut params = json!({
            "threadId": thread,
            "clientUserMessageId": item::client_id(note),
            "input": input(text),
        });
        // A thread keeps what a turn was given. A change is said once, so that what a user configured
        // for the sandbox holds otherwise; read-only is said each time.
        if self.access != self.applied || self.access == Access::ReadOnly {
            set(&mut params, "approvalPolicy", json!(approval_policy(self.access)));
            set(&mut params, "sandboxPolicy", sandbox_policy(self.access));
            self.applied = self.access;
        }
        self.turn = Turn::Begun { interrupted: false };
        self.given.insert(note);
        self.peer.request("turn/start", &params, Purpose::Turn(note));
    }

    fn steer(&mut self, note: Note, text: &str) {
        let (Some(thread), Turn::On(turn)) = (&self.thread, &self.turn) else {
            self.peer.tell(Event::NotTaken(note));
            return;
        };
        let params = json!({
            "threadId": thread,
            "expectedTurnId": turn,
            "clientUserMessageId": item::client_id(note),
            "input": input(text),
        });
        self.given.insert(note);
        self.peer.request("turn/steer", &params, Purpose::Steer(note));
    }

    fn answer(&mut self, ask: AskId, verdict: &Verdict) {
        let Some(approval) = self.asks.close(ask) else { return };
        let result = match verdict {
            Verdict::Allow => approval.allow(),
            Verdict::Deny(_) => approval.deny(),
        };
        self.peer.reply(approval.request(), &result);
    }

    fn interrupt(&mut self) {
        match &mut self.turn {
            Turn::Off => {}
            Turn::Begun { interrupted } => *interrupted = true,
            Turn::On(turn) => {
                let params = json!({ "threadId": self.thread, "turnId": turn });
                self.peer.request("turn/interrupt", &params, Purpose::Interrupt);
            }
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<Output> {
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

/// Read-only never asks: a yes would lift the sandbox.
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
