//! One member floods the lead with messages, permission requests and tasks. Checks that the flooder gets errors, that the
//! mail of another member arrives meanwhile, and that the lead's commands stay fast and need little memory.

use std::time::{Duration, Instant};

use brigade_core::board::{self, TaskPlan};
use brigade_core::handshake::{self, PermissionAsk};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_files::Durability;
use brigade_wire::inbox::with_message;
use serde_json::{Value, json};

use crate::Length;
use crate::command::{CommandCost, mark_as_running};
use crate::figures::BenchReport;
use crate::fixtures::{LEAD, text};
use crate::temp_team::{TempTeam, block_on, send_text};

const FLOODER: &str = "flooder";
const OTHER: &str = "other";
/// The number of messages from the other member.
const OTHER_MESSAGES: usize = 100;
/// The size of a message of the flooder.
const MESSAGE_BYTES: usize = 10_000;
/// The bars for each command of the lead.
const MAX_MILLISECONDS: f64 = 100.0;
const MAX_MEGABYTES: f64 = 64.0;

/// The number of attempts of each kind.
struct FloodSize {
    messages: usize,
    requests: usize,
    tasks: usize,
}

/// The results of the attempts of one kind.
#[derive(Debug, Default)]
struct FloodOutcome {
    accepted: usize,
    refused: usize,
    last_error: String,
}

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let size = length.pick(
        FloodSize { messages: 20_000, requests: 200, tasks: 4_000 },
        FloodSize { messages: 1_000_000, requests: 100_000, tasks: 100_000 },
    );
    let temp = TempTeam::with_team(&[FLOODER, OTHER]);
    flood(report, &temp, &size);
    let arrived = other_messages(&temp);
    report.check(
        arrived == OTHER_MESSAGES,
        format!("messages of another member that arrived: {arrived} of {OTHER_MESSAGES}"),
    );
    mark_as_running(&temp);
    let commands: [&[&str]; 6] = [
        &["status"],
        &["inbox"],
        &["approvals"],
        &["task", "list"],
        &["send", FLOODER, "stop"],
        &["task", "add", "clean up"],
    ];
    for args in commands {
        measure(report, &temp, args, length.pick(5, 20));
    }
}

/// Runs the three floods at the same time, while another member sends mail.
fn flood(report: &mut BenchReport, temp: &TempTeam, size: &FloodSize) {
    let start = Instant::now();
    let flooder = || temp.dirs.seat(FLOODER, Durability::Process);
    let outcomes = std::thread::scope(|scope| {
        let messages = scope.spawn(|| send_messages(&flooder(), size.messages));
        let requests = scope.spawn(|| send_requests(&flooder(), size.requests));
        let tasks = scope.spawn(|| add_tasks(&flooder(), size.tasks));
        let seat = temp.dirs.seat(OTHER, Durability::Process);
        for number in 0..OTHER_MESSAGES {
            send_text(&seat, LEAD, &text(OTHER, number)).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        [("messages", messages), ("requests", requests), ("tasks", tasks)]
            .map(|(kind, flood)| (kind, flood.join().unwrap()))
    });
    println!("the flood took {:.1} s", start.elapsed().as_secs_f64());
    for (kind, FloodOutcome { accepted, refused, last_error }) in outcomes {
        let text = format!("{kind}: {accepted} accepted, {refused} refused ({last_error})");
        report.check(refused > 0, text);
    }
}

impl FloodOutcome {
    fn count<T, E: std::fmt::Display>(&mut self, result: Result<T, E>) {
        match result {
            Ok(_) => self.accepted += 1,
            Err(error) => {
                self.refused += 1;
                self.last_error = error.to_string();
            }
        }
    }
}

fn send_messages(seat: &Seat, count: usize) -> FloodOutcome {
    let mut outcome = FloodOutcome::default();
    let text = "x".repeat(MESSAGE_BYTES);
    for _ in 0..count {
        outcome.count(send_text(seat, LEAD, &text));
    }
    outcome
}

fn send_requests(seat: &Seat, count: usize) -> FloodOutcome {
    let mut outcome = FloodOutcome::default();
    let input = json!({ "command": format!("echo {}", "x".repeat(1_000)) });
    let (tool, tool_use_id, description, cwd) = ("Bash", "t", "to flood", "/");
    let request = &Value::Null;
    let ask = PermissionAsk { tool, tool_use_id, description, input: &input, request, cwd };
    for _ in 0..count {
        outcome.count(block_on(handshake::request_permission(seat, &ask)));
    }
    outcome
}

fn add_tasks(seat: &Seat, count: usize) -> FloodOutcome {
    let mut outcome = FloodOutcome::default();
    let description = "x".repeat(3_500);
    let plan = TaskPlan { description, ..TaskPlan::new("flood") };
    for _ in 0..count {
        outcome.count(block_on(board::add(seat, &plan)));
    }
    outcome
}

/// Returns how many different messages of the other member the lead has.
fn other_messages(temp: &TempTeam) -> usize {
    let lead = temp.dirs.seat(LEAD, Durability::Process);
    let inbox = block_on(mail::inbox(&lead, &lead.name, InboxFilter::Unread)).unwrap();
    let from_other = |json: &[u8]| {
        with_message(json, |message| {
            message.filter(|message| message.from() == OTHER).map(|m| m.text().into_owned())
        })
        .unwrap()
    };
    let mut texts: Vec<String> = inbox.iter().filter_map(|mail| from_other(&mail.json)).collect();
    texts.sort();
    texts.dedup();
    texts.len()
}

/// Runs a command several times. Checks its median duration and its highest memory use.
fn measure(report: &mut BenchReport, temp: &TempTeam, args: &[&str], rounds: usize) {
    let mut cost = CommandCost::default();
    for _ in 0..rounds {
        cost.run(temp, args, &["0"]);
    }
    let (name, peak) = (args.join(" "), cost.peak);
    let (median, high) = (cost.milliseconds(), cost.times.quantile(0.9) / 1e3);
    let bar = format!("(bar {MAX_MILLISECONDS} ms; p90 {high:.0} ms, n {rounds})");
    report.check_time(median / MAX_MILLISECONDS, format!("brigade {name}: {median:.0} ms {bar}"));
    let text = format!("brigade {name}: {peak:.0} MB of memory (bar {MAX_MEGABYTES} MB)");
    report.check(peak <= MAX_MEGABYTES, text);
}
