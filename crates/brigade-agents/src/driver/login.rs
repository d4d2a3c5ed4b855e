//! Asks an agent's program whether a person has logged in, without starting a turn.
//!
//! No check proves that the vendor accepts the credentials; only the first turn does. So there are three answers:
//! logged out, credentials present, and unknown. Like a driver, a [`LoginProbe`] does no I/O.

use serde_json::{Value, json};

use super::DriverOutput;
use super::rpc::{RpcError, RpcMessage, RpcPeer};

/// Whether a person has logged in to the vendor of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// The agent has no credentials.
    LoggedOut,
    /// The agent has credentials, or needs none. They may have expired.
    Present,
    /// The agent does not say.
    Unknown,
}

/// How to ask an agent's program whether a person has logged in.
#[derive(Clone, Copy, Debug)]
pub enum LoginCheck {
    /// The program has a command for it. It runs in the member's folder.
    Command {
        /// The arguments of the command.
        arguments: &'static [&'static str],
        /// Reads the exit code and the output.
        read: fn(i32, &str) -> LoginState,
    },
    /// Codex's app server tells the account, and whether its model provider needs one.
    CodexAccount,
    /// The program refuses to open a session over the Agent Client Protocol while it is logged out. Opening a session leaves an
    /// empty record in the folder, and Gemini CLI deletes other records there, so it must not run in the member's folder.
    AcpSession {
        /// The arguments that make the program speak the protocol.
        arguments: &'static [&'static str],
        /// Environment variables that the program needs.
        environment: &'static [(&'static str, &'static str)],
        /// Files in the member's folder or above it that can contain credentials. If there is one, the answer for another
        /// folder is not the answer for the member.
        project_files: &'static [&'static str],
    },
    /// There is no way to ask.
    None,
}

/// The error code with which agents refuse to open a session while they are logged out.
const AUTHENTICATION_REQUIRED: i64 = -32000;

#[derive(Debug)]
enum ProbeRequest {
    Initialize,
    Ask,
}

/// The conversation with an agent's program in which it tells whether a person has logged in.
#[derive(Debug)]
pub struct LoginProbe {
    peer: RpcPeer<ProbeRequest>,
    is_codex: bool,
    cwd: String,
}

impl LoginProbe {
    /// Starts a conversation; `None` if the check is not a conversation. `cwd` is the folder in which the program runs.
    pub fn new(check: &LoginCheck, cwd: &str) -> Option<Self> {
        let client =
            json!({ "name": "brigade", "title": "Brigade", "version": env!("CARGO_PKG_VERSION") });
        let (is_codex, frame, hello) = match check {
            LoginCheck::CodexAccount => (true, json!({}), json!({ "clientInfo": client })),
            LoginCheck::AcpSession { .. } => {
                let files = json!({ "readTextFile": false, "writeTextFile": false });
                let hello = json!({
                    "protocolVersion": 1,
                    "clientCapabilities": { "fs": files, "terminal": false },
                    "clientInfo": client,
                });
                (false, json!({ "jsonrpc": "2.0" }), hello)
            }
            LoginCheck::Command { .. } | LoginCheck::None => return None,
        };
        let mut peer = RpcPeer::new(frame);
        peer.request("initialize", &hello, ProbeRequest::Initialize);
        Some(Self { peer, is_codex, cwd: cwd.to_owned() })
    }

    /// Returns the next bytes for the program's standard input.
    pub fn next_write(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.peer.next()? {
                DriverOutput::Write(bytes) => return Some(bytes),
                DriverOutput::Event(_) => {}
            }
        }
    }

    /// Handles bytes that the program wrote to its standard output. Returns the answer when it is complete.
    pub fn on_output(&mut self, bytes: &[u8]) -> Option<LoginState> {
        self.peer.push(bytes);
        while let Some(message) = self.peer.next_message() {
            match message {
                RpcMessage::Answer { purpose: ProbeRequest::Initialize, result: Ok(_) } => {
                    self.ask();
                }
                RpcMessage::Answer { result, .. } => return Some(self.read(&result)),
                RpcMessage::Request { id, .. } => self.peer.refuse(&id, "not supported"),
                RpcMessage::Notification { .. } => {}
            }
        }
        None
    }

    fn ask(&mut self) {
        if self.is_codex {
            self.peer.notify("initialized", &json!({}));
            let params = json!({ "refreshToken": false });
            self.peer.request("account/read", &params, ProbeRequest::Ask);
        } else {
            let params = json!({ "cwd": self.cwd, "mcpServers": [] });
            self.peer.request("session/new", &params, ProbeRequest::Ask);
        }
    }

    fn read(&self, result: &Result<Value, RpcError>) -> LoginState {
        match result {
            Ok(account) if self.is_codex => {
                let needs_login = account.get("requiresOpenaiAuth").and_then(Value::as_bool);
                match (account.get("account"), needs_login) {
                    (Some(Value::Object(_)), _) | (_, Some(false)) => LoginState::Present,
                    (Some(Value::Null), Some(true)) => LoginState::LoggedOut,
                    _ => LoginState::Unknown,
                }
            }
            Ok(session) if session.get("sessionId").is_some() => LoginState::Present,
            Err(error) if !self.is_codex && error.code == AUTHENTICATION_REQUIRED => {
                LoginState::LoggedOut
            }
            _ => LoginState::Unknown,
        }
    }
}

