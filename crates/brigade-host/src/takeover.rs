//! The lock of a session that a person continues in a terminal.
//!
//! The lock file is in the member's folder of the registry. The command that takes a session over holds the lock, and the agent's
//! program and its guard inherit it. The kernel releases the lock when the last of them has ended, however they end. The member
//! starts its agent only while the lock is free, also if the member's own process was started again meanwhile.

use std::path::Path;

use brigade_agents::teammate::SessionUse;

use crate::error::{HostError, failed};
use crate::process_lock::{self, ProcessLock};

/// The name of the lock file in the member's folder.
const LOCK: &str = "takeover";

/// Returns the check whether a person has the session of the member in this folder open in a terminal.
pub fn session_use(member_dir: &Path) -> SessionUse {
    let path = member_dir.join(LOCK);
    SessionUse::new(move || process_lock::is_held(&path))
}

/// Takes the lock of the member in this folder. Returns `None` if another process holds it.
pub(crate) async fn lock(member_dir: &Path) -> Result<Option<ProcessLock>, HostError> {
    let taken = process_lock::take(&member_dir.join(LOCK)).await;
    taken.map_err(|source| failed("lock the session", source))
}
