//! A brigade process that is stopped while it holds both locks, and goes on when others have taken
//! one of them and written.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::children::{Running, child};
use crate::cost::native_inbox;
use crate::locks::{Verdict, all_there};
use crate::node;
use crate::place::Place;

/// Enough that a write takes long enough to be caught in.
const PREFILL: usize = 5_000;

pub(crate) fn run(modules: &Path, pause: Duration) -> Verdict {
    let mut verdict = Verdict::default();
    let place = Place::with_team(&["ours-0", "ours-1", "ours-2"]);
    let spot = &place.spot;
    std::fs::write(spot.inbox(), native_inbox(PREFILL)).unwrap();
    let stopped = Running::start(&mut child("send", spot, &["ours-0", "process", "60"]));
    let mut tries = 0;
    loop {
        tries += 1;
        assert!(tries < 1_000_000, "the lock was never seen");
        if spot.lock().exists() {
            stopped.signal(Signal::STOP);
            // It may have given the lock back before the signal came.
            sleep(Duration::from_millis(5));
            if spot.lock().exists() {
                break;
            }
            stopped.signal(Signal::CONT);
        }
    }
    let start = Instant::now();
    let seconds = pause.as_secs_f64().to_string();
    let mut others: Vec<Running> = ["ours-1", "ours-2"]
        .iter()
        .map(|name| Running::start(&mut child("send", spot, &[name, "process", &seconds])))
        .collect();
    let mut peer = node::peer(modules, "append", &spot.inbox(), "peer");
    others.push(Running::start(peer.arg(&seconds)));
    sleep(pause.saturating_sub(start.elapsed()));
    let early: Vec<Vec<String>> = others.iter().map(Running::lines).collect();
    stopped.signal(Signal::CONT);
    sleep(Duration::from_millis(500));
    let mut lines = stopped.kill();
    let first: Vec<String> = early.iter().flat_map(|lines| lines.iter().take(1)).cloned().collect();
    verdict.see(format!("while it stood still: {first:?}"));
    let said: Vec<Vec<String>> = others.into_iter().map(Running::finish).collect();
    verdict.see(format!(
        "others sent until the end: {:?}",
        said.iter().map(Vec::len).collect::<Vec<_>>()
    ));
    verdict.see(format!("after {:.1} s all were through", start.elapsed().as_secs_f64()));
    lines.extend(said.into_iter().flatten());
    Running::start(&mut child("look", spot, &[])).finish();
    let acked: Vec<String> = lines
        .iter()
        .filter(|line| line.starts_with("acked"))
        .filter_map(|line| Some(line.split(' ').nth(2)?.to_owned()))
        .collect();
    let refused = lines.iter().filter(|line| line.starts_with("refused")).count();
    verdict.see(format!("{} acked by all (with the peer's), {refused} refused", acked.len()));
    all_there(spot, &acked, PREFILL, &mut verdict);
    verdict
}
