//! One member in a team's configuration: a view of an existing one, and a new one to be written.
//!
//! ```
//! use brigade_wire::team::Team;
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let json = br#"{"name": "demo", "members": [{"agentId": "bob@demo", "name": "bob", "isActive": true}]}"#;
//! let team = Team::read(json)?;
//! let bob = team.member("bob").expect("a member");
//! assert_eq!((bob.agent_id().as_deref(), bob.is_active()), (Some("bob@demo"), Some(true)));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::color::Color;
use crate::document::{JsonDocument, Object, ObjectFields};
use crate::generation::Generation;
use crate::name::MemberName;
use crate::patch::{ObjectEdit, Patch};

/// A view of a member in the bytes of its team's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Member<'t> {
    fields: ObjectFields<'t>,
}

impl<'t> Member<'t> {
    pub(crate) fn new(fields: ObjectFields<'t>) -> Self {
        Self { fields }
    }

    /// `name@team`, as written.
    pub fn agent_id(&self) -> Option<Cow<'t, str>> {
        self.fields.string("agentId")
    }

    /// Its name, as written. Not every name on disk is a [`MemberName`].
    pub fn name(&self) -> Option<Cow<'t, str>> {
        self.fields.string("name")
    }

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name().is_some_and(|own| own == name)
    }

    /// Its agent type.
    pub fn agent_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("agentType")
    }

    /// The model it runs.
    pub fn model(&self) -> Option<Cow<'t, str>> {
        self.fields.string("model")
    }

    /// Its first prompt.
    pub fn prompt(&self) -> Option<Cow<'t, str>> {
        self.fields.string("prompt")
    }

    /// Its colour, as written.
    pub fn color(&self) -> Option<Cow<'t, str>> {
        self.fields.string("color")
    }

    /// Whether its plan must be approved before it works.
    pub fn plan_mode_required(&self) -> Option<bool> {
        self.fields.boolean("planModeRequired")
    }

    /// When it joined, in milliseconds since 1970.
    pub fn joined_at(&self) -> Option<u64> {
        self.fields.integer("joinedAt")
    }

    /// The tmux pane it runs in.
    pub fn tmux_pane_id(&self) -> Option<Cow<'t, str>> {
        self.fields.string("tmuxPaneId")
    }

    /// The directory it works in.
    pub fn cwd(&self) -> Option<Cow<'t, str>> {
        self.fields.string("cwd")
    }

    /// Where it runs: `tmux`, `in-process`, or a value that another tool uses.
    pub fn backend_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("backendType")
    }

    /// Whether a link mirrors the member from another host.
    pub fn is_remote(&self) -> bool {
        self.backend_type().is_some_and(|backend| backend == crate::backend::REMOTE)
    }

    /// Whether it is working. Absent until it first changes; Claude Code treats that as active.
    pub fn is_active(&self) -> Option<bool> {
        self.fields.boolean("isActive")
    }

    /// Its permission mode, if that was changed.
    pub fn mode(&self) -> Option<Cow<'t, str>> {
        self.fields.string("mode")
    }

    /// The JSON of any field, as written.
    pub fn field(&self, key: &str) -> Option<&'t str> {
        self.fields.json(key)
    }

    /// The whole entry, byte for byte.
    pub fn json(&self) -> &'t [u8] {
        self.fields.document.original(self.fields.object.span)
    }

    /// Copies the entry, to be put into another team's file; `None` if it is not valid JSON.
    pub fn copied(&self) -> Option<MemberEntry> {
        serde_json::from_slice(self.json()).ok()
    }
}

/// A copy of a member's entry for another team's file: every field as written, in the same order.
#[derive(Clone, Debug)]
pub struct MemberEntry {
    fields: Vec<(String, Box<RawValue>)>,
}

