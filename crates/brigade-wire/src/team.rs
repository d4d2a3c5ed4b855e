//! `teams/<team>/config.json`: the team and its members.
//!
//! ```
//! use brigade_wire::team::Team;
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let team = Team::read(br#"{"name": "demo", "members": [{"name": "bob"}, {"name": "eve"}]}"#)?;
//! let without = team.without_member("eve");
//! assert_eq!(Team::read(&without)?.members().len(), 1);
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use serde::Serialize;

use crate::change::Change;
use crate::document::{Array, Damage, JsonDocument, Object, ObjectFields};
use crate::generation::Generation;
use crate::layout::{JsonLayout, pretty};
use crate::member::{Member, MemberChange, MemberEntry, NewMember};
use crate::name::{AgentId, LEAD, NameError, TeamName};
use crate::patch::{ObjectEdit, Patch};

/// A view of a team's configuration.
#[derive(Debug)]
pub struct Team<'a> {
    document: JsonDocument<'a>,
    object: Object,
    /// The array of members, if there is one.
    array: Option<Array>,
    /// The elements of the array that are objects, with their indexes.
    members: Vec<(usize, Object)>,
}

impl<'a> Team<'a> {
    /// Reads a configuration of either generation, or of the variant that has `teamName` in place of `name`.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = JsonDocument::new(bytes);
        let object = document.root_object("a team object")?;
        let array = match document.get(&object, "members") {
            None => None,
            Some(span) => {
                let found = document.kind(span);
                let shape = Damage::Shape { expected: "an array of members", found };
                Some(document.array(span).ok_or(shape)?)
            }
        };
        let elements = array.iter().flat_map(|array| array.elements.iter().enumerate());
        let members =
            elements.filter_map(|(at, &span)| Some((at, document.object(span)?))).collect();
        Ok(Self { document, object, array, members })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// The team's name, from the field `name` or `teamName`. Not every name on disk is a [`TeamName`].
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.fields().string(self.name_key())
    }

    /// The description of the team.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.fields().string("description")
    }

    /// When it was created, in milliseconds since 1970.
    pub fn created_at(&self) -> Option<u64> {
        self.fields().integer("createdAt")
    }

    /// The lead's agent id, as written.
    pub fn lead_agent_id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("leadAgentId")
    }

    /// The lead's session.
    pub fn lead_session_id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("leadSessionId")
    }

    /// The process that leads the team; new generation only.
    pub fn lead_process(&self) -> Option<LeadProcess> {
        let object = self.document.object(self.document.get(&self.object, "leadProcess")?)?;
        let fields = ObjectFields { document: &self.document, object: &object };
        let text = |key| fields.string(key).map(Cow::into_owned);
        Some(LeadProcess {
            pid: fields.integer("pid"),
            pid_space: text("pidSpace"),
            claimed_at: fields.integer("claimedAt"),
            proc_start: text("procStart"),
        })
    }

    /// The members, including the lead, in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        self.members.iter().map(|(_, object)| self.view(object))
    }

    /// The names of the members, in roster order.
    pub fn member_names(&self) -> Vec<String> {
        self.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
    }

    /// The member with this name.
    pub fn member(&self, name: &str) -> Option<Member<'_>> {
        self.members().find(|member| member.is(name))
    }

    /// The lead: the member whose agent id is the team's `leadAgentId` or, without that field, the member named
    /// `team-lead`. A member's own `agentType` is not trusted.
    pub fn lead(&self) -> Option<Member<'_>> {
        match self.lead_agent_id() {
            Some(id) => self.members().find(|member| member.agent_id().as_ref() == Some(&id)),
            None => self.member(LEAD),
        }
    }

    /// The JSON of any field, as written.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().json(key)
    }

    /// The generation that wrote the file. The new one writes a lead process and no description. The name alone
    /// is weaker evidence, because users can choose it.
    pub fn generation(&self) -> Generation {
        let by_name = || self.name().and_then(|name| Generation::from_team_name(&name));
        if self.lead_process().is_some() {
            Generation::New
        } else if self.field("description").is_some() {
            Generation::Old
        } else {
            by_name().unwrap_or(Generation::Old)
        }
    }

    /// Returns the file with these changes to the team itself and everything else unchanged; borrowed if nothing
    /// changes.
    pub fn with(&self, change: &TeamChange<'_>) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set_if(self.name_key(), change.name.as_ref());
        change.description.record(&mut edit, "description");
        edit.set_if("leadSessionId", change.lead_session_id.as_ref());
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    /// Returns the file with another team name, also in the agent ids of its members.
    pub fn renamed(&self, to: &TeamName) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let id = |id: Cow<'_, str>| id.rsplit_once('@').map(|(name, _)| format!("{name}@{to}"));
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set(self.name_key(), to);
        edit.set_if("leadAgentId", self.lead_agent_id().and_then(id).as_ref());
        edit.finish(&mut patch);
        for (_, object) in &self.members {
            let mut edit = ObjectEdit::new(&self.document, object);
            edit.set_if("agentId", self.view(object).agent_id().and_then(id).as_ref());
            edit.finish(&mut patch);
        }
        patch.apply(&self.document)
    }

    /// Returns the file with a member added at the end, in the form of this file's generation. Fails if the new
    /// member would share the inbox file of an existing one.
    pub fn with_member(&self, member: &NewMember<'_>) -> Result<Vec<u8>, NameError> {
        let names: Vec<Cow<'_, str>> = self.members().filter_map(|member| member.name()).collect();
        member.name.check_free(names.iter().map(Cow::as_ref))?;
        let mut patch = Patch::default();
        let team = self.name().unwrap_or_default();
        let member = member.record(&team, self.generation());
        match &self.array {
            Some(array) => patch.append(&self.document, array, &[member]),
            None => {
                let mut edit = ObjectEdit::new(&self.document, &self.object);
                edit.set("members", &[member]);
                edit.finish(&mut patch);
            }
        }
        Ok(patch.apply(&self.document).into_owned())
    }

    /// Returns the file with the changes applied to every member with this name; borrowed if nothing changes.
    /// `None` if there is no such member: a late change must not restore a member that was removed.
    pub fn with_member_changed(
        &self,
        name: &str,
        change: &MemberChange<'_>,
    ) -> Option<Cow<'a, [u8]>> {
        self.member(name)?;
        let mut patch = Patch::default();
        for (_, object) in &self.members {
            if self.view(object).is(name) {
                change.record(&self.document, object, &mut patch);
            }
        }
        Some(patch.apply(&self.document))
    }

    /// Returns the file with the entry of a member replaced by this JSON; borrowed if nothing changes. `None` if
    /// there is no such member.
    pub fn with_member_entry(&self, name: &str, json: &str) -> Option<Cow<'a, [u8]>> {
        let member = self.member(name)?;
        if member.json() == json.as_bytes() {
            return Some(Cow::Borrowed(self.document.bytes));
        }
        let (_, object) = self.members.iter().find(|(_, object)| self.view(object).is(name))?;
        let mut patch = Patch::default();
        patch.replace(object.span, json);
        Some(patch.apply(&self.document))
    }

    /// Returns the file with this entry from another file. It replaces the member with this name, or is added at
    /// the end.
    pub fn with_copied_member(&self, name: &str, entry: &MemberEntry) -> Vec<u8> {
        let mut patch = Patch::default();
        let existing = self.members.iter().find(|(_, object)| self.view(object).is(name));
        match (&self.array, existing) {
            (Some(array), Some((_, object))) => {
                let layout = JsonLayout::for_array(&self.document, array);
                patch.replace(object.span, layout.encode(entry));
            }
            (Some(array), None) => patch.append(&self.document, array, &[entry]),
            (None, _) => {
                let mut edit = ObjectEdit::new(&self.document, &self.object);
                edit.set("members", &[entry]);
                edit.finish(&mut patch);
            }
        }
        patch.apply(&self.document).into_owned()
    }

    /// Returns the file without the members with this name; borrowed if nothing changes.
    pub fn without_member(&self, name: &str) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        if let Some(array) = &self.array {
            let mut keep = vec![true; array.elements.len()];
            for (at, object) in &self.members {
                if let Some(keep) = keep.get_mut(*at) {
                    *keep = !self.view(object).is(name);
                }
            }
            patch.retain(array, &keep);
        }
        patch.apply(&self.document)
    }

    fn name_key(&self) -> &'static str {
        let has = |key| self.fields().string(key).is_some();
        if !has("name") && has("teamName") { "teamName" } else { "name" }
    }

    fn view<'t>(&'t self, object: &'t Object) -> Member<'t> {
        Member::new(ObjectFields { document: &self.document, object })
    }

    fn fields(&self) -> ObjectFields<'_> {
        ObjectFields { document: &self.document, object: &self.object }
    }
}

