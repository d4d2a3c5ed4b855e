//! Wakes the supervisor when a command changes the files of the registry.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_files::FolderWatch;
use tokio::sync::Notify;

use crate::link_registry::links_dir;
use crate::registry::Registry;

/// Watches the folders of a registry: those of its teams, of their members, and of the links.
#[derive(Debug)]
pub(crate) struct RegistryWatch {
    /// `None` if this system cannot report changes.
    folders: Option<FolderWatch>,
}

impl RegistryWatch {
    /// Starts a watch that wakes `woken` after each change.
    pub(crate) fn start(woken: Arc<Notify>) -> Self {
        let folders = FolderWatch::start(move || woken.notify_one());
        if let Err(error) = &folders {
            tracing::warn!(%error, "cannot watch the registry; reading it regularly instead");
        }
        Self { folders: folders.ok() }
    }

    /// Watches the folders that exist now. Call this before reading them, so that no later change is missed. Returns whether
    /// every later change is reported.
    pub(crate) fn watch(&mut self, registry: &Registry) -> bool {
        let Some(watch) = &mut self.folders else { return false };
        // The folder of the links may be created later.
        let mut folders = HashSet::from([registry.state_dir().to_owned()]);
        add_folders(&links_dir(registry), 1, &mut folders);
        add_folders(registry.dir(), 2, &mut folders);
        watch.watch(&folders)
    }
}

/// Adds a folder, if it exists, and the folders in it up to `depth` levels below.
fn add_folders(folder: &Path, depth: usize, found: &mut HashSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    found.insert(folder.to_owned());
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match depth {
                1 => drop(found.insert(entry.path())),
                _ => add_folders(&entry.path(), depth - 1, found),
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn commands_that_change_the_registry_wake_the_supervisor() {
        let state = tempfile::tempdir().unwrap();
        let registry = Registry::new(state.path().join("host").join("key"));
        fs::create_dir_all(registry.dir()).unwrap();
        let woken = Arc::new(Notify::new());
        let mut watch = RegistryWatch::start(Arc::clone(&woken));
        let team = registry.dir().join("demo");
        let member = team.join("bob");
        let link = links_dir(&registry).join("nats");
        let create = |path: &Path| fs::write(path, "").unwrap();
        let steps: [&dyn Fn(); 7] = [
            &|| fs::create_dir(&team).unwrap(),
            &|| fs::create_dir(&member).unwrap(),
            &|| create(&member.join("spec.json")),
            &|| create(&member.join("restart")),
            &|| fs::create_dir_all(&link).unwrap(),
            &|| create(&link.join("demo.spec")),
            &|| fs::remove_dir_all(&team).unwrap(),
        ];
        for (number, change) in steps.into_iter().enumerate() {
            assert!(watch.watch(&registry), "step {number}");
            change();
            let reported = tokio::time::timeout(Duration::from_secs(10), woken.notified()).await;
            assert!(reported.is_ok(), "step {number}");
        }
    }
}