impl MemberEntry {
    /// Sets a field, in its position or, if it is new, at the end.
    pub fn set(&mut self, key: &str, value: &impl Serialize) {
        let Ok(value) = to_raw_value(value) else { return };
        match self.fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    /// Whether both entries have the same values, in any order and formatting.
    pub fn means(&self, other: &Self) -> bool {
        serde_json::to_value(self).ok() == serde_json::to_value(other).ok()
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
                let mut fields = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    fields.push(pair);
                }
                Ok(MemberEntry { fields })
            }
        }
        deserializer.deserialize_map(EntryVisitor)
    }
}

/// Changes to a member. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct MemberChange<'c> {
    /// The tmux pane it runs in.
    pub tmux_pane_id: Option<&'c str>,
    /// Where it runs.
    pub backend_type: Option<&'c str>,
    /// Whether it is working.
    pub is_active: Option<bool>,
}

impl MemberChange<'_> {
    pub(crate) fn record(&self, document: &JsonDocument<'_>, object: &Object, patch: &mut Patch) {
        let mut edit = ObjectEdit::new(document, object);
        edit.set_if("tmuxPaneId", self.tmux_pane_id.as_ref());
        edit.set_if("backendType", self.backend_type.as_ref());
        edit.set_if("isActive", self.is_active.as_ref());
        edit.finish(patch);
    }
}

/// A new teammate.
#[derive(Clone, Debug)]
pub struct NewMember<'m> {
    /// Its name. The team's name in the agent id comes from the file to which the member is added.
    pub name: &'m MemberName,
    /// Its agent type.
    pub agent_type: &'m str,
    /// The model it runs.
    pub model: &'m str,
    /// Its first prompt.
    pub prompt: &'m str,
    /// Its colour.
    pub color: Color,
    /// Whether its plan must be approved before it works.
    pub plan_mode_required: bool,
    /// When it joins, in milliseconds since 1970.
    pub joined_at: u64,
    /// The tmux pane it runs in; empty for none.
    pub tmux_pane_id: &'m str,
    /// The directory it works in.
    pub cwd: &'m str,
    /// Where it runs. The new generation writes a new member without it.
    pub backend_type: Option<&'m str>,
    /// Whether it is working.
    pub is_active: Option<bool>,
}

impl<'m> NewMember<'m> {
    /// The entry in the configuration of `team`, with the fields in the order of the generation.
    pub(crate) fn record(&self, team: &str, generation: Generation) -> impl Serialize + use<'m> {
        let Self { name, agent_type, model, prompt, color, plan_mode_required, .. } = *self;
        let Self { joined_at, tmux_pane_id, cwd, backend_type, is_active, .. } = *self;
        let agent_id = format!("{name}@{team}");
        let subscriptions = [];
        match generation {
            Generation::Old => MemberRecord::Old {
                agent_id,
                name,
                agent_type,
                model,
                prompt,
                color,
                plan_mode_required,
                joined_at,
                tmux_pane_id,
                cwd,
                subscriptions,
                backend_type,
                is_active,
            },
            Generation::New => MemberRecord::New {
                agent_id,
                name,
                color,
                joined_at,
                tmux_pane_id,
                subscriptions,
                agent_type,
                model,
                prompt,
                plan_mode_required,
                cwd,
                backend_type,
                is_active,
            },
        }
    }
}

/// The same fields, in the order of each generation.
#[derive(serde::Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum MemberRecord<'m> {
    Old {
        agent_id: String,
        name: &'m MemberName,
        agent_type: &'m str,
        model: &'m str,
        prompt: &'m str,
        color: Color,
        plan_mode_required: bool,
        joined_at: u64,
        tmux_pane_id: &'m str,
        cwd: &'m str,
        subscriptions: [(); 0],
        #[serde(skip_serializing_if = "Option::is_none")]
        backend_type: Option<&'m str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_active: Option<bool>,
    },
    New {
        agent_id: String,
        name: &'m MemberName,
        color: Color,
        joined_at: u64,
        tmux_pane_id: &'m str,
        subscriptions: [(); 0],
        agent_type: &'m str,
        model: &'m str,
        prompt: &'m str,
        plan_mode_required: bool,
        cwd: &'m str,
        #[serde(skip_serializing_if = "Option::is_none")]
        backend_type: Option<&'m str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_active: Option<bool>,
    },
}
