//! A whole `brigade send`, from its start to its end, beside a Node that does nothing.

use std::process::{Command, Stdio};

use crate::Length;
use crate::figures::{Report, Times, heading, line};
use crate::pipe::brigade;
use crate::place::{Place, READER, TEAM, text};

pub(crate) fn run(report: &mut Report, length: Length) {
    let brigade = brigade();
    let place = Place::with_team(&["writer"]);
    let rounds = length.of(20, 200);
    let [mut ours, mut node, mut least] = <[Times; 3]>::default();
    for number in 0..rounds {
        let text = text("writer", number);
        let mut command = Command::new(&brigade);
        command.args(["--team", TEAM, "--as", "writer", "send", READER, &text]);
        command.env("CLAUDE_CONFIG_DIR", &place.spot.claude);
        command.env("XDG_STATE_HOME", place.root.join("state"));
        ours.time(|| finish(&mut command));
        node.time(|| finish(Command::new("node").args(["-e", "0"])));
        least.time(|| finish(&mut Command::new("true")));
    }
    heading("whole processes");
    line("brigade send", &ours);
    line("node -e 0", &node);
    line("true", &least);
    let inbox = std::fs::read_to_string(place.spot.inbox()).unwrap();
    let sent = inbox.matches("\"writer/").count();
    report.bar(sent == rounds, format!("sent: {sent} of {rounds}"));
    report.at_most("brigade send to node -e 0", ours.median(), 0.2, node.median());
}

fn finish(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    assert!(status.success(), "{command:?} ended with {status}");
}
