//! Skips tests that need a missing external program. The last lines of the test run report the
//! skipped tests.

use std::collections::BTreeMap;
use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::nats_server;

/// Skips the current test unless these [programs](crate::needs::ExternalProgram) are installed.
///
/// Use this macro in the first line of a test. With `CI=true`, the test fails instead.
#[macro_export]
macro_rules! needs {
    ($($program:ident),+) => {
        $(
            if $crate::needs::is_missing($crate::needs::ExternalProgram::$program) {
                return;
            }
        )+
    };
}

/// A program that some tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExternalProgram {
    /// The NATS server, in a version that the NATS store supports.
    NatsServer,
    /// OpenSSL, which creates certificates.
    Openssl,
    /// `ps`, which lists processes.
    Ps,
    /// The right to mount file systems in a mount namespace, with `unshare`.
    MountNamespace,
    /// tmux, which runs members that have a terminal.
    Tmux,
}

impl ExternalProgram {
    fn is_installed(self) -> bool {
        match self {
            Self::NatsServer => nats_server::is_installed(),
            Self::Openssl => succeeds("openssl", "version"),
            Self::Ps => succeeds("ps", "-e"),
            Self::MountNamespace => {
                let mut unshare = Command::new("unshare");
                unshare.args(["-m", "mount", "--bind", "/usr", "/usr"]);
                succeeds_quietly(&mut unshare)
            }
            Self::Tmux => succeeds("tmux", "-V"),
        }
    }

    /// Returns the program's name, and how to install it.
    const fn hint(self) -> &'static str {
        match self {
            Self::NatsServer => {
                "nats-server 2.15 or later (install it, or set BRIGADE_NATS_SERVER to its path)"
            }
            Self::Openssl => "openssl (install it)",
            Self::Ps => "ps (install procps)",
            Self::MountNamespace => {
                "a mount namespace (install util-linux and run the tests as root)"
            }
            Self::Tmux => "tmux (install it)",
        }
    }
}

fn succeeds(program: &str, argument: &str) -> bool {
    succeeds_quietly(Command::new(program).arg(argument))
}

fn succeeds_quietly(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The number of tests skipped in this process, for each missing program.
static LEFT_OUT: Mutex<BTreeMap<ExternalProgram, usize>> = Mutex::new(BTreeMap::new());

fn left_out() -> MutexGuard<'static, BTreeMap<ExternalProgram, usize>> {
    LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the program is missing. If so, counts the current test as skipped, or panics if `CI=true`.
pub fn is_missing(program: ExternalProgram) -> bool {
    if program.is_installed() {
        return false;
    }
    let hint = program.hint();
    assert!(
        env::var_os("CI").is_none_or(|value| value != "true"),
        "with CI=true no test may be skipped, and this test needs {hint}"
    );
    let mut left_out = left_out();
    if left_out.is_empty() {
        assert_eq!(atexit(print_left_out), 0, "atexit failed");
    }
    *left_out.entry(program).or_default() += 1;
    true
}

// Use `atexit`, because the test harness has no hook for the end of the test run and hides the output of passing
// tests.
#[expect(unsafe_code, reason = "the standard library cannot register a function to run at exit")]
// SAFETY: `atexit` has this signature in the C standard, and may be called at any time.
unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

/// Prints the number of skipped tests. Runs after the test harness has printed the results of all tests.
extern "C" fn print_left_out() {
    for (program, count) in &*left_out() {
        let tests = if *count == 1 { "test that needs" } else { "tests that need" };
        let hint = program.hint();
        let _not_printable = writeln!(std::io::stderr(), "skipped {count} {tests} {hint}");
    }
}
