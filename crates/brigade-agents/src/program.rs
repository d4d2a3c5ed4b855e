//! Starts an agent's program, and ends the program together with all processes that it started.
//!
//! The `brigade` program runs next to each agent, as the agent's guard and as the MCP server for the team's tools.
//! The guard ensures that no process that the agent started outlives the agent.
//!
//! ```
//! use std::path::Path;
//!
//! use brigade_agents::program::BrigadeProgram;
//!
//! let (claude_dir, state_dir) = (Path::new("/home/ann/.claude"), Path::new("/home/ann/.local/state/brigade"));
//! let brigade = BrigadeProgram::on_files("/usr/bin/brigade", claude_dir, state_dir);
//! assert!(brigade.env.contains(&("CLAUDE_CONFIG_DIR".into(), "/home/ann/.claude".into())));
//! ```

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use brigade_core::seat::Seat;
use brigade_core::text::without_escapes;

use crate::driver::ToolServer;

/// How many lines of a program's standard error are kept for error messages.
const MAX_STDERR_LINES: usize = 20;
/// How long a program may take to exit after its input is closed. Some programs never exit by themselves.
const GRACE: Duration = Duration::from_millis(500);

/// The `brigade` program, which guards agents and serves their MCP tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrigadeProgram {
    /// The program's path.
    pub program: PathBuf,
    /// The environment variables by which the program finds the team's store.
    pub env: Vec<(String, String)>,
}

impl BrigadeProgram {
    /// Uses the program at this path with environment variables such as `BRIGADE_STORE`. `docs/cli.md` lists the
    /// variables.
    pub fn new(program: impl Into<PathBuf>, env: Vec<(String, String)>) -> Self {
        Self { program: program.into(), env }
    }

    /// Uses the program at this path for teams stored as files in Claude Code's folder `claude_dir`. `state_dir`
    /// is Brigade's own folder, whose name must be `brigade`.
    pub fn on_files(program: impl Into<PathBuf>, claude_dir: &Path, state_dir: &Path) -> Self {
        let absolute = |path: &Path| {
            std::path::absolute(path).unwrap_or_default().to_string_lossy().into_owned()
        };
        let state = state_dir.parent().unwrap_or(state_dir);
        let env = [
            ("BRIGADE_STORE", "files".to_owned()),
            (CLAUDE_DIR, absolute(claude_dir)),
            ("XDG_STATE_HOME", absolute(state)),
        ];
        Self::new(program, env.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Returns the MCP server for an agent in this seat. The agent's mail is delivered as turns, so the agent
    /// needs no tool that fetches mail.
    pub(crate) fn tools(&self, seat: &Seat) -> ToolServer {
        let identity = [
            ("BRIGADE_TEAM", seat.team.as_str()),
            ("BRIGADE_AS", seat.name.as_str()),
            ("BRIGADE_DELIVERED", "1"),
            RUN_BY_AGENT,
        ];
        let identity = identity.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ToolServer {
            command: self.program.to_string_lossy().into_owned(),
            args: vec!["mcp".to_owned()],
            env: identity.into_iter().chain(self.env.iter().cloned()).collect(),
        }
    }

    /// Returns Claude Code's folder, if the environment variables contain it.
    pub(crate) fn claude_dir(&self) -> Option<&str> {
        let folder = self.env.iter().find(|(name, _)| name == CLAUDE_DIR);
        folder.map(|(_, folder)| folder.as_str())
    }

    /// Returns the command that starts an agent's program under the guard.
    pub(crate) fn start(&self, program: &str, cwd: PathBuf) -> ProgramCommand {
        let guard = vec![self.program.clone().into_os_string(), "guard".into()];
        let mut start = ProgramCommand::new(guard, program, cwd);
        // With these variables, a `brigade` command in the agent's shell uses the team's store, and knows that it
        // is run by an agent. Variables such as `CLAUDE_CONFIG_DIR` are left out, because they would change the
        // agent's own folders.
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env = env.filter(|(name, _)| name.starts_with("BRIGADE_"));
        start.env =
            env.chain([RUN_BY_AGENT]).map(|(name, value)| (name.into(), value.into())).collect();
        start
    }
}

/// The environment variable that sets Claude Code's folder.
const CLAUDE_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Tells `brigade` that an agent runs it, and that only a person may decide on plans and permission requests.
const RUN_BY_AGENT: (&str, &str) = ("BRIGADE_ANSWERS", "person");

/// The command that starts a program under a guard.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramCommand {
    /// The guard's command. The guard starts the program in a process session of its own. The guard ends all
    /// processes of that session when the program ends, when the guard receives a signal, or when our process
    /// dies.
    pub guard: Vec<OsString>,
    /// Ends the processes that a killed guard left behind. Receives the guard's process id.
    pub sweep: fn(u32),
    /// Ends the processes below the guard that are at most this old, and returns how many it ended. Receives the guard's
    /// process id.
    pub end_commands: fn(u32, Duration) -> usize,
    /// The program to run under the guard.
    pub program: OsString,
    /// The program's arguments.
    pub args: Vec<OsString>,
    /// Environment variables, in addition to those that the program inherits.
    pub env: Vec<(OsString, OsString)>,
    /// The environment variables that the program inherits. `None` means all variables of our process.
    pub inherits: Option<Vec<(OsString, OsString)>>,
    /// The program's working directory.
    pub cwd: PathBuf,
}

impl ProgramCommand {
    /// Returns the command that starts `program` under `guard` in the folder `cwd`, with all environment variables
    /// of our process. If the guard is killed, the processes in the guard's process group are ended.
    pub fn new(
        guard: Vec<OsString>,
        program: impl Into<OsString>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            guard,
            sweep: end_group,
            end_commands: |_, _| 0,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherits: None,
            cwd: cwd.into(),
        }
    }
}

