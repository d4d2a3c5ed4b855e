//! Servers killed at work: what a client saw acknowledged is there once, and what it did not see is
//! still to be read.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;

use brigade_core::handshake;
use brigade_core::mail::{self, Which};
use brigade_core::seat::Seat;
use brigade_core::store::file::Durability;
use brigade_wire::body::Body;
use serde_json::{Value, json};

use crate::Length;
use crate::chance::Chance;
use crate::figures::Report;
use crate::kill::Few;
use crate::pipe::{Server, line};
use crate::place::{Place, READER, block_on, text};

/// Whose server is killed.
const WORKER: &str = "worker";
/// Messages that wait for the worker, and as many come while it works.
const WAITING: usize = 10;
/// Plans that wait for the lead.
const PLANS: usize = 10;

pub(crate) fn run(report: &mut Report, length: Length) {
    let rounds = length.of(20, 100);
    let (mut sum, mut chance) = (Sum::default(), Chance::new());
    for _ in 0..rounds {
        at_work(&mut sum, &mut chance);
        reading(&mut sum, &mut chance);
        answering(&mut sum, &mut chance);
    }
    let Sum { acked, unacked, read, answers, lost, doubled, unread } = sum;
    println!(
        "{rounds} rounds, {} kills: {acked} acked, {unacked} cut off, {read} read before the kill, \
         {answers} plans answered",
        3 * rounds
    );
    report.bar(lost.is_empty(), format!("acked lost: {:?}", Few(&lost)));
    report.bar(doubled.is_empty(), format!("there twice: {:?}", Few(&doubled)));
    report.bar(unread.is_empty(), format!("never seen and not to be read: {:?}", Few(&unread)));
    report.bar(acked > rounds && unacked > 0, "the kills came in the middle of the work");
}

/// What all rounds came to.
#[derive(Default)]
struct Sum {
    acked: usize,
    unacked: usize,
    read: usize,
    answers: usize,
    lost: Vec<String>,
    doubled: Vec<String>,
    unread: Vec<String>,
}

impl Sum {
    /// Each that was acknowledged is there once; no other is there twice.
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
}

impl Sum {
    /// What was sent, and no answer to the load had in it, is what the next server gives out.
    fn read_on(&mut self, load: &Load, server: &mut Server, fed: Vec<String>) {
        let letters = |answer: &Value| -> Vec<String> {
            let messages = answer["messages"].as_array();
            messages.into_iter().flatten().map(|message| string(&message["text"])).collect()
        };
        let answers = load.answers.values().map(|answer| &answer["structuredContent"]);
        let mut seen: HashSet<String> = answers.flat_map(letters).collect();
        self.read += seen.len();
        seen.extend(letters(&server.done("read_messages", &json!({}))));
        self.unread.extend(fed.into_iter().filter(|text| !seen.contains(text)));
    }
}

