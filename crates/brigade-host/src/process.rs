//! Identifies processes by process id and start time, because ids are reused. The code is platform-specific.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStringExt as _;

use brigade_core::pulse::Process;
use rustix::process::{Pid, Signal, kill_process};

/// Returns the process id and start time of this process.
pub fn current() -> Process {
    let pid = std::process::id();
    Process { pid, began: began(pid).unwrap_or_default() }
}

/// Returns whether the process is still running. Returns false if the process has ended and its id belongs to
/// another process now.
pub fn is_running(process: &Process) -> bool {
    began(process.pid).is_some_and(|began| began == process.began)
}

/// Returns whether a process with this id is running. A process that has ended and was not reaped yet is not running.
pub(crate) fn has_id(pid: u32) -> bool {
    began(pid).is_some()
}

/// Sends a signal to a process. Does nothing if the process has ended.
pub fn send_signal(process: &Process, signal: Signal) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| is_running(process)) {
        let _ended = kill_process(pid, signal);
    }
}

/// Returns the environment variables with which a process was started, or `None` if they cannot be read.
#[cfg(target_os = "linux")]
pub(crate) fn environment(process: &Process) -> Option<Vec<(OsString, OsString)>> {
    let bytes = std::fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (variable.get(..at)?, variable.get(at + 1..)?);
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((text(name), text(value)))
    });
    let variables = variables.collect();
    is_running(process).then_some(variables)
}

/// Other systems do not show the environment of a process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn environment(_: &Process) -> Option<Vec<(OsString, OsString)>> {
    None
}

/// Returns the start time of a process in the system's format, or `None` if the process has ended.
#[cfg(target_os = "linux")]
fn began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name, in parentheses, may contain any character. Of the fields after the name, the first is the
    // state and the twentieth is the start time in clock ticks since boot.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

/// Returns the start time of a process as printed by `ps`. This non-Linux version is untested.
#[cfg(not(target_os = "linux"))]
fn began(pid: u32) -> Option<String> {
    let pid = pid.to_string();
    let output = std::process::Command::new("ps").args(["-o", "lstart=", "-p", &pid]).output();
    let began = String::from_utf8_lossy(&output.ok()?.stdout).trim().to_owned();
    (!began.is_empty()).then_some(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_its_number_and_start_time() {
        let this = current();
        assert!(is_running(&this));
        assert!(!is_running(&Process { began: "long ago".to_owned(), ..this }));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let began = began(ended.id()).unwrap_or_default();
        let process = Process { pid: ended.id(), began };
        ended.wait().unwrap();
        assert!(!is_running(&process));
    }
}
