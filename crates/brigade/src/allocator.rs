//! Returns unused memory to the operating system.
//!
//! A member's process runs for days and occasionally reads a long journal or an agent's whole session. glibc
//! keeps freed memory, and keeps more of it after large allocations, so without this module the process would
//! stay at its peak size.

use std::time::Duration;

/// When to release free pages for the first time: a process needs the most memory when it starts. Short commands exit before.
const FIRST_TRIM: Duration = Duration::from_secs(3);
/// How often to release free pages while the process works.
const TRIM_INTERVAL: Duration = Duration::from_secs(10);
/// How often to check whether the process has worked.
const MAX_INTERVAL: Duration = Duration::from_secs(80);
/// A process that has worked for a shorter time than this has freed only a few pages.
const WORK: Duration = Duration::from_millis(5);

/// Configures malloc to return freed memory to the system. Must be called before the process starts other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has no other interface for this")]
pub(crate) fn configure_malloc() {
    // Large blocks, and free memory at the end of the heap, are returned as soon as they are freed. Setting the
    // thresholds also keeps glibc from raising them dynamically.
    const LARGE: std::ffi::c_int = 64 * 1024;
    for option in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: `mallopt` takes two integers and only changes malloc settings. No other thread exists that could
        // read them. `mallopt` ignores invalid values.
        let _accepted = unsafe { libc::mallopt(option, LARGE) };
    }
}

/// Releases free pages inside the heap, periodically while the process works. An idle member wakes up rarely.
pub(crate) async fn release_memory_periodically() {
    let mut interval = FIRST_TRIM;
    let mut released_at = Duration::ZERO;
    loop {
        tokio::time::sleep(interval).await;
        if processor_time().saturating_sub(released_at) < WORK {
            interval = (interval * 2).clamp(TRIM_INTERVAL, MAX_INTERVAL);
            continue;
        }
        trim();
        released_at = processor_time();
        interval = TRIM_INTERVAL;
    }
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has no other interface for this")]
fn trim() {
    // SAFETY: `malloc_trim` takes an integer, is thread-safe and only releases free memory.
    let _released = unsafe { libc::malloc_trim(0) };
}

/// Does nothing on other systems, where memory use was not measured.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn configure_malloc() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
