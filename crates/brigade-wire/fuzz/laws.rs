//! Invariants that hold for any bytes. The fuzz targets, the property tests and the random mutations all call
//! these functions. Each one panics if its invariant is violated.

use std::borrow::Cow;

use brigade_wire::body::Body;
use brigade_wire::change::Change;
use brigade_wire::color::Color;
use brigade_wire::envelope::{Envelope, Sender};
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::member::{MemberChange, NewMember};
use brigade_wire::message::{GenerationFields, NewMessage};
use brigade_wire::name::{self, AgentId, MemberName, TaskId, TeamName};
use brigade_wire::request_id::RequestId;
use brigade_wire::settings::{SettingChange, SettingPath, SettingsFile};
use brigade_wire::task::{Status, Task, TaskChange};
use brigade_wire::team::{Team, TeamChange};

/// The name of a fuzz target, and the function that checks its invariant.
pub(crate) type Invariant = (&'static str, fn(&[u8]));

/// All invariants.
pub(crate) const INVARIANTS: [Invariant; 7] = [
    ("inbox", inbox),
    ("team", team),
    ("task", task),
    ("settings", settings),
    ("body", body),
    ("envelope", envelope),
    ("names", names),
];

fn new_message(stamp: GenerationFields<'_>) -> NewMessage<'_> {
    NewMessage {
        from: "alice",
        text: "line\nline \"quoted\" \\ \u{1f600}",
        summary: Some("s"),
        timestamp: "2026-11-15T00:00:29.290Z",
        color: Some(Color::Blue),
        read: false,
        stamp,
    }
}

/// Marking, removing and appending messages changes nothing else in the inbox.
pub(crate) fn inbox(bytes: &[u8]) {
    let more = [
        new_message(GenerationFields::Old { msg_id: None }),
        new_message(GenerationFields::New { msg_id: "i", lead_sig: Some("g") }),
    ];
    let mut spliced = bytes.to_vec();
    let appended = inbox::append(&mut spliced, &more);
    let Ok(inbox) = Inbox::read(bytes) else {
        match appended {
            Err(_) => assert_eq!(spliced, bytes, "a failed append changes nothing"),
            Ok(()) => assert!(Inbox::read(&spliced).is_err(), "appending does not hide damage"),
        }
        return;
    };
    assert_unchanged(&inbox.with_read(|_| false), bytes);
    assert_unchanged(&inbox.retain(|_| true), bytes);
    assert_unchanged(&inbox.with_appended(&[]), bytes);

    let before = entries(&inbox);
    assert!(appended.is_ok());
    assert_eq!(inbox.with_appended(&more), spliced, "splicing and parsing give the same result");
    let longer = Inbox::read(&spliced).expect("still valid");
    let after = entries(&longer);
    assert_eq!(after[..before.len()], before[..], "existing entries are unchanged");
    assert_eq!(after.len(), before.len() + more.len());
    let last = longer.messages().last().expect("the appended message");
    assert_eq!((last.from().as_ref(), last.text().as_ref()), (more[1].from, more[1].text));

    let read = inbox.with_read(|_| true);
    let read = Inbox::read(&read).expect("still valid");
    assert!(read.messages().all(|message| message.read()));
    assert_eq!(read.entries().len(), inbox.entries().len());
    for (now, was) in read.messages().zip(inbox.messages()) {
        assert_eq!(now.text(), was.text());
        assert_eq!(now.from(), was.from());
        assert_eq!(now.timestamp(), was.timestamp());
        assert_eq!(now.field("summary"), was.field("summary"));
        let _ = (was.summary(), was.color(), was.msg_id(), was.lead_sig(), was.body());
    }

    let mut odd = false;
    let half = inbox.retain(|_| {
        odd = !odd;
        odd
    });
    let half = Inbox::read(&half).expect("still valid");
    let kept: Vec<Vec<u8>> = entries(&inbox).into_iter().step_by(2).collect();
    assert_eq!(entries(&half), kept);
}

fn entries(inbox: &Inbox<'_>) -> Vec<Vec<u8>> {
    inbox.entries().map(|entry| entry.json().to_vec()).collect()
}

/// Asserts that `after` borrows bytes that equal `before`.
#[expect(clippy::ptr_arg, reason = "the function checks whether `after` is borrowed")]
fn assert_unchanged(after: &Cow<'_, [u8]>, before: &[u8]) {
    assert!(matches!(after, Cow::Borrowed(after) if *after == before));
}

/// Returns the keys of `json`, except those in `except`. Returns no keys if `serde_json` finds no object.
fn keys(json: &[u8], except: &[&str]) -> Vec<String> {
    match serde_json::from_slice(json) {
        Ok(serde_json::Value::Object(map)) => map
            .into_iter()
            .map(|(key, _)| key)
            .filter(|key| !except.contains(&key.as_str()))
            .collect(),
        _ => Vec::new(),
    }
}

/// Adding, changing and removing a member changes nothing else in the team.
pub(crate) fn team(bytes: &[u8]) {
    let Ok(team) = Team::read(bytes) else { return };
    assert_unchanged(&team.with(&TeamChange::default()), bytes);
    let _ = (team.name(), team.description(), team.created_at(), team.lead_process());
    let _ = (team.lead_agent_id(), team.lead_session_id(), team.generation(), team.lead());
    let members = |team: &Team<'_>| -> Vec<Vec<u8>> {
        team.members().map(|member| member.json().to_vec()).collect()
    };
    let before = members(&team);

    let changed = team.with(&TeamChange {
        name: Some("renamed"),
        description: Change::Clear,
        lead_session_id: Some("s"),
    });
    let changed = Team::read(&changed).expect("still valid");
    assert_eq!(changed.name().as_deref(), Some("renamed"));
    assert_eq!((changed.description(), changed.field("description")), (None, None));
    assert_eq!(changed.lead_session_id().as_deref(), Some("s"));
    assert_eq!(members(&changed), before);
    for key in keys(bytes, &["name", "teamName", "description", "leadSessionId"]) {
        assert_eq!(changed.field(&key), team.field(&key), "{key}");
    }

    let name: MemberName = "newcomer".parse().expect("a valid name");
    let newcomer = NewMember {
        name: &name,
        agent_type: "codex",
        model: "m",
        prompt: "two\nlines",
        color: Color::Red,
        plan_mode_required: true,
        joined_at: 7,
        tmux_pane_id: "%1",
        cwd: "/",
        backend_type: Some("process"),
        is_active: None,
    };
    match team.with_member(&newcomer) {
        Ok(joined) => {
            let joined = Team::read(&joined).expect("still valid");
            let now = members(&joined);
            assert_eq!((&now[..before.len()], now.len()), (&before[..], before.len() + 1));
            for key in keys(bytes, &["members"]) {
                assert_eq!(joined.field(&key), team.field(&key), "{key}");
            }
        }
        Err(_) => {
            let same = |name: &str| name::inbox_stem(name).eq_ignore_ascii_case("newcomer");
            assert!(team.members().any(|member| member.name().is_some_and(|name| same(&name))));
        }
    }

    for member in team.members() {
        let Some(name) = member.name() else { continue };
        let idle = MemberChange { is_active: Some(false), ..MemberChange::default() };
        let idle = team.with_member_changed(&name, &idle).expect("a member");
        let idle = Team::read(&idle).expect("still valid");
        assert_eq!(idle.members().len(), before.len());
        let (now, was) = (idle.member(&name).expect("a member"), team.member(&name));
        let was = was.expect("a member");
        assert_eq!(now.is_active(), Some(false));
        for key in keys(was.json(), &["isActive"]) {
            assert_eq!(now.field(&key), was.field(&key), "{key}");
        }
        let gone = team.without_member(&name);
        let gone = Team::read(&gone).expect("still valid");
        assert!(gone.member(&name).is_none());
        let rest = team.members().filter(|other| !other.is(&name));
        assert_eq!(members(&gone), rest.map(|other| other.json().to_vec()).collect::<Vec<_>>());
    }
}

/// Changing settings and undoing the change affects no other settings.
pub(crate) fn settings(bytes: &[u8]) {
    let Ok(settings) = SettingsFile::read(bytes) else { return };
    assert_unchanged(&settings.with(&[]).expect("no changes"), bytes);
    let values = [serde_json::json!("tmux"), serde_json::json!({"a \"b\"": [1, "\n"]})];
    let places = [
        SettingPath { section: None, key: "teammateMode" },
        SettingPath { section: Some("env"), key: "OURS" },
        SettingPath { section: Some("mcpServers"), key: "team" },
    ];
    let value = |at: usize| Some(&values[at.min(1)]);
    let change =
        |(at, &place): (usize, &SettingPath<'static>)| SettingChange { place, value: value(at) };
    let changes: Vec<SettingChange<'_>> = places.iter().enumerate().map(change).collect();
    let Ok(changed) = settings.with(&changes) else {
        let is_object = |name| settings.field(name).is_none_or(|json| json.starts_with(b"{"));
        assert!(
            !is_object("env") || !is_object("mcpServers"),
            "a change failed although every section is an object"
        );
        return;
    };
    let changed = SettingsFile::read(&changed).expect("still valid");
    for (at, place) in places.iter().enumerate() {
        assert_eq!(changed.get(*place).as_ref(), value(at));
    }
    let others = keys(bytes, &["teammateMode", "env", "mcpServers"]);
    let created: Vec<&str> =
        ["env", "mcpServers"].into_iter().filter(|name| !settings.has(name)).collect();
    let was: Vec<Option<serde_json::Value>> = places.iter().map(|p| settings.get(*p)).collect();
    let back = |(&place, was): (&SettingPath<'static>, &'_ Option<serde_json::Value>)| {
        changed.get(place).map(|_| (place, was.clone()))
    };
    let back: Vec<_> = places.iter().zip(&was).filter_map(back).collect();
    let back: Vec<SettingChange<'_>> = back
        .iter()
        .map(|(place, value)| SettingChange { place: *place, value: value.as_ref() })
        .collect();
    let back = changed.with(&back).expect("existing settings").into_owned();
    let back = SettingsFile::read(&back).expect("still valid").without_empty(&created).into_owned();
    let back = SettingsFile::read(&back).expect("still valid");
    for key in others {
        assert_eq!(changed.field(&key), settings.field(&key), "{key}");
        assert_eq!(back.field(&key), settings.field(&key), "{key}");
    }
    for (place, was) in places.iter().zip(&was) {
        assert_eq!(back.get(*place), *was);
    }
}

/// Setting and clearing fields of a task does not change other fields.
pub(crate) fn task(bytes: &[u8]) {
    let Ok(task) = Task::read(bytes) else { return };
    assert_unchanged(&task.with(&TaskChange::default()), bytes);
    let _ = (task.is_visible(), task.active_form());
    let changed = task.with(&TaskChange {
        subject: Some("a \"new\"\nsubject"),
        owner: Change::Set("bob"),
        status: Some(Status::Completed),
        active_form: Change::Clear,
        blocks: Some(vec!["4".into(), "\"".into()]),
        blocked_by: Some(Vec::new()),
        ..TaskChange::default()
    });
    let changed = Task::read(&changed).expect("still valid");
    assert_eq!(changed.subject().as_deref(), Some("a \"new\"\nsubject"));
    assert_eq!(changed.owner().as_deref(), Some("bob"));
    assert_eq!(changed.status(), Some(Status::Completed));
    assert_eq!(changed.field("activeForm"), None);
    assert_eq!(changed.blocks().expect("set"), ["4", "\""]);
    assert_eq!(changed.blocked_by().expect("set").len(), 0);
    let set = ["subject", "owner", "status", "activeForm", "blocks", "blockedBy"];
    for key in keys(bytes, &set) {
        assert_eq!(changed.field(&key), task.field(&key), "{key}");
    }

    let metadata = [("ours".to_owned(), Some(7.into())), ("gone".to_owned(), None)];
    let marked = task.with(&TaskChange { metadata: &metadata, ..TaskChange::default() });
    let marked = Task::read(&marked).expect("still valid");
    for key in keys(bytes, &["metadata"]) {
        assert_eq!(marked.field(&key), task.field(&key), "{key}");
    }
    let nested = |task: &Task<'_>| task.field("metadata").unwrap_or_default().to_owned();
    let (was, now) = (nested(&task), nested(&marked));
    let (was, now) = (Task::read(was.as_bytes()), Task::read(now.as_bytes()).expect("an object"));
    assert_eq!((now.field("ours"), now.field("gone")), (Some("7"), None));
    if let Ok(was) = was {
        for key in keys(was.bytes(), &["ours", "gone"]) {
            assert_eq!(now.field(&key), was.field(&key), "{key}");
        }
    }
}

/// Any text can be parsed. Writing a protocol message and parsing it again gives an equal message.
pub(crate) fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Body::Protocol(protocol) = Body::parse(&text) {
        let again = protocol.to_text();
        assert_eq!(Body::parse(&again), Body::Protocol(protocol));
    }
}

/// Checks the envelope of a message. `bytes` has the message's text, sender and summary, separated by NUL.
pub(crate) fn envelope(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\0');
    let (text, name, summary) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let name = name.unwrap_or("alice");
    for sender in [Sender::Member(name), Sender::Unverified(name), Sender::System] {
        one_envelope(&Envelope { sender, color: Some(Color::Pink), summary, text });
    }
}

/// An envelope has one opening and one closing tag, the opening tag is on one line, and unescaping gives the
/// original text.
pub(crate) fn one_envelope(envelope: &Envelope<'_>) {
    let shown = envelope.to_string();
    assert_eq!(shown.matches('<').count(), 2, "{shown}");
    let (head, rest) = shown.split_once('\n').expect("an opening tag on a line of its own");
    let inner = rest.strip_suffix("\n</teammate-message>").expect("a closing tag");
    assert_eq!(unescape(inner), envelope.text);
    let head = head.strip_prefix("<teammate-message teammate_id=\"").expect("an opening tag");
    let head = head.strip_suffix('>').expect("the end of the opening tag");
    assert!(!head.contains('>'), "{head}");
    assert!(!head.chars().any(char::is_control), "{head:?}");
    assert_eq!(head.matches('"').count() % 2, 1, "unbalanced quotes: {head}");
    let (id, attributes) = head.split_once('"').expect("the end of the id");
    let is_system = envelope.sender == Sender::System;
    assert_eq!(id == "system", is_system, "a sender impersonates `system`: {head}");
    if let Some(summary) = envelope.summary {
        let (_, value) = attributes.split_once(" summary=\"").expect("a summary");
        assert_eq!(unescape(value.split('"').next().expect("its value")), summary);
    }
}

/// Reverses the escaping of an envelope.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (found, len) = escape(after).unwrap_or(('&', 0));
        out.push(found);
        rest = &after[len..];
    }
    out + rest
}

