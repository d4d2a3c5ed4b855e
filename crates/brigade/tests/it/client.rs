//! A client of `brigade mcp`, as plain as can be: lines of JSON to and from a child process.

#![expect(clippy::needless_pass_by_value, reason = "a test reads better without the borrow")]

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::env::House;

/// A server and the conversation with it.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    /// What came that was no answer.
    pub(crate) notifications: Vec<Value>,
}

impl Client {
    /// A server that has not been greeted yet.
    pub(crate) fn start(house: &House, args: &[&str]) -> Self {
        Self::of_command(house.command(&[&["mcp"], args].concat()))
    }

    /// The same, started in another way.
    fn of_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, last: 0, notifications: Vec::new() }
    }

    /// The server of a member of the team `demo`.
    pub(crate) fn of(house: &House, name: &str) -> Self {
        let mut client = Self::start(house, &["--team", "demo", "--as", name]);
        client.greet("2025-11-25");
        client
    }

    /// The same with these variables set.
    pub(crate) fn of_with_env(house: &House, name: &str, env: &[(&str, &str)]) -> Self {
        let mut command = house.command(&["mcp", "--team", "demo", "--as", name]);
        command.envs(env.iter().copied());
        let mut client = Self::of_command(command);
        client.greet("2025-11-25");
        client
    }

    /// Says hello, and gives the server's answer back.
    pub(crate) fn greet(&mut self, version: &str) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let greeting =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        let answer = self.ask("initialize", greeting);
        self.write(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Sends a line.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// The next line.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request without waiting, and gives its id.
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

    /// Sends a request and gives the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool and gives its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that has to do what it is asked, and gives what it gives as data.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to refuse, and gives what it says.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["structuredContent"]["success"], false, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the conversation, and gives the exit code.
    pub(crate) fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
