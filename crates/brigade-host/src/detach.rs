//! Lets this process outlive its terminal.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::error::{HostError, failed};

/// Replaces the closed terminal of this process: input is empty, and output goes to `log`.
pub fn from_terminal(log: &Path) -> Result<(), HostError> {
    let detach = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let log = options.append(true).create(true).mode(0o600).open(log)?;
        dup2_stdin(std::fs::File::open("/dev/null")?)?;
        dup2_stdout(&log)?;
        Ok(dup2_stderr(&log)?)
    };
    detach().map_err(|source| failed("redirect the output", source))?;
    // Fails if this process leads a session or a process group, which does no harm.
    let _leads = setsid();
    Ok(())
}
