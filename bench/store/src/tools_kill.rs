//! Kills MCP servers while they work. Checks that every acknowledged call took effect exactly once, and that
//! messages which the client did not receive are still unread.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;

use brigade_core::handshake;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_files::Durability;
use brigade_wire::body::Body;
use serde_json::{Value, json};

use crate::Length;
use crate::figures::BenchReport;
use crate::fixtures::text;
use crate::mcp_server::{McpProcess, line};
use crate::rng::Rng;
use crate::temp_team::{READER, TempTeam, block_on, send_text};

/// The name of the member whose server is killed.
const WORKER: &str = "worker";
/// The number of unread messages that the worker has at the start. The same number of messages arrives later.
const WAITING: usize = 10;
/// The number of plans that wait for the lead.
const PLANS: usize = 10;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let rounds = length.pick(20, 100);
    let (mut totals, mut rng) = (ToolTotals::default(), Rng::new());
    for _ in 0..rounds {
        at_work(&mut totals, &mut rng);
        reading(&mut totals, &mut rng);
        answering(&mut totals, &mut rng);
    }
    let ToolTotals { acked, unacked, read, answers, lost, doubled, unread } = totals;
    println!(
        "{rounds} rounds, {} kills: {acked} calls acknowledged, {unacked} calls interrupted, \
         {read} messages read before the kill, {answers} plans answered",
        3 * rounds
    );
    report.check_empty("acknowledged calls without effect", &lost);
    report.check_empty("calls that took effect twice", &doubled);
    report.check_empty(
        "messages that are no longer unread, although the client did not receive them",
        &unread,
    );
    report.check(
        acked > rounds && unacked > 0,
        "some calls were acknowledged before a kill, and some were interrupted",
    );
}

/// The totals of all rounds.
#[derive(Default)]
struct ToolTotals {
    acked: usize,
    unacked: usize,
    read: usize,
    answers: usize,
    lost: Vec<String>,
    doubled: Vec<String>,
    unread: Vec<String>,
}

impl ToolTotals {
    /// Checks that every acknowledged text is stored, and that no text is stored twice.
    fn compare(&mut self, asked: &[(String, bool)], there: &[String]) {
        let mut count: HashMap<&str, usize> = HashMap::new();
        for text in there {
            *count.entry(text).or_default() += 1;
        }
        for (text, acked) in asked {
            let there = count.get(text.as_str()).copied().unwrap_or_default();
            if *acked && there == 0 {
                self.lost.push(text.clone());
            }
            if there > 1 {
                self.doubled.push(text.clone());
            }
        }
    }

    /// Checks that the next server returns every message that the client did not get from the killed server.
    fn read_on(&mut self, run: &KilledRun, server: &mut McpProcess, sent: Vec<String>) {
        let texts = |answer: &Value| -> Vec<String> {
            let messages = answer["messages"].as_array();
            messages.into_iter().flatten().map(|message| string(&message["text"])).collect()
        };
        let answers = run.answers.values().map(|answer| &answer["structuredContent"]);
        let mut seen: HashSet<String> = answers.flat_map(texts).collect();
        self.read += seen.len();
        seen.extend(texts(&server.call_ok("read_messages", &json!({}))));
        self.unread.extend(sent.into_iter().filter(|text| !seen.contains(text)));
    }
}

