//! The text of a permission request: it shows the whole request, and it determines what runs.

mod decode;

use brigade_core::action::{AgentAction, RenderLimit, text_of};
use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::event::{Record, UncheckedRecord};
use brigade_testkit::hostile::{HOSTILE, assert_safe_for_terminal, long_strings};
use brigade_testkit::permission_requests::{VendorRequest, recorded};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use self::decode::decode;

const TOOLS: &[&str] = &[
    "Bash",
    "Write",
    "WebFetch",
    "commandExecution",
    "fileChange",
    "execute",
    "mcp__server__tool",
    "server/tool",
    "other",
    "a: run a command",
    "x\ny",
];
/// Names of fields, some of which look like the text that brigade writes.
const KEYS: &[&str] = &[
    "command",
    "cwd",
    "url",
    "file_path",
    "description",
    "dangerouslyDisableSandbox",
    "additionalPermissions",
    "working directory",
    "with the request",
    "(the whole input)",
    "a",
    "a.b",
    "a[0]",
    "a: 1",
    "",
    "$",
    "|",
    "\"",
    "\\",
    "\n",
    "\u{202e}",
];
/// Values that look like other values, or like other lines.
const STRINGS: &[&str] = &[
    "",
    " ",
    "ls",
    "ls ",
    "null",
    "5",
    "\"ls\"",
    "ls\n",
    "ls\nid",
    "ls\n# a: 1",
    "# a: 1",
    "ls\n  $ id",
    "a: 1\nb: 2",
    "with the request:\n  a: 1",
    "[\"ls\"]",
    "{}",
    "\\u{202e}",
    "\u{202e}",
    "a\tb",
    "a⇥b",
    "/abs",
    "rel",
    "\\",
    "\\\"",
];

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => prop::sample::select(STRINGS).prop_map(str::to_owned),
        1 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        6 => string().prop_map(Value::String),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => any::<i64>().prop_map(|number| json!(number)),
        1 => (0..3_u64).prop_map(|number| json!(number)),
        // The parser of serde_json is not exact for all numbers, but for these.
        1 => any::<i16>().prop_map(|number| json!(f64::from(number) / 8.0)),
        1 => Just(Value::Null),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            fields(inner).prop_map(Value::Object),
        ]
    })
}

