//! A copy of a member's entry for another host: only the fields that every host may know, each with a value of the
//! expected type.
//!
//! A member writes its own entry in the shared roster, so other hosts must not take over everything in it. For
//! example, some versions of Claude Code delete the folder that the field `worktreePath` names.

//!
//! ```
//! use brigade_wire::member_entry::MemberEntry;
//!
//! let entry = MemberEntry::read(br#"{"name": "bob", "cwd": "/project", "cwd": "/other", "worktreePath": "/home"}"#);
//! let entry = entry.expect("an object");
//! assert_eq!(serde_json::to_string(&entry).unwrap(), r#"{"name":"bob","cwd":"/other"}"#);
//! ```

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// A copy of a member's entry. The fields keep their order.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberEntry {
    fields: Vec<(String, Value)>,
}

/// Returns whether a field with this value may stand in a copy.
fn is_shared(key: &str, value: &Value) -> bool {
    match key {
        "agentId" | "name" | "agentType" | "model" | "prompt" | "color" | "tmuxPaneId" | "cwd"
        | "backendType" | "mode" => value.is_string(),
        "planModeRequired" | "isActive" => value.is_boolean(),
        "joinedAt" => value.is_u64(),
        "subscriptions" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    }
}

impl MemberEntry {
    /// Reads a copy from the JSON of an entry. If a key occurs twice, its last value counts, as for Claude Code.
    /// Returns `None` if the JSON is not an object.
    pub fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// Returns a field that is a string.
    pub fn string(&self, key: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(name, _)| name == key)?;
        value.as_str()
    }

    /// Sets a field. An existing field keeps its position; a new field goes to the end.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    /// Returns whether both entries have the same fields, regardless of their order.
    pub fn means(&self, other: &Self) -> bool {
        self.has_fields_of(other) && other.has_fields_of(self)
    }

    fn has_fields_of(&self, other: &Self) -> bool {
        other.fields.iter().all(|field| self.fields.contains(field))
    }

    /// Returns whether this entry has every change that the member made in the other.
    pub fn has_own_changes_of(&self, other: &Self) -> bool {
        other.own_fields().all(|field| self.own_fields().any(|own| own == field))
    }

    /// Returns the fields that a member may change in its own entry. The lead decides about the others, for example
    /// which agent runs in which folder.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        const OWN: [&str; 7] =
            ["color", "isActive", "joinedAt", "mode", "model", "tmuxPaneId", "backendType"];
        let fields = self.fields.iter().map(|(key, value)| (key.as_str(), value));
        fields.filter(|(key, _)| OWN.contains(key))
    }
}

impl Serialize for MemberEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for MemberEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;
        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = MemberEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberEntry, A::Error> {
                let mut entry = MemberEntry { fields: Vec::new() };
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    entry.set(&key, value);
                }
                entry.fields.retain(|(key, value)| is_shared(key, value));
                Ok(entry)
            }
        }
        deserializer.deserialize_map(EntryVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::MemberEntry;

    #[test]
    fn a_copy_has_only_known_fields_with_values_of_the_expected_type() {
        let check = |json: &str, expected: &str| {
            let entry = MemberEntry::read(json.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), expected, "{json}");
        };
        let known = r#"{"agentId":"bob@demo","name":"bob","color":"blue","joinedAt":7,"tmuxPaneId":"","subscriptions":[],"agentType":"x","model":"m","prompt":"p","planModeRequired":false,"cwd":"/","backendType":"tmux","isActive":true,"mode":"default"}"#;
        check(known, known);
        check(r#"{"worktreePath":"/home","name":"bob","hooks":{}}"#, r#"{"name":"bob"}"#);
        check(r#"{"name":"bob","cwd":["/"],"joinedAt":"7","isActive":1}"#, r#"{"name":"bob"}"#);
        check(r#"{"name":"bob","subscriptions":["all"],"joinedAt":-1}"#, r#"{"name":"bob"}"#);
        check(
            r#"{"backendType":"","name":"bob","backendType":"tmux"}"#,
            r#"{"backendType":"tmux","name":"bob"}"#,
        );
        check(r#"{"cwd":"/a","cwd":5}"#, "{}");
        assert_eq!(MemberEntry::read(b"[1]"), None);
        assert_eq!(MemberEntry::read(b"{"), None);
    }
}
