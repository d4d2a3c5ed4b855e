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
use crate::document::{Array, Damage, Document, Fields, Object};
use crate::generation::Generation;
use crate::layout::{Layout, pretty};
use crate::member::{Copied, Member, MemberChange, NewMember};
use crate::name::{AgentId, LEAD, NameError, TeamName};
use crate::patch::{ObjectEdit, Patch};

/// A team's configuration, as a view over its bytes.
#[derive(Debug)]
pub struct Team<'a> {
    document: Document<'a>,
    object: Object,
    /// The array of members, if there is one.
    array: Option<Array>,
    /// The elements of it that are objects, with their places in it.
    members: Vec<(usize, Object)>,
}

impl<'a> Team<'a> {
    /// Reads a configuration: of either generation, or of the variant that says `teamName`.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = Document::new(bytes);
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

    /// The team's name, under `name` or `teamName`. Not every name on disk is a
    /// [`TeamName`].
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.fields().string(self.name_key())
    }

    /// What the team is for.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.fields().string("description")
    }

    /// When it was made, in milliseconds since 1970.
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

    /// The process that leads the team; only the new generation says.
    pub fn lead_process(&self) -> Option<LeadProcess> {
        let object = self.document.object(self.document.get(&self.object, "leadProcess")?)?;
        let fields = Fields { document: &self.document, object: &object };
        let text = |key| fields.string(key).map(Cow::into_owned);
        Some(LeadProcess {
            pid: fields.integer("pid"),
            pid_space: text("pidSpace"),
            claimed_at: fields.integer("claimedAt"),
            proc_start: text("procStart"),
        })
    }

    /// The members, the lead among them, in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        self.members.iter().map(|(_, object)| self.view(object))
    }

    /// The member of that name.
    pub fn member(&self, name: &str) -> Option<Member<'_>> {
        self.members().find(|member| member.is(name))
    }

    /// The member that leads: the one the team names by its agent id, or, in a team that names none,
    /// the one called `team-lead`. What a member says of its own type is no evidence.
    pub fn lead(&self) -> Option<Member<'_>> {
        match self.lead_agent_id() {
            Some(id) => self.members().find(|member| member.agent_id().as_ref() == Some(&id)),
            None => self.member(LEAD),
        }
    }

    /// The JSON of any field, as it stands.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().json(key)
    }

    /// What the file says of the generation that wrote it. The new one names a lead process and has
    /// no description; a name alone could be anybody's choice.
    pub fn generation(&self) -> Generation {
        let named = || self.name().and_then(|name| Generation::of_team_name(&name));
        if self.lead_process().is_some() {
            Generation::New
        } else if self.field("description").is_some() {
            Generation::Old
        } else {
            named().unwrap_or(Generation::Old)
        }
    }

    /// The file with the changes to the team itself made, and nothing else changed; borrowed if
    /// there is nothing to change.
    pub fn with(&self, change: &TeamChange<'_>) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.object);
        edit.set_if(self.name_key(), change.name.as_ref());
        change.description.record(&mut edit, "description");
        edit.set_if("leadSessionId", change.lead_session_id.as_ref());
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    /// The file under another name: the team's own, and the team in the ids of its members.
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

    /// The file with one more member behind the last, in the bytes of this file's generation. Refused
    /// if the newcomer would share a present member's inbox.
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

    /// The file with the changes made to the member of that name, or to each, should there be
    /// several; borrowed if there is nothing to change. `None` if there is no such member: a late
    /// change must not bring back one that was removed.
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

    /// The file with the entry of the member of that name replaced by this JSON; borrowed if it is the
    /// same already. `None` if there is no such member.
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

    /// The file with this entry, from another file, in place of the member of that name, or behind the
    /// last if there is none.
    pub fn with_entry(&self, name: &str, entry: &Copied) -> Vec<u8> {
        let mut patch = Patch::default();
        let there = self.members.iter().find(|(_, object)| self.view(object).is(name));
        match (&self.array, there) {
            (Some(array), Some((_, object))) => {
                let layout = Layout::of_array(&self.document, array);
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

    /// The file without the members of that name; borrowed if there is none.
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
        let is = |key| self.fields().string(key).is_some();
        if !is("name") && is("teamName") { "teamName" } else { "name" }
    }

    fn view<'t>(&'t self, object: &'t Object) -> Member<'t> {
        Member::new(Fields { document: &self.document, object })
    }

    fn fields(&self) -> Fields<'_> {
        Fields { document: &self.document, object: &self.object }
    }
}

/// The process that leads a team of the new generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadProcess {
    /// Its process id.
    pub pid: Option<u64>,
    /// The space in which that id counts.
    pub pid_space: Option<String>,
    /// When it took the lead, in milliseconds since 1970.
    pub claimed_at: Option<u64>,
    /// When it started, in the system's own count; tells it from a later process of the same id.
    pub proc_start: Option<String>,
}

/// What to change in a team. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TeamChange<'c> {
    /// Its name, under the key found.
    pub name: Option<&'c str>,
    /// What it is for.
    pub description: Change<&'c str>,
    /// The lead's session.
    pub lead_session_id: Option<&'c str>,
}

/// A team to be written, with its lead and nobody else. Always of the old generation: the new one
/// has no teams but those its own sessions make.
#[derive(Clone, Debug)]
pub struct NewTeam<'t> {
    /// Its name.
    pub name: &'t TeamName,
    /// What it is for.
    pub description: &'t str,
    /// When it is made, in milliseconds since 1970.
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
