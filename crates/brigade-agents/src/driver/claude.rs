//! Claude Code as a member that does not read the team's files itself: `claude -p` with lines of JSON in
//! and out.
//!
//! A text we give bears an id made from itself. The session keeps it, and Claude Code shows the text with
//! its id again when it has taken it. One that a resumed session already holds is shown at once and begins
//! no turn: so a text that is given a second time, because nobody heard that it was taken, counts once.
//! But for one that joined a turn: that it does not know again, so its own record is read.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use uuid::Uuid;

use super::asks::Asks;
use super::lines::{Lines, line};
use super::words::{brief, brief_input, text};
use super::{
    Access, Ask, AskId, Driver, End, Event, Invocation, Launch, Note, Output, TOOLS, Verdict,
};
use brigade_core::hash::Fnv;

mod args;
mod record;
mod result;

/// The tool by which it asks whether its plan is good.
const EXIT_PLAN: &str = "ExitPlanMode";

/// One session of Claude Code.
#[derive(Debug)]
pub(super) struct Claude {
    launch: Launch,
    session: String,
    lines: Lines,
    out: VecDeque<Output>,
    last_request: u64,
    pending: BTreeMap<String, Purpose>,
    asks: Asks<Permission>,
    /// Given and not yet shown again, by their ids.
    given: BTreeMap<String, Note>,
    turn: Turn,
    /// The id of the text the turn began with.
    prompted: String,
    /// A prompt that waits for the mode it is to run in.
    held: Option<(Note, String)>,
    mode: String,
    access: Access,
    /// The plan it last wrote down, for when it asks about it.
    plan: String,
}

#[derive(Debug)]
enum Purpose {
    Initialize,
    Mode,
    Interrupt,
}

/// A request for leave, by its id, and what the tool would be given.
#[derive(Debug)]
struct Permission {
    request: Value,
    input: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Off,
    /// Asked for, and not begun: to interrupt it now would be to interrupt nothing.
    Begun {
        interrupted: bool,
    },
    On {
        interrupted: bool,
    },
}

impl Claude {
    pub(super) fn new(launch: Launch) -> Self {
        Self {
            // Its own choice of an id is told with the first turn only.
            session: launch.resume.clone().unwrap_or_else(|| Uuid::new_v4().to_string()),
            mode: args::mode(launch.access).to_owned(),
            access: launch.access,
            launch,
            lines: Lines::default(),
            out: VecDeque::new(),
            last_request: 0,
            pending: BTreeMap::new(),
            asks: Asks::new(),
            given: BTreeMap::new(),
            turn: Turn::Off,
            prompted: String::new(),
            held: None,
            plan: String::new(),
        }
    }

    fn tell(&mut self, event: Event) {
        self.out.push_back(Output::Event(event));
    }

    fn write(&mut self, message: &Value) {
        self.out.push_back(Output::Write(line(message)));
    }

    fn request(&mut self, request: &Value, purpose: Purpose) {
        self.last_request += 1;
        let id = format!("brigade-{}", self.last_request);
        self.write(&json!({ "type": "control_request", "request_id": id, "request": request }));
        self.pending.insert(id, purpose);
    }

    fn heard(&mut self, message: &Value) {
        // What its own helpers say and do is told by what it makes of it.
        let of_helper = message.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
        match text(message, "/type") {
            "control_response" => self.answered(message),
            "control_request" => self.asked(message),
            "control_cancel_request" => {
                let id = message.get("request_id");
                let gone = self.asks.close_where(|permission| Some(&permission.request) == id);
                if let Some((ask, _)) = gone {
                    self.tell(Event::AsksNoLonger(ask));
                }
            }
            "system" => self.noticed(message),
            "command_lifecycle" => self.moved_on(message),
            "assistant" if !of_helper => self.spoke(message),
            "user" if !of_helper => self.shown(message),
            "result" => self.turn_ended(message),
            _ => {}
        }
    }

