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
use std::sync::Arc;

use serde::Serialize;

use crate::change::Change;
use crate::document::{Array, Damage, JsonDocument, Object, ObjectFields};
use crate::generation::Generation;
use crate::layout::{JsonLayout, pretty};
use crate::member::{Member, MemberChange, NewMember};
use crate::member_entry::MemberEntry;
use crate::name::{AgentId, LEAD, NameError, TeamName};
use crate::patch::{ObjectEdit, Patch};

/// A view of a team's `config.json`.
#[derive(Debug)]
pub struct Team<'a> {
    document: JsonDocument<'a>,
    positions: Arc<TeamPositions>,
}

/// The positions of the values in a `config.json`.
#[derive(Debug)]
struct TeamPositions {
    object: Object,
    /// The array of members, if there is one.
    array: Option<Array>,
    /// The elements of the members array that are objects, with their indexes.
    members: Vec<(usize, Object)>,
}

/// A team's `config.json` that is parsed once and viewed often. Parsing takes longer for each member.
#[derive(Debug)]
pub struct ParsedTeam {
    bytes: Vec<u8>,
    positions: Arc<TeamPositions>,
}

impl ParsedTeam {
    /// Parses a `config.json` as [`Team::read`] does. If it is damaged, returns the bytes, too.
    pub fn read(bytes: Vec<u8>) -> Result<Self, (Damage, Vec<u8>)> {
        match Team::read(&bytes).map(|team| team.positions) {
            Ok(positions) => Ok(Self { bytes, positions }),
            Err(damage) => Err((damage, bytes)),
        }
    }

    /// Returns a view of the file.
    pub fn team(&self) -> Team<'_> {
        let document = JsonDocument::new(&self.bytes);
        Team { document, positions: Arc::clone(&self.positions) }
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<'a> Team<'a> {
    /// Reads a `config.json` of either generation, or of the variant that has `teamName` instead of `name`.
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
        let positions = Arc::new(TeamPositions { object, array, members });
        Ok(Self { document, positions })
    }

