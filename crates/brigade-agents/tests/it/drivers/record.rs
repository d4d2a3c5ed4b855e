//! Records transcripts of real programs. `e2e/drivers/record` prepares the programs and sets environment
//! variables such as `BRIGADE_RECORD`. Without these variables, nothing is recorded.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brigade_agents::driver::Invocation;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::play::{AgentProcess, play};
use super::scenario::Scenario;
use super::transcript::{path, started, without_version};

/// How long to wait for a program's next line of output.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(100);

/// Returns whether `BRIGADE_RECORD` selects this scenario. The value of this variable is `AGENT` or
/// `AGENT/SCENARIO`.
pub(super) fn wanted(scenario: &Scenario) -> bool {
    let Ok(wanted) = std::env::var("BRIGADE_RECORD") else { return false };
    wanted == scenario.agent || wanted == format!("{}/{}", scenario.agent, scenario.name)
}

/// Runs the scenario with the real program, and writes the transcript to `fixtures/agents`.
pub(super) fn record(scenario: &Scenario) {
    let mut real = RealProcess { running: None, started_at: Instant::now(), log: Vec::new() };
    play(scenario, &mut real);
    let path = path(scenario);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<_> = real.log.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

struct RealProcess {
    running: Option<RecordedProcess>,
    started_at: Instant,
    log: Vec<Value>,
}

struct RecordedProcess {
    process: Child,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
}

impl RealProcess {
    fn at(&self) -> u128 {
        self.started_at.elapsed().as_millis()
    }

    fn running(&mut self) -> &mut RecordedProcess {
        self.running.as_mut().unwrap()
    }
}

impl Drop for RecordedProcess {
    /// Kills the program's whole process group, because programs leave child processes behind.
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.process), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }
}

/// Starts the program in its own process group, with only the environment variables in `BRIGADE_RECORD_ENV`.
fn spawn(invocation: &Invocation) -> RecordedProcess {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let env = variable("BRIGADE_RECORD_ENV");
    let mut process = Command::new(variable("BRIGADE_RECORD_PROGRAM"))
        .args(&invocation.args)
        .env_clear()
        .envs(env.lines().filter_map(|line| line.split_once('=')))
        .envs(invocation.env.iter().cloned())
        .current_dir("/home/dev/project")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let input = process.stdin.take().unwrap();
    let mut reader = BufReader::new(process.stdout.take().unwrap());
    let (send, output) = channel();
    std::thread::spawn(move || {
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if send.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    RecordedProcess { process, input, output }
}

impl AgentProcess for RealProcess {
    fn line(&mut self) -> Vec<u8> {
        let line = self.running().output.recv_timeout(SILENCE_TIMEOUT).unwrap_or_else(|_| {
            let tail: Vec<_> = self.log.iter().rev().take(5).map(Value::to_string).collect();
            panic!("the program is silent; its last messages, latest first:\n{}", tail.join("\n"))
        });
        let text = String::from_utf8_lossy(&line);
        let from = serde_json::from_str(&text).unwrap_or_else(|_| json!(text.trim_end()));
        self.log.push(json!({ "at": self.at(), "from": trimmed(from) }));
        line
    }

    fn write(&mut self, bytes: &[u8]) {
        self.log.push(json!({ "at": self.at(), "to": without_version(bytes) }));
        self.running().input.write_all(bytes).unwrap();
    }

    fn start(&mut self, invocation: Invocation) {
        self.running = None;
        self.log.push(json!({ "at": self.at(), "started": started(&invocation) }));
        self.running = Some(spawn(&invocation));
    }

    fn end(&mut self) {
        self.running = None;
    }
}

/// Shortens long texts and lists, such as descriptions, instructions, and lists of models or commands.
fn trimmed(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 1200 => {
            let start: String = text.chars().take(120).collect();
            json!(format!("{start} [… {} characters]", text.chars().count()))
        }
        Value::Array(items) if items.len() > 12 => {
            Value::Array(items.into_iter().take(2).map(trimmed).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(trimmed).collect()),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, item)| (key, trimmed(item))).collect()
        }
        other => other,
    }
}