fn fields(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        8 => prop::sample::select(KEYS).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::btree_map(name, value, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn action() -> impl Strategy<Value = AgentAction> {
    let tool = prop_oneof![
        9 => prop::sample::select(TOOLS).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let input = prop_oneof![6 => fields(json_value()).prop_map(Value::Object), 1 => json_value()];
    let request = prop_oneof![
        2 => Just(Value::Null),
        3 => fields(json_value()).prop_map(Value::Object),
        1 => json_value(),
    ];
    let cwd = prop::option::of(string());
    (tool, input, request, cwd).prop_map(|(tool, input, request, cwd)| {
        AgentAction::new(&tool, &input, &request, cwd.as_deref())
    })
}

/// Two actions of which the second often differs from the first in one place.
fn pair() -> impl Strategy<Value = (AgentAction, AgentAction)> {
    let small = || {
        let value = prop_oneof![
            8 => prop::sample::select(STRINGS).prop_map(|string| json!(string)),
            1 => Just(json!(5)),
            1 => Just(Value::Null),
            1 => Just(json!(["ls"])),
        ];
        let tool = prop::sample::select(&["Bash", "execute", "other"][..]);
        let more = prop::option::of((prop::sample::select(KEYS), value.clone()));
        let cwd = prop::sample::select(&[None, Some("/abs"), Some("rel")][..]);
        (tool, value, more, any::<bool>(), cwd).prop_map(|(tool, command, more, outside, cwd)| {
            let mut input = json!({ "command": command });
            let mut request = json!({});
            if let Some((name, value)) = more {
                let place = if outside { &mut request } else { &mut input };
                place[name] = value;
            }
            AgentAction::new(tool, &input, &request, cwd)
        })
    };
    (small(), small())
}

/// How many blanks stand before the first other character.
fn blanks(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Law: the text determines the action, because the action can be computed from the text.
    #[test]
    fn finding_15_what_is_shown_determines_what_runs(action in action()) {
        let text = text_of(&action.render(None));
        prop_assert_eq!(decode(&text), action, "{}", text);
    }

    #[test]
    fn finding_15_equal_texts_are_of_equal_actions((one, other) in pair()) {
        if one != other {
            prop_assert_ne!(text_of(&one.render(None)), text_of(&other.render(None)));
            prop_assert_ne!(one.dialog("why"), other.dialog("why"));
        }
    }

    #[test]
    fn finding_15_the_text_is_safe_at_every_width(action in action(), width in 1_usize..120) {
        let limit = RenderLimit { lines: 2, characters: 20, values: 3, hint: "see all" };
        for lines in [action.render(None), action.render(Some(limit))] {
            let deepest = lines.iter().map(|line| blanks(&line.prefix)).max().unwrap_or_default();
            for line in &lines {
                let whole = format!("{}{}", line.prefix, line.text);
                let parts = line.wrapped(width);
                parts.iter().for_each(|part| assert_safe_for_terminal(part, "a wrapped line"));
                // A later part is indented more than any line of its own.
                prop_assert!(parts.iter().skip(1).all(|part| blanks(part) > deepest || part.is_empty()));
                let joined: String = parts.iter().flat_map(|part| part.chars()).filter(|c| *c != ' ').collect();
                prop_assert_eq!(joined, whole.replace(' ', ""));
            }
            prop_assert!(!text_of(&lines).contains('\t'));
        }
    }
}

fn action_of(request: &VendorRequest) -> AgentAction {
    let VendorRequest { tool, input, request, .. } = request;
    AgentAction::new(tool, input, request, Some("/home/dev/project"))
}

#[test]
fn finding_15_every_vendors_request_is_shown_whole() {
    for request in recorded() {
        let action = action_of(&request);
        request.assert_shown_in(&text_of(&action.render(None)), "the text");
        let dialog = action.dialog(&request.description);
        // These are the names of the two texts in the dialog, too.
        let dialog = format!("description: {}\ncommand: {}", dialog.description, dialog.command);
        request.assert_shown_in(&dialog, "Claude Code's dialog");
    }
}

#[test]
fn n23_the_dialog_begins_with_the_command() {
    let shell = ["Bash", "commandExecution", "execute"];
    let mut agents = Vec::new();
    let requests = recorded();
    for request in requests.iter().filter(|request| shell.contains(&request.tool.as_str())) {
        let Some(command) = request.input["command"].as_str() else { continue };
        let dialog = action_of(request).dialog(&request.description);
        assert_eq!(dialog.command.lines().next(), Some(command), "{}", request.agent);
        agents.push(request.agent.as_str());
    }
    agents.dedup();
    assert_eq!(
        agents,
        ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "acp:claude-agent-acp"]
    );
}

#[test]
fn finding_15_hostile_text_is_made_visible_everywhere() {
    for hostile in HOSTILE.iter().map(|text| (*text).to_owned()).chain(long_strings()) {
        let input =
            json!({ "command": hostile, &hostile: { "x": [hostile, 1] }, "content": hostile });
        for tool in ["Bash", "Write", hostile.as_str()] {
            let action = AgentAction::new(tool, &input, &input, Some(&hostile));
            let dialog = action.dialog(&hostile);
            for text in [
                text_of(&action.render(None)),
                action.summary(),
                dialog.command,
                dialog.description,
            ] {
                assert_safe_for_terminal(&text, &hostile);
            }
            assert_safe_for_terminal(&action.summary().replace('\n', "\u{1b}"), "a line break");
        }
    }
}

#[test]
fn a_summary_shows_the_first_line_of_a_command_and_is_short() {
    let summary = |command: Value| {
        AgentAction::new("Bash", &json!({ "command": command }), &Value::Null, None).summary()
    };
    for (command, expected) in [
        (json!("make"), "run: make"),
        (json!("make\n"), "run: make"),
        (json!("\ncat > a <<X\none\u{1b}\nX\n"), "run: cat > a <<X … (+2 lines)"),
        (json!("a\u{202e}\nb"), "run: a\\u{202e} … (+1 line)"),
        (json!(["sh", "-c", "a\nb\nc"]), "run: [\"sh\", \"-c\", \"a … (+2 lines)\"]"),
    ] {
        assert_eq!(summary(command), expected);
    }
    let long = "x".repeat(1_000);
    let cut = format!("run: {}…", "x".repeat(99));
    assert_eq!(summary(json!(long)), cut);
    let cut = format!("run: {}… (+1 line)", "x".repeat(89));
    assert_eq!(summary(json!(format!("{long}\n{long}"))), cut);
    let input = json!({ "file_path": long, "content": "a" });
    for tool in ["Write", "WebFetch", &long] {
        let summary = AgentAction::new(tool, &input, &Value::Null, None).summary();
        assert!(summary.chars().count() < 300, "{summary}");
    }
}

#[test]
fn finding_15_a_cut_value_says_how_much_is_cut() {
    let input = json!({ "command": "x".repeat(50), "content": "a\nb\nc\nd", "more": [{ "a": 1 }, { "a": 2 }] });
    let action = AgentAction::new("Bash", &input, &Value::Null, None);
    let limit = RenderLimit { lines: 2, characters: 30, values: 2, hint: "see all" };
    let text = text_of(&action.render(Some(limit)));
    let x = "x".repeat(30);
    let expected = format!(
        "Bash: run a command\ncommand:\n  $ {x}\n  [20 more characters; see all]\ncontent:\n  | a\n  | b\n  \
         [2 more characters in 2 more lines; see all]\nmore[0].a: 1\n[1 more value; see all]"
    );
    assert_eq!(text, expected);
}

/// The digest that an answer names must cover all that is shown.
#[test]
fn finding_15_the_digest_covers_every_shown_field() {
    let request = recorded().into_iter().find(|request| !request.request.is_null()).unwrap();
    let approval = |message: &Value| {
        let message = json!({
            "from": "bob", "text": message.to_string(), "timestamp": "2026-11-15T12:00:00.000Z", "read": false,
        });
        let event =
            json!({ "seen": { "to": "team-lead", "key": "0".repeat(16), "message": message } });
        let record = json!({ "at": "2026-11-15T12:00:00Z", "event": event });
        let record: UncheckedRecord = serde_json::from_str(&record.to_string()).unwrap();
        let record: Record = record.from_document();
        Approval::from_record(&record, 1).unwrap()
    };
    let shown = |approval: &Approval| match &approval.subject {
        ApprovalSubject::Permission { action, .. } => text_of(&action.render(None)),
        ApprovalSubject::Plan { .. } => panic!("a plan"),
    };
    let message = request.message("perm-1");
    let first = approval(&message);
    for (pointer, value) in [
        ("/brigade/tool", json!("another")),
        ("/brigade/cwd", json!("/another")),
        ("/brigade/input", json!({ "command": "another" })),
        ("/brigade/request", json!({ "grantRoot": "/" })),
    ] {
        let mut changed = message.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let changed = approval(&changed);
        assert_ne!(shown(&first), shown(&changed), "{pointer}");
        assert_ne!(first.digest, changed.digest, "{pointer}");
    }
}

#[test]
fn the_directory_of_a_command_is_its_own_or_the_agents() {
    let check = |input: Value, cwd: Option<&str>, expected: Option<&str>| {
        let directory = AgentAction::new("Bash", &input, &Value::Null, cwd).directory();
        assert_eq!(directory.as_deref(), expected, "{input}");
    };
    check(json!({ "command": "ls" }), Some("/w"), Some("/w"));
    check(json!({ "command": "ls" }), None, None);
    check(json!({ "command": "ls", "cwd": "/x" }), Some("/w"), Some("/x"));
    check(json!({ "command": "ls", "workdir": "x" }), Some("/w"), Some("/w/x"));
    check(json!({ "command": "ls", "cwd": "/x", "workdir": "/y" }), Some("/w"), None);
    check(json!({ "command": "ls", "cwd": 5 }), Some("/w"), None);
}

/// An input that cannot be represented must not be shown as null.
#[test]
fn finding_15_an_input_that_cannot_be_parsed_is_shown_as_text() {
    let text = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"bob","tool_name":"Bash","tool_use_id":"t","description":"d","input":{"command":"ls","timeout":1e999},"permission_suggestions":[]}"#;
    let brigade_wire::body::Body::Protocol(brigade_wire::protocol::Protocol::PermissionRequest(
        asked,
    )) = brigade_wire::body::Body::parse(text)
    else {
        panic!("not a request")
    };
    let shown = text_of(&AgentAction::from_message(&asked).render(None));
    assert_eq!(
        shown,
        "Bash: use this tool\n(the whole input):\n  | {\"command\":\"ls\",\"timeout\":1e999}"
    );
}
