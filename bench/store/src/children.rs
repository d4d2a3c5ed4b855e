//! The child processes of a benchmark. Each child process runs this same program and repeats one operation.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brigade_core::board;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::roster::{self, Activity};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_files::Durability;
use brigade_wire::task::{NewTask, Status};
use rustix::process::{Pid, Signal, kill_process};

use crate::claims;
use crate::event_log;
use crate::fixtures::{member, plan, text};
use crate::in_process::Workload;
use crate::temp_team::{READER, TeamDirs, block_on, send_text, team};
use crate::wake;
use crate::{faults, faults_modes};
use crate::{in_process_bare, in_process_team};

/// A child process, killed on drop. The lines of its output are collected.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    collector: Option<JoinHandle<()>>,
}

impl ChildProcess {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&lines);
        let collector = std::thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|read| read > 0) {
                // Ignore the incomplete last line from a killed process.
                if line.ends_with('\n') {
                    collected.lock().unwrap().push(line.trim_end().to_owned());
                }
                line.clear();
            }
        });
        Self { child, lines, collector: Some(collector) }
    }

    /// Returns the lines that the process has printed so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Returns the lines that the process has printed since the last call.
    pub(crate) fn new_lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Waits until the process prints a line with this prefix.
    pub(crate) fn wait_for(&self, prefix: &str) {
        let start = Instant::now();
        while !self.lines().iter().any(|line| line.starts_with(prefix)) {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "a child process did not print {prefix:?} within 30 s"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the process ends. Returns its output.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a child process ended with {status}");
        self.output()
    }

    /// Kills the process. Returns its output.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.output()
    }

    fn output(&mut self) -> Vec<String> {
        self.collector.take().unwrap().join().unwrap();
        self.lines()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the command that runs this program as a child process.
pub(crate) fn child(name: &str, dirs: &TeamDirs, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(format!("child-{name}")).arg(&dirs.claude).arg(&dirs.state).args(args);
    command
}

/// Runs the operation with this name. Called in a child process.
pub(crate) fn run(child: &str, args: &[String]) {
    let [claude, state, rest @ ..] = args else { panic!("the two folder arguments are missing") };
    let dirs = TeamDirs { claude: claude.into(), state: state.into() };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (child, rest.as_slice()) {
        ("send", [from, durability, seconds]) => {
            send(&dirs.seat(from, level(durability)), seconds.parse().unwrap());
        }
        ("parse", [seconds]) => parse(&dirs.inbox(), seconds.parse().unwrap()),
        ("mark", []) => mark(&dirs.seat(READER, Durability::Process)),
        ("board", [me, durability]) => board(&dirs.seat(me, level(durability))),
        ("read-all", []) => read_all(&dirs),
        ("modes", [umask]) => faults_modes::use_store(&dirs, umask),
        ("own", [umask]) => faults_modes::use_own_folders(&dirs, umask),
        ("try", []) => match faults::try_send(&dirs, "x") {
            Ok(None) => print_line("acked"),
            Ok(Some(why)) => print_line(&format!("acked, waits: {why}")),
            Err(why) => print_line(&format!("refused: {why}")),
        },
        ("claim", [me, tasks, first]) => {
            let (tasks, first) = (tasks.parse().unwrap(), first.parse().unwrap());
            claims::claim(&dirs.seat(me, Durability::Process), tasks, first, &dirs);
        }
        ("watch", []) => wake::watch(&dirs),
        ("event-log", []) => event_log::read(&dirs),
        ("team" | "bare", [members, messages, tasks, batch]) => {
            let [members, messages, tasks, batch] =
                [members, messages, tasks, batch].map(|number| number.parse().unwrap());
            let load = Workload { members, messages, tasks };
            if child == "team" {
                in_process_team::run(&dirs, load);
            } else {
                in_process_bare::run(&dirs, load, batch);
            }
        }
        other => panic!("unknown child operation {other:?}"),
    }
}

/// Parses the name of a durability.
pub(crate) fn level(name: &str) -> Durability {
    match name {
        "process" => Durability::Process,
        "power" => Durability::Power,
        other => panic!("unknown durability {other}"),
    }
}

/// Prints a line with a single write, so that a killed process prints either the whole line or nothing.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Sends messages for some seconds, and prints which messages were acknowledged.
fn send(seat: &Seat, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    for number in 0.. {
        if Instant::now() >= end {
            return;
        }
        match send_text(seat, READER, &text(seat.name.as_str(), number)) {
            Ok(sent) => {
                let id = &sent.receipt.msg_id;
                match &sent.receipt.pending {
                    None => print_line(&format!("acked {number} {id}")),
                    Some(why) => print_line(&format!("acked {number} {id} waits: {why}")),
                }
            }
            Err(error) => print_line(&format!("refused {number} {error}")),
        }
    }
}

/// Reads the inbox in a loop without taking its lock, as Claude Code does. Prints how many reads got invalid JSON.
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
    print_line(&format!("parsed {reads} {torn}"));
}

/// Marks unread messages as read in a loop, and prints their message ids.
fn mark(seat: &Seat) {
    loop {
        let unread = block_on(mail::inbox(seat, &seat.name, InboxFilter::Unread)).unwrap();
        let batch: Vec<_> = unread.iter().take(500).collect();
        let keys: Vec<_> = batch.iter().map(|mail| mail.key).collect();
        block_on(mail::mark(seat, &keys, Mark::Read)).unwrap();
        let id = |json: &[u8]| {
            let entry: serde_json::Value = serde_json::from_slice(json).unwrap();
            entry["msg_id"].as_str().unwrap().to_owned()
        };
        let ids: Vec<String> = batch.iter().map(|mail| id(&mail.json)).collect();
        print_line(&format!("marked {}", ids.join(" ")));
    }
}

/// Adds, claims and completes tasks in a loop, and prints each step. Sometimes changes the roster.
fn board(seat: &Seat) {
    for number in 0.. {
        let refused = |error: &dyn std::fmt::Display| print_line(&format!("refused {error}"));
        // Add the task through the store, because the board limits how many tasks a member may add.
        let (plan, by) = (plan(number), seat.actor());
        let task = |id| NewTask {
            id,
            subject: &plan.subject,
            description: &plan.description,
            active_form: None,
            owner: None,
            status: Status::Pending,
            blocks: &[],
            blocked_by: &[],
            metadata: &[],
        };
        let task = |id| task(id).to_bytes();
        let id = match block_on(seat.store.create_task(&seat.team, &task, &by)) {
            Ok((id, _)) => id,
            Err(error) => {
                refused(&error);
                continue;
            }
        };
        print_line(&format!("added {id}"));
        match block_on(board::claim(seat, id)) {
            Ok(()) => print_line(&format!("claimed {id} {}", seat.name)),
            Err(error) => refused(&error),
        }
        match block_on(board::done(seat, id)) {
            Ok(()) => print_line(&format!("done {id}")),
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

/// Prints that this process is ready, and waits until the file `go` exists.
pub(crate) fn wait_for_go(dirs: &TeamDirs) {
    print_line("ready");
    while !dirs.claude.join("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads the inbox and the tasks once, with a new store.
fn read_all(dirs: &TeamDirs) {
    let store = dirs.store(Durability::Process);
    block_on(store.inbox(&team(), &member(READER))).unwrap();
    block_on(store.tasks(&team())).unwrap();
}
