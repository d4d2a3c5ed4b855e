//! Measures a whole `brigade send` process, compared with a Node process that does nothing.

use std::process::{Command, Stdio};

use crate::Length;
use crate::figures::{BenchReport, Times, heading, line};
use crate::fixtures::text;
use crate::mcp_server::brigade;
use crate::temp_team::{READER, TEAM, TempTeam};

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let brigade = brigade();
    let temp = TempTeam::with_team(&["writer"]);
    let rounds = length.pick(20, 200);
    let [mut ours, mut node, mut least] = <[Times; 3]>::default();
    for number in 0..rounds {
        let text = text("writer", number);
        let mut command = Command::new(&brigade);
        command.args(["--team", TEAM, "--as", "writer", "send", READER, &text]);
        command.env("CLAUDE_CONFIG_DIR", &temp.dirs.claude);
        command.env("XDG_STATE_HOME", temp.root.join("state"));
        ours.time(|| finish(&mut command));
        node.time(|| finish(Command::new("node").args(["-e", "0"])));
        least.time(|| finish(&mut Command::new("true")));
    }
    heading("from start to exit of a process");
    line("brigade send", &ours);
    line("node -e 0", &node);
    line("true", &least);
    let inbox = std::fs::read_to_string(temp.dirs.inbox()).unwrap();
    let sent = inbox.matches("\"writer/").count();
    report.check(sent == rounds, format!("sent: {sent} of {rounds}"));
    report.check_ratio("brigade send compared with node -e 0", ours.median(), 0.2, node.median());
}

fn finish(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?"));
    assert!(status.success(), "{command:?} ended with {status}");
}
