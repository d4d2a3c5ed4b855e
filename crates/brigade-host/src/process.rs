//! Which process a number means. What differs between platforms stands here.

use brigade_core::pulse::Process;
use rustix::process::{Pid, Signal, kill_process};

/// This process.
pub fn this() -> Process {
    let pid = std::process::id();
    Process { pid, began: began(pid).unwrap_or_default() }
}

/// Whether that process is still there, and not another of its number.
pub fn is_there(process: &Process) -> bool {
    began(process.pid).is_some_and(|began| began == process.began)
}

/// Sends a signal to a process, if its number still means that process.
pub fn send_signal(process: &Process, signal: Signal) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| is_there(process)) {
        let _gone = kill_process(pid, signal);
    }
}

/// When a process began, in the system's own words; none if it is not there, or has ended and was not
/// waited for.
#[cfg(target_os = "linux")]
fn began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything. Behind it the state is the first field, and the time
    // since the system began the twentieth.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

/// Untested.
#[cfg(not(target_os = "linux"))]
fn began(pid: u32) -> Option<String> {
    let pid = pid.to_string();
    let asked = std::process::Command::new("ps").args(["-o", "lstart=", "-p", &pid]).output();
    let began = String::from_utf8_lossy(&asked.ok()?.stdout).trim().to_owned();
    (!began.is_empty()).then_some(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_beginning() {
        let this = this();
        assert!(is_there(&this));
        assert!(!is_there(&Process { began: "long ago".to_owned(), ..this }));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let began = began(ended.id()).unwrap_or_default();
        let process = Process { pid: ended.id(), began };
        ended.wait().unwrap();
        assert!(!is_there(&process));
    }
}