    /// Returns the bytes from which the team was read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Returns the team's name, from `name` or `teamName`. Not every name on disk is a valid [`TeamName`].
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.fields().string(self.name_key())
    }

    /// Returns the team's description.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        self.fields().string("description")
    }

    /// Returns when the team was created, in milliseconds since 1970.
    pub fn created_at(&self) -> Option<u64> {
        self.fields().integer("createdAt")
    }

    /// Returns the lead's agent id, exactly as it stands in the file.
    pub fn lead_agent_id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("leadAgentId")
    }

    /// Returns the id of the lead's session.
    pub fn lead_session_id(&self) -> Option<Cow<'_, str>> {
        self.fields().string("leadSessionId")
    }

    /// Returns the process that leads the team. Only files of the new generation name this process.
    pub fn lead_process(&self) -> Option<LeadProcess> {
        let object =
            self.document.object(self.document.get(&self.positions.object, "leadProcess")?)?;
        let fields = ObjectFields { document: &self.document, object: &object };
        let text = |key| fields.string(key).map(Cow::into_owned);
        Some(LeadProcess {
            pid: fields.integer("pid"),
            pid_space: text("pidSpace"),
            claimed_at: fields.integer("claimedAt"),
            proc_start: text("procStart"),
        })
    }

    /// Returns the members, including the lead, in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        self.positions.members.iter().map(|(_, object)| self.view(object))
    }

    /// Returns the members' names, in roster order.
    pub fn member_names(&self) -> Vec<String> {
        self.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
    }

    /// Returns the member with this name.
    pub fn member(&self, name: &str) -> Option<Member<'_>> {
        self.members().find(|member| member.is(name))
    }

    /// Returns the lead: the member whose agent id is the team's `leadAgentId` or, without that field, the member
    /// named `team-lead`. A member's own `agentType` is not trusted.
    pub fn lead(&self) -> Option<Member<'_>> {
        match self.lead_agent_id() {
            Some(id) => self.members().find(|member| member.agent_id().as_ref() == Some(&id)),
            None => self.member(LEAD),
        }
    }

    /// Returns the JSON of the named field, exactly as it stands in the file.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().json(key)
    }

    /// Returns the generation that wrote the file. The new generation writes a lead process and no description.
    /// The team's name alone is weaker evidence, because users can choose it.
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

    /// Returns the file with these changes to the team itself and everything else unchanged. Returns the borrowed
    /// original if nothing changes.
    pub fn with(&self, change: &TeamChange<'_>) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let mut edit = ObjectEdit::new(&self.document, &self.positions.object);
        edit.set_if(self.name_key(), change.name.as_ref());
        change.description.record(&mut edit, "description");
        edit.set_if("leadSessionId", change.lead_session_id.as_ref());
        edit.finish(&mut patch);
        patch.apply(&self.document)
    }

    /// Returns the file with another team name, and with that name in the agent ids of the lead and the members.
    pub fn renamed(&self, to: &TeamName) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        let id = |id: Cow<'_, str>| id.rsplit_once('@').map(|(name, _)| format!("{name}@{to}"));
        let mut edit = ObjectEdit::new(&self.document, &self.positions.object);
        edit.set(self.name_key(), to);
        edit.set_if("leadAgentId", self.lead_agent_id().and_then(id).as_ref());
        edit.finish(&mut patch);
        for (_, object) in &self.positions.members {
            let mut edit = ObjectEdit::new(&self.document, object);
            edit.set_if("agentId", self.view(object).agent_id().and_then(id).as_ref());
            edit.finish(&mut patch);
        }
        patch.apply(&self.document)
    }

    /// Returns the generation whose field order the members have. Claude Code changed the order of the fields before
    /// it changed the form of the team, so the order is read from a teammate. The lead's order never changed.
    fn member_form(&self) -> Generation {
        let form = |member: Member<'_>| {
            let json = str::from_utf8(member.json()).ok()?;
            let (color, kind) = (json.find("\"color\"")?, json.find("\"agentType\"")?);
            Some(if color < kind { Generation::New } else { Generation::Old })
        };
        self.members().find_map(form).unwrap_or_else(|| self.generation())
    }

    /// Returns the file with a member added at the end, in the form of the other members. Fails if the new
    /// member would have the same inbox file as an existing member.
    pub fn with_member(&self, member: &NewMember<'_>) -> Result<Vec<u8>, NameError> {
        let names: Vec<Cow<'_, str>> = self.members().filter_map(|member| member.name()).collect();
        member.name.check_free(names.iter().map(Cow::as_ref))?;
        let mut patch = Patch::default();
        let team = self.name().unwrap_or_default();
        let member = member.record(&team, self.member_form());
        match &self.positions.array {
            Some(array) => patch.append(&self.document, array, &[member]),
            None => {
                let mut edit = ObjectEdit::new(&self.document, &self.positions.object);
                edit.set("members", &[member]);
                edit.finish(&mut patch);
            }
        }
        Ok(patch.apply(&self.document).into_owned())
    }

    /// Returns the file with the changes applied to every member with this name. Returns the borrowed original if
    /// nothing changes. Returns `None` if no member has this name, because a late change must not restore a removed
    /// member.
    pub fn with_member_changed(
        &self,
        name: &str,
        change: &MemberChange<'_>,
    ) -> Option<Cow<'a, [u8]>> {
        self.member(name)?;
        let mut patch = Patch::default();
        for (_, object) in &self.positions.members {
            if self.view(object).is(name) {
                change.record(&self.document, object, &mut patch);
            }
        }
        Some(patch.apply(&self.document))
    }

    /// Returns the file with the changes that a member made to its own entry. The member's name, its id and the fields
    /// that the copy lacks stay as they are. Returns the borrowed original if nothing changes, and `None` if no member
    /// has this name.
    pub fn with_own_changes(&self, name: &str, entry: &MemberEntry) -> Option<Cow<'a, [u8]>> {
        let (_, object) =
            self.positions.members.iter().find(|(_, object)| self.view(object).is(name))?;
        let mut edit = ObjectEdit::new(&self.document, object);
        for (key, value) in entry.own_fields() {
            edit.set(key, value);
        }
        let mut patch = Patch::default();
        edit.finish(&mut patch);
        Some(patch.apply(&self.document))
    }

    /// Returns the file with an entry copied from another file. If a member already has this name, the entry
    /// replaces that member's entry. Otherwise the entry is added at the end.
    pub fn with_copied_member(&self, name: &str, entry: &MemberEntry) -> Vec<u8> {
        let mut patch = Patch::default();
        let existing = self.positions.members.iter().find(|(_, object)| self.view(object).is(name));
        match (&self.positions.array, existing) {
            (Some(array), Some((_, object))) => {
                let layout = JsonLayout::for_array(&self.document, array);
                patch.replace(object.span, layout.encode(entry));
            }
            (Some(array), None) => patch.append(&self.document, array, &[entry]),
            (None, _) => {
                let mut edit = ObjectEdit::new(&self.document, &self.positions.object);
                edit.set("members", &[entry]);
                edit.finish(&mut patch);
            }
        }
        patch.apply(&self.document).into_owned()
    }

    /// Returns the file without the members with this name. Returns the borrowed original if nothing changes.
    pub fn without_member(&self, name: &str) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        if let Some(array) = &self.positions.array {
            let mut keep = vec![true; array.elements.len()];
            for (at, object) in &self.positions.members {
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
        ObjectFields { document: &self.document, object: &self.positions.object }
    }
}

/// The process that leads a team of the new generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadProcess {
    /// The process id.
    pub pid: Option<u64>,
    /// The PID namespace to which the process id belongs.
    pub pid_space: Option<String>,
    /// When the process became the lead, in milliseconds since 1970.
    pub claimed_at: Option<u64>,
    /// When the process started, in the operating system's own units. Distinguishes the process from a later one
    /// with the same id.
    pub proc_start: Option<String>,
}

/// Changes to a team. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct TeamChange<'c> {
    /// The new name. It is written to the existing field, `name` or `teamName`.
    pub name: Option<&'c str>,
    /// The new description.
    pub description: Change<&'c str>,
    /// The id of the lead's new session.
    pub lead_session_id: Option<&'c str>,
}

/// A new team whose only member is the lead. It is always of the old generation, because in the new generation
/// only sessions create teams.
#[derive(Clone, Debug)]
pub struct NewTeam<'t> {
    /// The team's name.
    pub name: &'t TeamName,
    /// The team's description.
    pub description: &'t str,
    /// When the team is created, in milliseconds since 1970.
    pub created_at: u64,
    /// The id of the lead's session.
    pub lead_session_id: &'t str,
    /// The lead's model.
    pub lead_model: &'t str,
    /// The lead's working directory.
    pub lead_cwd: &'t str,
}

impl NewTeam<'_> {
    /// Returns the content of `config.json`.
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
