//! The Claude Code sessions of this host. Claude Code describes each session in `sessions/<pid>.json` in its folder.

use std::path::Path;

use brigade_core::pulse::Process;
use brigade_wire::name::TeamName;
use brigade_wire::team::Team;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process;

/// How long after its start Claude Code creates its team, in milliseconds. Measured: 0.3 s.
const CREATED_WITHIN: u64 = 5_000;

/// A running Claude Code session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub struct ClaudeSession {
    /// The id of the session's process.
    pub pid: u32,
    /// The id of the session. It changes with `/clear` and `/branch`.
    pub session_id: String,
    /// The folder that the session works in.
    #[serde(default)]
    pub cwd: String,
    /// When the process started, in milliseconds since 1970.
    #[serde(default)]
    pub started_at: u64,
    /// The state of the session: `idle`, `busy` or `waiting`.
    #[serde(default)]
    pub status: String,
    /// The reason why the session waits, for example an answer in a dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The start time of the process in the system's format. Distinguishes processes with the same id.
    #[serde(default, skip_serializing)]
    proc_start: String,
}

impl ClaudeSession {
    /// Returns the running session whose process has this id.
    pub fn of_process(claude_dir: &Path, pid: u32) -> Option<Self> {
        let file = claude_dir.join("sessions").join(format!("{pid}.json"));
        let session: Self = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        (session.pid == pid && session.is_running()).then_some(session)
    }

    /// Returns the running session with this id.
    pub fn of_id(claude_dir: &Path, id: &str) -> Option<Self> {
        let files = std::fs::read_dir(claude_dir.join("sessions")).ok()?;
        let pids = files.filter_map(|file| {
            file.ok()?.file_name().to_str()?.strip_suffix(".json")?.parse().ok()
        });
        pids.filter_map(|pid| Self::of_process(claude_dir, pid)).find(|one| one.session_id == id)
    }

    /// Returns the running session that leads a team. `None` if the lead has ended, or if the roster does not name the
    /// lead's process, as in files of older versions of Claude Code.
    pub fn of_lead(claude_dir: &Path, team: &Team<'_>) -> Option<Self> {
        let pid = team.lead_process()?.pid?;
        Self::of_process(claude_dir, u32::try_from(pid).ok()?)
    }

    /// Returns whether the session's process leads this team.
    pub fn leads(&self, team: &Team<'_>) -> bool {
        team.lead_process().and_then(|lead| lead.pid) == Some(u64::from(self.pid))
    }

    /// Returns whether the session's process may lead this team. Versions of Claude Code before 2.1.311 do not write the lead's
    /// process, and give a resumed session a team with another id. The team has the folder of the session, and was created
    /// when the process started.
    pub fn may_lead(&self, team: &Team<'_>) -> bool {
        let cwd = team.lead().and_then(|lead| Some(lead.cwd()?.into_owned()));
        team.lead_process().is_none()
            && cwd.is_some_and(|cwd| cwd == self.cwd)
            && team.created_at().is_some_and(|at| at.abs_diff(self.started_at) < CREATED_WITHIN)
    }

    /// Returns the name of the team that a session with this id has, unless another program had taken the name.
    pub fn usual_team(id: &str) -> Option<TeamName> {
        format!("session-{}", id.get(..8)?).parse().ok()
    }

    /// Returns whether Claude Code gave the team its name: `session-` and the first eight hexadecimal digits of a session's id.
    pub fn names_team(team: &TeamName) -> bool {
        let id = team.as_str().strip_prefix("session-");
        id.is_some_and(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }

    /// A killed session leaves its file behind, and its process id may be used again.
    fn is_running(&self) -> bool {
        let began = self.proc_start.clone();
        if cfg!(target_os = "linux") && !began.is_empty() {
            return process::is_running(&Process { pid: self.pid, began });
        }
        process::has_id(self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, pid: u32, id: &str, began: &str) {
        let sessions = dir.join("sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        let session = serde_json::json!({
            "pid": pid, "sessionId": id, "cwd": "/project", "startedAt": 1, "procStart": began, "status": "busy",
        });
        std::fs::write(sessions.join(format!("{pid}.json")), session.to_string()).unwrap();
    }

    #[test]
    fn a_session_is_found_by_its_id_while_its_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let this = process::current();
        write(dir.path(), this.pid, "one", &this.began);
        // This process has ended, and its id belongs to another process now.
        write(dir.path(), 1, "two", "long ago");
        std::fs::write(dir.path().join("sessions/3.json"), "{").unwrap();
        let found = ClaudeSession::of_id(dir.path(), "one").unwrap();
        assert_eq!((found.pid, found.status.as_str()), (this.pid, "busy"));
        assert_eq!(ClaudeSession::of_id(dir.path(), "two"), None);
        assert_eq!(ClaudeSession::of_process(dir.path(), 3), None);
    }

    #[test]
    fn the_lead_of_a_team_is_found_by_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let this = process::current();
        write(dir.path(), this.pid, "one", &this.began);
        let team =
            format!(r#"{{"name":"session-x","leadProcess":{{"pid":{}}},"members":[]}}"#, this.pid);
        let team = Team::read(team.as_bytes()).unwrap();
        let lead = ClaudeSession::of_lead(dir.path(), &team).unwrap();
        assert!(lead.leads(&team));
        let other = Team::read(br#"{"name":"session-y","members":[]}"#).unwrap();
        assert_eq!(ClaudeSession::of_lead(dir.path(), &other), None);
        assert!(!lead.leads(&other));
    }
}
