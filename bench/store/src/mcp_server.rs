//! A minimal MCP client that starts `brigade mcp`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::temp_team::{TEAM, TempTeam};

/// Returns the path of the brigade program: `$BRIGADE`, or `target/release/brigade`.
pub(crate) fn brigade() -> PathBuf {
    let brigade = std::env::var_os("BRIGADE")
        .map_or_else(|| PathBuf::from("target/release/brigade"), PathBuf::from);
    let hint = "run \"cargo build --release -p brigade\", or set $BRIGADE";
    assert!(brigade.is_file(), "{} does not exist: {hint}", brigade.display());
    brigade
}

/// A process that runs `brigade mcp`, and the pipes to it. The process is killed on drop.
#[derive(Debug)]
pub(crate) struct McpProcess {
    pub(crate) child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
    last: u64,
}

impl McpProcess {
    /// Starts and initializes a server for the member `name`. If `name` is `None`, the server has no team.
    pub(crate) fn start(temp: &TempTeam, name: Option<&str>) -> Self {
        let mut command = Command::new(brigade());
        command.env_clear().arg("mcp");
        command.env("CLAUDE_CONFIG_DIR", &temp.dirs.claude);
        command.env("XDG_STATE_HOME", temp.root.join("state"));
        if let Some(name) = name {
            command.args(["--team", TEAM, "--as", name]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, input, output, last: 0 };
        let info = json!({ "name": "bench", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        server.request("initialize", &params);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        server.input.write_all(format!("{initialized}\n").as_bytes()).unwrap();
        server
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.input.write_all(line(id, method, params).as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the MCP server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Calls a tool. Returns its result, which may be an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"]
            .take()
    }

    /// Calls a tool and panics if the call fails. Returns the structured content of the result.
    pub(crate) fn call_ok(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].take()
    }

    /// Returns the server's resident memory, in kB.
    pub(crate) fn resident(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for McpProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns a request as a line of JSON.
pub(crate) fn line(id: u64, method: &str, params: &Value) -> String {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    format!("{request}\n")
}
