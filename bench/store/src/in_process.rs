//! Runs many members in one process, each with its own mailbox, all on one board. Then, for comparison, does the
//! same operations on the bare store, without delivering messages to members.

use std::time::{Duration, Instant};

use brigade_core::board::{self, TaskPlan};
use brigade_core::seat::Seat;
use brigade_core::wire::backend;
use brigade_files::Durability;
use brigade_wire::name::TaskId;
use serde_json::Value;

use crate::Length;
use crate::children::{ChildProcess, child};
use crate::figures::BenchReport;
use crate::fixtures::{self, LEAD, member};
use crate::temp_team::{TeamDirs, TempTeam};

/// The longest time that starting all members may take.
const UP: Duration = Duration::from_secs(10);

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) members: usize,
    pub(crate) messages: usize,
    pub(crate) tasks: usize,
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let load = length.pick(
        Workload { members: 10, messages: 1_000, tasks: 100 },
        Workload { members: 50, messages: 10_000, tasks: 1_000 },
    );
    let team = in_child("team", load, 1);
    let (sent, turns) = (number(&team, "sent"), number(&team, "turns"));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let batch = (sent / turns.max(1.0)).round().max(1.0) as usize;
    let bare = in_child("bare", load, batch);
    let Workload { members, messages, tasks } = load;
    println!("{members} members, {messages} messages, {tasks} tasks with dependencies");
    println!("{:<44} {:>12} {:>12}", "", "in process", "bare store");
    let both = |what: &str, figure: &dyn Fn(&Value) -> f64| {
        println!("{what:<44} {:>12.1} {:>12.1}", figure(&team), figure(&bare));
    };
    both("seconds in total", &|of| number(of, "took"));
    both("messages per second", &|of| number(of, "sent") / number(of, "took"));
    both("tasks per second", &|of| tasks as f64 / number(of, "took"));
    both("seconds of CPU time", &|of| number(of, "processor"));
    both("milliseconds of CPU time per message", &|of| {
        number(of, "processor") * 1e3 / number(of, "sent")
    });
    both("MiB of peak memory", &|of| number(of, "most") / 1024.0);
    both("operations that marked messages as shown", &|of| number(of, "turns"));
    println!("reports to the lead: {}", number(&team, "reports"));
    println!("MiB of memory after all members started: {:.1}", number(&team, "when_up") / 1024.0);
    let up = number(&team, "up");
    let bar = UP.as_secs();
    report.check_time(
        up / UP.as_secs_f64(),
        format!("{members} members started after {up:.2} s (bar {bar} s)"),
    );
    for (field, what) in [
        ("lost", "messages sent but never shown"),
        ("twice", "messages shown twice or to the wrong member"),
        ("disorder", "messages shown in a different order than they were sent"),
        ("not_once", "tasks whose number of claims or completions is not 1"),
        ("early", "tasks claimed before their blockers were completed"),
        ("faults", "errors"),
    ] {
        report.check_empty(what, team[field].as_array().unwrap());
    }
    let shown = number(&team, "shown");
    report.check(sent >= messages as f64, format!("messages sent: {sent}, shown: {shown}"));
    let done = number(&team, "done");
    #[expect(clippy::float_cmp, reason = "both are whole numbers")]
    report.check(done == tasks as f64, format!("tasks done: {done} of {tasks}"));
}

fn in_child(name: &str, load: Workload, batch: usize) -> Value {
    let temp = TempTeam::new();
    let args = [load.members, load.messages, load.tasks, batch].map(|number| number.to_string());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = ChildProcess::start(&mut child(name, &temp.dirs, &args)).finish();
    let last = output.last().unwrap_or_else(|| panic!("the child process {name} printed nothing"));
    serde_json::from_str(last).unwrap()
}

fn number(of: &Value, what: &str) -> f64 {
    of[what].as_f64().unwrap_or_else(|| panic!("the result has no field {what}"))
}

/// Runs a future to completion, on a runtime with one thread per core.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_time().build().unwrap().block_on(work)
}

pub(crate) fn name(number: usize) -> String {
    format!("member-{number:02}")
}

/// Creates a team. Returns the lead's seat.
pub(crate) async fn create_team(dirs: &TeamDirs) -> Seat {
    std::fs::create_dir_all(&dirs.claude).unwrap();
    let lead = dirs.seat(LEAD, Durability::Process);
    fixtures::create_team(&lead, &[]).await;
    lead
}

/// Adds a member. Returns the member's seat.
pub(crate) async fn join(lead: &Seat, number: usize) -> Seat {
    let name = name(number);
    fixtures::join(lead, &name, backend::IN_PROCESS).await;
    lead.for_member(member(&name))
}

/// Adds the tasks in layers. A layer has one task per member. Each task is blocked by two tasks of the previous
/// layer.
pub(crate) async fn fill_board(lead: &Seat, load: Workload) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = Vec::new();
    for number in 0..load.tasks {
        let blocked_by = blockers(number, load.members).iter().map(|&of| ids[of]).collect();
        let subject = format!("task {number}");
        let description = format!("{:.<300}", "the work ");
        let plan = TaskPlan { subject, description, blocked_by, ..TaskPlan::default() };
        ids.push(board::add(lead, &plan).await.unwrap());
    }
    ids
}

/// Returns the indexes of the tasks that block a task.
pub(crate) fn blockers(number: usize, width: usize) -> Vec<usize> {
    let Some(above) = number.checked_sub(width) else { return Vec::new() };
    let layer = above / width * width;
    vec![above, layer + (above + 1) % width]
}

/// The wall-clock time and the CPU time of this process at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    at: Instant,
    processor: f64,
}

impl CpuTime {
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        // The command name is in parentheses, and may itself contain parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        // The kernel reports CPU time in hundredths of a second.
        Self { at: Instant::now(), processor: ticks / 100.0 }
    }

    /// Returns the seconds that have passed since this moment, and the CPU seconds used since then.
    pub(crate) fn since(self) -> (f64, f64) {
        let now = Self::now();
        ((now.at - self.at).as_secs_f64(), now.processor - self.processor)
    }
}

/// Returns a field of /proc/self/status, in kB.
pub(crate) fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|its| its.strip_prefix(line)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