/// The process that leads a team of the new generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadProcess {
    /// Its process id.
    pub pid: Option<u64>,
    /// The PID namespace of that id.
    pub pid_space: Option<String>,
    /// When it took the lead, in milliseconds since 1970.
    pub claimed_at: Option<u64>,
    /// When it started, in the units of the operating system. Distinguishes it from a later process with the
    /// same id.
    pub proc_start: Option<String>,
}

/// Changes to a team. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TeamChange<'c> {
    /// Its name. The existing key (`name` or `teamName`) is used.
    pub name: Option<&'c str>,
    /// Its description.
    pub description: Change<&'c str>,
    /// The lead's session.
    pub lead_session_id: Option<&'c str>,
}

/// A new team with only its lead. Always of the old generation, because in the new one only sessions create
/// teams.
#[derive(Clone, Debug)]
pub struct NewTeam<'t> {
    /// Its name.
    pub name: &'t TeamName,
    /// Its description.
    pub description: &'t str,
    /// When it is created, in milliseconds since 1970.
    pub created_at: u64,
    /// The lead's session.
    pub lead_session_id: &'t str,
    /// The lead's model.
    pub lead_model: &'t str,
    /// The directory the lead works in.
    pub lead_cwd: &'t str,
}

impl NewTeam<'_> {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lead = AgentId::lead(self.name.clone());
        let record = TeamRecord {
            name: self.name,
            description: self.description,
            created_at: self.created_at,
            lead_agent_id: &lead,
            lead_session_id: self.lead_session_id,
            members: [LeadRecord {
                agent_id: &lead,
                name: LEAD,
                agent_type: LEAD,
                model: self.lead_model,
                joined_at: self.created_at,
                tmux_pane_id: "",
                cwd: self.lead_cwd,
                subscriptions: [],
            }],
        };
        pretty(&record, "  ").into_bytes()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TeamRecord<'t> {
    name: &'t TeamName,
    description: &'t str,
    created_at: u64,
    lead_agent_id: &'t AgentId,
    lead_session_id: &'t str,
    members: [LeadRecord<'t>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeadRecord<'t> {
    agent_id: &'t AgentId,
    name: &'t str,
    agent_type: &'t str,
    model: &'t str,
    joined_at: u64,
    tmux_pane_id: &'t str,
    cwd: &'t str,
    subscriptions: [(); 0],
}
