//! Ends a process together with all its descendants. Platform-specific.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often to check whether the processes have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for killed processes. A process in an uninterruptible state may never end.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes this process the parent of orphaned descendants, so that it can find them.
#[cfg(target_os = "linux")]
pub fn adopt() {
    let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Not supported here: init adopts orphans, so they are found by process group. Untested.
#[cfg(not(target_os = "linux"))]
pub fn adopt() {}

/// Ends all descendants of `root`: SIGTERM first, SIGKILL after `grace`.
pub async fn end(root: Pid, grace: Duration) {
    let began = Instant::now();
    let mut terminated = HashSet::new();
    loop {
        let pids = descendants(root);
        if pids.is_empty() {
            // Reap now: leftover zombies are reparented to a process that won't wait for them.
            reap();
            return;
        }
        for pid in pids {
            if began.elapsed() >= grace {
                let _ended = kill_process(pid, Signal::KILL);
            } else if terminated.insert(pid) {
                let _ended = kill_process(pid, Signal::TERM);
            }
        }
        // Do not wait for a process that cannot be killed.
        if began.elapsed() >= grace * 2 {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        reap();
    }
}

/// Kills the processes that a killed guard left behind. Only for a process that called [`adopt`] and has no
/// other running children.
pub fn sweep(guard: u32) {
    let Some(guard) = i32::try_from(guard).ok().and_then(Pid::from_raw) else { return };
    let began = Instant::now();
    loop {
        let left = descendants(new_parent(guard));
        if left.is_empty() || began.elapsed() >= KILL_TIMEOUT {
            reap();
            return;
        }
        for pid in left {
            let _ended = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(POLL_INTERVAL);
        reap();
    }
}

/// Returns the process under which the orphans of `guard` are: this process has adopted them.
#[cfg(target_os = "linux")]
fn new_parent(_guard: Pid) -> Pid {
    rustix::process::getpid()
}

/// The process group keeps the number of its leader after the leader ends. Untested.
#[cfg(not(target_os = "linux"))]
fn new_parent(guard: Pid) -> Pid {
    guard
}

/// Reaps all children that have ended.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Reaps adopted processes that have ended. Skips `child`, because its starter waits for it.
#[cfg(target_os = "linux")]
pub fn bury(child: Option<u32>) {
    use rustix::process::{WaitOptions, waitpid};
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let child = child.and_then(|child| i32::try_from(child).ok());
    for one in processes() {
        if one.has_ended && one.parent == me && Some(one.pid) != child {
            let _ended = waitpid(Pid::from_raw(one.pid), WaitOptions::NOHANG);
        }
    }
}

/// Does nothing: this platform has no adopted processes.
#[cfg(not(target_os = "linux"))]
pub fn bury(_: Option<u32>) {}

/// An entry of `/proc`.
#[cfg(target_os = "linux")]
struct ProcessEntry {
    pid: i32,
    parent: i32,
    /// It is a zombie.
    has_ended: bool,
}

/// Returns every process of the system.
#[cfg(target_os = "linux")]
fn processes() -> Vec<ProcessEntry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parse = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may contain anything; the state and the parent follow it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let has_ended = fields.next() == Some("Z");
        Some(ProcessEntry { pid, parent: fields.next()?.parse().ok()?, has_ended })
    };
    entries.flatten().filter_map(parse).collect()
}

/// Returns the running descendants of `root`.
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

/// Returns the processes of the group that `root` leads, without `root`. Untested.
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
