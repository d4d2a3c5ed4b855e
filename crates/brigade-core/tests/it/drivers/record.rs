//! Transcripts of real programs. `e2e/drivers/record` makes the house for it and says so in variables;
//! without them nothing here runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brigade_core::driver::Invocation;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::Scenario;
use super::play::{Program, play};
use super::transcript::{meaning, path, started};

/// How long a program may be silent when something is awaited.
const PATIENCE: Duration = Duration::from_secs(100);

/// AGENT or AGENT/SCENARIO, if something is to be recorded.
pub(super) fn wanted(scenario: &Scenario) -> bool {
    let Ok(wanted) = std::env::var("BRIGADE_RECORD") else { return false };
    wanted == scenario.agent || wanted == format!("{}/{}", scenario.agent, scenario.name)
}

/// Plays the scenario with the real program, and writes the transcript.
pub(super) fn record(scenario: &Scenario) {
    let mut real = Real { running: None, begun: Instant::now(), log: Vec::new() };
    play(scenario, &mut real);
    let path = path(scenario);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<_> = real.log.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

struct Real {
    running: Option<Running>,
    begun: Instant,
    log: Vec<Value>,
}

struct Running {
    process: Child,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
}

impl Real {
    fn at(&self) -> u128 {
        self.begun.elapsed().as_millis()
    }

    fn running(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }
}

impl Drop for Running {
    /// Programs leave children behind unless their whole group is ended.
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.process), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }
}

/// Starts the program in its own group with the variables we were given for it, and no others.
fn spawn(invocation: &Invocation) -> Running {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("no {name}"));
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
    Running { process, input, output }
}

impl Program for Real {
    fn line(&mut self) -> Vec<u8> {
        let line = self.running().output.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let tail: Vec<_> = self.log.iter().rev().take(5).map(Value::to_string).collect();
            panic!("the program is silent; before that, latest first:\n{}", tail.join("\n"))
        });
        let text = String::from_utf8_lossy(&line);
        let from = serde_json::from_str(&text).unwrap_or_else(|_| json!(text.trim_end()));
        self.log.push(json!({ "at": self.at(), "from": trimmed(from) }));
        line
    }

    fn write(&mut self, bytes: &[u8]) {
        self.log.push(json!({ "at": self.at(), "to": meaning(bytes) }));
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

/// Without the bulk: lists of models and commands, descriptions, instructions.
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
