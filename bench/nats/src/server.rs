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
        std::thread::sleep(Duration::from_millis(50));
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

/// Returns the CPU time of a process, in seconds.
pub(crate) fn processor(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let ticks = rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
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
