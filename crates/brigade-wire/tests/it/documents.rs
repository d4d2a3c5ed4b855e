//! Changes to documents, byte by byte.

use brigade_wire::change::Change::{self, Clear, Set};
use brigade_wire::color::Color;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::member::{MemberChange, NewMember, NewTeam};
use brigade_wire::message::{Entry, NewMessage, Stamp};
use brigade_wire::name::{AgentId, TaskId};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use brigade_wire::team::{Team, TeamChange};
use brigade_wire::{Damage, Kind};
use serde_json::{Value, json};

use crate::files;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// A task before and after one change.
#[track_caller]
fn check_task(before: &str, change: &TaskChange<'_>, after: &str) {
    assert_eq!(text(Task::read(before.as_bytes()).unwrap().with(change)), after);
}

fn owner(owner: Change<&str>) -> TaskChange<'_> {
    TaskChange { owner, ..TaskChange::default() }
}

#[test]
fn a_field_is_replaced_where_it_stands() {
    let bob = owner(Set("bob"));
    check_task(r#"{"owner":"alice","x":1.0e2}"#, &bob, r#"{"owner":"bob","x":1.0e2}"#);
    check_task("{ \"owner\" :\t\"a\" , \"x\":1}\n", &bob, "{ \"owner\" :\t\"bob\" , \"x\":1}\n");
    check_task(r#"{"owner":null}"#, &bob, r#"{"owner":"bob"}"#);
    // JavaScript takes the last of two.
    check_task(r#"{"owner":"x","owner":"y"}"#, &bob, r#"{"owner":"x","owner":"bob"}"#);
    check_task(r#"{"o\u0077ner":"x"}"#, &bob, r#"{"o\u0077ner":"bob"}"#);
}

#[test]
fn a_value_that_is_already_there_keeps_its_spelling() {
    let bob = owner(Set("bob"));
    check_task(r#"{"owner":"b\u006fb"}"#, &bob, r#"{"owner":"b\u006fb"}"#);
}

#[test]
fn a_new_field_stands_where_claude_code_would_put_it() {
    let bob = owner(Set("bob"));
    check_task(
        "{\n  \"id\": \"1\",\n  \"status\": \"pending\",\n  \"x\": [ 1 ]\n}",
        &bob,
        "{\n  \"id\": \"1\",\n  \"owner\": \"bob\",\n  \"status\": \"pending\",\n  \"x\": [ 1 ]\n}",
    );
    check_task(r#"{"id": "1", "y": 2}"#, &bob, r#"{"id": "1", "y": 2, "owner": "bob"}"#);
    check_task(r#"{"id":"1","y":2}"#, &bob, r#"{"id":"1","y":2,"owner":"bob"}"#);
    check_task("{}", &bob, "{\n  \"owner\": \"bob\"\n}");
    check_task("{ }\n", &bob, "{\n  \"owner\": \"bob\"\n}\n");
    check_task("{\r\n\t\"id\": 1\r\n}", &bob, "{\r\n\t\"id\": 1,\r\n\t\"owner\": \"bob\"\r\n}");
    check_task("{\n\n  \"id\": 1\n}", &bob, "{\n\n  \"id\": 1,\n  \"owner\": \"bob\"\n}");
}

#[test]
fn a_field_is_taken_out_with_its_comma() {
    let nobody = owner(Clear);
    check_task(r#"{"owner":"a"}"#, &nobody, "{}");
    check_task(r#"{"owner":"a","x":1}"#, &nobody, r#"{"x":1}"#);
    check_task(r#"{"x":1,"owner":"a"}"#, &nobody, r#"{"x":1}"#);
    check_task(r#"{"x":1, "owner":"a", "y":2}"#, &nobody, r#"{"x":1, "y":2}"#);
    check_task(r#"{"owner":1,"x":1,"owner":2}"#, &nobody, r#"{"x":1}"#);
    check_task("{\n  \"x\": 1,\n  \"owner\": \"a\"\n}", &nobody, "{\n  \"x\": 1\n}");
    check_task(r#"{"x":1}"#, &nobody, r#"{"x":1}"#);
}

#[test]
fn several_changes_at_once() {
    let blocks = ["4".to_owned(), "xyz".to_owned()];
    let change = TaskChange {
        subject: Set("two\nlines"),
        active_form: Clear,
        owner: Set("bob"),
        status: Set(Status::InProgress),
        blocks: Set(&blocks),
        ..TaskChange::default()
    };
    check_task(
        "{\n  \"id\": \"1\",\n  \"subject\": \"s\",\n  \"activeForm\": \"f\",\n  \
         \"status\": \"pending\",\n  \"blocks\": [],\n  \"own\": 1e3\n}",
        &change,
        "{\n  \"id\": \"1\",\n  \"subject\": \"two\\nlines\",\n  \"owner\": \"bob\",\n  \
         \"status\": \"in_progress\",\n  \"blocks\": [\n    \"4\",\n    \"xyz\"\n  ],\n  \
         \"own\": 1e3\n}",
    );
    // Everything there goes and something else comes.
    let change = TaskChange { owner: Clear, status: Set(Status::Pending), ..TaskChange::default() };
    check_task("{\n  \"owner\": 1\n}", &change, "{\n  \"status\": \"pending\"\n}");
}

#[test]
fn metadata_is_merged_key_by_key() {
    let metadata = [
        ("mine".to_owned(), Some(json!({"a": [1]}))),
        ("old".to_owned(), None),
        ("quo\"te".to_owned(), Some(Value::Null)),
    ];
    let change = TaskChange { metadata: &metadata, ..TaskChange::default() };
    check_task(
        "{\n  \"metadata\": {\n    \"theirs\": 1.50,\n    \"old\": true\n  }\n}",
        &change,
        "{\n  \"metadata\": {\n    \"theirs\": 1.50,\n    \"mine\": {\n      \"a\": [\n        1\n      \
         ]\n    },\n    \"quo\\\"te\": null\n  }\n}",
    );
    check_task(
        r#"{"id":"1"}"#,
        &change,
        r#"{"id":"1","metadata":{"mine":{"a":[1]},"quo\"te":null}}"#,
    );
    let only_old = TaskChange { metadata: &metadata[1..2], ..TaskChange::default() };
    check_task(r#"{"id":"1"}"#, &only_old, r#"{"id":"1"}"#);
    check_task(
        "{\n  \"metadata\": {}\n}",
        &change,
        "{\n  \"metadata\": {\n    \"mine\": {\n      \"a\": [\n        1\n      ]\n    },\n    \
         \"quo\\\"te\": null\n  }\n}",
    );
}

#[test]
fn a_new_task_has_claude_codes_bytes() {
    let task = NewTask {
        id: TaskId::new(7).unwrap(),
        subject: "é \u{7f} \u{2028} \u{1}",
        description: "d",
        active_form: None,
        owner: Some("bob"),
        status: Status::Pending,
        blocks: &[],
        blocked_by: &["3".to_owned()],
        metadata: &[("z".to_owned(), json!(1)), ("a".to_owned(), json!({}))],
    };
    // What JSON.stringify(task, null, 2) prints for the same task.
    let expected = "{\n  \"id\": \"7\",\n  \"subject\": \"é \u{7f} \u{2028} \\u0001\",\n  \
                    \"description\": \"d\",\n  \"owner\": \"bob\",\n  \"status\": \"pending\",\n  \
                    \"blocks\": [],\n  \"blockedBy\": [\n    \"3\"\n  ],\n  \"metadata\": {\n    \
                    \"z\": 1,\n    \"a\": {}\n  }\n}";
    assert_eq!(text(task.to_bytes()), expected);
}

#[test]
fn a_task_claude_code_cannot_see_can_still_be_read() {
    let whole = json!({"id": "1", "subject": "s", "description": "d", "status": "pending",
                       "blocks": [], "blockedBy": []});
    let visible = |task: &Value| Task::read(task.to_string().as_bytes()).unwrap().is_visible();
    assert!(visible(&whole));
    for key in ["id", "subject", "description", "status", "blocks", "blockedBy"] {
        let mut task = whole.clone();
        task.as_object_mut().unwrap().remove(key);
        assert!(!visible(&task), "without {key}");
        task[key] = json!(7);
        assert!(!visible(&task), "with a number as {key}");
    }
    let odd = files::one("claude-code/2.1.50/tolerance-end/tasks/tol/30.json");
    let odd = Task::read(&odd).unwrap();
    assert_eq!(
        (odd.is_visible(), odd.status(), odd.field("status")),
        (false, None, Some("\"blocked\""))
    );
}

const VARIANT: &str = r#"{
  "teamName": "macos-cleaner-chat",
  "description": "macOS Cleaner AI Chat",
  "members": [
    {
      "name": "assistant",
      "agentId": "assistant@macos-cleaner-chat",
      "agentType": "claude-code",
      "prompt": "You are the AI assistant"
    }
  ]
}"#;

#[test]
fn the_team_name_variant_is_read_and_written_under_its_own_key() {
    let team = Team::read(VARIANT.as_bytes()).unwrap();
    assert_eq!(team.name().unwrap(), "macos-cleaner-chat");
    assert_eq!(team.generation(), Generation::Old);
    assert_eq!((team.created_at(), team.lead_agent_id()), (None, None));
    assert!(!team.member("assistant").unwrap().is_lead());
    let renamed = team.with(&TeamChange { name: Set("x"), ..TeamChange::default() });
    assert_eq!(text(renamed), VARIANT.replace("\"macos-cleaner-chat\"", "\"x\""));
    let idle = MemberChange { is_active: Set(false), ..MemberChange::default() };
    assert_eq!(
        text(team.with_member_changed("assistant", &idle).unwrap()),
        VARIANT.replace("assistant\"\n    }", "assistant\",\n      \"isActive\": false\n    }")
    );
}

#[test]
fn a_team_of_each_generation_is_told_apart_and_read() {
    let new = files::one("claude-code/2.1.325/0030-teams__session-e04d42a1__config.json");
    let new = Team::read(&new).unwrap();
    assert_eq!(new.generation(), Generation::New);
    let lead = new.lead_process().unwrap();
    assert_eq!((lead.pid, lead.claimed_at), (Some(30460), Some(1_794_699_646_904)));
    assert_eq!(lead.pid_space.as_deref(), Some("vm#pid:[4026531836]"));
    assert_eq!(lead.proc_start.as_deref(), Some("81574"));
    assert!(new.member("team-lead").unwrap().is_lead());
    assert_eq!(new.member("alice").unwrap().is_active(), Some(true));

    let old = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let old = Team::read(&old).unwrap();
    assert_eq!(old.generation(), Generation::Old);
    assert_eq!(old.lead_agent_id().unwrap(), "team-lead@tol");
    assert_eq!(old.field("x_top"), Some("{\n    \"keep\": 1\n  }"));
    assert_eq!(old.member("carol").unwrap().field("x_extra"), Some("\"keep me\""));
}

#[test]
fn a_late_change_does_not_bring_back_a_removed_member() {
    let bytes = files::one("claude-code/2.1.50/tolerance-end/teams/tol/config.json");
    let gone = Team::read(&bytes).unwrap().without_member("carol");
    let gone = Team::read(&gone).unwrap();
    assert!(gone.member("carol").is_none());
    let active = MemberChange { is_active: Set(true), ..MemberChange::default() };
    assert_eq!(gone.with_member_changed("carol", &active), None);
    assert_eq!(gone.without_member("carol"), gone.bytes());
}

#[test]
fn members_come_and_go_whatever_the_layout() {
    let agent_id: AgentId = "bob@t".parse().unwrap();
    let bob = NewMember {
        agent_id: &agent_id,
        agent_type: "codex",
        model: "m",
        prompt: "p",
        color: Color::Green,
        plan_mode_required: false,
        joined_at: 5,
        tmux_pane_id: "",
        cwd: "/",
        backend_type: Some("process"),
        is_active: None,
    };
    let old = r#"{"agentId":"bob@t","name":"bob","agentType":"codex","model":"m","prompt":"p","color":"green","planModeRequired":false,"joinedAt":5,"tmuxPaneId":"","cwd":"/","subscriptions":[],"backendType":"process"}"#;
    let new = r#"{"agentId":"bob@t","name":"bob","color":"green","joinedAt":5,"tmuxPaneId":"","subscriptions":[],"agentType":"codex","model":"m","prompt":"p","planModeRequired":false,"cwd":"/","backendType":"process"}"#;
    let check = |before: &str, after: String| {
        let with = Team::read(before.as_bytes()).unwrap().with_member(&bob);
        assert_eq!(text(with.clone()), after);
        Team::read(&with).unwrap().without_member("bob")
    };
    let empty = r#"{"name":"t","members":[]}"#;
    assert_eq!(check(empty, format!(r#"{{"name":"t","members":[{old}]}}"#)), empty.as_bytes());
    let one = r#"{"name":"session-0123abcd","members":[{"name":"x"}],"y":1}"#;
    let both = format!(r#"{{"name":"session-0123abcd","members":[{{"name":"x"}},{new}],"y":1}}"#);
    assert_eq!(check(one, both), one.as_bytes());
    check(r#"{"name":"t"}"#, format!(r#"{{"name":"t","members":[{old}]}}"#));
    let lines: Value = serde_json::from_str(old).unwrap();
    let added =
        Team::read(b"{\n  \"name\": \"t\",\n  \"members\": []\n}").unwrap().with_member(&bob);
    let added: Value = serde_json::from_slice(&added).unwrap();
    assert_eq!(added["members"], json!([lines]));
}

#[test]
fn a_new_team_can_be_read_back() {
    let name = "demo".parse().unwrap();
    let bytes = NewTeam {
        name: &name,
        description: "a \"demo\"",
        created_at: 1_794_700_808_289,
        lead_session_id: "s",
        lead_model: "m",
        lead_cwd: "/p",
    }
    .to_bytes();
    let team = Team::read(&bytes).unwrap();
    assert_eq!(team.description().unwrap(), "a \"demo\"");
    assert_eq!(team.created_at(), Some(1_794_700_808_289));
    assert_eq!(team.members().map(|member| member.is_lead()).collect::<Vec<_>>(), [true]);
}

#[test]
fn numbers_are_read_as_javascript_reads_them() {
    let created_at = |number: &str| {
        let bytes = format!("{{\"createdAt\":{number}}}");
        Team::read(bytes.as_bytes()).unwrap().created_at()
    };
    assert_eq!(created_at("1770535107409"), Some(1_770_535_107_409));
    assert_eq!(created_at("1770535107409.0"), Some(1_770_535_107_409));
    assert_eq!(created_at("1.770535107409e12"), Some(1_770_535_107_409));
    for odd in ["-1", "0.5", "1e300", "1e999", "\"1\"", "null"] {
        assert_eq!(created_at(odd), None, "{odd}");
    }
}

fn message(text: &str) -> NewMessage<'_> {
    NewMessage {
        from: "alice",
        text,
        summary: None,
        timestamp: "2026-11-15T00:00:29.290Z",
        color: None,
        read: false,
        stamp: Stamp::Old { msg_id: None },
    }
}

/// An inbox before and after a message was appended, by splice and by parse.
#[track_caller]
fn check_append(before: &str, after: &str) {
    let mut spliced = before.as_bytes().to_vec();
    inbox::append(&mut spliced, &[message("x")]).unwrap();
    assert_eq!(text(spliced), after);
    let parsed = Inbox::read(before.as_bytes()).unwrap().with_appended(&[message("x")]);
    assert_eq!(text(parsed), after);
}

#[test]
fn appended_messages_are_laid_out_like_those_there() {
    const ONE: &str = "{\n    \"from\": \"alice\",\n    \"text\": \"x\",\n    \
                       \"timestamp\": \"2026-11-15T00:00:29.290Z\",\n    \"read\": false\n  }";
    let compact =
        r#"{"from":"alice","text":"x","timestamp":"2026-11-15T00:00:29.290Z","read":false}"#;
    check_append("[]", &format!("[\n  {ONE}\n]"));
    check_append("[\n]\n", &format!("[\n  {ONE}\n]\n"));
    check_append(&format!("[\n  {ONE}\n]"), &format!("[\n  {ONE},\n  {ONE}\n]"));
    check_append("[{}]", &format!("[{{}},{compact}]"));
    check_append("[{}, {}] ", &format!("[{{}}, {{}}, {compact}] "));
    check_append("[\n  {\n  }\n]", &format!("[\n  {{\n  }},\n  {ONE}\n]"));
}

#[test]
fn a_torn_inbox_is_never_appended_to() {
    let mut whole = inbox::EMPTY.to_vec();
    let text = "ends like an inbox: \n  }\n]";
    inbox::append(&mut whole, &[message(text), message(text)]).unwrap();
    for len in 0..whole.len() {
        let mut torn = whole[..len].to_vec();
        assert!(inbox::append(&mut torn, &[message("x")]).is_err(), "cut at {len}");
        assert_eq!(torn, &whole[..len], "left as it was");
    }
}

#[test]
fn a_message_of_each_generation_has_claude_codes_bytes() {
    let mut old = message("t");
    old.summary = Some("s");
    old.color = Some(Color::Blue);
    let json = |message: &NewMessage<'_>| serde_json::to_string(message).unwrap();
    assert_eq!(
        json(&old),
        r#"{"from":"alice","text":"t","summary":"s","timestamp":"2026-11-15T00:00:29.290Z","color":"blue","read":false}"#
    );
    let marked = NewMessage { stamp: Stamp::Old { msg_id: Some("i") }, ..old.clone() };
    assert!(json(&marked).ends_with(r#""read":false,"msg_id":"i"}"#));
    let signed = Stamp::New { msg_id: "i", lead_sig: Some("g") };
    assert_eq!(
        json(&NewMessage { stamp: signed, ..old }),
        r#"{"from":"alice","text":"t","summary":"s","timestamp":"2026-11-15T00:00:29.290Z","color":"blue","msgV":1,"msg_id":"i","type":"message","read":false,"lead_sig":"g"}"#
    );
}

#[test]
fn one_bad_entry_does_not_spoil_the_others() {
    let before = r#"[7, {"from":"a"}, {"from":"a","content":"c","timestamp":"t","read":false}, null,
        {"from":"b","text":"x","timestamp":"t","read":"no"}]"#;
    let inbox = Inbox::read(before.as_bytes()).unwrap();
    let shown: Vec<String> = inbox
        .entries()
        .map(|entry| match entry {
            Entry::Message(message) => format!("{}: {}", message.from(), message.text()),
            Entry::Other(json) => format!("other: {json}"),
        })
        .collect();
    assert_eq!(shown[..4], ["other: 7", "other: {\"from\":\"a\"}", "a: c", "other: null"]);
    assert!(shown[4].starts_with("other: {\"from\":\"b\""));
    assert_eq!(text(inbox.with_read(|_| true)), before.replace("false", "true"));
}

#[test]
fn halves_of_pairs_and_bytes_that_are_not_utf8_are_read_and_kept() {
    let mut bytes =
        br#"[{"from":"a","text":"cut \ud83d","timestamp":"t","read":false},{"from":"b","text":""#
            .to_vec();
    bytes.extend_from_slice(b"\xff\xfe\",\"timestamp\":\"t\",\"read\":false}]");
    let inbox = Inbox::read(&bytes).unwrap();
    let texts: Vec<String> = inbox.messages().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["cut \u{fffd}", "??"]);
    let read = inbox.with_read(|message| message.from() == "b");
    let kept = bytes.len() - b"false}]".len();
    assert_eq!(read[..kept], bytes[..kept], "the odd bytes are as they were");
    assert_eq!(read[kept..], *b"true}]");
}

#[test]
fn entries_leave_with_their_commas() {
    let check = |before: &str, keep: &[bool], after: &str| {
        let mut keep = keep.iter();
        let inbox = Inbox::read(before.as_bytes()).unwrap();
        assert_eq!(text(inbox.retain(|_| *keep.next().unwrap())), after);
    };
    check("[1, 2 ,3]", &[true, true, true], "[1, 2 ,3]");
    check("[1, 2 ,3]", &[false, true, true], "[2 ,3]");
    check("[1, 2 ,3]", &[true, false, true], "[1, 3]");
    check("[1, 2 ,3]", &[true, true, false], "[1, 2]");
    check("[1, 2 ,3]", &[true, false, false], "[1]");
    check("[1, 2 ,3]", &[false, false, true], "[3]");
    check("[1, 2 ,3]", &[false, true, false], "[2]");
    check("[1, 2 ,3]\n", &[false, false, false], "[]\n");
    check("[\n  1,\n  2\n]", &[true, false], "[\n  1\n]");
}

#[test]
fn what_is_not_whole_says_how() {
    let check = |bytes: &[u8], damage: Damage| {
        assert_eq!(Inbox::read(bytes).unwrap_err(), damage);
        let mut image = bytes.to_vec();
        assert_eq!(inbox::append(&mut image, &[message("x")]), Err(damage));
        assert_eq!(image, bytes);
    };
    check(b"", Damage::Blank);
    check(b" \n", Damage::Blank);
    check(b"[{", Damage::CutOff { len: 2 });
    check(b"[]]", Damage::Tail { end: 2 });
    check(b"[1 2]", Damage::Syntax { line: 1, column: 4 });
    check(b"\xef\xbb\xbf[]", Damage::Syntax { line: 1, column: 1 });
    check(b"{}", Damage::Shape { expected: "an array of messages", found: Kind::Object });
    assert_eq!(
        Task::read(b"[]").unwrap_err().to_string(),
        "expected a task object, found an array"
    );
    assert_eq!(
        Team::read(b"{\"members\":{}}").unwrap_err().to_string(),
        "expected an array of members, found an object"
    );
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(Inbox::read(deep.as_bytes()).unwrap().entries().len(), 1);
    let body = format!("{{\"type\":\"x\",\"y\":{deep}}}");
    let wrapped = format!("{{\"metadata\":{deep}}}");
    let change = owner(Set("bob"));
    assert!(Task::read(wrapped.as_bytes()).unwrap().with(&change).len() > wrapped.len());
    let unknown = brigade_wire::body::Body::Unknown { kind: "x".to_owned() };
    assert_eq!(brigade_wire::body::Body::parse(&body), unknown);
}
