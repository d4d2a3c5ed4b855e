//! Measures the memory, CPU time and disk usage of a server, and restarts it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::TestServers;

/// The longest time that a restart may take.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Kills the server and starts it with another sync interval. Returns the time until the server answered.
pub(crate) fn restart(engine: &mut TestServers, from: &str, to: &str) -> Duration {
    let conf = engine.folder(0).join("server.conf");
    let text = fs::read_to_string(&conf).unwrap();
    let [from, to] = [from, to].map(|sync| format!("sync_interval: {sync}"));
    assert!(text.contains(&from), "the server configuration does not contain {from}");
    engine.stop(0);
    fs::write(&conf, text.replace(&from, &to)).unwrap();
    let start = Instant::now();
    engine.start(0);
    // `TestServers::wait_ready` would time out too early for this amount of data.
    while !is_healthy(&engine.monitor(0)) {
        assert!(start.elapsed() < TIMEOUT, "the server does not answer after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

/// Whether a server reports that it is healthy.
fn is_healthy(monitor: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(monitor)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /healthz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""status":"ok""#))
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

/// Returns the CPU time of a process, in seconds, from the kernel's scheduler statistics of its threads.
pub(crate) fn processor(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(Result::unwrap);
    let nanoseconds = |thread: fs::DirEntry| {
        let statistics = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        statistics.split(' ').next().and_then(|spent| spent.parse::<f64>().ok()).unwrap_or_default()
    };
    threads.map(nanoseconds).sum::<f64>() / 1e9
}

/// Returns how many bytes a process has written to disk so far.
fn written(pid: u32) -> f64 {
    let counters = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = counters.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap();
    line.parse().unwrap()
}

/// The counters of all servers at the beginning of a measurement.
#[derive(Debug)]
pub(crate) struct ServerWork<'s> {
    servers: &'s TestServers,
    nodes: usize,
    began: Instant,
    processor_seconds: f64,
    written: f64,
}

/// The processor time of all servers together, and the bytes that each server wrote to disk on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkDone {
    pub(crate) seconds: f64,
    pub(crate) processor_seconds: f64,
    pub(crate) written: f64,
}

impl<'s> ServerWork<'s> {
    /// Begins to measure the work of the first `nodes` servers.
    pub(crate) fn begin(servers: &'s TestServers, nodes: usize) -> Self {
        let began = Instant::now();
        let [processor_seconds, written] = Self::counters(servers, nodes);
        Self { servers, nodes, began, processor_seconds, written }
    }

    fn counters(servers: &TestServers, nodes: usize) -> [f64; 2] {
        let pids: Vec<u32> = (0..nodes).map(|node| servers.pid(node)).collect();
        let sum = |of: fn(u32) -> f64| pids.iter().map(|pid| of(*pid)).sum();
        [sum(processor), sum(written)]
    }

    /// Returns the work since the beginning.
    pub(crate) fn end(&self) -> WorkDone {
        let [processor_seconds, written] = Self::counters(self.servers, self.nodes);
        WorkDone {
            seconds: self.began.elapsed().as_secs_f64(),
            processor_seconds: processor_seconds - self.processor_seconds,
            written: (written - self.written) / self.nodes as f64,
        }
    }
}

impl WorkDone {
    /// Describes the work for one of `count` operations.
    pub(crate) fn per_operation(&self, count: f64) -> String {
        format!(
            "{:.0} per second; {:.0} us of processor time in all servers and {:.0} bytes written \
             to the disk of each server for one",
            count / self.seconds,
            self.processor_seconds / count * 1e6,
            self.written / count
        )
    }
}

/// Returns the disk usage of a folder, in bytes.
pub(crate) fn usage(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(what) if what.is_dir() => usage(&entry.path()),
        Ok(what) => what.blocks() * 512,
        // The server has deleted the file in the meantime.
        Err(_) => 0,
    };
    entries.map(size).sum()
}