/// Calls written without waiting, and what a client saw of each.
struct Load {
    calls: Vec<(&'static str, Value)>,
    answers: HashMap<u64, Value>,
}

impl Load {
    /// Writes the calls one after the other, and kills the server before the end of so many
    /// milliseconds.
    fn run(
        mut server: Server,
        calls: Vec<(&'static str, Value)>,
        (chance, milliseconds): (&mut Chance, u64),
    ) -> Self {
        let moment = chance.moment(milliseconds);
        let Server { child, input, output, .. } = &mut server;
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
        // What a killed server did not finish writing, nobody saw.
        let whole = lines.iter().filter(|line| line.ends_with('\n'));
        let answers = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answers = answers.filter_map(|mut a| Some((a["id"].as_u64()?, a["result"].take())));
        Self { calls, answers: answers.collect() }
    }

    /// What was asked of a tool in this argument, and whether the client saw it done.
    fn asked(&self, tool: &str, argument: &str) -> Vec<(String, bool)> {
        let calls = (FIRST..).zip(&self.calls).filter(|(_, (its, _))| *its == tool);
        let done = |id: u64| self.answers.get(&id).is_some_and(|a| a["isError"] == false);
        calls.map(|(id, (_, args))| (string(&args[argument]), done(id))).collect()
    }
}

/// The id of the first call of a load.
const FIRST: u64 = 1_000;

fn write(input: &mut ChildStdin, calls: &[(&'static str, Value)]) {
    for (id, (tool, arguments)) in (FIRST..).zip(calls) {
        let call = line(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        // A killed server reads no more.
        if input.write_all(call.as_bytes()).is_err() {
            return;
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A teammate that sends, reads, plans and adds tasks.
fn at_work(sum: &mut Sum, chance: &mut Chance) {
    let place = Place::with_team(&[WORKER]);
    let reader = place.spot.seat(READER, Durability::Process);
    let feed = |number: usize| feed(&reader, number);
    let mut fed: Vec<String> = (0..WAITING).map(feed).collect();
    let calls = (0..100).flat_map(|number| {
        [
            ("send_message", json!({ "to": READER, "message": text(WORKER, number) })),
            ("task_create", json!({ "subject": format!("task {number}"), "description": "d" })),
            ("read_messages", json!({})),
            ("submit_plan", json!({ "plan": format!("plan {number}") })),
            ("broadcast", json!({ "message": text("all", number) })),
        ]
    });
    let server = Server::start(&place, Some(WORKER));
    let load = std::thread::scope(|scope| {
        let feeder = scope.spawn(|| (WAITING..2 * WAITING).map(feed).collect::<Vec<_>>());
        let load = Load::run(server, calls.collect(), (chance, 150));
        fed.extend(feeder.join().unwrap());
        load
    });
    let sent = [load.asked("send_message", "message"), load.asked("broadcast", "message")].concat();
    let (tasks, plans) = (load.asked("task_create", "subject"), load.asked("submit_plan", "plan"));
    let acked = [&sent, &tasks, &plans].into_iter().flatten().filter(|(_, acked)| *acked).count();
    sum.acked += acked;
    sum.unacked += load.calls.len().saturating_sub(load.answers.len());
    sum.compare(&sent, &texts(&reader));
    let lead = place.spot.seat("team-lead", Durability::Process);
    sum.compare(&plans, &texts(&lead));
    let mut server = Server::start(&place, Some(WORKER));
    let board = server.done("task_list", &json!({}));
    let subjects = board["tasks"].as_array().unwrap().iter().map(|task| string(&task["subject"]));
    sum.compare(&tasks, &subjects.collect::<Vec<_>>());
    sum.read_on(&load, &mut server, fed);
}

/// A teammate that reads and reads, while somebody writes to it all the time.
fn reading(sum: &mut Sum, chance: &mut Chance) {
    let place = Place::with_team(&[WORKER]);
    let writer = place.spot.seat(READER, Durability::Process);
    let server = Server::start(&place, Some(WORKER));
    let calls = (0..5_000).map(|_| ("read_messages", json!({}))).collect();
    let stop = AtomicBool::new(false);
    let (load, fed) = std::thread::scope(|scope| {
        let feeder = scope.spawn(|| {
            let go_on = |_: &usize| !stop.load(Ordering::Relaxed);
            (0..).take_while(go_on).map(|number| feed(&writer, number)).collect::<Vec<_>>()
        });
        let load = Load::run(server, calls, (chance, 150));
        stop.store(true, Ordering::Relaxed);
        (load, feeder.join().unwrap())
    });
    sum.read_on(&load, &mut Server::start(&place, Some(WORKER)), fed);
}

/// Sends the worker a message that tells its number.
fn feed(writer: &Seat, number: usize) -> String {
    let text = text("fed", number);
    let words = mail::Words { text: &text, summary: None };
    block_on(mail::send(writer, WORKER, words)).unwrap();
    text
}

/// A lead that answers plans, each with yes or no, and after the kill all of them again the other way.
fn answering(sum: &mut Sum, chance: &mut Chance) {
    let place = Place::with_team(&[WORKER]);
    let worker = place.spot.seat(WORKER, Durability::Process);
    let plan = |number: usize| {
        // The id of a plan is the millisecond it was made in.
        sleep(std::time::Duration::from_millis(2));
        let asked = block_on(handshake::submit_plan(&worker, &format!("plan {number}"), None));
        asked.unwrap().request_id
    };
    let plans: Vec<String> = (0..PLANS).map(plan).collect();
    let answer = |id: &str, approve: bool| json!({ "request_id": id, "approve": approve });
    let calls = plans.iter().map(|id| ("answer_plan", answer(id, true))).collect();
    let server = Server::start(&place, Some("team-lead"));
    let load = Load::run(server, calls, (chance, 80));
    let mut server = Server::start(&place, Some("team-lead"));
    let yes = load.asked("answer_plan", "request_id");
    for (id, acked) in &yes {
        let again = server.call("answer_plan", &answer(id, false));
        if *acked && again["isError"] == false {
            sum.doubled.push(format!("the answer to {id}"));
        }
    }
    let told: Vec<(String, bool)> = bodies(&worker)
        .into_iter()
        .map(|body| (string(&body["requestId"]), body["approved"] == true))
        .collect();
    sum.answers += told.len();
    let ids: Vec<String> = told.iter().map(|(id, _)| id.clone()).collect();
    let all: Vec<(String, bool)> = plans.into_iter().map(|id| (id, true)).collect();
    sum.compare(&all, &ids);
    // Who saw its yes acknowledged has said yes.
    let kept = |id: &String| told.iter().any(|(told, approved)| told == id && *approved);
    sum.lost.extend(yes.into_iter().filter(|(id, acked)| *acked && !kept(id)).map(|(id, _)| id));
}

/// What somebody's inbox says: words as they stand, of a plan its content.
fn texts(seat: &Seat) -> Vec<String> {
    let mail = block_on(mail::inbox(seat, &seat.name, Which::All)).unwrap();
    let text = |json: &[u8]| {
        let entry: Value = serde_json::from_slice(json).unwrap();
        let text = string(&entry["text"]);
        match Body::parse(&text) {
            Body::Text => text,
            _ => string(&serde_json::from_str::<Value>(&text).unwrap()["planContent"]),
        }
    };
    mail.iter().map(|mail| text(&mail.json)).collect()
}

/// The messages of the protocol in somebody's inbox.
fn bodies(seat: &Seat) -> Vec<Value> {
    let mail = block_on(mail::inbox(seat, &seat.name, Which::All)).unwrap();
    let entry = |json: &[u8]| serde_json::from_slice::<Value>(json).unwrap();
    mail.iter().map(|m| serde_json::from_str(&string(&entry(&m.json)["text"])).unwrap()).collect()
}
