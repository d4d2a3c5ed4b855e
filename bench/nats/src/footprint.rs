//! Measures the disk, the memory and the start times of a server with many mailboxes, and prints them as JSON for
//! `bench/capacity`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use brigade_nats::layout::{MessageClass, Subjects};
use brigade_testkit::nats_server::TestServers;
use serde_json::json;

use crate::bare_contender::{entry, publisher};
use crate::block_on;
use crate::contender::{SHARDS, message, team};
use crate::fill::{FILLED, MEMBERS};
use crate::fixtures::member;
use crate::scale_steps::Reads;
use crate::server::{memory, processor, restart, usage};

/// The longest time that a server may take to stop after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// The file in which the server stores what it knows about a stream. The server uses it only if it is current.
const STATE_FILE: &str = "index.db";

/// The content of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredContent {
    pub(crate) teams: usize,
    pub(crate) mailboxes: usize,
    pub(crate) messages: usize,
}

/// One start of a server.
#[derive(Debug)]
struct ServerStart {
    seconds: f64,
    processor_seconds: f64,
    memory: u64,
}

/// Starts the server `starts` times after a kill, once after a clean stop, reads `reads` mailboxes, and prints a line
/// `footprint: {…}`. The server must have been started with every write synced.
pub(crate) fn print(engine: &mut TestServers, content: StoredContent, starts: usize, reads: usize) {
    let data = engine.folder(0).join("data");
    let mut after_kill = Vec::new();
    for _ in 0..starts {
        after_kill.push(start_after_kill(engine));
    }
    let disk = usage(&data);
    let blocks = count_blocks(&data);
    let after_stop = start_after_stop(engine);
    // A clean stop leaves nothing to rebuild, so the reads are measured after a kill, as in the rest of `scale`.
    let before_reads = start_after_kill(engine).memory;
    let busy = processor(engine.pid(0));
    let mut cold = Reads::default();
    block_on(cold.measure(&engine.urls, content.teams, reads));
    let after_reads = memory(engine.pid(0));
    let read_processor_seconds = processor(engine.pid(0)) - busy;
    let of = |field: fn(&ServerStart) -> f64| after_kill.iter().map(field).collect::<Vec<_>>();
    let figures = json!({
        "teams": content.teams,
        "mailboxes": content.mailboxes,
        "messages": content.messages,
        "disk_bytes": disk,
        "blocks": blocks,
        "restart_seconds": of(|start| start.seconds),
        "restart_processor_seconds": of(|start| start.processor_seconds),
        "memory_after_start_bytes": of(|start| start.memory as f64),
        "clean_start_seconds": after_stop.seconds,
        "clean_start_memory_bytes": after_stop.memory,
        "reads": reads,
        "read_processor_seconds": read_processor_seconds,
        "memory_before_reads_bytes": before_reads,
        "memory_after_reads_bytes": after_reads,
    });
    println!("footprint: {figures}");
}

/// Kills the server and starts it without its state files, as if it had been killed before it could write them. The
/// server then reads every stored message.
fn start_after_kill(engine: &mut TestServers) -> ServerStart {
    engine.stop(0);
    remove_state_files(&engine.folder(0).join("data"));
    start(engine)
}

/// Stops the server with SIGTERM, so that it writes its state files, and starts it.
fn start_after_stop(engine: &mut TestServers) -> ServerStart {
    // A server that has received no message since its start does not write the state files.
    block_on(async {
        let subject = Subjects::new(&team(FILLED, 0), SHARDS).message(
            &member(MEMBERS[0]),
            MEMBERS[1],
            MessageClass::Text,
        );
        let context = publisher(&engine.urls).await;
        let ack = context.publish(subject, entry(&message(MEMBERS[1], 0)).into());
        ack.await.unwrap().await.unwrap();
    });
    let pid = engine.pid(0).to_string();
    let status = Command::new("kill").arg(&pid).status().unwrap();
    assert!(status.success(), "kill {pid} failed");
    let since = Instant::now();
    let exe = format!("/proc/{pid}/exe");
    while fs::read_link(&exe).is_ok() {
        assert!(since.elapsed() < STOP_TIMEOUT, "the server does not stop after SIGTERM");
        std::thread::sleep(Duration::from_millis(20));
    }
    start(engine)
}

fn start(engine: &mut TestServers) -> ServerStart {
    let took = restart(engine, "always", "always");
    let pid = engine.pid(0);
    ServerStart {
        seconds: took.as_secs_f64(),
        processor_seconds: processor(pid),
        memory: memory(pid),
    }
}

fn remove_state_files(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.metadata().unwrap().is_dir() {
            remove_state_files(&entry.path());
        } else if entry.file_name() == STATE_FILE {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Counts the blocks in which the server stores messages.
fn count_blocks(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let count = |entry: fs::DirEntry| match entry.metadata() {
        Ok(what) if what.is_dir() => count_blocks(&entry.path()),
        _ => usize::from(entry.path().extension().is_some_and(|name| name == "blk")),
    };
    entries.map(count).sum()
}
