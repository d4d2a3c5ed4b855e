//! Changes to a task file, compared byte by byte.

use brigade_wire::body::Body;
use brigade_wire::change::Change::{self, Clear, Set};
use brigade_wire::inbox::Inbox;
use brigade_wire::name::TaskId;
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use serde_json::{Value, json};

use crate::files::{self, text};

/// Checks that a change to task file `before` gives `after`.
#[track_caller]
fn check_task(before: &str, change: &TaskChange<'_>, after: &str) {
    assert_eq!(text(&Task::read(before.as_bytes()).unwrap().with(change)), after);
}

fn owner(owner: Change<&str>) -> TaskChange<'_> {
    TaskChange { owner, ..TaskChange::default() }
}

#[test]
fn a_field_is_replaced_in_place() {
    let bob = owner(Set("bob"));
    check_task(r#"{"owner":"alice","x":1.0e2}"#, &bob, r#"{"owner":"bob","x":1.0e2}"#);
    check_task("{ \"owner\" :\t\"a\" , \"x\":1}\n", &bob, "{ \"owner\" :\t\"bob\" , \"x\":1}\n");
    check_task(r#"{"owner":null}"#, &bob, r#"{"owner":"bob"}"#);
    // If a key occurs twice, JavaScript uses the last value, so the last value is replaced.
    check_task(r#"{"owner":"x","owner":"y"}"#, &bob, r#"{"owner":"x","owner":"bob"}"#);
    check_task(r#"{"o\u0077ner":"x"}"#, &bob, r#"{"o\u0077ner":"bob"}"#);
}

#[test]
fn an_equal_value_keeps_its_spelling() {
    let bob = owner(Set("bob"));
    check_task(r#"{"owner":"b\u006fb"}"#, &bob, r#"{"owner":"b\u006fb"}"#);
    // The old owner is not valid UTF-8 and is read as `?`. Setting the owner to `?` must still replace the bytes.
    let odd = Task::read(b"{\"owner\":\"\xff\"}").unwrap();
    assert_eq!(odd.owner().unwrap(), "?");
    assert_eq!(text(&odd.with(&owner(Set("?")))), r#"{"owner":"?"}"#);
}

#[test]
fn a_new_field_is_added_at_the_end() {
    let bob = owner(Set("bob"));
    check_task(
        "{\n  \"id\": \"1\",\n  \"status\": \"pending\",\n  \"x\": [ 1 ]\n}",
        &bob,
        "{\n  \"id\": \"1\",\n  \"status\": \"pending\",\n  \"x\": [ 1 ],\n  \"owner\": \"bob\"\n}",
    );
    check_task(r#"{"id": "1", "y": 2}"#, &bob, r#"{"id": "1", "y": 2, "owner": "bob"}"#);
    check_task(r#"{"id":"1","y":2}"#, &bob, r#"{"id":"1","y":2,"owner":"bob"}"#);
    check_task("{}", &bob, "{\n  \"owner\": \"bob\"\n}");
    check_task("{ }\n", &bob, "{\n  \"owner\": \"bob\"\n}\n");
    check_task("{\r\n\t\"id\": 1\r\n}", &bob, "{\r\n\t\"id\": 1,\r\n\t\"owner\": \"bob\"\r\n}");
    check_task("{\n\n  \"id\": 1\n}", &bob, "{\n\n  \"id\": 1,\n  \"owner\": \"bob\"\n}");
}

#[test]
fn an_added_value_uses_the_indentation_of_the_document() {
    let blocks = TaskChange { blocks: Some(vec!["2".into()]), ..TaskChange::default() };
    check_task(
        "{\n    \"blocks\": []\n}",
        &blocks,
        "{\n    \"blocks\": [\n        \"2\"\n    ]\n}",
    );
    check_task(
        "{\r\n\t\"id\": \"1\"\r\n}",
        &blocks,
        "{\r\n\t\"id\": \"1\",\r\n\t\"blocks\": [\r\n\t\t\"2\"\r\n\t]\r\n}",
    );
    let metadata = [("a".to_owned(), Some(json!(1)))];
    let metadata = TaskChange { metadata: &metadata, ..TaskChange::default() };
    check_task(
        "{\r\n\t\"metadata\": {}\r\n}",
        &metadata,
        "{\r\n\t\"metadata\": {\r\n\t\t\"a\": 1\r\n\t}\r\n}",
    );
}

#[test]
fn a_field_is_removed_with_its_comma() {
    let unowned = owner(Clear);
    check_task(r#"{"owner":"a"}"#, &unowned, "{}");
    check_task(r#"{"owner":"a","x":1}"#, &unowned, r#"{"x":1}"#);
    check_task(r#"{"x":1,"owner":"a"}"#, &unowned, r#"{"x":1}"#);
    check_task(r#"{"x":1, "owner":"a", "y":2}"#, &unowned, r#"{"x":1, "y":2}"#);
    check_task(r#"{"owner":1,"x":1,"owner":2}"#, &unowned, r#"{"x":1}"#);
    check_task("{\n  \"x\": 1,\n  \"owner\": \"a\"\n}", &unowned, "{\n  \"x\": 1\n}");
    check_task(r#"{"x":1}"#, &unowned, r#"{"x":1}"#);
}

#[test]
fn several_changes_are_applied_together() {
    let change = TaskChange {
        subject: Some("two\nlines"),
        active_form: Clear,
        owner: Set("bob"),
        status: Some(Status::InProgress),
        blocks: Some(vec!["4".into(), "xyz".into()]),
        ..TaskChange::default()
    };
    check_task(
        "{\n  \"id\": \"1\",\n  \"subject\": \"s\",\n  \"activeForm\": \"f\",\n  \
         \"status\": \"pending\",\n  \"blocks\": [],\n  \"own\": 1e3\n}",
        &change,
        "{\n  \"id\": \"1\",\n  \"subject\": \"two\\nlines\",\n  \
         \"status\": \"in_progress\",\n  \"blocks\": [\n    \"4\",\n    \"xyz\"\n  ],\n  \
         \"own\": 1e3,\n  \"owner\": \"bob\"\n}",
    );
    // One change removes the only field and adds another.
    let change =
        TaskChange { owner: Clear, status: Some(Status::Pending), ..TaskChange::default() };
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
    // If a change has several entries for a key, the last one wins, with or without existing metadata.
    let twice = [("a", Some(1)), ("b", Some(1)), ("a", None), ("b", Some(2))];
    let twice = twice.map(|(key, value)| (key.to_owned(), value.map(Value::from)));
    let twice = TaskChange { metadata: &twice, ..TaskChange::default() };
    check_task(r#"{"id":"1"}"#, &twice, r#"{"id":"1","metadata":{"b":2}}"#);
    check_task(r#"{"metadata":{"x":0,"a":0}}"#, &twice, r#"{"metadata":{"x":0,"b":2}}"#);
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
fn a_new_task_has_the_bytes_that_claude_code_writes() {
    let task = NewTask {
        id: TaskId::new(7).unwrap(),
        subject: "é \u{7f} \u{2028} \u{1}",
        description: "d",
        active_form: None,
        owner: Some("bob"),
        status: Status::Pending,
        blocks: &[],
        blocked_by: &[TaskId::new(3).unwrap()],
        metadata: &[("z".to_owned(), json!(1)), ("a".to_owned(), json!({}))],
    };
    // The expected text is the output of `JSON.stringify(task, null, 2)` in JavaScript.
    let expected = "{\n  \"id\": \"7\",\n  \"subject\": \"é \u{7f} \u{2028} \\u0001\",\n  \
                    \"description\": \"d\",\n  \"owner\": \"bob\",\n  \"status\": \"pending\",\n  \
                    \"blocks\": [],\n  \"blockedBy\": [\n    \"3\"\n  ],\n  \"metadata\": {\n    \
                    \"z\": 1,\n    \"a\": {}\n  }\n}";
    assert_eq!(text(&task.to_bytes()), expected);
}

#[test]
fn a_task_that_claude_code_ignores_can_be_read() {
    let complete = json!({"id": "1", "subject": "s", "description": "d", "status": "pending",
                          "blocks": [], "blockedBy": []});
    let visible = |task: &Value| Task::read(task.to_string().as_bytes()).unwrap().is_visible();
    assert!(visible(&complete));
    for key in ["id", "subject", "description", "status", "blocks", "blockedBy"] {
        let mut task = complete.clone();
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

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(Inbox::read(deep.as_bytes()).unwrap().entries().len(), 1);
    let body = format!("{{\"type\":\"x\",\"y\":{deep}}}");
    let wrapped = format!("{{\"metadata\":{deep}}}");
    let change = owner(Set("bob"));
    assert!(Task::read(wrapped.as_bytes()).unwrap().with(&change).len() > wrapped.len());
    let unknown = Body::Unknown { kind: "x".to_owned() };
    assert_eq!(Body::parse(&body), unknown);
}
