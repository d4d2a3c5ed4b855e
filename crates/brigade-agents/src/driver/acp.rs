//! The agents that speak the Agent Client Protocol, version 1. What differs from one to the next stands
//! in its [`Quirks`], not in code.
//!
//! The protocol has no word for "I have your message". The first sign of work on a prompt is taken for it.

use serde_json::{Value, json};

use super::asks::Asks;
use super::limit;
use super::rpc::{Fault, Heard, Peer};
use super::words::text;
use super::{Access, AskId, Driver, End, Event, Invocation, Launch, Note, Output, Usage, Verdict};

mod calls;
mod opening;
mod permission;
mod quirks;
mod usage;

use calls::Calls;
use permission::Permission;
pub(super) use quirks::{COPILOT, GEMINI, GENERIC, OPENCODE, QWEN};
use quirks::{Quirks, Replay, Servers};

/// One session of an agent.
#[derive(Debug)]
pub(super) struct Acp {
    quirks: &'static Quirks,
    launch: Launch,
    peer: Peer<Purpose>,
    asks: Asks<Permission>,
    calls: Calls,
    session: Option<String>,
    /// Whether [`Event::Ready`] has come.
    ready: bool,
    /// What stands between the session and [`Event::Ready`]: settings not yet answered for, and the end
    /// of a replay.
    outstanding: usize,
    replaying: bool,
    /// Whether the session knows who it is on the team.
    introduced: bool,
    turn: Option<Turn>,
    /// A prompt that waits for the mode it is to run in.
    held: Option<(Note, String)>,
    mode: Option<String>,
    access: Access,
    used: Usage,
}

#[derive(Debug)]
struct Turn {
    note: Note,
    taken: bool,
    interrupted: bool,
}

#[derive(Debug)]
enum Purpose {
    Initialize,
    Session,
    /// A setting on the way to [`Event::Ready`].
    Setting,
    Mode(String),
    Prompt,
}

impl Acp {
    pub(super) fn new(quirks: &'static Quirks, launch: Launch) -> Self {
        Self {
            quirks,
            access: launch.access,
            launch,
            peer: Peer::new(json!({ "jsonrpc": "2.0" })),
            asks: Asks::new(),
            calls: Calls::default(),
            session: None,
            ready: false,
            outstanding: 0,
            replaying: false,
            introduced: false,
            turn: None,
            held: None,
            mode: None,
            used: Usage::default(),
        }
    }

    fn answered(&mut self, purpose: Purpose, result: Result<Value, Fault>) {
        match (purpose, result) {
            (Purpose::Initialize, Ok(result)) => self.open_session(&result),
            (Purpose::Session, Ok(result)) => self.session_opened(&result),
            (Purpose::Setting, Ok(_)) => self.setting_done(),
            (Purpose::Mode(mode), Ok(_)) => {
                self.mode = Some(mode);
                match self.held.take() {
                    Some((note, text)) => self.write_prompt(note, &text),
                    None => self.setting_done(),
                }
            }
            (Purpose::Prompt, result) => self.turn_ended(&result),
            (Purpose::Mode(mode), Err(fault)) if self.held.is_some() => {
                self.held = None;
                let words = format!("no mode {mode}: {}", fault.words);
                self.turn_ended(&Err(Fault { words, ..fault }));
            }
            // The prompt that wanted the mode was interrupted.
            (Purpose::Mode(_), Err(_)) if self.ready => {}
            (_, Err(fault)) => self.peer.tell(Event::Broken { why: fault.words }),
        }
    }

    fn open_session(&mut self, result: &Value) {
        let servers = match self.quirks.servers {
            Servers::ByProtocol => json!([opening::server(&self.launch.tools)]),
            Servers::ByFlag { .. } => json!([]),
        };
        let mut params = json!({ "cwd": self.launch.cwd, "mcpServers": servers });
        let Some(session) = self.launch.resume.clone() else {
            self.peer.request("session/new", &params, Purpose::Session);
            return;
        };
        if result.pointer("/agentCapabilities/loadSession") != Some(&Value::Bool(true)) {
            self.peer.tell(Event::Broken { why: "the agent cannot load a session".to_owned() });
            return;
        }
        if let Value::Object(fields) = &mut params {
            fields.insert("sessionId".to_owned(), json!(session));
        }
        self.replaying = true;
        self.session = Some(session);
        self.peer.request("session/load", &params, Purpose::Session);
    }