/// Reads the output of `claude auth status --json`.
pub(super) fn read_claude_status(_code: i32, output: &str) -> LoginState {
    let status: Option<Value> = serde_json::from_str(output).ok();
    match status.and_then(|status| status.get("loggedIn")?.as_bool()) {
        Some(true) => LoginState::Present,
        Some(false) => LoginState::LoggedOut,
        None => LoginState::Unknown,
    }
}

/// Reads the output of `opencode auth list`. Without credentials the answer is unknown: opencode also works with free models, and
/// with providers of the person's own.
pub(super) fn read_opencode_list(_code: i32, output: &str) -> LoginState {
    let words: Vec<&str> = output.split_whitespace().collect();
    let has_any = words.windows(2).any(|pair| match pair {
        [number, what] => {
            let is_count = what.starts_with("credential") || what.starts_with("environment");
            is_count && number.parse::<u32>().is_ok_and(|number| number > 0)
        }
        _ => false,
    });
    if has_any { LoginState::Present } else { LoginState::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACP: LoginCheck =
        LoginCheck::AcpSession { arguments: &["--acp"], environment: &[], project_files: &[] };

    /// Lets the program answer the second request with this line, and returns the answer of the probe.
    fn probe(check: &LoginCheck, line: &str) -> Option<LoginState> {
        let mut probe = LoginProbe::new(check, "/project").unwrap();
        let hello = String::from_utf8(probe.next_write().unwrap()).unwrap();
        assert!(hello.contains("\"initialize\"") && hello.ends_with('\n'), "{hello}");
        assert_eq!(probe.on_output(b"not json\n{\"id\":1,\"result\""), None);
        assert_eq!(probe.on_output(b":{}}\n"), None);
        let writes = std::iter::from_fn(|| probe.next_write()).flatten().collect::<Vec<u8>>();
        let writes = String::from_utf8(writes).unwrap();
        // No turn is started.
        assert!(!writes.contains("prompt") && !writes.contains("turn/start"), "{writes}");
        assert_eq!(probe.on_output(b"{\"method\":\"x\"}\n"), None);
        probe.on_output(line.as_bytes())
    }

    /// The answers were recorded with the versions of the agents in the table of agents.
    #[test]
    fn recorded_answers_are_read() {
        use LoginState::{LoggedOut, Present, Unknown};
        let codex = LoginCheck::CodexAccount;
        for (check, line, expected) in [
            (codex, r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":true}}"#, LoggedOut),
            (codex, r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}"#, Present),
            (
                codex,
                r#"{"id":2,"result":{"account":{"type":"apiKey"},"requiresOpenaiAuth":true}}"#,
                Present,
            ),
            (codex, r#"{"id":2,"error":{"code":-32603,"message":"x"}}"#, Unknown),
            (codex, r#"{"id":2,"result":{}}"#, Unknown),
            (
                ACP,
                r#"{"id":2,"error":{"code":-32000,"message":"Authentication required"}}"#,
                LoggedOut,
            ),
            (ACP, r#"{"id":2,"error":{"code":-32603,"message":"Internal error"}}"#, Unknown),
            (ACP, r#"{"id":2,"result":{"sessionId":"s"}}"#, Present),
            (ACP, r#"{"id":2,"result":{}}"#, Unknown),
        ] {
            assert_eq!(probe(&check, &format!("{line}\n")), Some(expected), "{line}");
        }
        assert_eq!(probe(&ACP, "{\"id\":7,\"result\":{}}\n"), None);
    }

    #[test]
    fn recorded_output_of_commands_is_read() {
        use LoginState::{LoggedOut, Present, Unknown};
        for (output, expected) in [
            ("{\n  \"loggedIn\": false,\n  \"authMethod\": \"none\"\n}\n", LoggedOut),
            ("{\n  \"loggedIn\": true,\n  \"authMethod\": \"api_key\"\n}\n", Present),
            ("error: unknown command", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(read_claude_status(0, output), expected, "{output}");
        }
        let nothing = "┌  Credentials ~/.local/share/opencode/auth.json\n│\n└  0 credentials\n";
        let key = format!(
            "{nothing}\n┌  Environment\n│\n●  OpenAI OPENAI_API_KEY\n│\n└  1 environment variable\n"
        );
        for (output, expected) in [
            (nothing, Unknown),
            (key.as_str(), Present),
            ("└  12 credentials", Present),
            ("credentials 3", Unknown),
        ] {
            assert_eq!(read_opencode_list(0, output), expected, "{output}");
        }
    }
}