/// The calls that the client sent without waiting for answers, and the answers that it got before the server was
/// killed.
struct KilledRun {
    calls: Vec<(&'static str, Value)>,
    answers: HashMap<u64, Value>,
}

impl KilledRun {
    /// Sends the calls, and kills the server at a random moment within `milliseconds`.
    fn run(
        mut server: McpProcess,
        calls: Vec<(&'static str, Value)>,
        (rng, milliseconds): (&mut Rng, u64),
    ) -> Self {
        let moment = rng.moment(milliseconds);
        let McpProcess { child, input, output, .. } = &mut server;
        let lines = std::thread::scope(|scope| {
            scope.spawn(|| write(input, &calls));
            let reader = scope.spawn(|| {
                let (mut lines, mut line) = (Vec::new(), String::new());
                while output.read_line(&mut line).is_ok_and(|read| read > 0) {
                    lines.push(std::mem::take(&mut line));
                }
                lines
            });
            sleep(moment);
            child.kill().unwrap();
            child.wait().unwrap();
            reader.join().unwrap()
        });
        // Ignore the incomplete last line from the killed server.
        let whole = lines.iter().filter(|line| line.ends_with('\n'));
        let answers = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answers = answers.filter_map(|mut a| Some((a["id"].as_u64()?, a["result"].take())));
        Self { calls, answers: answers.collect() }
    }

    /// For every call of a tool, returns the value of an argument, and whether the client got an answer that
    /// reports success.
    fn asked(&self, tool: &str, argument: &str) -> Vec<(String, bool)> {
        let calls = (FIRST..).zip(&self.calls).filter(|(_, (name, _))| *name == tool);
        let done = |id: u64| self.answers.get(&id).is_some_and(|a| a["isError"] == false);
        calls.map(|(id, (_, args))| (string(&args[argument]), done(id))).collect()
    }
}

/// The request id of the first call that a [`KilledRun`] sends.
const FIRST: u64 = 1_000;

fn write(input: &mut ChildStdin, calls: &[(&'static str, Value)]) {
    for (id, (tool, arguments)) in (FIRST..).zip(calls) {
        let call = line(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        // Stop at the first error: the server was killed.
        if input.write_all(call.as_bytes()).is_err() {
            return;
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Kills the server of a teammate that sends and reads messages, submits plans and adds tasks.
fn at_work(totals: &mut ToolTotals, rng: &mut Rng) {
    let temp = TempTeam::with_team(&[WORKER]);
    let reader = temp.dirs.seat(READER, Durability::Process);
    let send_to_worker = |number: usize| send_to_worker(&reader, number);
    let mut incoming: Vec<String> = (0..WAITING).map(send_to_worker).collect();
    let calls = (0..100).flat_map(|number| {
        [
            ("send_message", json!({ "to": READER, "message": text(WORKER, number) })),
            ("task_create", json!({ "subject": format!("task {number}"), "description": "d" })),
            ("read_messages", json!({})),
            ("submit_plan", json!({ "plan": format!("plan {number}") })),
            ("broadcast", json!({ "message": text("all", number) })),
        ]
    });
    let server = McpProcess::start(&temp, Some(WORKER));
    let run = std::thread::scope(|scope| {
        let sender = scope.spawn(|| (WAITING..2 * WAITING).map(send_to_worker).collect::<Vec<_>>());
        let run = KilledRun::run(server, calls.collect(), (rng, 150));
        incoming.extend(sender.join().unwrap());
        run
    });
    let sent = [run.asked("send_message", "message"), run.asked("broadcast", "message")].concat();
    let (tasks, plans) = (run.asked("task_create", "subject"), run.asked("submit_plan", "plan"));
    let acked = [&sent, &tasks, &plans].into_iter().flatten().filter(|(_, acked)| *acked).count();
    totals.acked += acked;
    totals.unacked += run.calls.len().saturating_sub(run.answers.len());
    totals.compare(&sent, &texts(&reader));
    let lead = temp.dirs.seat("team-lead", Durability::Process);
    totals.compare(&plans, &texts(&lead));
    let mut server = McpProcess::start(&temp, Some(WORKER));
    let board = server.call_ok("task_list", &json!({}));
    let subjects = board["tasks"].as_array().unwrap().iter().map(|task| string(&task["subject"]));
    totals.compare(&tasks, &subjects.collect::<Vec<_>>());
    totals.read_on(&run, &mut server, incoming);
}

/// Kills the server of a teammate that reads messages in a loop. Meanwhile, another member sends it messages.
fn reading(totals: &mut ToolTotals, rng: &mut Rng) {
    let temp = TempTeam::with_team(&[WORKER]);
    let writer = temp.dirs.seat(READER, Durability::Process);
    let server = McpProcess::start(&temp, Some(WORKER));
    let calls = (0..5_000).map(|_| ("read_messages", json!({}))).collect();
    let stop = AtomicBool::new(false);
    let (run, sent) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let go_on = |_: &usize| !stop.load(Ordering::Relaxed);
            (0..)
                .take_while(go_on)
                .map(|number| send_to_worker(&writer, number))
                .collect::<Vec<_>>()
        });
        let run = KilledRun::run(server, calls, (rng, 150));
        stop.store(true, Ordering::Relaxed);
        (run, sender.join().unwrap())
    });
    totals.read_on(&run, &mut McpProcess::start(&temp, Some(WORKER)), sent);
}

/// Sends a message with this number to the worker. Returns the text of the message.
fn send_to_worker(writer: &Seat, number: usize) -> String {
    let text = text("sent", number);
    send_text(writer, WORKER, &text).unwrap();
    text
}

/// Kills the server of a lead that approves plans. After the kill, the lead rejects all plans with a new server.
fn answering(totals: &mut ToolTotals, rng: &mut Rng) {
    let temp = TempTeam::with_team(&[WORKER]);
    let worker = temp.dirs.seat(WORKER, Durability::Process);
    let plan = |number: usize| {
        // Wait, because plan ids contain the time in milliseconds and must differ.
        sleep(std::time::Duration::from_millis(2));
        let asked = block_on(handshake::submit_plan(&worker, &format!("plan {number}"), None));
        asked.unwrap().request_id
    };
    let plans: Vec<String> = (0..PLANS).map(plan).collect();
    let answer = |id: &str, approve: bool| json!({ "request_id": id, "approve": approve });
    let calls = plans.iter().map(|id| ("answer_plan", answer(id, true))).collect();
    let server = McpProcess::start(&temp, Some("team-lead"));
    let run = KilledRun::run(server, calls, (rng, 80));
    let mut server = McpProcess::start(&temp, Some("team-lead"));
    let yes = run.asked("answer_plan", "request_id");
    for (id, acked) in &yes {
        let again = server.call("answer_plan", &answer(id, false));
        if *acked && again["isError"] == false {
            totals.doubled.push(format!("the answer to {id}"));
        }
    }
    let told: Vec<(String, bool)> = inbox_texts(&worker)
        .map(|text| serde_json::from_str::<Value>(&text).unwrap())
        .map(|body| (string(&body["requestId"]), body["approved"] == true))
        .collect();
    totals.answers += told.len();
    let ids: Vec<String> = told.iter().map(|(id, _)| id.clone()).collect();
    let all: Vec<(String, bool)> = plans.into_iter().map(|id| (id, true)).collect();
    totals.compare(&all, &ids);
    // An acknowledged approval must reach the worker as an approval.
    let kept = |id: &String| told.iter().any(|(told, approved)| told == id && *approved);
    totals.lost.extend(yes.into_iter().filter(|(id, acked)| *acked && !kept(id)).map(|(id, _)| id));
}

/// Returns the texts of the messages in an inbox.
fn inbox_texts(seat: &Seat) -> impl Iterator<Item = String> {
    let mail = block_on(mail::inbox(seat, &seat.name, InboxFilter::All)).unwrap();
    let entry = |json: &[u8]| serde_json::from_slice::<Value>(json).unwrap();
    mail.into_iter().map(move |mail| string(&entry(&mail.json)["text"]))
}

/// Returns the texts of the messages in an inbox. For a submitted plan, returns the content of the plan.
fn texts(seat: &Seat) -> Vec<String> {
    let content = |text: String| match Body::parse(&text) {
        Body::Text => text,
        _ => string(&serde_json::from_str::<Value>(&text).unwrap()["planContent"]),
    };
    inbox_texts(seat).map(content).collect()
}
