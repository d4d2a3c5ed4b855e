//! `brigade guard`: runs between a member's process and its agent's process, so that neither outlives the
//! other.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{getpid, getppid, setsid};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use brigade_host::process_tree;

use crate::error::{CliError, failed};
use crate::exit;

/// How often to check whether the parent process still exists.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Once in this many polls, reap orphaned descendant processes.
const POLLS_PER_REAP: u64 = 5;
/// How long to wait after SIGTERM until the agent's processes have exited.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a program in a new process session. Terminates the whole session when the program exits, on SIGTERM, or
/// when the parent process dies.
pub(crate) async fn run(program: &[OsString]) -> Result<u8, CliError> {
    let parent = getppid();
    // Fails only if this process already leads a session, which is fine.
    let _already_leads = setsid();
    process_tree::adopt();
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|source| failed("listen for signals", source))?;
    let [name, args @ ..] = program else { return Ok(exit::USAGE) };
    let mut child = Command::new(name)
        .args(args)
        .spawn()
        .map_err(|source| failed(format!("start {}", name.display()), source))?;
    let mut polls = 0;
    let code = loop {
        tokio::select! {
            status = child.wait() => {
                let code = status.ok().and_then(|status| status.code());
                break code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
            }
            _ = terminate.recv() => break exit::DONE,
            () = tokio::time::sleep(POLL_INTERVAL) => {
                if getppid() != parent {
                    break exit::DONE;
                }
                polls += 1;
                if polls % POLLS_PER_REAP == 0 {
                    process_tree::reap_orphans(child.id());
                }
            }
        }
    };
    process_tree::end(getpid(), GRACE).await;
    Ok(code)
}
