//! `brigade guard`: stands between a teammate's process and its agent's, so that neither leaves the
//! other behind.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{getpid, getppid, setsid};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use brigade_host::process_tree;

use crate::error::{CliError, Trouble};
use crate::exit;

/// How often it is looked whether our parent is still there.
const LOOK: Duration = Duration::from_secs(1);
/// After so many looks those are taken note of that the program has left to us, and that have ended.
const BURY: u64 = 5;
/// How long what we started has to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a program in a session of its own; ends all of the session when the program ends, when we
/// are told to, or when our parent dies.
pub(crate) async fn run(program: &[OsString]) -> Result<u8, CliError> {
    let parent = getppid();
    // Fails only if we lead a session already, and then that is the one.
    let _leads = setsid();
    process_tree::adopt();
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |source| CliError::failed(Trouble::Io { doing, source })
    };
    let mut told = signal(SignalKind::terminate()).map_err(failed("listen to signals"))?;
    let [name, args @ ..] = program else { return Ok(exit::USAGE) };
    let mut child = Command::new(name)
        .args(args)
        .spawn()
        .map_err(failed(&format!("start {}", name.display())))?;
    let mut looks = 0;
    let code = loop {
        tokio::select! {
            status = child.wait() => {
                let code = status.ok().and_then(|status| status.code());
                break code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED);
            }
            _ = told.recv() => break exit::DONE,
            () = tokio::time::sleep(LOOK) => {
                if getppid() != parent {
                    break exit::DONE;
                }
                looks += 1;
                if looks % BURY == 0 {
                    process_tree::bury(child.id());
                }
            }
        }
    };
    process_tree::end(getpid(), GRACE).await;
    Ok(code)
}
