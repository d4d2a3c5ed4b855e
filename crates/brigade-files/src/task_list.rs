//! The task list of a team: the folder in `tasks/` that contains its board. Usually it has the name of the team.
//!
//! A Claude Code session may work with another list. After `/clear` it keeps the list of the session before, and a resumed
//! session whose team folder is occupied takes another team but keeps its list. The user can name a list, too.

use brigade_core::store::StoreError;
use brigade_wire::generation::Generation;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;
use serde_json::Value;

use super::FileStore;
use super::dir::Dir;
use super::layout::{CONFIG, SESSION_LIST, TASKS};

/// Claude Code's variable with the name of the list. It can also be set in `settings.json`.
const VARIABLE: &str = "CLAUDE_CODE_TASK_LIST_ID";

impl FileStore {
    /// Returns the name of the team's task list.
    pub(super) fn task_list(&self, team: &TeamName) -> Result<TeamName, StoreError> {
        if let Some(list) = &self.options.task_list {
            return Ok(list.clone());
        }
        // Only the teams of sessions have other lists.
        if Generation::from_team_name(team.as_str()) != Some(Generation::New) {
            return Ok(team.clone());
        }
        if let Some(list) = self.list_in_settings() {
            return Ok(list);
        }
        let Some(tasks) = Dir::open(&self.options.claude_dir.join(TASKS))? else {
            return Ok(team.clone());
        };
        if let Some(list) = existing_list(&tasks, team)? {
            return Ok(list);
        }
        let of_lead = match self.list_of_lead(team)? {
            Some(session) => existing_list(&tasks, &session)?,
            None => None,
        };
        Ok(of_lead.unwrap_or_else(|| team.clone()))
    }

    /// Returns the list that the user named in Claude Code's settings.
    fn list_in_settings(&self) -> Option<TeamName> {
        let settings = std::fs::read(self.options.claude_dir.join("settings.json")).ok()?;
        let settings: Value = serde_json::from_slice(&settings).ok()?;
        settings.get("env")?.get(VARIABLE)?.as_str()?.parse().ok()
    }

    /// Returns the name of the list that belongs to the current session of the process that leads the team.
    fn list_of_lead(&self, team: &TeamName) -> Result<Option<TeamName>, StoreError> {
        let Some(config) = self.team_dir(team)?.read(CONFIG)? else { return Ok(None) };
        let pid = Team::read(&config.bytes).ok().and_then(|team| team.lead_process()?.pid);
        let Some(pid) = pid else { return Ok(None) };
        let file = self.options.claude_dir.join("sessions").join(format!("{pid}.json"));
        let name = || {
            let session: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
            format!("session-{}", session.get("sessionId")?.as_str()?.get(..8)?).parse().ok()
        };
        Ok(name())
    }
}

/// Returns the list of a session: the list that its folder refers to or, without a reference, the folder itself. `None` if
/// there is no such folder.
fn existing_list(tasks: &Dir, session: &TeamName) -> Result<Option<TeamName>, StoreError> {
    let Some(folder) = tasks.child(session.as_str())? else { return Ok(None) };
    let reference = folder.read(SESSION_LIST)?;
    let reference = reference.and_then(|text| String::from_utf8(text.bytes).ok());
    let list = reference.and_then(|text| text.trim().parse().ok());
    Ok(Some(list.unwrap_or_else(|| session.clone())))
}