    fn answered(&mut self, message: &Value) {
        // It also repeats our own answers, which are to nothing we asked.
        let Some(purpose) = self.pending.remove(text(message, "/response/request_id")) else {
            return;
        };
        let ok = text(message, "/response/subtype") == "success";
        match (purpose, ok) {
            (Purpose::Initialize, true) => {
                if let (Some(folder), Some(session)) =
                    (&self.launch.claude_dir, &self.launch.resume)
                {
                    // The folder in between is named after the working directory, cut and hashed if long.
                    let path = format!("{folder}/projects/*/{session}.jsonl");
                    self.tell(Event::RemembersIn { path });
                }
                self.tell(Event::Ready { session: self.session.clone() });
            }
            (Purpose::Initialize, false) => {
                self.tell(Event::Broken { why: text(message, "/response/error").to_owned() });
            }
            (Purpose::Mode, true) => {
                text(message, "/response/response/mode").clone_into(&mut self.mode);
                if let Some((note, text)) = self.held.take() {
                    self.write_prompt(note, &text);
                }
            }
            (Purpose::Mode, false) => {
                if let Some((note, _)) = self.held.take() {
                    self.tell(Event::NotTaken(note));
                    let why = text(message, "/response/error").to_owned();
                    self.tell(Event::TurnEnded(End::Failed(why)));
                }
            }
            (Purpose::Interrupt, _) => {}
        }
    }

    fn noticed(&mut self, message: &Value) {
        // Its mode may change without us: an approved plan ends plan mode.
        if let Some(mode) = message.get("permissionMode").and_then(Value::as_str) {
            mode.clone_into(&mut self.mode);
        }
        match text(message, "/subtype") {
            // Each turn begins with this.
            "init" => self.turn_began(),
            // It tries again for minutes, and later each time.
            "api_retry" => {
                self.tell(result::retry(message));
            }
            _ => {}
        }
    }

    fn turn_began(&mut self) {
        match self.turn {
            Turn::Off => self.turn = Turn::On { interrupted: false },
            Turn::Begun { interrupted } => {
                self.turn = Turn::On { interrupted: false };
                if interrupted {
                    self.interrupt();
                }
            }
            Turn::On { .. } => return,
        }
        self.tell(Event::TurnStarted);
    }

    /// A text of ours goes its way.
    fn moved_on(&mut self, message: &Value) {
        let id = text(message, "/command_uuid");
        let end = match text(message, "/state") {
            // Through with it, and no turn began: the session held it already.
            "completed" => End::Done,
            state @ ("cancelled" | "discarded" | "refused") => {
                if let Some(note) = self.given.remove(id) {
                    self.tell(Event::NotTaken(note));
                }
                End::Failed(format!("the prompt was {state}"))
            }
            _ => return,
        };
        if matches!(self.turn, Turn::Begun { .. }) && self.prompted == id {
            self.turn = Turn::Off;
            self.tell(Event::TurnEnded(end));
        }
    }

    fn spoke(&mut self, message: &Value) {
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            match text(part, "/type") {
                "text" => self.tell(Event::Said(text(part, "/text").to_owned())),
                "tool_use" => {
                    let tool = text(part, "/name").to_owned();
                    if tool == EXIT_PLAN {
                        text(part, "/input/plan").clone_into(&mut self.plan);
                    }
                    let about = about(part.get("input").unwrap_or(&Value::Null));
                    self.tell(Event::ToolStarted { id: text(part, "/id").to_owned(), tool, about });
                }
                _ => {}
            }
        }
    }

    /// In the user's place stand our own texts, shown again, and what tools gave.
    fn shown(&mut self, message: &Value) {
        if let Some(note) = self.given.remove(text(message, "/uuid")) {
            self.tell(Event::Taken(note));
        }
        let mut change = result::change(message);
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten().filter(|part| text(part, "/type") == "tool_result")
        {
            let ok = part.get("is_error") != Some(&Value::Bool(true));
            if let Some(change) = change.take().filter(|_| ok) {
                self.tell(Event::Changed(change));
            }
            self.tell(Event::ToolEnded { id: text(part, "/tool_use_id").to_owned(), ok });
        }
    }

    fn turn_ended(&mut self, message: &Value) {
        let interrupted = matches!(self.turn, Turn::On { interrupted: true });
        self.turn = Turn::Off;
        for ask in self.asks.close_all().into_keys() {
            self.tell(Event::AsksNoLonger(ask));
        }
        self.tell(Event::Used(result::usage(message)));
        self.tell(Event::TurnEnded(result::end(message, interrupted)));
    }

    fn asked(&mut self, message: &Value) {
        let request = message.get("request_id").cloned().unwrap_or_default();
        if text(message, "/request/subtype") != "can_use_tool" {
            let why = "not to be had here";
            let error = json!({ "subtype": "error", "request_id": request, "error": why });
            self.write(&json!({ "type": "control_response", "response": error }));
            return;
        }
        let tool = text(message, "/request/tool_name").to_owned();
        let input = message.pointer("/request/input").cloned().unwrap_or_default();
        let permission = Permission { request, input: input.clone() };
        let ours = tool.starts_with(&format!("mcp__{TOOLS}__"));
        if ours || self.access == Access::Full {
            self.allow(&permission);
            return;
        }
        let plan = (tool == EXIT_PLAN).then(|| match text(&input, "/plan") {
            "" => self.plan.clone(),
            plan => plan.to_owned(),
        });
        let ask = Ask {
            id: self.asks.open(permission),
            tool_use_id: text(message, "/request/tool_use_id").to_owned(),
            description: match text(message, "/request/description") {
                "" => about(&input),
                description => brief(description),
            },
            tool,
            input,
            plan,
        };
        self.tell(Event::Asks(ask));
    }

    fn allow(&mut self, permission: &Permission) {
        self.respond(permission, &json!({ "behavior": "allow", "updatedInput": permission.input }));
    }

    fn respond(&mut self, permission: &Permission, response: &Value) {
        let success = json!({
            "subtype": "success",
            "request_id": permission.request,
            "response": response,
        });
        self.write(&json!({ "type": "control_response", "response": success }));
    }

    fn write_prompt(&mut self, note: Note, words: &str) {
        self.turn = Turn::Begun { interrupted: false };
        self.prompted = self.give(note, words);
    }

    fn give(&mut self, note: Note, words: &str) -> String {
        let id = text_id(note, words);
        self.given.insert(id.clone(), note);
        self.write(&json!({
            "type": "user",
            "message": { "role": "user", "content": words },
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": id,
        }));
        id
    }
}

