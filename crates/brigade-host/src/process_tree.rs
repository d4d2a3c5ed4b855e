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

/// How long processes may take to exit after SIGTERM, before [`end_young`] kills them.
const YOUNG_GRACE: Duration = Duration::from_millis(300);

/// Ends the descendants of `root` that are at most `age` old, first with SIGTERM and then with SIGKILL. Returns how many it
/// ended. A process that called `setsid` is found, too, if `root` adopts its orphans. Of the processes that start after this call,
/// only children of the processes that are being ended are ended.
#[cfg(target_os = "linux")]
pub fn end_young(root: u32, age: Duration) -> usize {
    let root = i32::try_from(root).ok().and_then(Pid::from_raw);
    let (Some(root), Some(now)) = (root, uptime()) else { return 0 };
    let began = Instant::now();
    let earliest = now.saturating_sub(age + START_TIME_TOLERANCE);
    let mut found: HashSet<Pid> = HashSet::new();
    loop {
        let is_young = |pid: &Pid| {
            process_entry(pid.as_raw_nonzero().get()).is_some_and(|entry| {
                let is_child = Pid::from_raw(entry.parent).is_some_and(|pid| found.contains(&pid));
                is_child || (earliest..=now).contains(&entry.started)
            })
        };
        let young: Vec<Pid> = descendants(root).into_iter().filter(is_young).collect();
        if young.is_empty() || began.elapsed() >= KILL_TIMEOUT {
            return found.len();
        }
        for pid in young {
            if began.elapsed() >= YOUNG_GRACE {
                let _already_gone = kill_process(pid, Signal::KILL);
            } else if found.insert(pid) {
                let _already_gone = kill_process(pid, Signal::TERM);
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Ends nothing: brigade relies on the agent outside Linux. Untested.
#[cfg(not(target_os = "linux"))]
pub fn end_young(_root: u32, _age: Duration) -> usize {
    0
}

/// The kernel rounds the start time of a process down to hundredths of a second.
#[cfg(target_os = "linux")]
const START_TIME_TOLERANCE: Duration = Duration::from_millis(20);

/// Returns the time since the system was started.
#[cfg(target_os = "linux")]
fn uptime() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Some(Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?))
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
    for orphan in children(me).into_iter().filter(|pid| Some(*pid) != child) {
        // Does nothing if the process is still running.
        let _already_gone = waitpid(Pid::from_raw(orphan), WaitOptions::NOHANG);
    }
}

/// Does nothing: outside Linux, this process adopts no orphans.
#[cfg(not(target_os = "linux"))]
pub fn reap_orphans(_: Option<u32>) {}

/// Returns the children of a process, including those that have exited. Returns none if the kernel does not list them.
#[cfg(target_os = "linux")]
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let pids = lists.flatten().flat_map(|list| {
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
    });
    pids.collect()
}

/// A process in `/proc`.
#[cfg(target_os = "linux")]
struct ProcessEntry {
    pid: i32,
    parent: i32,
    /// Whether the process is a zombie: it has exited but was not reaped yet.
    has_ended: bool,
    /// When the process was started, counted from the start of the system.
    started: Duration,
}

/// Returns a process, or `None` if it does not exist.
#[cfg(target_os = "linux")]
fn process_entry(pid: i32) -> Option<ProcessEntry> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The program name, in parentheses, may contain any character. State and parent follow the last `)`.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let has_ended = fields.next() == Some("Z");
    let parent = fields.next()?.parse().ok()?;
    // The start time is field 22 of the line, in hundredths of a second. The parent is field 4.
    let ticks: u64 = fields.nth(17)?.parse().ok()?;
    let started = Duration::from_millis(ticks * (1000 / rustix::param::clock_ticks_per_second()));
    Some(ProcessEntry { pid, parent, has_ended, started })
}

/// Returns all descendants of `root` that have not exited.
///
/// Reading the lists of children costs little, but a process that loses its parent meanwhile may be missed. So an empty
/// result is confirmed by a scan of all processes.
#[cfg(target_os = "linux")]
fn descendants(root: Pid) -> Vec<Pid> {
    let root = root.as_raw_nonzero().get();
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(children(parent));
        at += 1;
    }
    let runs = |pid: &i32| process_entry(*pid).is_some_and(|one| !one.has_ended);
    let mut running: Vec<i32> = found.into_iter().skip(1).filter(runs).collect();
    if running.is_empty() {
        running = scanned_descendants(root);
    }
    running.into_iter().filter_map(Pid::from_raw).collect()
}

/// Returns all descendants of `root` that have not exited, found among all processes on this system.
#[cfg(target_os = "linux")]
fn scanned_descendants(root: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let listed: Vec<ProcessEntry> =
        pids.filter_map(process_entry).filter(|one| !one.has_ended).collect();
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(listed.iter().filter(|one| one.parent == parent).map(|one| one.pid));
        at += 1;
    }
    found.split_off(1)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// The shell takes the place of an agent: it was started earlier than the command.
    #[test]
    fn commands_end_also_if_they_ignore_sigterm_or_lead_a_session_and_older_processes_stay() {
        let script =
            "sleep 0.5; sleep 60 & (trap '' TERM; sleep 61 & wait) & setsid sleep 62 & wait";
        let mut agent = Command::new("sh").args(["-c", script]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let guard = agent.id();
        let below = || descendants(Pid::from_raw(guard.try_into().unwrap()).unwrap()).len();
        let count = below();
        assert!(count >= 4, "{count}");
        assert_eq!(end_young(guard, Duration::from_millis(50)), 0);
        assert_eq!(below(), count);
        let began = Instant::now();
        assert_eq!(end_young(guard, Duration::from_millis(500)), count);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(below(), 0);
        // `wait` in the agent's shell returns when its commands have ended, so the shell ends by itself.
        agent.wait().unwrap();
    }
}
