//! The cost of commands after few and after many messages. A command should cost the same, because it returns the same.

use std::time::Instant;

use brigade_core::handshake::{self, Answer, PermissionAsk};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_files::Durability;
use serde_json::{Value, json};

use crate::Length;
use crate::command::{CommandCost, mark_as_running};
use crate::figures::BenchReport;
use crate::fixtures::{LEAD, text};
use crate::temp_team::{READER, TempTeam, block_on, send_text};

/// The number of messages in the small team.
const FEW: usize = 1_000;
/// After this many messages, the reader and the lead read their mail, and one permission request is made and answered.
const READ_AFTER: usize = 100;

/// The bars: how much longer a command may take after many messages, its memory, and the first command after others have sent
/// messages.
const MAX_RATIO: f64 = 1.5;
const MAX_MEGABYTES: f64 = 64.0;
const MAX_FIRST_MILLISECONDS: f64 = 50.0;

/// The commands, and the exit codes that they may have. No request is waiting, and request 3 is answered.
const COMMANDS: &[(&[&str], &[&str])] = &[
    (&["status"], &["0"]),
    (&["inbox"], &["0", "4"]),
    (&["approvals"], &["0", "4"]),
    (&["approve", "3"], &["1"]),
    (&["task", "list"], &["0", "4"]),
    (&["task", "add", "clean up"], &["0"]),
    (&["send", READER, "hello"], &["0"]),
    (&["team", "show"], &["0"]),
    (&["logs", "-n", "20"], &["0"]),
    (&["search", READER], &["0"]),
    (&["search", "\"500\""], &["0"]),
];

/// Searches: a frequent word, a rare one, and one that does not occur.
const SEARCHES: &[(&str, &str)] = &[(READER, "0"), ("\"500\"", "0"), ("nothing", "4")];
/// How many messages others send before the first search after them.
const ADDED: usize = 1_000;
/// The bar for a search.
const MAX_SEARCH_MILLISECONDS: f64 = 50.0;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let many = length.pick(20_000, 1_000_000);
    let rounds = length.pick(9, 25);
    let small = filled_team(FEW);
    let large = filled_team(many);
    let mut first = CommandCost::default();
    first.run(&large, &["approvals"], &["0", "4"]);
    let took = first.milliseconds();
    let text = format!("first command after {many} messages: {took:.0} ms");
    let bar = format!("(bar {MAX_FIRST_MILLISECONDS} ms; {:.0} MB)", first.peak);
    report.check_time(took / MAX_FIRST_MILLISECONDS, format!("{text} {bar}"));
    let mut build = CommandCost::default();
    build.run(&large, &["search", READER], &["0"]);
    println!(
        "the first search builds the index of {many} messages: {:.0} ms",
        build.milliseconds()
    );
    CommandCost::default().run(&small, &["search", READER], &["0"]);
    for (args, exit_codes) in COMMANDS {
        let [mut few, mut after] = [CommandCost::default(), CommandCost::default()];
        // Take turns, so that other load slows down both.
        for _ in 0..rounds {
            few.run(&small, args, exit_codes);
            after.run(&large, args, exit_codes);
        }
        let name = format!("brigade {} after {many} against {FEW} messages", args.join(" "));
        report.check_ratio(&name, after.times.median(), MAX_RATIO, few.times.median());
        let text = format!("brigade {}: {:.0} MB of memory", args.join(" "), after.peak);
        report.check(after.peak <= MAX_MEGABYTES, format!("{text} (bar {MAX_MEGABYTES} MB)"));
    }
    search(report, &large, many, rounds);
}

/// Measures searches: the first one after others have sent messages, and later ones. The messages stay unread, so this is the last
/// measurement.
fn search(report: &mut BenchReport, large: &TempTeam, many: usize, rounds: usize) {
    let [lead, reader] = [LEAD, READER].map(|name| large.dirs.seat(name, Durability::Process));
    for number in many + 1..=many + ADDED {
        send_text(&reader, lead.name.as_str(), &text(READER, number)).unwrap();
    }
    let mut after = CommandCost::default();
    after.run(large, &["search", READER], &["0"]);
    let check = |report: &mut BenchReport, took: f64, what: String| {
        let text = format!("{what}: {took:.0} ms (bar {MAX_SEARCH_MILLISECONDS} ms)");
        report.check_time(took / MAX_SEARCH_MILLISECONDS, text);
    };
    let what = format!("first search after {ADDED} more messages, {many} before");
    check(report, after.milliseconds(), what);
    for (word, exit_code) in SEARCHES {
        let mut cost = CommandCost::default();
        for _ in 0..rounds {
            cost.run(large, &["search", word], &[exit_code]);
        }
        let what = format!("brigade search {word} after {many} messages");
        check(report, cost.milliseconds(), what);
    }
}

/// Creates a team in which the lead and the reader have sent each other this many messages, and have read them.
fn filled_team(messages: usize) -> TempTeam {
    let start = Instant::now();
    let temp = TempTeam::with_team(&[]);
    let lead = temp.dirs.seat(LEAD, Durability::Process);
    let reader = temp.dirs.seat(READER, Durability::Process);
    for number in 1..=messages {
        let (from, to) = if number % 2 == 0 { (&lead, &reader) } else { (&reader, &lead) };
        send_text(from, to.name.as_str(), &text(from.name.as_str(), number)).unwrap();
        if number % READ_AFTER == 0 {
            read_all(&lead, Mark::Read);
            read_all(&reader, Mark::Shown);
            ask_and_answer(&reader, &lead);
        }
    }
    mark_as_running(&temp);
    println!("sending {messages} messages took {:.1} s", start.elapsed().as_secs_f64());
    temp
}

fn read_all(seat: &Seat, mark: Mark) {
    let inbox = block_on(mail::inbox(seat, &seat.name, InboxFilter::Unread)).unwrap();
    let keys: Vec<_> = inbox.iter().map(|mail| mail.key).collect();
    block_on(mail::mark(seat, &keys, mark)).unwrap();
}

/// One permission request with its answer.
fn ask_and_answer(reader: &Seat, lead: &Seat) {
    let input = json!({ "command": "cargo test" });
    let (tool, tool_use_id, description, cwd) = ("Bash", "t", "to test", "/");
    let request = &Value::Null;
    let ask = PermissionAsk { tool, tool_use_id, description, input: &input, request, cwd };
    let asked = block_on(handshake::request_permission(reader, &ask)).unwrap();
    block_on(handshake::answer_permission(lead, &asked.request_id, Answer::Yes)).unwrap();
}
