//! `brigade guard`: runs between a member's process and its agent's process, so that neither outlives the
//! other.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{Pid, getpid, getppid, setsid};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use brigade_host::process_tree;

use crate::error::{CliError, failed};
use crate::exit;

/// How often to check whether the parent process still exists, on systems that do not report its end.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after SIGTERM until the agent's processes have exited.
const GRACE: Duration = Duration::from_secs(2);

/// Where the guarded program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardPlace {
    /// In a process session of its own, without a terminal.
    OwnSession,
    /// In the terminal of the caller, where a person uses the program.
    Terminal,
}

/// Runs a program, in a new process session or in the caller's terminal. Terminates all its processes when the program exits,
/// on SIGTERM, when the parent process dies, or when the terminal is closed.
pub(crate) async fn run(program: &[OsString], place: GuardPlace) -> Result<u8, CliError> {
    let mut parent_ended = std::pin::pin!(until_parent_ends(getppid()));
    if place == GuardPlace::OwnSession {
        // Fails only if this process already leads a session, which is fine.
        let _already_leads = setsid();
    }
    process_tree::adopt();
    let listen = |kind| signal(kind).map_err(|source| failed("listen for signals", source));
    let mut terminate = listen(SignalKind::terminate())?;
    // In a terminal, ctrl-c is for the program. The program does not inherit these handlers.
    let mut in_terminal = match place {
        GuardPlace::OwnSession => None,
        GuardPlace::Terminal => Some((
            listen(SignalKind::hangup())?,
            listen(SignalKind::interrupt())?,
            listen(SignalKind::quit())?,
        )),
    };
    let mut child_ended = listen(SignalKind::child())?;
    let [name, args @ ..] = program else { return Ok(exit::USAGE) };
    let mut child = Command::new(name)
        .args(args)
        .spawn()
        .map_err(|source| failed(format!("start {}", name.display()), source))?;
    let code = loop {
        tokio::select! {
            status = child.wait() => {
                let code = status.ok().and_then(|status| status.code());
                break code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
            }
            _ = terminate.recv() => break exit::DONE,
            () = terminal_closed(&mut in_terminal) => break exit::DONE,
            () = &mut parent_ended => break exit::DONE,
            _ = child_ended.recv() => process_tree::reap_orphans(child.id()),
        }
    };
    process_tree::end(getpid(), GRACE).await;
    Ok(code)
}

/// Waits until the terminal is closed. Never returns without a terminal.
async fn terminal_closed(signals: &mut Option<(Signal, Signal, Signal)>) {
    match signals {
        Some((hang_up, ..)) => drop(hang_up.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits until the parent process has ended. The kernel reports its end, so an idle guard needs no processor time.
#[cfg(target_os = "linux")]
async fn until_parent_ends(parent: Option<Pid>) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let Some(pid) = parent else { return };
    let opened = pidfd_open(pid, PidfdFlags::empty());
    // If the parent had ended before, the file belongs to another process.
    if let Ok(fd) = opened
        && getppid() == parent
    {
        let (ended, is_ended) = tokio::sync::oneshot::channel();
        let watch = move || {
            let _interrupted = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None);
            let _guard_ends = ended.send(());
        };
        if std::thread::Builder::new().name("brigade-parent".into()).spawn(watch).is_ok() {
            let _reported = is_ended.await;
        }
    }
    // Usually, the parent has ended by now.
    poll_parent(parent).await;
}

/// Waits until the parent process has ended. Untested on other systems than Linux.
#[cfg(not(target_os = "linux"))]
async fn until_parent_ends(parent: Option<Pid>) {
    poll_parent(parent).await;
}

async fn poll_parent(parent: Option<Pid>) {
    while getppid() == parent {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
