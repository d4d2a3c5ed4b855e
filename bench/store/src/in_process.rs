//! Many members in one process: Rust values, each with its own mail, all on one board; beside the bare
//! store that is asked for as much and delivers nothing.

use std::time::{Duration, Instant};

use brigade_core::board::{self, TaskPlan};
use brigade_core::roster::{self, MemberPlan, TeamPlan};
use brigade_core::seat::Seat;
use brigade_core::store::file::Durability;
use brigade_core::worker::BACKEND;
use brigade_wire::name::TaskId;
use serde_json::Value;

use crate::Length;
use crate::children::{Running, child};
use crate::figures::Report;
use crate::place::{Place, Spot, member};

/// How long a crowd has to be there.
const UP: Duration = Duration::from_secs(10);

/// What is asked of a crowd.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) members: usize,
    pub(crate) messages: usize,
    pub(crate) tasks: usize,
}

pub(crate) fn run(report: &mut Report, length: Length) {
    let load = length.of(
        Load { members: 10, messages: 1_000, tasks: 100 },
        Load { members: 50, messages: 10_000, tasks: 1_000 },
    );
    let crowd = in_child("crowd", load, 1);
    let (sent, turns) = (number(&crowd, "sent"), number(&crowd, "turns"));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some messages")]
    let batch = (sent / turns.max(1.0)).round().max(1.0) as usize;
    let bare = in_child("bare", load, batch);
    let Load { members, messages, tasks } = load;
    println!("{members} members, {messages} messages, {tasks} tasks with dependencies");
    println!("{:<44} {:>12} {:>12}", "", "the crowd", "bare store");
    let both = |what: &str, figure: &dyn Fn(&Value) -> f64| {
        println!("{what:<44} {:>12.1} {:>12.1}", figure(&crowd), figure(&bare));
    };
    both("seconds for all of it", &|of| number(of, "took"));
    both("messages a second", &|of| number(of, "sent") / number(of, "took"));
    both("tasks a second", &|of| tasks as f64 / number(of, "took"));
    both("seconds of processor", &|of| number(of, "processor"));
    both("milliseconds of processor for a message", &|of| {
        number(of, "processor") * 1e3 / number(of, "sent")
    });
    both("MiB in memory at most", &|of| number(of, "most") / 1024.0);
    both("times that messages were marked", &|of| number(of, "turns"));
    println!("reports to the lead: {}", number(&crowd, "reports"));
    println!("MiB in memory when up: {:.1}", number(&crowd, "when_up") / 1024.0);
    let up = number(&crowd, "up");
    let bar = UP.as_secs();
    report.timing(
        up / UP.as_secs_f64(),
        format!("{members} members up after {up:.2} s (bar {bar} s)"),
    );
    let none = |what: &str| crowd[what].as_array().unwrap().clone();
    for (what, words) in [
        ("lost", "sent and never shown"),
        ("twice", "shown twice, or to somebody else"),
        ("disorder", "of one sender shown out of order"),
        ("not_once", "tasks not claimed once and done once"),
        ("early", "tasks claimed before what they wait for was done"),
        ("faults", "went wrong"),
    ] {
        let found = none(what);
        let few: Vec<&Value> = found.iter().take(5).collect();
        report.bar(found.is_empty(), format!("{words}: {} {few:?}", found.len()));
    }
    let shown = number(&crowd, "shown");
    report.bar(sent >= messages as f64, format!("messages sent: {sent}, shown: {shown}"));
    let done = number(&crowd, "done");
    #[expect(clippy::float_cmp, reason = "both are whole")]
    report.bar(done == tasks as f64, format!("tasks done: {done} of {tasks}"));
}

fn in_child(name: &str, load: Load, batch: usize) -> Value {
    let place = Place::new();
    let args = [load.members, load.messages, load.tasks, batch].map(|number| number.to_string());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = Running::start(&mut child(name, &place.spot, &args)).finish();
    let last = said.last().unwrap_or_else(|| panic!("the child {name} said nothing"));
    serde_json::from_str(last).unwrap()
}

fn number(of: &Value, what: &str) -> f64 {
    of[what].as_f64().unwrap_or_else(|| panic!("no {what}"))
}

/// Runs what a crowd does, on as many threads as there are processors.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_time().build().unwrap().block_on(work)
}

pub(crate) fn name(number: usize) -> String {
    format!("hand-{number:02}")
}

/// The lead's seat in a new team.
pub(crate) async fn found(spot: &Spot) -> Seat {
    std::fs::create_dir_all(&spot.claude).unwrap();
    let lead = spot.seat("team-lead", Durability::Process);
    let plan = TeamPlan { description: "a crowd", lead_model: "none", cwd: "/" };
    roster::create(&lead, plan).await.unwrap();
    lead
}

/// One more member, and its seat.
pub(crate) async fn join(lead: &Seat, number: usize) -> Seat {
    let plan = MemberPlan {
        agent_type: "hand",
        model: "none",
        prompt: "none",
        cwd: "/",
        backend_type: BACKEND,
    };
    let name = member(&name(number));
    roster::join(lead, &name, plan).await.unwrap();
    lead.of(name)
}

/// Puts the tasks on the board, in layers as wide as the crowd: each waits for two of the layer before.
pub(crate) async fn fill_board(lead: &Seat, load: Load) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = Vec::new();
    for number in 0..load.tasks {
        let blocked_by = blockers(number, load.members).iter().map(|&of| ids[of]).collect();
        let subject = format!("task {number}");
        let description = format!("{:.<300}", "what is to be done ");
        let plan = TaskPlan { subject, description, blocked_by, ..TaskPlan::default() };
        ids.push(board::add(lead, &plan).await.unwrap());
    }
    ids
}

/// The tasks that one waits for, by their place.
pub(crate) fn blockers(number: usize, width: usize) -> Vec<usize> {
    let Some(above) = number.checked_sub(width) else { return Vec::new() };
    let layer = above / width * width;
    vec![above, layer + (above + 1) % width]
}

/// What a process has used since it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    at: Instant,
    processor: f64,
}

impl Used {
    pub(crate) fn so_far() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        // The name of the program is in brackets, and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        // The kernel counts in hundredths towards programs, whatever it does itself.
        Self { at: Instant::now(), processor: ticks / 100.0 }
    }

    /// Seconds, and seconds of processor, since then.
    pub(crate) fn since(self) -> (f64, f64) {
        let now = Self::so_far();
        ((now.at - self.at).as_secs_f64(), now.processor - self.processor)
    }
}

/// A line of what the kernel says of this process's memory, in kB.
pub(crate) fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|its| its.strip_prefix(line)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
