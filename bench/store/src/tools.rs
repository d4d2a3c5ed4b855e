//! Measures the cost of the MCP tools: a send through an MCP server compared with a send by the library, the
//! server's memory and start time, and the size of its tool list.

use std::time::Instant;

use brigade_files::Durability;
use serde_json::{Value, json};

use crate::Length;
use crate::cost::read_all;
use crate::figures::{BenchReport, Times, heading, line};
use crate::fixtures::text;
use crate::mcp_server::McpProcess;
use crate::temp_team::{READER, TempTeam, send, send_text};

/// The largest size that the tool list of a role may have, in tokens. A token counts as four bytes.
const TOKENS: usize = 2_500;

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    sends(report, length);
    memory(report);
    start(length);
    sizes(report);
}

/// Measures a send with the tool, a send with the library, and a tool call that fails before it does any work. The
/// failing call shows the cost of the round trip.
fn sends(report: &mut BenchReport, length: Length) {
    let temp = TempTeam::with_team(&["writer"]);
    let mut server = McpProcess::start(&temp, Some("writer"));
    let writer = temp.dirs.seat("writer", Durability::Process);
    let reader = temp.dirs.seat(READER, Durability::Process);
    let [mut tool, mut library, mut empty, mut ping] = <[Times; 4]>::default();
    let rounds = length.pick(300, 3_000);
    for number in 0..rounds {
        let words = json!({ "to": READER, "message": text("tool", number) });
        // In each round, the file system is slower for the second send. So the tool and the library take turns in
        // sending first.
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
        ping.time(|| server.request("ping", &json!({})));
    }
    heading("500-byte message, from the call to the answer");
    line("the tool send_message", &tool);
    line("mail::send of the library", &library);
    line("send_message without its arguments", &empty);
    line("ping", &ping);
    println!(
        "averages of the first three rows: {:.0}, {:.0}, {:.0} us",
        tool.mean(),
        library.mean(),
        empty.mean()
    );
    let median = [&tool, &library, &empty].map(Times::median);
    let mean = [&tool, &library, &empty].map(Times::mean);
    for (name, [tool, library, empty]) in [("median", median), ("mean", mean)] {
        let what =
            format!("{name} of send_message, compared with 1.5 x library + call without arguments");
        report.check_ratio(&what, tool, 1.0, 1.5 * library + empty);
    }
}

/// Measures the memory of a server after some work.
fn memory(report: &mut BenchReport) {
    const MESSAGES: usize = 1_000;
    let temp = TempTeam::with_team(&["writer"]);
    let mut server = McpProcess::start(&temp, Some("writer"));
    let reader = temp.dirs.seat(READER, Durability::Process);
    let fresh = server.resident() / 1_024.0;
    let mut read = 0;
    for number in 0..MESSAGES {
        let words = json!({ "to": READER, "message": text("writer", number) });
        server.call_ok("send_message", &words);
        send_text(&reader, "writer", &text(READER, number)).unwrap();
        read += server.call_ok("read_messages", &json!({}))["messages"].as_array().unwrap().len();
    }
    let resident = server.resident() / 1_024.0;
    report.check(read == MESSAGES, format!("read by the tool: {read} of {MESSAGES}"));
    let what = format!("memory after {MESSAGES} sends and reads: {resident:.1} MB");
    report.check(resident < 20.0, format!("{what} (at most 20; {fresh:.1} at the start)"));
}

/// Measures the time from the start of a server process to its first answers.
fn start(length: Length) {
    let temp = TempTeam::with_team(&["writer"]);
    let (mut initialized, mut listed) = (Times::default(), Times::default());
    for _ in 0..length.pick(20, 200) {
        let start = Instant::now();
        let mut server = McpProcess::start(&temp, Some("writer"));
        initialized.push(start.elapsed());
        server.request("tools/list", &json!({}));
        listed.push(start.elapsed());
    }
    heading("from the start of a server process");
    line("until it answers initialize", &initialized);
    line("until it lists its tools", &listed);
}

/// Measures the size of the tool list, which a model reads in every turn.
fn sizes(report: &mut BenchReport) {
    let temp = TempTeam::with_team(&[]);
    for (role, name) in [("teammate", Some(READER)), ("lead", Some("team-lead")), ("founder", None)]
    {
        let mut server = McpProcess::start(&temp, name);
        let list: Value = server.request("tools/list", &json!({}))["result"].take();
        let (count, tokens) = (list["tools"].as_array().unwrap().len(), list.to_string().len() / 4);
        let what = format!("{count} tools of a {role}: {tokens} tokens (at most {TOKENS})");
        report.check(tokens < TOKENS, what);
    }
}