    fn session_opened(&mut self, result: &Value) {
        // The answer to a load need not repeat the id.
        if let Some(session) = result.get("sessionId").and_then(Value::as_str) {
            self.session = Some(session.to_owned());
        }
        if self.quirks.replay == Replay::BeforeAnswer {
            self.replaying = false;
        }
        self.mode = opening::mode(result).map(str::to_owned);
        if let Some(model) = self.launch.model.clone() {
            self.outstanding += 1;
            let (method, params) = opening::model(self.session.as_deref(), result, &model);
            self.peer.request(method, &params, Purpose::Setting);
        }
        if let Some(mode) = self.mode_wanted() {
            self.outstanding += 1;
            self.set_mode(mode);
        }
        self.perhaps_ready();
    }

    /// The mode the agent is to be in and is not.
    fn mode_wanted(&self) -> Option<&'static str> {
        let modes = &self.quirks.modes;
        let wanted = match self.access {
            Access::ReadOnly => modes.read_only,
            Access::Ask => modes.ask,
            Access::Full => modes.full.or(modes.ask),
        }?;
        (self.mode.as_deref() != Some(wanted)).then_some(wanted)
    }

    fn set_mode(&mut self, mode: &str) {
        let params = json!({ "sessionId": self.session, "modeId": mode });
        self.peer.request("session/set_mode", &params, Purpose::Mode(mode.to_owned()));
    }

    fn setting_done(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.perhaps_ready();
    }

    fn perhaps_ready(&mut self) {
        if self.ready || self.replaying || self.outstanding > 0 {
            return;
        }
        if let Some(session) = self.session.clone() {
            self.ready = true;
            self.peer.tell(Event::Ready { session });
        }
    }

    fn noticed(&mut self, method: &str, params: &Value) {
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
                "user_message_chunk" => self.remembered(text(update, "/content/text")),
                "available_commands_update" if self.quirks.replay == Replay::UntilCommands => {
                    self.replaying = false;
                    self.perhaps_ready();
                }
                _ => {}
            }
            return;
        }
        if self.turn.is_none() {
            return;
        }
        match kind {
            "user_message_chunk" | "agent_thought_chunk" | "plan" => self.taken(),
            "agent_message_chunk" => {
                self.taken();
                let said = text(update, "/content/text");
                if !said.is_empty() {
                    self.peer.tell(Event::Said(said.to_owned()));
                }
            }
            "tool_call" | "tool_call_update" => {
                self.taken();
                for event in self.calls.heard(update) {
                    self.peer.tell(event);
                }
            }
            _ => {}
        }
    }

    fn remembered(&mut self, said: &str) {
        let said = match said.strip_prefix(self.launch.instructions.as_str()) {
            // Between the two blocks of the first prompt some agents put something of their own.
            Some(rest) if !self.launch.instructions.is_empty() => {
                self.introduced = true;
                rest.trim_start()
            }
            _ => said,
        };
        if !said.is_empty() {
            self.peer.tell(Event::Remembers { text: said.to_owned() });
        }
    }

    fn taken(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.taken) {
            turn.taken = true;
            self.introduced = true;
            self.peer.tell(Event::Taken(turn.note));
        }
    }

    fn turn_ended(&mut self, result: &Result<Value, Fault>) {
        let end = match result {
            Ok(result) => match text(result, "/stopReason") {
                "end_turn" if self.quirks.fails_unsaid && result.get("usage").is_none() => {
                    End::Failed("the model gave no answer".to_owned())
                }
                "end_turn" => End::Done,
                "cancelled" => End::Interrupted,
                other => End::Failed(format!("it stopped: {other}")),
            },
            // Some are so surprised by it that the prompt fails.
            Err(_) if self.turn.as_ref().is_some_and(|turn| turn.interrupted) => End::Interrupted,
            Err(fault) if limit::is_limit_status(fault.code.unsigned_abs()) => {
                End::Limited(fault.words.clone())
            }
            Err(fault) => limit::failed(fault.words.clone()),
        };
        if end == End::Done {
            self.taken();
        }
        self.call_off();
        for event in self.calls.end() {
            self.peer.tell(event);
        }
        if let Some(turn) = self.turn.take().filter(|turn| !turn.taken) {
            self.peer.tell(Event::NotTaken(turn.note));
        }
        if let Ok(result) = result
            && let Some(used) = self.quirks.usage.after(self.used, result)
        {
            self.used = used;
            self.peer.tell(Event::Used(used));
        }
        self.peer.tell(Event::TurnEnded(end));
    }

    /// Nobody waits for an answer any longer: each request is told so.
    fn call_off(&mut self) {
        for (ask, permission) in self.asks.close_all() {
            self.peer.reply(&permission.request, &permission::cancelled());
            self.peer.tell(Event::AsksNoLonger(ask));
        }
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) {
        if method != "session/request_permission" {
            self.peer.refuse(&id, "not to be had here");
            return;
        }
        self.taken();
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        if let Some(event) = self.calls.asked(call) {
            self.peer.tell(event);
        }
        let permission = Permission::new(id, params);
        let ours = (self.quirks.ours)(call, self.calls.name(text(call, "/toolCallId")));
        if ours || self.access == Access::Full {
            self.peer.reply(&permission.request, &permission.allow());
            return;
        }
        let id = self.asks.open(permission);
        let ask = permission::ask(id, call, &self.calls);
        self.peer.tell(Event::Asks(ask));
    }

    fn write_prompt(&mut self, note: Note, text: &str) {
        let mut prompt = vec![json!({ "type": "text", "text": text })];
        if !self.introduced && !self.launch.instructions.is_empty() {
            prompt
                .insert(0, json!({ "type": "text", "text": opening::introduction(&self.launch) }));
        }
        self.turn = Some(Turn { note, taken: false, interrupted: false });
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.peer.request("session/prompt", &params, Purpose::Prompt);
        self.peer.tell(Event::TurnStarted);
    }
}