/// Kills the process group of this guard.
fn end_group(guard: u32) {
    if let Some(guard) = i32::try_from(guard).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(guard, Signal::KILL);
    }
}

/// A running program.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    child: Child,
    /// The program's guard. `None` once the guard has ended.
    guard: Option<Pid>,
    sweep: fn(u32),
    end_commands: fn(u32, Duration) -> usize,
    /// The task that ends the processes that a killed guard left behind.
    sweep_task: Option<JoinHandle<()>>,
    /// The queue of the task that writes the program's input. The task is separate, so that we can read the
    /// program's output even if the program does not read its input.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: ChildStdout,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    /// The task that reads the program's standard error until that stream is closed.
    stderr_task: Option<JoinHandle<()>>,
}

impl RunningProgram {
    /// Starts a program.
    pub(crate) fn start(start: &ProgramCommand) -> io::Result<Self> {
        let mut argv = start.guard.iter().chain([&start.program]).chain(&start.args);
        let first = argv.next().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(first);
        if let Some(inherits) = &start.inherits {
            command.env_clear().envs(inherits.iter().map(|(name, value)| (name, value)));
        }
        command
            .args(argv)
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&start.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = child.stdin.take().ok_or_else(pipe)?;
        let output = child.stdout.take().ok_or_else(pipe)?;
        let stderr = child.stderr.take().ok_or_else(pipe)?;
        let (input, lines) = mpsc::unbounded_channel();
        tokio::spawn(feed(stdin, lines));
        let last_lines = Arc::default();
        let stderr_task = Some(tokio::spawn(read_stderr(stderr, Arc::clone(&last_lines))));
        let guard = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Ok(Self {
            child,
            guard,
            sweep: start.sweep,
            end_commands: start.end_commands,
            sweep_task: None,
            input: Some(input),
            output,
            last_lines,
            stderr_task,
        })
    }

    /// Queues bytes for the program's standard input. Does nothing if the program has ended.
    pub(crate) fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ended = input.send(bytes);
        }
    }

    /// Reads the program's standard output. Returns 0 once the output is closed.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            tokio::select! {
                read = self.output.read(buffer) => return read,
                // If the guard was killed, the program is still running, and we must end the program.
                status = self.child.wait(), if self.guard.is_some() => self.guard_ended(status?),
            }
        }
    }

    /// Returns the last lines that the program wrote to standard error.
    pub(crate) async fn last_output(&mut self) -> String {
        // The program can write to standard error after it has closed standard output, so wait until standard
        // error ends. Do not wait long: the program's child processes can keep standard error open.
        if let Some(stderr_task) = self.stderr_task.take() {
            let _complete = tokio::time::timeout(GRACE, stderr_task).await;
        }
        let lines: Vec<String> = lock(&self.last_lines).iter().cloned().collect();
        without_escapes(&lines.join("\n"))
    }

    /// Ends the program and all processes that it started. Returns the exit code if the program exited by itself.
    pub(crate) async fn end(mut self) -> io::Result<Option<i32>> {
        drop(self.input.take());
        let by_itself = tokio::time::timeout(GRACE, self.child.wait()).await;
        let (status, code) = match by_itself {
            Ok(status) => status.map(|status| (status, status.code()))?,
            Err(_elapsed) => {
                self.signal_guard();
                (self.child.wait().await?, None)
            }
        };
        self.guard_ended(status);
        if let Some(sweep_task) = self.sweep_task.take() {
            sweep_task.await?;
        }
        Ok(code)
    }

    /// Ends the processes that the program started during the last `age`. Returns the task that does so, whose result is the
    /// number of processes, or `None` if the guard has ended.
    pub(crate) fn end_commands(&self, age: Duration) -> Option<JoinHandle<usize>> {
        let guard = self.guard?.as_raw_nonzero().get().unsigned_abs();
        let end_commands = self.end_commands;
        Some(spawn_blocking(move || end_commands(guard, age)))
    }

    fn signal_guard(&self) {
        if let Some(guard) = self.guard {
            let _gone = kill_process(guard, Signal::TERM);
        }
    }

    /// Ends the processes that a killed guard left behind. A guard that exits by itself leaves no processes.
    fn guard_ended(&mut self, status: ExitStatus) {
        let sweep = self.sweep;
        if let Some(guard) = self.guard.take()
            && status.code().is_none()
        {
            let guard = guard.as_raw_nonzero().get().unsigned_abs();
            self.sweep_task = Some(spawn_blocking(move || sweep(guard)));
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // `guard` is `None` once the guard has ended, so we never signal a process that reuses the guard's id.
        self.signal_guard();
    }
}

async fn feed(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = lines.recv().await {
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_stderr(stderr: ChildStderr, last_lines: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(line, "the agent wrote to standard error");
        let mut last_lines = lock(&last_lines);
        if last_lines.len() == MAX_STDERR_LINES {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
    }
}

fn lock(last_lines: &Mutex<VecDeque<String>>) -> MutexGuard<'_, VecDeque<String>> {
    last_lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn standard_error_is_read_after_the_output_ended() {
        let mut start = ProgramCommand::new(vec!["sh".into()], "-c", ".");
        start.args = vec!["exec 1>&-; sleep 0.2; echo no licence >&2".into()];
        let mut program = RunningProgram::start(&start).unwrap();
        assert_eq!(program.read(&mut [0; 16]).await.unwrap(), 0);
        assert_eq!(program.last_output().await, "no licence");
        program.end().await.unwrap();
    }
}
