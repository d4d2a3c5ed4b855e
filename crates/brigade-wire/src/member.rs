//! A member in a team's `config.json`: a view of an existing member, and a new member to write.
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

use serde::Serialize;

use crate::color::Color;
use crate::document::{JsonDocument, Object, ObjectFields};
use crate::generation::Generation;
use crate::member_entry::MemberEntry;
use crate::name::MemberName;
use crate::patch::{ObjectEdit, Patch};

/// A view of a member in the bytes of its team's `config.json`.
#[derive(Clone, Copy, Debug)]
pub struct Member<'t> {
    fields: ObjectFields<'t>,
}

impl<'t> Member<'t> {
    pub(crate) fn new(fields: ObjectFields<'t>) -> Self {
        Self { fields }
    }

    /// Returns the member's agent id, `name@team`, exactly as it stands in the file.
    pub fn agent_id(&self) -> Option<Cow<'t, str>> {
        self.fields.string("agentId")
    }

    /// Returns the name that stands in the member's entry. Not every name on disk is a valid [`MemberName`].
    pub fn name(&self) -> Option<Cow<'t, str>> {
        self.fields.string("name")
    }

    /// Returns whether the member has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name().is_some_and(|own| own == name)
    }

    /// Returns the member's agent type.
    pub fn agent_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("agentType")
    }

    /// Returns the member's model.
    pub fn model(&self) -> Option<Cow<'t, str>> {
        self.fields.string("model")
    }

    /// Returns the member's first prompt.
    pub fn prompt(&self) -> Option<Cow<'t, str>> {
        self.fields.string("prompt")
    }

    /// Returns the member's colour, exactly as it stands in the file.
    pub fn color(&self) -> Option<Cow<'t, str>> {
        self.fields.string("color")
    }

    /// Returns whether the lead must approve the member's plan before the member works.
    pub fn plan_mode_required(&self) -> Option<bool> {
        self.fields.boolean("planModeRequired")
    }

    /// Returns when the member joined, in milliseconds since 1970.
    pub fn joined_at(&self) -> Option<u64> {
        self.fields.integer("joinedAt")
    }

    /// Returns the tmux pane in which the member runs.
    pub fn tmux_pane_id(&self) -> Option<Cow<'t, str>> {
        self.fields.string("tmuxPaneId")
    }

    /// Returns the member's working directory.
    pub fn cwd(&self) -> Option<Cow<'t, str>> {
        self.fields.string("cwd")
    }

    /// Returns where the member runs: `tmux`, `in-process`, or a value that another tool uses.
    pub fn backend_type(&self) -> Option<Cow<'t, str>> {
        self.fields.string("backendType")
    }

    /// Returns whether a link mirrors the member from another host.
    pub fn is_remote(&self) -> bool {
        self.backend_type().is_some_and(|backend| backend == crate::backend::REMOTE)
    }

    /// Returns whether the member is working; `None` if the field is absent, which Claude Code treats as working.
    pub fn is_active(&self) -> Option<bool> {
        self.fields.boolean("isActive")
    }

    /// Returns the member's permission mode, if it was ever changed.
    pub fn mode(&self) -> Option<Cow<'t, str>> {
        self.fields.string("mode")
    }

    /// Returns the JSON of the named field, exactly as it stands in the file.
    pub fn field(&self, key: &str) -> Option<&'t str> {
        self.fields.json(key)
    }

    /// Returns the whole entry, byte for byte.
    pub fn json(&self) -> &'t [u8] {
        self.fields.document.original(self.fields.object.span)
    }

    /// Copies the entry for another host; `None` if the entry is not valid JSON.
    pub fn copied(&self) -> Option<MemberEntry> {
        MemberEntry::read(self.json())
    }
}

/// Changes to a member. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct MemberChange<'c> {
    /// The member's agent type.
    pub agent_type: Option<&'c str>,
    /// The member's model.
    pub model: Option<&'c str>,
    /// The member's first prompt.
    pub prompt: Option<&'c str>,
    /// The member's working directory.
    pub cwd: Option<&'c str>,
    /// The tmux pane in which the member runs.
    pub tmux_pane_id: Option<&'c str>,
    /// Where the member runs.
    pub backend_type: Option<&'c str>,
    /// Whether the member is working.
    pub is_active: Option<bool>,
}

impl MemberChange<'_> {
    pub(crate) fn record(&self, document: &JsonDocument<'_>, object: &Object, patch: &mut Patch) {
        let mut edit = ObjectEdit::new(document, object);
        edit.set_if("agentType", self.agent_type.as_ref());
        edit.set_if("model", self.model.as_ref());
        edit.set_if("prompt", self.prompt.as_ref());
        edit.set_if("cwd", self.cwd.as_ref());
        edit.set_if("tmuxPaneId", self.tmux_pane_id.as_ref());
        edit.set_if("backendType", self.backend_type.as_ref());
        edit.set_if("isActive", self.is_active.as_ref());
        edit.finish(patch);
    }
}

/// A new teammate to add to a team.
#[derive(Clone, Debug)]
pub struct NewMember<'m> {
    /// The member's name. The team name in the agent id comes from the file to which the member is added.
    pub name: &'m MemberName,
    /// The member's agent type.
    pub agent_type: &'m str,
    /// The member's model.
    pub model: &'m str,
    /// The member's first prompt.
    pub prompt: &'m str,
    /// The member's colour.
    pub color: Color,
    /// Whether the lead must approve the member's plan before the member works.
    pub plan_mode_required: bool,
    /// When the member joins, in milliseconds since 1970.
    pub joined_at: u64,
    /// The tmux pane in which the member runs; empty if there is none.
    pub tmux_pane_id: &'m str,
    /// The member's working directory.
    pub cwd: &'m str,
    /// Where the member runs. The new generation omits this field for a new member.
    pub backend_type: Option<&'m str>,
    /// Whether the member is working.
    pub is_active: Option<bool>,
}

impl<'m> NewMember<'m> {
    /// Returns the entry for the `config.json` of `team`, with the fields in the order of this generation.
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

/// The fields of a member in the order in which each generation writes them.
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
