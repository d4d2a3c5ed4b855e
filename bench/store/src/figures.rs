//! Collects measurements, prints them with their spread, and checks them against limits.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Takes at most a minute. For development and CI.
    Short,
    /// Runs long enough for reliable figures.
    Long,
}

impl Length {
    /// Returns `short` or `long`, depending on the length.
    pub(crate) fn pick<T>(self, short: T, long: T) -> T {
        if self == Self::Short { short } else { long }
    }
}

/// The name and the function of a benchmark.
pub(crate) type Benchmark = (&'static str, fn(&mut BenchReport, Length));

/// Runs the benchmark that the first command-line argument names. If that argument is `all`, runs all benchmarks.
/// The argument `--short` makes the runs shorter.
pub(crate) fn run_benchmarks(program: &str, benchmarks: &[Benchmark]) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    let length = if args.iter().any(|arg| arg == "--short") { Length::Short } else { Length::Long };
    let chosen: Vec<_> =
        benchmarks.iter().filter(|(benchmark, _)| name == "all" || name == *benchmark).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = benchmarks.iter().map(|(benchmark, _)| *benchmark).collect();
        eprintln!("usage: {program} <{}|all> [--short]", names.join("|"));
        return ExitCode::from(2);
    }
    let mut report = BenchReport::default();
    for (benchmark, run) in chosen {
        println!("== {benchmark}{}", length.pick(" (short form)", ""));
        run(&mut report, length);
    }
    report.exit_code()
}

/// Counts the checks that passed and failed.
#[derive(Debug, Default)]
pub(crate) struct BenchReport {
    failed: usize,
    passed: usize,
}

impl BenchReport {
    /// Prints the result of a check and counts it.
    pub(crate) fn check(&mut self, reached: bool, what: impl fmt::Display) {
        println!("{}  {what}", if reached { "PASS" } else { "FAIL" });
        if reached { self.passed += 1 } else { self.failed += 1 }
    }

    /// Checks that a count is zero.
    pub(crate) fn check_zero(&mut self, what: impl fmt::Display, count: usize) {
        self.check(count == 0, format!("{what}: {count}"));
    }

    /// Checks that a count is zero, and prints it together with the total `of`.
    pub(crate) fn check_none_of(&mut self, what: impl fmt::Display, count: usize, of: usize) {
        self.check(count == 0, format!("{what}: {count} of {of}"));
    }

    /// Checks that a list is empty.
    pub(crate) fn check_empty<T: fmt::Debug>(&mut self, what: impl fmt::Display, found: &[T]) {
        self.check(found.is_empty(), format!("{what}: {}", sample(found)));
    }

    /// Checks a time limit. `share` is the measured time divided by the limit. If `BENCH_SLACK` is set, it
    /// multiplies the limit. If a check passes only for that reason, the printed line reports it.
    pub(crate) fn check_time(&mut self, share: f64, what: impl fmt::Display) {
        let slack = std::env::var("BENCH_SLACK").map_or(1.0, |slack| slack.parse().unwrap());
        if share > 1.0 && share <= slack {
            self.check(true, format!("{what} MISSED, but within BENCH_SLACK={slack}"));
        } else {
            self.check(share <= 1.0, what);
        }
    }

    /// Checks that `this` takes at most `times` as long as `that`.
    pub(crate) fn check_ratio(&mut self, what: &str, this: f64, times: f64, that: f64) {
        let ratio = this / that;
        let text = format!("{what}: {ratio:.2} x (bar {times} x; {this:.0} against {that:.0} us)");
        self.check_time(ratio / times, text);
    }

    fn exit_code(&self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Describes a list: the number of items, and the first three.
pub(crate) fn sample<T: fmt::Debug>(items: &[T]) -> String {
    let some: Vec<&T> = items.iter().take(3).collect();
    match items.len() {
        0 => "0".to_owned(),
        count => format!("{count}, such as {some:?}"),
    }
}

/// The durations of repeated measurements, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1e6);
    }

    /// Measures how long `work` takes.
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
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= q <= 1")]
        let index = (last as f64 * q).round() as usize;
        sorted[index.min(last)]
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.quantile(0.1), self.quantile(0.9));
        let (median, n) = (self.median(), self.0.len());
        write!(f, "{median:>9.0} {low:>9.0} {high:>9.0} {n:>6}")
    }
}

/// Prints the heading of a table.
pub(crate) fn heading(what: &str) {
    println!("{what:<52} {:>9} {:>9} {:>9} {:>6}", "median us", "p10", "p90", "n");
}

/// Prints one row of a table.
pub(crate) fn line(what: &str, times: &Times) {
    println!("{what:<52} {times}");
}
