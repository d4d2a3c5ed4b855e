//! The lock of a team. A command holds it while it brings the team up or down.

use std::io;
use std::time::Duration;

use brigade_wire::name::TeamName;
use tokio::time::Instant;

use crate::error::{ErrorKind, HostError, Trouble, failed};
use crate::process_lock::{self, ProcessLock};
use crate::progress::{Progress, ReportProgress};
use crate::registry::Registry;

/// How long to wait for another command. Asking the members of a team to stop takes up to 30 seconds by default.
const WAIT_LIMIT: Duration = Duration::from_secs(60);
/// How long to wait before reporting the wait.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// Acquires the lock of a team. If another command holds it, reports that command, and fails after a limit.
pub(crate) async fn acquire(
    registry: &Registry,
    team: &TeamName,
    report: ReportProgress<'_>,
) -> Result<ProcessLock, HostError> {
    acquire_within(registry, team, WAIT_LIMIT, report).await
}

async fn acquire_within(
    registry: &Registry,
    team: &TeamName,
    limit: Duration,
    report: ReportProgress<'_>,
) -> Result<ProcessLock, HostError> {
    let began = Instant::now();
    let mut is_reported = false;
    loop {
        let path = registry.up(team)?;
        match process_lock::take(&path).await {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => {}
            // Another command has taken the team down, and removed the folder after this process created it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(format!("lock team {team}"), source)),
        }
        let waited = began.elapsed();
        if waited < REPORT_AFTER.min(limit) {
            continue;
        }
        let holder = process_lock::holder(&path);
        let holder = holder.map_err(|source| failed(format!("lock team {team}"), source))?;
        let Some(pid) = holder.map(|process| process.pid) else { continue };
        if waited >= limit {
            let (team, seconds) = (team.to_string(), limit.as_secs());
            let error = HostError::new(ErrorKind::Locked, Trouble::TeamLocked { team, seconds });
            return Err(error.hint(match pid {
                0 => format!("end the process that holds {}", path.display()),
                pid => format!("wait for process {pid}, or end it"),
            }));
        }
        if !is_reported {
            is_reported = true;
            report(Progress::WaitingForCommand(team.clone(), (pid != 0).then_some(pid)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;

    /// Returns an empty registry and the folder that contains it.
    fn registry() -> (Registry, tempfile::TempDir, TeamName) {
        let folder = tempfile::tempdir().unwrap();
        (Registry::new(folder.path().join("host/key")), folder, "demo".parse().unwrap())
    }

    #[tokio::test]
    async fn finding_20_waiting_for_another_command_has_a_limit_and_names_its_process() {
        let (registry, _folder, team) = registry();
        let _held = process_lock::take(&registry.up(&team).unwrap()).await.unwrap().unwrap();
        let reports = Mutex::new(Vec::new());
        let report = |step: Progress| reports.lock().unwrap().push(format!("{step:?}"));
        let limit = Duration::from_secs(2);
        let error = acquire_within(&registry, &team, limit, &report).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Locked);
        let pid = std::process::id();
        assert_eq!(error.hints, [format!("wait for process {pid}, or end it")]);
        let reports = reports.into_inner().unwrap();
        assert_eq!(reports, [format!("WaitingForCommand(TeamName(\"demo\"), Some({pid}))")]);
    }

    /// B9: `down` waits for a command that takes the team down and removes the folder of the lock.
    #[tokio::test]
    async fn b9_a_lock_whose_folder_disappears_is_created_again() {
        let (registry, _folder, team) = registry();
        let path = registry.up(&team).unwrap();
        let held = process_lock::take(&path).await.unwrap().unwrap();
        let remove = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
            drop(held);
        };
        let silent = crate::progress::silent;
        let limit = Duration::from_secs(30);
        let (acquired, ()) = tokio::join!(acquire_within(&registry, &team, limit, &silent), remove);
        acquired.unwrap();
        assert!(path.exists());
    }
}
