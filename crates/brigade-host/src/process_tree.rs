//! A process and all it started. What differs between platforms stands here.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often it is looked whether those that were told to end have ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long those that were killed are waited for. Whoever cannot be killed is not.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes in processes whose parents die, so that they can be found.
#[cfg(target_os = "linux")]
pub fn adopt() {
    let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Elsewhere they go to the first process of the system, and only the group is known. Untested.
#[cfg(not(target_os = "linux"))]
pub fn adopt() {}

/// Ends everything below `root`: first kindly, after `grace` by force.
pub async fn end(root: Pid, grace: Duration) {
    let began = Instant::now();
    let mut told = HashSet::new();
    loop {
        let below = below(root);
        if below.is_empty() {
            // Whoever we leave unburied is our heir's, who does not know of it.
            reap();
            return;
        }
        for pid in below {
            if began.elapsed() >= grace {
                let _gone = kill_process(pid, Signal::KILL);
            } else if told.insert(pid) {
                let _gone = kill_process(pid, Signal::TERM);
            }
        }
        // Whoever cannot be killed is not waited for.
        if began.elapsed() >= grace * 2 {
            return;
        }
        tokio::time::sleep(LOOK).await;
        reap();
    }
}

/// Ends at once what a guard left behind that was killed. Only for a process that has adopted, and has
/// started nothing but guards that have ended.
pub fn sweep(guard: u32) {
    let Some(guard) = i32::try_from(guard).ok().and_then(Pid::from_raw) else { return };
    let began = Instant::now();
    loop {
        let left = below(heir(guard));
        if left.is_empty() || began.elapsed() >= PATIENCE {
            reap();
            return;
        }
        for pid in left {
            let _gone = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(LOOK);
        reap();
    }
}

/// Under whom those are found that `guard` has left: they are adopted by this process.
#[cfg(target_os = "linux")]
fn heir(_guard: Pid) -> Pid {
    rustix::process::getpid()
}

/// The group keeps the number of the process that made it. Untested.
#[cfg(not(target_os = "linux"))]
fn heir(guard: Pid) -> Pid {
    guard
}

/// Takes note of children that have ended, ours by adoption.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Takes note of those that we have adopted and that have ended, and not of `child`, which another waits for.
#[cfg(target_os = "linux")]
pub fn bury(child: Option<u32>) {
    use rustix::process::{WaitOptions, waitpid};
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let child = child.and_then(|child| i32::try_from(child).ok());
    for one in processes() {
        if one.has_ended && one.parent == me && Some(one.pid) != child {
            let _gone = waitpid(Pid::from_raw(one.pid), WaitOptions::NOHANG);
        }
    }
}

/// Nobody is adopted.
#[cfg(not(target_os = "linux"))]
pub fn bury(_: Option<u32>) {}

/// What the system tells of a process.
#[cfg(target_os = "linux")]
struct Listed {
    pid: i32,
    parent: i32,
    /// It has only to be waited for.
    has_ended: bool,
}

/// Every process of the system.
#[cfg(target_os = "linux")]
fn processes() -> Vec<Listed> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let look = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in brackets, may hold anything; the state and the parent stand behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let has_ended = fields.next() == Some("Z");
        Some(Listed { pid, parent: fields.next()?.parse().ok()?, has_ended })
    };
    entries.flatten().filter_map(look).collect()
}

/// Every process below `root`.
#[cfg(target_os = "linux")]
fn below(root: Pid) -> Vec<Pid> {
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

/// Every process of the group that `root` leads, but itself. Untested.
#[cfg(not(target_os = "linux"))]
fn below(root: Pid) -> Vec<Pid> {
    let group = root.as_raw_nonzero().get().to_string();
    let Ok(listed) = std::process::Command::new("pgrep").args(["-g", &group]).output() else {
        return Vec::new();
    };
    let pids = String::from_utf8_lossy(&listed.stdout).into_owned();
    let pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw);
    pids.filter(|pid| *pid != root).collect()
}
