//! Temporary files of brigade processes. To replace a document, brigade writes a temporary file and
//! then renames it.

use rustix::io::Errno;

use super::dir::Dir;
use super::layout::{parse_temp_name, temp_name};

/// Identifies a temporary file by its process and a number within that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TempFile {
    pub(crate) process: u32,
    pub(crate) number: u32,
}

impl TempFile {
    /// Returns the name of this temporary file, which will replace `file`.
    pub(crate) fn name(self, file: &str) -> String {
        temp_name(file, self.process, self.number)
    }

    /// Returns the next temporary file of this process.
    pub(crate) fn next() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { process: std::process::id(), number }
    }
}

/// Removes temporary files that killed brigade processes left in `dir`. A temporary file is removed
/// only if `selects` returns true for the name of the file that the temporary file was to replace.
pub(crate) fn sweep(dir: &Dir, names: &[String], selects: impl Fn(&str) -> bool) {
    for name in names {
        if let Some((file, process, _)) = parse_temp_name(name)
            && selects(file)
            && !is_alive(process)
        {
            dir.remove_quietly(name);
            dir.remove_dir_quietly(name);
        }
    }
}

fn is_alive(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let alive = pid.map(rustix::process::test_kill_process);
    matches!(alive, Some(Ok(()) | Err(Errno::PERM))) && !is_zombie(process)
}

/// Returns whether a process has ended and its parent has not reaped it yet. Where `/proc` does not show that, such a
/// process counts as running.
fn is_zombie(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the program's name, which may contain spaces and parentheses.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}
