//! One member in a team's configuration: as it stands, and as we write a new one.
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
use crate::document::{Document, Fields, Object};
use crate::generation::Generation;
use crate::name::MemberName;
use crate::patch::{ObjectEdit, Patch};

/// A member, as a view over the bytes of its team's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Member<'t> {
    fields: Fields<'t>,
}

impl<'t> Member<'t> {
    pub(crate) fn new(fields: Fields<'t>) -> Self {
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

    /// Whether it bears that name.
    pub fn is(&self, name: &str) -> bool {
        self.name().is_some_and(|own| own == name)
    }

    /// What kind of agent it was asked to be.
    pub fn agent_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("agentType")
    }

    /// The model it runs.
    pub fn model(&self) -> Option<Cow<'t, str>> {
        self.fields.string("model")
    }

    /// What it was told at the start.
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

    /// The pane it runs in.
    pub fn tmux_pane_id(&self) -> Option<Cow<'t, str>> {
        self.fields.string("tmuxPaneId")
    }

    /// The directory it works in.
    pub fn cwd(&self) -> Option<Cow<'t, str>> {
        self.fields.string("cwd")
    }

    /// Where it runs: `tmux`, `in-process`, or a word of another tool.
    pub fn backend_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("backendType")
    }

    /// Whether it is at work. Absent until it first changes; Claude Code then takes it for active.
    pub fn is_active(&self) -> Option<bool> {
        self.fields.boolean("isActive")
    }

    /// The permission mode it was moved to.
    pub fn mode(&self) -> Option<Cow<'t, str>> {
        self.fields.string("mode")
    }

    /// The JSON of any field, as it stands.
    pub fn field(&self, key: &str) -> Option<&'t str> {
        self.fields.json(key)
    }

    /// The whole entry, byte for byte.
    pub fn json(&self) -> &'t [u8] {
        self.fields.document.original(self.fields.object.span)
    }

    /// The entry on its way into another file; `None` if it is not whole text.
    pub fn copied(&self) -> Option<Copied> {
        serde_json::from_slice(self.json()).ok()
    }
}

/// A member's entry on its way from one team's file to another: every field, in its order, as it stands.
#[derive(Clone, Debug)]
pub struct Copied {
    fields: Vec<(String, Box<RawValue>)>,
}

impl Copied {
    /// Gives a field a value, in its place or behind the others.
    pub fn set(&mut self, key: &str, value: &impl Serialize) {
        let Ok(value) = to_raw_value(value) else { return };
        match self.fields.iter_mut().find(|(its, _)| its == key) {
            Some((_, was)) => *was = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    /// Whether it means the same as another.
    pub fn means(&self, other: &Self) -> bool {
        serde_json::to_value(self).ok() == serde_json::to_value(other).ok()
    }
}

impl Serialize for Copied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Copied {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Copied;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Copied, A::Error> {
                let mut fields = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    fields.push(pair);
                }
                Ok(Copied { fields })
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// What to change in a member. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct MemberChange<'c> {
    /// The pane it runs in.
    pub tmux_pane_id: Option<&'c str>,
    /// Where it runs.
    pub backend_type: Option<&'c str>,
    /// Whether it is at work.
    pub is_active: Option<bool>,
}

impl MemberChange<'_> {
    pub(crate) fn record(&self, document: &Document<'_>, object: &Object, patch: &mut Patch) {
        let mut edit = ObjectEdit::new(document, object);
        edit.set_if("tmuxPaneId", self.tmux_pane_id.as_ref());
        edit.set_if("backendType", self.backend_type.as_ref());
        edit.set_if("isActive", self.is_active.as_ref());
        edit.finish(patch);
    }
}

/// A teammate to be added.
#[derive(Clone, Debug)]
pub struct NewMember<'m> {
    /// Its name. The team's, for the agent id, is taken from the file it is added to.
    pub name: &'m MemberName,
    /// What kind of agent it is asked to be.
    pub agent_type: &'m str,
    /// The model it runs.
    pub model: &'m str,
    /// What it is told at the start.
    pub prompt: &'m str,
    /// Its colour.
    pub color: Color,
    /// Whether its plan must be approved before it works.
    pub plan_mode_required: bool,
    /// When it joins, in milliseconds since 1970.
    pub joined_at: u64,
    /// The pane it runs in; empty for none.
    pub tmux_pane_id: &'m str,
    /// The directory it works in.
    pub cwd: &'m str,
    /// Where it runs. The new generation first writes a member without it.
    pub backend_type: Option<&'m str>,
    /// Whether it is at work.
    pub is_active: Option<bool>,
}

impl<'m> NewMember<'m> {
    /// The entry in the configuration of `team`, in the order of a generation.
    pub(crate) fn record(&self, team: &str, generation: Generation) -> impl Serialize + use<'m> {
        let Self { name, agent_type, model, prompt, color, plan_mode_required, .. } = *self;
        let Self { joined_at, tmux_pane_id, cwd, backend_type, is_active, .. } = *self;
        let agent_id = format!("{name}@{team}");
        let subscriptions = [];
        match generation {
            Generation::Old => Record::Old {
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
            Generation::New => Record::New {
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

/// The same fields in the order of each generation.
#[derive(serde::Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Record<'m> {
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
