//! Terminates the descendants of a process. The code is platform-specific.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often to check whether terminated processes have exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for killed processes to exit. A process in an uninterruptible system call may never exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes this process adopt its orphaned descendants, so that this process can find and kill them.
#[cfg(target_os = "linux")]
pub fn adopt() {
    let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Does nothing: outside Linux, init adopts orphans, and brigade finds them by process group. Untested.
#[cfg(not(target_os = "linux"))]
pub fn adopt() {}

/// Terminates all descendants of `root` with SIGTERM. After `grace`, kills the remaining ones with SIGKILL.
pub async fn end(root: Pid, grace: Duration) {
    let began = Instant::now();
    let mut terminated = HashSet::new();
    loop {
        let descendants = descendants(root);
        if descendants.is_empty() {
            // Reap now: leftover zombies are reparented to a process that won't wait for them.
            reap();
            return;
        }
        for pid in descendants {
            if began.elapsed() >= grace {
                let _already_gone = kill_process(pid, Signal::KILL);
            } else if terminated.insert(pid) {
                let _already_gone = kill_process(pid, Signal::TERM);
            }
        }
        // Give up on processes that do not exit even after SIGKILL.
        if began.elapsed() >= grace * 2 {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        reap();
    }
}

/// Kills the processes that a killed guard left behind. The calling process must have called [`adopt`]. On
/// Linux, all its descendants are killed, so it must have no children that should keep running.
pub fn sweep(guard: u32) {
    let Some(guard) = i32::try_from(guard).ok().and_then(Pid::from_raw) else { return };
    let began = Instant::now();
    loop {
        let left = descendants(adopter(guard));
        if left.is_empty() || began.elapsed() >= KILL_TIMEOUT {
            reap();
            return;
        }
        for pid in left {
            let _already_gone = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(POLL_INTERVAL);
        reap();
    }
}

/// Returns this process, because this process adopts the orphans of `guard`.
#[cfg(target_os = "linux")]
fn adopter(_guard: Pid) -> Pid {
    rustix::process::getpid()
}

/// Returns `guard`, because the orphans stay in the process group of `guard`. This non-Linux version is untested.
#[cfg(not(target_os = "linux"))]
fn adopter(guard: Pid) -> Pid {
    guard
}

/// Reaps all children that have exited.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Reaps adopted processes that have exited. Skips `child`, because the caller waits for that process.
#[cfg(target_os = "linux")]
pub fn reap_orphans(child: Option<u32>) {
    use rustix::process::{WaitOptions, waitpid};
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let child = child.and_then(|child| i32::try_from(child).ok());
    for one in processes() {
        if one.has_ended && one.parent == me && Some(one.pid) != child {
            let _already_gone = waitpid(Pid::from_raw(one.pid), WaitOptions::NOHANG);
        }
    }
}

/// Does nothing: outside Linux, this process adopts no orphans.
#[cfg(not(target_os = "linux"))]
pub fn reap_orphans(_: Option<u32>) {}

/// A process in `/proc`.
#[cfg(target_os = "linux")]
struct ProcessEntry {
    pid: i32,
    parent: i32,
    /// Whether the process is a zombie: it has exited but was not reaped yet.
    has_ended: bool,
}

/// Returns all processes on this system.
#[cfg(target_os = "linux")]
fn processes() -> Vec<ProcessEntry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parse = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The program name, in parentheses, may contain any character. State and parent follow the last `)`.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let has_ended = fields.next() == Some("Z");
        Some(ProcessEntry { pid, parent: fields.next()?.parse().ok()?, has_ended })
    };
    entries.flatten().filter_map(parse).collect()
}

/// Returns all descendants of `root` that have not exited.
#[cfg(target_os = "linux")]
fn descendants(root: Pid) -> Vec<Pid> {
    let mut listed = processes();
    listed.retain(|one| !one.has_ended);
    let mut found = vec![root.as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(listed.iter().filter(|one| one.parent == parent).map(|one| one.pid));
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Returns all processes in the process group of `root`, except `root`. This non-Linux version is untested.
#[cfg(not(target_os = "linux"))]
fn descendants(root: Pid) -> Vec<Pid> {
    let group = root.as_raw_nonzero().get().to_string();
    let Ok(listed) = std::process::Command::new("pgrep").args(["-g", &group]).output() else {
        return Vec::new();
    };
    let pids = String::from_utf8_lossy(&listed.stdout).into_owned();
    let pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw);
    pids.filter(|pid| *pid != root).collect()
}
