//! The members that Claude Code started.

use std::fs;

use brigade_agents::driver;
use brigade_wire::name::{MemberName, TeamName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    JOINED, PROBLEM, RESTART, Registry, SPEC, STOPPING, TEAM, TROUBLE, create_dir, read, remove,
    write,
};
use crate::error::HostError;
use crate::spec::MemberSpec;

/// The file with the facts about the lead of a member that Claude Code started.
const LEAD: &str = "lead.json";
/// The members that a person stopped, or that have moved to another team of their lead. `brigade resume` does not start them.
const GONE: &str = "gone.json";

impl Registry {
    /// Stores the settings of a member in place of those of an earlier member of the same name.
    pub(crate) fn put_member(&self, team: &TeamName, spec: &MemberSpec) -> Result<(), HostError> {
        if driver::is_command(&spec.agent) {
            self.remember_command(&spec.agent, &spec.cwd)?;
        }
        let dir = self.member_dir(team, &spec.name);
        create_dir(&dir)?;
        for file in [STOPPING, JOINED, TROUBLE, PROBLEM, RESTART, LEAD] {
            remove(&dir.join(file))?;
        }
        write(&dir.join(SPEC), spec)
    }

    /// Removes a team that has no folder of a member. Another process may be adding a member.
    pub(crate) fn remove_team_without_members(&self, team: &TeamName) -> Result<(), HostError> {
        let dir = self.team_dir(team);
        let is_dir = |entry: fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let has_members = fs::read_dir(&dir)
            .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_dir)));
        if !has_members {
            remove(&dir.join(TEAM))?;
            self.forget_all_stopped(team)?;
            // Another process may have added a member in the meantime.
            let _not_empty = fs::remove_dir(&dir);
        }
        Ok(())
    }

    /// Returns the members of a team that `brigade resume` does not start again.
    pub(crate) fn gone_members(&self, team: &TeamName) -> Result<Vec<MemberName>, HostError> {
        Ok(read(&self.team_dir(team).join(GONE))?.unwrap_or_default())
    }

    /// Records that `brigade resume` must not start the member again.
    pub(crate) fn add_gone(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        let mut gone = self.gone_members(team)?;
        gone.retain(|other| other != name);
        gone.push(name.clone());
        write(&self.team_dir(team).join(GONE), &gone)
    }

    /// Forgets that the member was stopped, because it is started again.
    pub(crate) fn remove_gone(&self, team: &TeamName, name: &MemberName) -> Result<(), HostError> {
        let mut gone = self.gone_members(team)?;
        if gone.contains(name) {
            gone.retain(|other| other != name);
            write(&self.team_dir(team).join(GONE), &gone)?;
        }
        Ok(())
    }

    /// Returns the stored facts about the lead of a member.
    pub(crate) fn followed_lead<T: DeserializeOwned>(
        &self,
        team: &TeamName,
        name: &MemberName,
    ) -> Result<Option<T>, HostError> {
        read(&self.member_dir(team, name).join(LEAD))
    }

    /// Returns the last id of the Claude Code session that leads or led a team, as far as the team's members know it.
    pub fn last_lead_session(&self, team: &TeamName) -> Result<Option<String>, HostError> {
        #[derive(Deserialize)]
        struct LeadSessions {
            sessions: Vec<String>,
        }
        let mut last = None;
        for name in self.members(team)? {
            let known = self.followed_lead::<LeadSessions>(team, &name)?;
            last = known.and_then(|mut lead| lead.sessions.pop()).or(last);
        }
        Ok(last)
    }

    /// Stores the facts about the lead of a member.
    pub(crate) fn put_followed_lead(
        &self,
        team: &TeamName,
        name: &MemberName,
        record: &impl Serialize,
    ) -> Result<(), HostError> {
        write(&self.member_dir(team, name).join(LEAD), record)
    }
}
