//! The processes of a proof: this program again, doing one thing over and over.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brigade_core::board;
use brigade_core::mail::{self, Which, Words};
use brigade_core::roster::{self, Activity};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_core::store::file::Durability;
use rustix::process::{Pid, Signal, kill_process};

use crate::chronicle;
use crate::claims;
use crate::cost::plan;
use crate::crowd::Load;
use crate::place::{READER, Spot, block_on, member, team, text};
use crate::wake;
use crate::{crowd_bare, crowd_play};
use crate::{faults, faults_modes};

/// A process whose lines are collected. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    collector: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&lines);
        let collector = std::thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|read| read > 0) {
                // What a killed process did not finish printing it did not say.
                if line.ends_with('\n') {
                    collected.lock().unwrap().push(line.trim_end().to_owned());
                }
                line.clear();
            }
        });
        Self { child, lines, collector: Some(collector) }
    }

    /// What it has said so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// What it has said since this was last asked.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Waits until it has said this.
    pub(crate) fn wait_for(&self, word: &str) {
        let start = Instant::now();
        while !self.lines().iter().any(|line| line.starts_with(word)) {
            assert!(start.elapsed() < Duration::from_secs(30), "a child never said {word:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Lets it come to its end, and gives back what it said.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a child ended with {status}");
        self.said()
    }

    /// Ends it with SIGKILL, and gives back what it had said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.said()
    }

    fn said(&mut self) -> Vec<String> {
        self.collector.take().unwrap().join().unwrap();
        self.lines()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// This program as a child.
pub(crate) fn child(name: &str, spot: &Spot, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(format!("child-{name}")).arg(&spot.claude).arg(&spot.state).args(args);
    command
}

/// Runs the child of this name.
pub(crate) fn run(child: &str, args: &[String]) {
    let [claude, state, rest @ ..] = args else { panic!("where?") };
    let spot = Spot { claude: claude.into(), state: state.into() };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (child, rest.as_slice()) {
        ("send", [from, durability, seconds]) => {
            send(&spot.seat(from, level(durability)), seconds.parse().unwrap());
        }
        ("parse", [seconds]) => parse(&spot.inbox(), seconds.parse().unwrap()),
        ("mark", []) => mark(&spot.seat(READER, Durability::Process)),
        ("board", [me, durability]) => board(&spot.seat(me, level(durability))),
        ("look", []) => look(&spot),
        ("modes", [umask]) => faults_modes::a_little(&spot, umask),
        ("own", [umask]) => faults_modes::own(&spot, umask),
        ("try", []) => match faults::try_send(&spot, "x") {
            Ok(None) => say("acked"),
            Ok(Some(why)) => say(&format!("acked, waits: {why}")),
            Err(why) => say(&format!("refused: {why}")),
        },
        ("claim", [me, tasks, first]) => {
            let (tasks, first) = (tasks.parse().unwrap(), first.parse().unwrap());
            claims::claim(&spot.seat(me, Durability::Process), tasks, first, &spot);
        }
        ("watch", []) => wake::watch(&spot),
        ("chronicle", []) => chronicle::read(&spot),
        ("crowd" | "bare", [members, messages, tasks, batch]) => {
            let [members, messages, tasks, batch] =
                [members, messages, tasks, batch].map(|number| number.parse().unwrap());
            let load = Load { members, messages, tasks };
            if child == "crowd" {
                crowd_play::play(&spot, load);
            } else {
                crowd_bare::bare(&spot, load, batch);
            }
        }
        other => panic!("no child {other:?}"),
    }
}

/// A durability by its name.
pub(crate) fn level(name: &str) -> Durability {
    match name {
        "process" => Durability::Process,
        "power" => Durability::Power,
        other => panic!("no durability {other}"),
    }
}

/// Says something in one piece: a process that is killed has said it or not.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Sends for so many seconds, and says what was acknowledged.
fn send(seat: &Seat, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    for number in 0.. {
        if Instant::now() >= end {
            return;
        }
        let text = text(seat.name.as_str(), number);
        match block_on(mail::send(seat, READER, Words { text: &text, summary: None })) {
            Ok(sent) => {
                let id = &sent.receipt.msg_id;
                match &sent.receipt.waits {
                    None => say(&format!("acked {number} {id}")),
                    Some(why) => say(&format!("acked {number} {id} waits: {why}")),
                }
            }
            Err(error) => say(&format!("refused {number} {error}")),
        }
    }
}

/// Reads the inbox without a lock, over and over, as Claude Code's own readers do.
fn parse(inbox: &Path, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut reads, mut torn) = (0_usize, 0_usize);
    while Instant::now() < end {
        let bytes = std::fs::read(inbox).unwrap_or_default();
        reads += 1;
        if serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).is_err() {
            torn += 1;
        }
    }
    say(&format!("parsed {reads} {torn}"));
}

/// Marks what is unread, for ever, and says which.
fn mark(seat: &Seat) {
    loop {
        let unread = block_on(mail::inbox(seat, &seat.name, Which::Unread)).unwrap();
        let few: Vec<_> = unread.iter().take(500).collect();
        let keys: Vec<_> = few.iter().map(|mail| mail.key).collect();
        block_on(mail::mark(seat, &keys, Mark::Read)).unwrap();
        let id = |json: &[u8]| {
            let entry: serde_json::Value = serde_json::from_slice(json).unwrap();
            entry["msg_id"].as_str().unwrap().to_owned()
        };
        let ids: Vec<String> = few.iter().map(|mail| id(&mail.json)).collect();
        say(&format!("marked {}", ids.join(" ")));
    }
}

/// Adds, claims and finishes tasks and says so, for ever, and now and then changes the roster.
fn board(seat: &Seat) {
    for number in 0.. {
        let refused = |error: &dyn std::fmt::Display| say(&format!("refused {error}"));
        let id = match block_on(board::add(seat, &plan(number))) {
            Ok(id) => id,
            Err(error) => {
                refused(&error);
                continue;
            }
        };
        say(&format!("added {id}"));
        match block_on(board::claim(seat, id)) {
            Ok(()) => say(&format!("claimed {id} {}", seat.name)),
            Err(error) => refused(&error),
        }
        match block_on(board::done(seat, id)) {
            Ok(()) => say(&format!("done {id}")),
            Err(error) => refused(&error),
        }
        if number % 4 == 3 {
            let activity = if number % 8 == 3 { Activity::Active } else { Activity::Idle };
            if let Err(error) = block_on(roster::set_activity(seat, &seat.name, activity)) {
                refused(&error);
            }
        }
    }
}

/// Says that this process is ready, and waits until all may begin.
pub(crate) fn wait_for_go(spot: &Spot) {
    say("ready");
    while !spot.claude.join("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The next operation of anybody.
fn look(spot: &Spot) {
    let store = spot.store(Durability::Process);
    block_on(store.inbox(&team(), &member(READER))).unwrap();
    block_on(store.tasks(&team())).unwrap();
}
