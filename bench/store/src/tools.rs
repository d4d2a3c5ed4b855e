//! What the tools cost: a send through a server beside the same through the library, the server's
//! memory, its start, and what its tools take of a model's attention.

use std::time::Instant;

use brigade_core::mail::{self, Words};
use brigade_core::store::file::Durability;
use serde_json::{Value, json};

use crate::Length;
use crate::cost::read_all;
use crate::figures::{Report, Times, heading, line};
use crate::pipe::Server;
use crate::place::{Place, READER, block_on, send, text};

/// How large the tools of a role may be, in tokens of four bytes.
const TOKENS: usize = 2_500;

pub(crate) fn run(report: &mut Report, length: Length) {
    sends(report, length);
    memory(report);
    start(length);
    sizes(report);
}

/// A send by the tool, the same by the library, and a call that is refused before anything is looked
/// at: what the way there and back costs.
fn sends(report: &mut Report, length: Length) {
    let place = Place::with_team(&["writer"]);
    let mut server = Server::start(&place, Some("writer"));
    let writer = place.spot.seat("writer", Durability::Process);
    let reader = place.spot.seat(READER, Durability::Process);
    let [mut tool, mut library, mut empty, mut ping] = <[Times; 4]>::default();
    let rounds = length.of(300, 3_000);
    for number in 0..rounds {
        let words = json!({ "to": READER, "message": text("tool", number) });
        // Each goes first every other time: the file system is slower for who comes second.
        for by_tool in [number % 2 == 0, number % 2 == 1] {
            if by_tool {
                let sent = tool.time(|| server.call("send_message", &words));
                assert_eq!(sent["isError"], false, "{sent}");
            } else {
                library.time(|| send(&writer, number));
            }
            read_all(&reader);
        }
        let refused = empty.time(|| server.call("send_message", &json!({})));
        assert_eq!(refused["isError"], true, "{refused}");
        ping.time(|| server.ask("ping", &json!({})));
    }
    heading("500-byte message, from the call to the answer");
    line("the tool send_message", &tool);
    line("mail::send of the library", &library);
    line("a call of send_message that lacks its arguments", &empty);
    line("ping of the protocol", &ping);
    println!("on average {:.0}, {:.0}, {:.0} us", tool.mean(), library.mean(), empty.mean());
    let median = [&tool, &library, &empty].map(Times::median);
    let mean = [&tool, &library, &empty].map(Times::mean);
    for (name, [tool, library, empty]) in [("median", median), ("mean", mean)] {
        let what = format!("send_message to 1.5 x library + empty call, {name}");
        report.at_most(&what, tool, 1.0, 1.5 * library + empty);
    }
}

/// What a server has in memory when it has been at work for a while.
fn memory(report: &mut Report) {
    const MESSAGES: usize = 1_000;
    let place = Place::with_team(&["writer"]);
    let mut server = Server::start(&place, Some("writer"));
    let reader = place.spot.seat(READER, Durability::Process);
    let fresh = server.resident() / 1_024.0;
    let mut read = 0;
    for number in 0..MESSAGES {
        let words = json!({ "to": READER, "message": text("writer", number) });
        server.done("send_message", &words);
        let text = text(READER, number);
        let words = Words { text: &text, summary: None };
        block_on(mail::send(&reader, "writer", words)).unwrap();
        read += server.done("read_messages", &json!({}))["messages"].as_array().unwrap().len();
    }
    let resident = server.resident() / 1_024.0;
    report.bar(read == MESSAGES, format!("read by the tool: {read} of {MESSAGES}"));
    let what = format!("memory after {MESSAGES} sends and reads: {resident:.1} MB");
    report.bar(resident < 20.0, format!("{what} (at most 20; {fresh:.1} at the start)"));
}

/// From the start of the process to its first answers.
fn start(length: Length) {
    let place = Place::with_team(&["writer"]);
    let (mut greeted, mut listed) = (Times::default(), Times::default());
    for _ in 0..length.of(20, 200) {
        let start = Instant::now();
        let mut server = Server::start(&place, Some("writer"));
        greeted.push(start.elapsed());
        server.ask("tools/list", &json!({}));
        listed.push(start.elapsed());
    }
    heading("start of a server");
    line("to the answer to the greeting", &greeted);
    line("to the list of tools", &listed);
}

/// What a model has to read in every turn.
fn sizes(report: &mut Report) {
    let place = Place::with_team(&[]);
    for (role, name) in [("teammate", Some(READER)), ("lead", Some("team-lead")), ("founder", None)]
    {
        let mut server = Server::start(&place, name);
        let list: Value = server.ask("tools/list", &json!({}))["result"].take();
        let (count, tokens) = (list["tools"].as_array().unwrap().len(), list.to_string().len() / 4);
        let what = format!("{count} tools of a {role}: {tokens} tokens (at most {TOKENS})");
        report.bar(tokens < TOKENS, what);
    }
}