impl Driver for Claude {
    fn invocation(&self) -> Invocation {
        Invocation { args: args::args(&self.launch, &self.session), env: Vec::new() }
    }

    fn start(&mut self) {
        self.request(&json!({ "subtype": "initialize" }), Purpose::Initialize);
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.lines.hear(bytes);
        while let Some(message) = self.lines.next() {
            self.heard(&message);
        }
    }

    fn prompt(&mut self, note: Note, text: &str) {
        if self.held.is_some() {
            self.tell(Event::NotTaken(note));
            return;
        }
        if self.turn != Turn::Off {
            // A steered text that came late has begun a turn of its own: this one goes into it.
            self.give(note, text);
            return;
        }
        let mode = args::mode(self.access);
        if self.mode == mode {
            self.write_prompt(note, text);
        } else {
            self.held = Some((note, text.to_owned()));
            self.request(&json!({ "subtype": "set_permission_mode", "mode": mode }), Purpose::Mode);
        }
    }

    /// A text that comes too late for the turn begins another.
    fn steer(&mut self, note: Note, text: &str) {
        if self.turn == Turn::Off {
            self.tell(Event::NotTaken(note));
        } else {
            self.give(note, text);
        }
    }

    fn answer(&mut self, ask: AskId, verdict: &Verdict) {
        let Some(permission) = self.asks.close(ask) else { return };
        match verdict {
            Verdict::Allow => self.allow(&permission),
            Verdict::Deny(why) => {
                self.respond(&permission, &json!({ "behavior": "deny", "message": why }));
            }
        }
    }

    fn interrupt(&mut self) {
        if let Some((note, _)) = self.held.take() {
            self.tell(Event::NotTaken(note));
            self.tell(Event::TurnEnded(End::Interrupted));
            return;
        }
        match &mut self.turn {
            Turn::Off => {}
            Turn::Begun { interrupted } => *interrupted = true,
            Turn::On { interrupted } => {
                *interrupted = true;
                self.request(&json!({ "subtype": "interrupt" }), Purpose::Interrupt);
            }
        }
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn recalled<'a>(&self, record: &'a str) -> Cow<'a, str> {
        record::conversation(record).into()
    }

    fn next(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
}

/// What a tool is for, in a line: what is most telling of what it is given.
fn about(input: &Value) -> String {
    let fields = ["/command", "/file_path", "/path", "/pattern", "/url", "/query", "/description"];
    match fields.iter().map(|field| text(input, field)).find(|words| !words.is_empty()) {
        Some(words) => brief(words),
        None => brief_input(input),
    }
}

/// An id in the form of a UUID, the same whenever the same text is given under the same number.
fn text_id(note: Note, words: &str) -> String {
    let hash = |salt: &[u8]| {
        let hash = Fnv::default().field(salt).field(&note.0.to_le_bytes());
        u128::from(hash.field(words.as_bytes()).finish())
    };
    let bits = (hash(b"high") << 64) | hash(b"low");
    uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid().to_string()
}
