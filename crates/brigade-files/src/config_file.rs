//! Reads a team's `config.json`, and parses each version only once.
//!
//! Every operation reads the roster again, because the roster decides what a member may do. In a large team, parsing takes
//! much longer than reading. So the last version is kept, and the file is parsed only if its bytes differ.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use brigade_wire::team::ParsedTeam;

use super::dir::Dir;
use super::layout::CONFIG;
use super::lock_mutex;
use super::revision::revision;
use brigade_core::store::{Document, Revision, StoreError};

/// How many times a torn file is read again, and the interval between two reads. Claude Code writes some files in place; on a
/// busy machine one write took 116 milliseconds.
pub(crate) const MAX_TORN_READS: usize = 250;
pub(crate) const TORN_READ_INTERVAL: Duration = Duration::from_millis(2);

/// The last version of a `config.json` that could be parsed.
#[derive(Debug, Default)]
pub(crate) struct ConfigCache {
    last: Mutex<Option<ConfigVersion>>,
}

/// A version of a `config.json` that could be parsed.
#[derive(Clone, Debug)]
pub(crate) struct ConfigVersion {
    pub(crate) roster: Arc<ParsedTeam>,
    pub(crate) revision: Revision,
}

impl ConfigVersion {
    pub(crate) fn to_document(&self) -> Document {
        Document { bytes: self.roster.bytes().to_vec(), revision: self.revision }
    }
}

/// A `config.json` that was read.
#[derive(Debug)]
pub(crate) enum ReadConfig {
    Valid(ConfigVersion),
    /// The file cannot be parsed: its writer has not finished, or has died.
    Torn(Document),
}

impl ConfigCache {
    /// Reads the file once. Returns `None` if it does not exist.
    pub(crate) fn read_once(&self, dir: &Dir) -> Result<Option<ReadConfig>, StoreError> {
        let Some(contents) = dir.read(CONFIG)? else { return Ok(None) };
        let mut last = lock_mutex(&self.last);
        if let Some(last) = &*last
            && last.roster.bytes() == contents.bytes
        {
            return Ok(Some(ReadConfig::Valid(last.clone())));
        }
        let revision = revision(&contents.bytes);
        Ok(Some(match ParsedTeam::read(contents.bytes) {
            Ok(roster) => {
                let version = ConfigVersion { roster: Arc::new(roster), revision };
                *last = Some(version.clone());
                ReadConfig::Valid(version)
            }
            Err((_, bytes)) => ReadConfig::Torn(Document { bytes, revision }),
        }))
    }

    /// Reads the file, and reads it again while it is torn.
    pub(crate) async fn read(&self, dir: &Dir) -> Result<Option<ReadConfig>, StoreError> {
        for _ in 0..MAX_TORN_READS {
            match self.read_once(dir)? {
                Some(ReadConfig::Torn(_)) => tokio::time::sleep(TORN_READ_INTERVAL).await,
                read => return Ok(read),
            }
        }
        self.read_once(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(read: Option<ReadConfig>) -> ConfigVersion {
        match read {
            Some(ReadConfig::Valid(version)) => version,
            other => panic!("{other:?}"),
        }
    }

    /// The second version has the length and the time of the first one, as after two writes in one tick of the clock.
    #[test]
    fn a_version_is_parsed_once_and_a_change_is_always_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONFIG);
        let dir = Dir::open(folder.path()).unwrap().unwrap();
        let cache = ConfigCache::default();
        assert!(cache.read_once(&dir).unwrap().is_none());
        std::fs::write(&path, r#"{"name":"demo","members":[{"name":"bob"}]}"#).unwrap();
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        let first = valid(cache.read_once(&dir).unwrap());
        let again = valid(cache.read_once(&dir).unwrap());
        assert!(Arc::ptr_eq(&first.roster, &again.roster));
        std::fs::write(&path, r#"{"name":"demo","members":[{"name":"eve"}]}"#).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        let second = valid(cache.read_once(&dir).unwrap());
        assert!(second.roster.team().member("eve").is_some());
        assert_ne!(first.revision, second.revision);
        // A torn file is not mistaken for the last version.
        std::fs::write(&path, r#"{"name":"demo","#).unwrap();
        assert!(matches!(cache.read_once(&dir).unwrap(), Some(ReadConfig::Torn(_))));
    }
}
