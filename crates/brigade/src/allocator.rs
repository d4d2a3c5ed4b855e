//! Memory that is not needed any more goes back to the system.
//!
//! A process stands beside an agent for days, and now and then it reads a long journal, or all that an agent
//! remembers. glibc keeps what is freed, and the more of it the larger the pieces were that it ever gave: such a
//! process would hold for good what it needed once.

use std::time::Duration;

/// How often what lies free between things in use is given back. A command that is soon over never comes to it.
const EVERY: Duration = Duration::from_secs(10);

/// Has freed memory given back. To be called first of all, while there is one thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no other way to tell glibc")]
pub(crate) fn give_back() {
    // What is large goes back when it is freed, and so does what is free at the end of the heap. Saying how
    // large keeps glibc from raising it by itself.
    const LARGE: std::ffi::c_int = 64 * 1024;
    for option in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: it takes two numbers and no address, and changes nothing but a setting of malloc's, which no
        // other thread reads: there is none yet. A number that it does not like it leaves alone.
        let _taken = unsafe { libc::mallopt(option, LARGE) };
    }
}

/// Gives back, every while, the pages that lie free between others.
pub(crate) async fn keep_giving_back() {
    loop {
        tokio::time::sleep(EVERY).await;
        trim();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no other way to tell glibc")]
fn trim() {
    // SAFETY: it takes a number and no address, may be called from any thread, and gives back only what is free.
    let _some = unsafe { libc::malloc_trim(0) };
}

/// Other systems are left as they are; what they keep was not measured.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
