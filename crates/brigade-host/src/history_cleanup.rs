//! The supervisor deletes old history in the background, if the user has limited it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::clock::Clock;
use brigade_core::text;
use brigade_files::FileStore;
use brigade_wire::name::TeamName;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::HostError;
use crate::history::{self, Keep};
use crate::link_registry;
use crate::profile::Profiles;
use crate::progress::Log;
use crate::registry::Registry;

/// How long after its start the supervisor looks for old history. Starting members comes first.
const FIRST: Duration = Duration::from_secs(60);
/// How often the supervisor looks for old history.
const INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// Deletes old history from time to time.
pub(crate) struct HistoryCleanup {
    /// The user's configuration.
    config: Option<PathBuf>,
    next: Instant,
    /// The running deletion. It returns the lines to log.
    running: Option<JoinHandle<Vec<String>>>,
}

impl HistoryCleanup {
    pub(crate) fn new(config: Option<PathBuf>) -> Self {
        Self { config, next: Instant::now() + FIRST, running: None }
    }

    /// Starts a deletion if one is due, and logs the results of one that has ended.
    pub(crate) async fn check(
        &mut self,
        registry: &Registry,
        files: &Arc<FileStore>,
        clock: &Arc<dyn Clock>,
        log: Log<'_>,
    ) {
        if let Some(running) = self.running.take_if(|running| running.is_finished()) {
            match running.await {
                Ok(lines) => lines.iter().for_each(|line| log(line)),
                Err(error) => log(&format!("history: the deletion failed: {error}")),
            }
        }
        let Some(config) = self.config.clone().filter(|_| Instant::now() >= self.next) else {
            return;
        };
        self.next = Instant::now() + INTERVAL;
        // A link needs the history of its team. If its teams are not known, wait for the next time.
        let Ok(links) = link_registry::list(registry) else { return };
        let linked: Vec<TeamName> = links.into_iter().map(|link| link.team).collect();
        let (files, clock, runtime) = (Arc::clone(files), Arc::clone(clock), Handle::current());
        // Examining long journals takes seconds, in which the supervisor must start members.
        self.running = Some(tokio::task::spawn_blocking(move || {
            let mut lines = Vec::new();
            let cleaned =
                runtime.block_on(clean(&files, clock.as_ref(), &config, &linked, &mut lines));
            lines.extend(cleaned.err().map(|error| format!("history: {}", error.to_one_line())));
            lines
        }));
    }
}

/// Deletes the old history of all teams. Adds the lines to log.
async fn clean(
    files: &Arc<FileStore>,
    clock: &dyn Clock,
    config: &Path,
    linked: &[TeamName],
    lines: &mut Vec<String>,
) -> Result<(), HostError> {
    let keep = Profiles::read(config)?.keep();
    if keep == Keep::All {
        return Ok(());
    }
    for team in files.teams_with_history()?.into_iter().filter(|team| !linked.contains(team)) {
        match history::compact(files, &team, keep, clock.now(), &mut |_| ()).await {
            Ok(Some(done)) if done.deleted.records > 0 => {
                let count = usize::try_from(done.deleted.records).unwrap_or(usize::MAX);
                let (records, bytes) = (text::count(count, "record"), done.deleted.bytes);
                lines.push(format!(
                    "history of team {team}: deleted {records}, {}, to keep {keep}",
                    text::size(bytes)
                ));
            }
            Ok(_) => {}
            Err(error) => {
                lines.push(format!("history of team {team}: {}", error.to_one_line()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brigade_core::clock::SystemClock;
    use brigade_core::mail::{self, InboxFilter};
    use brigade_core::roster::{self, MemberPlan, TeamPlan};
    use brigade_core::seat::Seat;
    use brigade_core::store::Mark;
    use brigade_files::FileStoreOptions;

    use super::*;

    /// Sends bob 40 messages of 10 kB, which bob reads.
    async fn fill(files: &Arc<FileStore>) {
        let lead = Seat::new(
            Arc::clone(files) as _,
            "demo".parse().unwrap(),
            "team-lead".parse().unwrap(),
        );
        roster::create(&lead, TeamPlan::new("a test", "/")).await.unwrap();
        let bob = lead.for_member("bob".parse().unwrap());
        roster::join(&lead, &bob.name, MemberPlan::new("general-purpose", "/")).await.unwrap();
        for _ in 0..40 {
            mail::send(&lead, "bob", &*"x".repeat(10_000)).await.unwrap();
        }
        let unread = mail::inbox(&bob, &bob.name, InboxFilter::Unread).await.unwrap();
        let keys: Vec<_> = unread.iter().map(|mail| mail.key).collect();
        mail::mark(&bob, &keys, Mark::Read).await.unwrap();
    }

    #[tokio::test]
    async fn old_history_is_deleted_only_if_there_is_a_limit() {
        let home = tempfile::tempdir().unwrap();
        let options = FileStoreOptions::new(home.path().join(".claude"), home.path().join("state"));
        let files = Arc::new(FileStore::open(options));
        fill(&files).await;
        let config = home.path().join("config.toml");
        let mut lines = Vec::new();
        clean(&files, &SystemClock, &config, &[], &mut lines).await.unwrap();
        assert_eq!(lines, Vec::<String>::new());
        std::fs::write(&config, "[history]\nkeep = \"200kB\"\n").unwrap();
        clean(&files, &SystemClock, &config, &[], &mut lines).await.unwrap();
        assert!(lines[0].starts_with("history of team demo: deleted "), "{lines:?}");
        assert!(lines[0].ends_with(" to keep 200kB"), "{lines:?}");
        std::fs::write(&config, "[history]\nkeep = \"soon\"\n").unwrap();
        assert!(clean(&files, &SystemClock, &config, &[], &mut lines).await.is_err());
    }
}