impl Driver for Acp {
    fn invocation(&self) -> Invocation {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut args = self.launch.arguments.clone();
        args.extend(self.quirks.args.iter().map(|word| (*word).to_owned()));
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
        self.peer.request("initialize", &hello, Purpose::Initialize);
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.peer.hear(bytes);
        while let Some(heard) = self.peer.heard() {
            match heard {
                Heard::Answer { purpose, result } => self.answered(purpose, result),
                Heard::Request { id, method, params } => self.asked(id, &method, &params),
                Heard::Notice { method, params } => self.noticed(&method, &params),
            }
        }
    }

    fn ended(&mut self, code: i32) {
        let none = self.quirks.resume.filter(|_| self.launch.resume.is_some());
        if !self.ready && none.is_some_and(|resume| resume.none == code) {
            self.peer.tell(Event::Broken { why: "it has no such session".to_owned() });
        }
    }

    fn prompt(&mut self, note: Note, text: &str) {
        if !self.ready || self.turn.is_some() || self.held.is_some() {
            self.peer.tell(Event::NotTaken(note));
            return;
        }
        match self.mode_wanted() {
            // Agents work on several requests at once: the mode must be set before the turn begins.
            Some(mode) => {
                self.held = Some((note, text.to_owned()));
                self.set_mode(mode);
            }
            None => self.write_prompt(note, text),
        }
    }

    /// A second prompt would end the first in some agents and wait for it in others.
    fn steer(&mut self, note: Note, _text: &str) {
        self.peer.tell(Event::NotTaken(note));
    }

    fn answer(&mut self, ask: AskId, verdict: &Verdict) {
        let Some(permission) = self.asks.close(ask) else { return };
        let result = match verdict {
            Verdict::Allow => permission.allow(),
            Verdict::Deny(_) => permission.deny(),
        };
        self.peer.reply(&permission.request, &result);
    }

    fn interrupt(&mut self) {
        if let Some((note, _)) = self.held.take() {
            self.peer.tell(Event::NotTaken(note));
            self.peer.tell(Event::TurnEnded(End::Interrupted));
        } else if let Some(turn) = &mut self.turn {
            turn.interrupted = true;
            self.peer.notify("session/cancel", &json!({ "sessionId": self.session }));
            self.call_off();
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn next(&mut self) -> Option<Output> {
        self.peer.next()
    }
}
