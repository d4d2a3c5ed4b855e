//! A minimal MCP client: starts `brigade mcp` and exchanges lines of JSON with it.

#![expect(clippy::needless_pass_by_value, reason = "the calls are easier to read without borrows")]

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::env::CliEnv;

/// A running `brigade mcp` process and the connection to it.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    /// Messages that arrived while the client waited for the answer to a request.
    pub(crate) notifications: Vec<Value>,
}

impl Client {
    /// Starts `brigade mcp` without sending `initialize`.
    pub(crate) fn start(cli: &CliEnv, args: &[&str]) -> Self {
        Self::of_command(cli.command(&[&["mcp"], args].concat()))
    }

    /// Starts a server process with this command.
    fn of_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, last: 0, notifications: Vec::new() }
    }

    /// Starts and initializes a server that acts as member `name` of team `demo`.
    pub(crate) fn of(cli: &CliEnv, name: &str) -> Self {
        let mut client = Self::start(cli, &["--team", "demo", "--as", name]);
        client.initialize("2025-11-25");
        client
    }

    /// Like [`of`](Self::of), with these environment variables set.
    pub(crate) fn of_with_env(cli: &CliEnv, name: &str, env: &[(&str, &str)]) -> Self {
        let mut command = cli.command(&["mcp", "--team", "demo", "--as", name]);
        command.envs(env.iter().copied());
        let mut client = Self::of_command(command);
        client.initialize("2025-11-25");
        client
    }

    /// Sends `initialize` and returns the server's answer.
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        let answer = self.ask("initialize", params);
        self.write(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Sends one line to the server.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Reads the next message from the server.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request without waiting and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.write(request.to_string().as_bytes());
        self.last
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a request and returns the whole JSON-RPC response.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed and returns its structured result.
    pub(crate) fn call_ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must refuse and returns the error text.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["structuredContent"]["success"], false, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the server's stdin and returns its exit code.
    pub(crate) fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ignored = self.child.kill();
        let _ignored = self.child.wait();
    }
}
