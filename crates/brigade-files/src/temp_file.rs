//! Temporary files of brigade processes. A document is written to one, which is then renamed.

use rustix::io::Errno;

use super::dir::Dir;

/// Identifies a temporary file by its process and a number within that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TempFile {
    pub(crate) process: u32,
    pub(crate) number: u32,
}

impl TempFile {
    /// Returns the name of this temporary file for `name`. The name does not end in `.json`, so
    /// that Claude Code does not read the file as a document. It contains the process id, so that
    /// the file can be removed after the process died.
    pub(crate) fn name(self, name: &str) -> String {
        format!("{name}.tmp.brigade-{}-{}", self.process, self.number)
    }

    /// Returns the next temporary file of this process.
    pub(crate) fn next() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { process: std::process::id(), number }
    }

    /// Parses a name made by [`TempFile::name`] into the target name and the temporary file.
    fn parse(name: &str) -> Option<(&str, Self)> {
        let (name, rest) = name.rsplit_once(".tmp.brigade-")?;
        let (process, number) = rest.split_once('-')?;
        Some((name, Self { process: process.parse().ok()?, number: number.parse().ok()? }))
    }

    /// Returns whether the process that created it is dead.
    fn is_creator_dead(self) -> bool {
        let process = i32::try_from(self.process).ok().and_then(rustix::process::Pid::from_raw);
        let alive = process.map(rustix::process::test_kill_process);
        !matches!(alive, Some(Ok(()) | Err(Errno::PERM)))
    }
}

/// Removes temporary files that killed brigade processes left in `dir`. `selects` filters by the
/// name of the target file.
pub(crate) fn sweep(dir: &Dir, names: &[String], selects: impl Fn(&str) -> bool) {
    for name in names {
        if let Some((file, temp)) = TempFile::parse(name)
            && selects(file)
            && temp.is_creator_dead()
        {
            dir.remove_quietly(name);
            dir.remove_dir_quietly(name);
        }
    }
}
