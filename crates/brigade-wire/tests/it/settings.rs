//! Changes Claude Code settings, and undoes the changes byte for byte.

use std::borrow::Cow;

use brigade_wire::Damage;
use brigade_wire::settings::{EMPTY, SettingChange, SettingPath, SettingsFile};
use serde_json::{Value, json};

use crate::files::text;

const MODE: SettingPath<'static> = SettingPath { section: None, key: "teammateMode" };
const TEAMS: SettingPath<'static> = SettingPath { section: Some("env"), key: "TEAMS" };
const PATH: SettingPath<'static> = SettingPath { section: Some("env"), key: "PATH" };

/// Returns the settings file `before` with these changes.
fn with(before: &str, changes: &[(SettingPath<'_>, Option<Value>)]) -> String {
    let changes: Vec<SettingChange<'_>> = changes
        .iter()
        .map(|(place, value)| SettingChange { place: *place, value: value.as_ref() })
        .collect();
    text(&SettingsFile::read(before.as_bytes()).unwrap().with(&changes).unwrap()).to_owned()
}

/// Sets three settings, checks the result, and undoes the change.
#[track_caller]
fn check_set_and_undo(before: &str, after: &str) {
    let view = SettingsFile::read(before.as_bytes()).unwrap();
    let creates_section = !view.has("env");
    let values = [(MODE, json!("tmux")), (TEAMS, json!("1")), (PATH, json!("/b in/x"))];
    let set: Vec<_> = values.iter().map(|(place, value)| (*place, Some(value.clone()))).collect();
    let was: Vec<_> = values.iter().map(|(place, _)| (*place, view.get(*place))).collect();
    let changed = with(before, &set);
    assert_eq!(changed, after);
    let back = with(&changed, &was);
    let back = SettingsFile::read(back.as_bytes()).unwrap();
    let back =
        if creates_section { back.without_empty(&["env"]) } else { Cow::Borrowed(back.bytes()) };
    assert_eq!(text(&back), before);
}

#[test]
fn a_new_setting_is_formatted_like_its_neighbours() {
    check_set_and_undo(
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n  \"model\": \"opus\",\n  \"teammateMode\": \"tmux\",\n  \"env\": {\n    \"TEAMS\": \
         \"1\",\n    \"PATH\": \"/b in/x\"\n  }\n}\n",
    );
    check_set_and_undo(
        "{\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t},\n\t\"z\": 1.50e3\n}",
        "{\n\t\"env\": {\n\t\t\"A\": \"1\",\n\t\t\"TEAMS\": \"1\",\n\t\t\"PATH\": \"/b in/x\"\n\t},\
         \n\t\"z\": 1.50e3,\n\t\"teammateMode\": \"tmux\"\n}",
    );
    check_set_and_undo(
        r#"{"env":{},"permissions":{"allow":[ ]}}"#,
        r#"{"env":{"TEAMS":"1","PATH":"/b in/x"},"permissions":{"allow":[ ]},"teammateMode":"tmux"}"#,
    );
}

#[test]
fn undoing_restores_the_previous_values() {
    check_set_and_undo(
        "{\n  \"teammateMode\": \"auto\",\n  \"env\": {\n    \"PATH\": \"mine\",\n    \"B\": \"\"\n  }\n}\n",
        "{\n  \"teammateMode\": \"tmux\",\n  \"env\": {\n    \"PATH\": \"/b in/x\",\n    \"B\": \"\",\n    \
         \"TEAMS\": \"1\"\n  }\n}\n",
    );
}

#[test]
fn settings_can_be_added_to_an_empty_file() {
    let made = with(text(EMPTY), &[(TEAMS, Some(json!("1")))]);
    assert_eq!(made, "{\n  \"env\": {\n    \"TEAMS\": \"1\"\n  }\n}\n");
    let back = with(&made, &[(TEAMS, None)]);
    let back = SettingsFile::read(back.as_bytes()).unwrap().without_empty(&["env"]).into_owned();
    assert!(SettingsFile::read(&back).unwrap().is_empty(), "{}", text(&back));
}

#[test]
fn an_equal_value_keeps_its_spelling() {
    let before = br#"{"env": {"TEAMS": "\u0031"}, "teammateMode": "tmux"}"#;
    let settings = SettingsFile::read(before).unwrap();
    let (one, tmux) = (json!("1"), json!("tmux"));
    let changes = [
        SettingChange { place: TEAMS, value: Some(&one) },
        SettingChange { place: MODE, value: Some(&tmux) },
        SettingChange { place: PATH, value: None },
    ];
    assert!(matches!(settings.with(&changes), Ok(Cow::Borrowed(_))));
    assert!(matches!(settings.without_empty(&["env", "other"]), Cow::Borrowed(_)));
}

#[test]
fn a_section_that_is_not_an_object_is_not_replaced() {
    let settings = SettingsFile::read(br#"{"env": ["A=1"]}"#).unwrap();
    let one = json!("1");
    let rejected = settings.with(&[SettingChange { place: TEAMS, value: Some(&one) }]);
    let shape = "expected a section of settings, found an array";
    assert_eq!(rejected.unwrap_err().to_string(), shape);
    assert_eq!(settings.get(TEAMS), None);
}

#[test]
fn setting_a_whole_section_takes_precedence() {
    let env = SettingPath { section: None, key: "env" };
    let changed = with(r#"{"env":{"A":"1"}}"#, &[(TEAMS, Some(json!("1"))), (env, Some(json!(7)))]);
    assert_eq!(changed, r#"{"env":7}"#);
}

#[test]
fn comments_are_a_syntax_error() {
    let damage = SettingsFile::read(b"{\n  // mine\n  \"model\": \"opus\"\n}").unwrap_err();
    assert_eq!(damage, Damage::Syntax { line: 2, column: 3 });
    assert_eq!(SettingsFile::read(b"").unwrap_err(), Damage::Blank);
}
