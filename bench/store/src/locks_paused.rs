//! Stops a brigade process while it holds both locks of an inbox. The process resumes after other processes have
//! taken over one of the locks and written to the inbox.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::children::{ChildProcess, child};
use crate::cost::native_inbox;
use crate::locks::{LockResult, all_there};
use crate::node;
use crate::temp_team::TempTeam;

/// The number of messages in the inbox. A write to an inbox of this size takes long enough to be interrupted.
const PREFILL: usize = 5_000;

pub(crate) fn run(modules: &Path, pause: Duration) -> LockResult {
    let mut result = LockResult::default();
    let temp = TempTeam::with_team(&["ours-0", "ours-1", "ours-2"]);
    let dirs = &temp.dirs;
    std::fs::write(dirs.inbox(), native_inbox(PREFILL)).unwrap();
    let stopped = ChildProcess::start(&mut child("send", dirs, &["ours-0", "process", "60"]));
    let mut tries = 0;
    loop {
        tries += 1;
        assert!(tries < 1_000_000, "the process never held the lock");
        if dirs.lock().exists() {
            stopped.signal(Signal::STOP);
            // Check again: the process may have released the lock before the signal arrived.
            sleep(Duration::from_millis(5));
            if dirs.lock().exists() {
                break;
            }
            stopped.signal(Signal::CONT);
        }
    }
    let start = Instant::now();
    let seconds = pause.as_secs_f64().to_string();
    let mut others: Vec<ChildProcess> = ["ours-1", "ours-2"]
        .iter()
        .map(|name| ChildProcess::start(&mut child("send", dirs, &[name, "process", &seconds])))
        .collect();
    let mut peer = node::peer(modules, "append", &dirs.inbox(), "peer");
    others.push(ChildProcess::start(peer.arg(&seconds)));
    sleep(pause.saturating_sub(start.elapsed()));
    let early: Vec<Vec<String>> = others.iter().map(ChildProcess::lines).collect();
    stopped.signal(Signal::CONT);
    sleep(Duration::from_millis(500));
    let mut lines = stopped.kill();
    let first: Vec<String> = early.iter().flat_map(|lines| lines.iter().take(1)).cloned().collect();
    result.note(format!("first line from each of the other processes during the stop: {first:?}"));
    let output: Vec<Vec<String>> = others.into_iter().map(ChildProcess::finish).collect();
    result.note(format!(
        "messages sent by each of the other processes: {:?}",
        output.iter().map(Vec::len).collect::<Vec<_>>()
    ));
    result.note(format!("all processes finished after {:.1} s", start.elapsed().as_secs_f64()));
    lines.extend(output.into_iter().flatten());
    ChildProcess::start(&mut child("read-all", dirs, &[])).finish();
    let acked: Vec<String> = lines
        .iter()
        .filter(|line| line.starts_with("acked"))
        .filter_map(|line| Some(line.split(' ').nth(2)?.to_owned()))
        .collect();
    let refused = lines.iter().filter(|line| line.starts_with("refused")).count();
    result.note(format!(
        "{} messages acknowledged in total (including the peer's), {refused} failed",
        acked.len()
    ));
    all_there(dirs, &acked, PREFILL, &mut result);
    result
}
