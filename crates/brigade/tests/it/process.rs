//! Sends signals to processes, and waits for conditions.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Kills a process with SIGKILL.
pub(crate) fn kill(pid: u64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// Suspends a process with SIGSTOP.
pub(crate) fn suspend(pid: u64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
}

/// Resumes a suspended process.
pub(crate) fn resume(pid: u64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
}

/// Sends SIGTERM to a child process.
pub(crate) fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// Sends SIGTERM to a process.
pub(crate) fn terminate_pid(pid: u64) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// Sends SIGINT to a child process, as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

pub(crate) fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub(crate) fn assert_all_gone(pids: &[u64]) {
    wait_until(&format!("the end of {pids:?}"), || !pids.iter().any(|&pid| is_alive(pid)));
}

/// Waits up to 30 seconds until a condition holds. `what` names the condition in the panic message.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Waits up to 30 seconds until `value` returns `Some`. `what` names the condition in the panic message.
pub(crate) fn wait_for<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