fn escape(after: &str) -> Option<(char, usize)> {
    for (name, c) in [("amp;", '&'), ("lt;", '<'), ("gt;", '>'), ("quot;", '"')] {
        if after.starts_with(name) {
            return Some((c, name.len()));
        }
    }
    let digits = after.strip_prefix("#x")?.split_once(';')?.0;
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some((c, "#x;".len() + digits.len()))
}

/// A valid name is safe in a path, and parsing and printing a name does not change it.
pub(crate) fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for stem in [name::inbox_stem(&text), name::team_dir(&text)] {
        assert!(stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
    }
    if let Ok(name) = text.parse::<MemberName>() {
        assert_eq!(name.as_str(), text);
        assert_eq!(name::inbox_stem(&text), text);
        assert!(name.check_free([text.as_ref()]).is_err());
    }
    if let Ok(name) = text.parse::<TeamName>() {
        assert_eq!(name.as_str(), text);
        assert_eq!(name::team_dir(&text), text);
    }
    let same = |parsed: Option<String>| assert!(parsed.is_none_or(|parsed| parsed == text));
    same(text.parse::<AgentId>().ok().map(|id| id.to_string()));
    same(text.parse::<TaskId>().ok().map(|id| id.to_string()));
    same(text.parse::<RequestId>().ok().map(|id| id.to_string()));
}
