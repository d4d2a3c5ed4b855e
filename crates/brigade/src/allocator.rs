//! Returns unused memory to the operating system.
//!
//! A member's process runs for days and occasionally reads a long journal or an agent's whole session. glibc
//! keeps freed memory, and keeps more of it after large allocations, so without this module the process would
//! stay at its peak size.

use std::time::Duration;

/// How often to release free pages. Short commands exit before the first release.
const TRIM_INTERVAL: Duration = Duration::from_secs(10);

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

/// Periodically releases free pages inside the heap.
pub(crate) async fn release_memory_periodically() {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        trim();
    }
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
