//! Figures with their number and spread, and the bars they are held against.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What passed and what did not.
#[derive(Debug, Default)]
pub(crate) struct Report {
    failed: usize,
    passed: usize,
}

impl Report {
    /// Says whether a bar was reached.
    pub(crate) fn bar(&mut self, reached: bool, what: impl fmt::Display) {
        println!("{}  {what}", if reached { "PASS" } else { "FAIL" });
        if reached { self.passed += 1 } else { self.failed += 1 }
    }

    /// A bar on time: `share` of it was needed. On a machine shared with others `BENCH_SLACK` times
    /// as much may be, and the line says so.
    pub(crate) fn timing(&mut self, share: f64, what: impl fmt::Display) {
        let slack = std::env::var("BENCH_SLACK").map_or(1.0, |slack| slack.parse().unwrap());
        if share > 1.0 && share <= slack {
            self.bar(true, format!("{what} MISSED, but within the slack of {slack}"));
        } else {
            self.bar(share <= 1.0, what);
        }
    }

    /// A bar of the form "this is at most so many times that".
    pub(crate) fn at_most(&mut self, what: &str, this: f64, times: f64, that: f64) {
        let ratio = this / that;
        let text = format!("{what}: {ratio:.2} x (bar {times} x; {this:.0} against {that:.0} us)");
        self.timing(ratio / times, text);
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// How long something took, each time, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1e6);
    }

    /// Times what `work` does.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.push(start.elapsed());
        done
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(!sorted.is_empty(), "nothing was measured");
        let last = sorted.len() - 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=1 x len")]
        let place = (last as f64 * q).round() as usize;
        sorted[place.min(last)]
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.quantile(0.1), self.quantile(0.9));
        let (median, n) = (self.median(), self.0.len());
        write!(f, "{median:>9.0} {low:>9.0} {high:>9.0} {n:>6}")
    }
}

/// The heading above lines made by `line`.
pub(crate) fn heading(what: &str) {
    println!("{what:<52} {:>9} {:>9} {:>9} {:>6}", "median us", "p10", "p90", "n");
}

/// One line of a table.
pub(crate) fn line(what: &str, times: &Times) {
    println!("{what:<52} {times}");
}
