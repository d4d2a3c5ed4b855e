//! Tests that need an external program are left out where it is missing, and the last line of the test run says so.

use std::collections::BTreeMap;
use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::nats_server;

/// Leaves out the current test unless these [programs](crate::needs::ExternalProgram) are installed.
///
/// Put it on the first line of a test. With `CI=true` the test fails instead.
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
    /// NATS, in the version that the store needs.
    NatsServer,
    /// Creates certificates.
    Openssl,
    /// Lists processes.
    Ps,
    /// Runs members that have a terminal.
    Tmux,
}

impl ExternalProgram {
    fn is_installed(self) -> bool {
        match self {
            Self::NatsServer => nats_server::is_installed(),
            Self::Openssl => succeeds("openssl", "version"),
            Self::Ps => succeeds("ps", "-e"),
            Self::Tmux => succeeds("tmux", "-V"),
        }
    }

    /// The name, and how to get it.
    const fn hint(self) -> &'static str {
        match self {
            Self::NatsServer => {
                "nats-server 2.15 or later (install it, or set BRIGADE_NATS_SERVER to its path)"
            }
            Self::Openssl => "openssl (install it)",
            Self::Ps => "ps (install procps)",
            Self::Tmux => "tmux (install it)",
        }
    }
}

fn succeeds(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// How many tests of this process were left out, for each missing program.
static LEFT_OUT: Mutex<BTreeMap<ExternalProgram, usize>> = Mutex::new(BTreeMap::new());

fn left_out() -> MutexGuard<'static, BTreeMap<ExternalProgram, usize>> {
    LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the program is missing. If so, the current test counts as left out; with `CI=true` it fails.
pub fn is_missing(program: ExternalProgram) -> bool {
    if program.is_installed() {
        return false;
    }
    let hint = program.hint();
    assert!(
        env::var_os("CI").is_none_or(|value| value != "true"),
        "CI=true: no test may be left out, and this test needs {hint}"
    );
    let mut left_out = left_out();
    if left_out.is_empty() {
        assert_eq!(atexit(print_left_out), 0, "atexit failed");
    }
    *left_out.entry(program).or_default() += 1;
    true
}

// The test harness has no hook for the end of a run, and captures what a passing test prints.
#[expect(unsafe_code, reason = "the standard library cannot register a function to run at exit")]
// SAFETY: this is the signature in the C standard. The function may be called at any time.
unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

/// Runs after the harness has printed the result of all tests.
extern "C" fn print_left_out() {
    for (program, count) in &*left_out() {
        let tests = if *count == 1 { "test was" } else { "tests were" };
        let hint = program.hint();
        let _not_printable =
            writeln!(std::io::stderr(), "left out: {count} {tests} not run without {hint}");
    }
}
