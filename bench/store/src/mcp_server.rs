//! A `brigade mcp` and the pipes to it: the plainest client there can be.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::place::{Place, TEAM};

/// The program itself: `$BRIGADE`, or the one built here.
pub(crate) fn brigade() -> PathBuf {
    let brigade = std::env::var_os("BRIGADE")
        .map_or_else(|| PathBuf::from("target/release/brigade"), PathBuf::from);
    let missing = "build it with cargo build --release -p brigade, or name it in $BRIGADE";
    assert!(brigade.is_file(), "no {}: {missing}", brigade.display());
    brigade
}

/// A server and the conversation with it. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    /// A server that has been greeted: of a member, or of whoever has no team yet.
    pub(crate) fn start(place: &Place, name: Option<&str>) -> Self {
        let mut command = Command::new(brigade());
        command.env_clear().arg("mcp");
        command.env("CLAUDE_CONFIG_DIR", &place.spot.claude);
        command.env("XDG_STATE_HOME", place.root.join("state"));
        if let Some(name) = name {
            command.args(["--team", TEAM, "--as", name]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, input, output, last: 0 };
        let info = json!({ "name": "proof", "version": "1" });
        let greeting =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        server.ask("initialize", &greeting);
        let greeted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        server.input.write_all(format!("{greeted}\n").as_bytes()).unwrap();
        server
    }

    /// Asks and waits for the answer. The time between is the round trip.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.input.write_all(line(id, method, params).as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Calls a tool, whatever comes of it.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].take()
    }

    /// Calls a tool that has to do what it is asked, and gives its data.
    pub(crate) fn done(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].take()
    }

    /// What is in memory of it, in kB.
    pub(crate) fn resident(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A request as it goes over the pipe.
pub(crate) fn line(id: u64, method: &str, params: &Value) -> String {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    format!("{request}\n")
}
