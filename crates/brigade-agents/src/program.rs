//! An agent's program: how it is started, and ended with everything it started.
//!
//! Beside each agent stands the program `brigade`: as its guard, so that nothing the agent started outlives
//! it, and as the server of the team's tools, so that it can write to the others and take tasks.
//!
//! ```
//! use brigade_agents::program::Brigade;
//! use brigade_files::Options;
//!
//! let files = Options::new("/home/ann/.claude", "/home/ann/.local/state/brigade");
//! let brigade = Brigade::on_files("/usr/bin/brigade", &files);
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

use crate::driver::ToolServer;

/// How many lines of standard error are kept.
const LAST_WORDS: usize = 20;
/// How long a program has to end by itself when its input is closed. Some never do.
const GRACE: Duration = Duration::from_millis(500);

/// The program `brigade`, as the guard of agents and the server of their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Brigade {
    /// Where it is.
    pub program: PathBuf,
    /// The variables by which it finds the team's store.
    pub env: Vec<(String, String)>,
}

impl Brigade {
    /// The program, for teams it finds by these variables: those in docs/cli.md, `BRIGADE_STORE` for one.
    pub fn new(program: impl Into<PathBuf>, env: Vec<(String, String)>) -> Self {
        Self { program: program.into(), env }
    }

    /// The program, for teams in the files below Claude Code's folder `claude_dir`. The program itself
    /// expects brigade's own folder `state_dir` to have the name `brigade`.
    pub fn on_files(program: impl Into<PathBuf>, claude_dir: &Path, state_dir: &Path) -> Self {
        let word = |path: &Path| {
            std::path::absolute(path).unwrap_or_default().to_string_lossy().into_owned()
        };
        let state = state_dir.parent().unwrap_or(state_dir);
        let env = [
            ("BRIGADE_STORE", "files".to_owned()),
            (CLAUDE_DIR, word(claude_dir)),
            ("XDG_STATE_HOME", word(state)),
        ];
        Self::new(program, env.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// The tools of the team for an agent in this seat, whose mail comes to it by itself.
    pub(crate) fn tools(&self, seat: &Seat) -> ToolServer {
        let who = [
            ("BRIGADE_TEAM", seat.team.as_str()),
            ("BRIGADE_AS", seat.name.as_str()),
            ("BRIGADE_DELIVERED", "1"),
            AN_AGENT,
        ];
        let who = who.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ToolServer {
            command: self.program.to_string_lossy().into_owned(),
            args: vec!["mcp".to_owned()],
            env: who.into_iter().chain(self.env.iter().cloned()).collect(),
        }
    }

    /// Claude Code's folder, if the variables say which.
    pub(crate) fn claude_dir(&self) -> Option<&str> {
        let folder = self.env.iter().find(|(name, _)| name == CLAUDE_DIR);
        folder.map(|(_, folder)| folder.as_str())
    }

    /// How an agent's program is started behind it.
    pub(crate) fn start(&self, program: &str, cwd: PathBuf) -> Start {
        let guard = vec![self.program.clone().into_os_string(), "guard".into()];
        let mut start = Start::new(guard, program, cwd);
        // What the agent does with `brigade` in its shell is an agent's doing, and in this store. Its own
        // folders are where they were.
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env = env.filter(|(name, _)| name.starts_with("BRIGADE_"));
        start.env =
            env.chain([AN_AGENT]).map(|(name, value)| (name.into(), value.into())).collect();
        start
    }
}

/// Claude Code's own variable for its folder.
const CLAUDE_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Says that an agent acts, and that a person answers what is asked of the lead.
const AN_AGENT: (&str, &str) = ("BRIGADE_ANSWERS", "person");

/// How a program is started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Start {
    /// What it is started with: a program that makes a session for it, and ends all of that session
    /// when it ends, when it is told to, or when we die.
    pub guard: Vec<OsString>,
    /// Ends what a guard left behind that was itself killed, by the process it was.
    pub sweep: fn(u32),
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables set for it, beside those it inherits.
    pub env: Vec<(OsString, OsString)>,
    /// The only variables it inherits, if not all.
    pub inherits: Option<Vec<(OsString, OsString)>>,
    /// Where it works.
    pub cwd: PathBuf,
}

impl Start {
    /// This program in this folder behind this guard, with all variables there are. What is left of a guard
    /// that was killed is ended as far as it is still in the guard's process group.
    pub fn new(
        guard: Vec<OsString>,
        program: impl Into<OsString>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            guard,
            sweep: end_group,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherits: None,
            cwd: cwd.into(),
        }
    }
}

/// Ends the process group that this process led.
fn end_group(guard: u32) {
    if let Some(guard) = i32::try_from(guard).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(guard, Signal::KILL);
    }
}

/// A program that was started.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    /// The process that guards it, until it is known to have ended.
    guard: Option<Pid>,
    sweep: fn(u32),
    /// Ends what its guard left behind.
    sweeping: Option<JoinHandle<()>>,
    /// Written by a task of its own: a program that does not read must not keep us from hearing it.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: ChildStdout,
    said: Arc<Mutex<VecDeque<String>>>,
    /// Reads what it says on standard error, to the end of that.
    listening: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts a program.
    pub(crate) fn start(start: &Start) -> io::Result<Self> {
        let mut words = start.guard.iter().chain([&start.program]).chain(&start.args);
        let first = words.next().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(first);
        if let Some(inherits) = &start.inherits {
            command.env_clear().envs(inherits.iter().map(|(name, value)| (name, value)));
        }
        command
            .args(words)
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
        let said = Arc::default();
        let listening = Some(tokio::spawn(listen(stderr, Arc::clone(&said))));
        let guard = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let sweep = start.sweep;
        let input = Some(input);
        Ok(Self { child, guard, sweep, sweeping: None, input, output, said, listening })
    }

    /// Writes to its standard input, sooner or later. If it has ended, nobody reads it.
    pub(crate) fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ended = input.send(bytes);
        }
    }

    /// What it wrote to its standard output; nothing once it has ended.
    pub(crate) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            tokio::select! {
                read = self.output.read(room) => return read,
                // A program whose guard was killed goes on, with nobody to end it.
                status = self.child.wait(), if self.guard.is_some() => self.guard_ended(status?),
            }
        }
    }

    /// The last lines that it wrote to its standard error before it ended.
    pub(crate) async fn last_words(&mut self) -> String {
        // They may come behind the end of its output. What it started can hold the other end for longer.
        if let Some(listening) = self.listening.take() {
            let _heard_to_the_end = tokio::time::timeout(GRACE, listening).await;
        }
        let said: Vec<String> = held(&self.said).iter().cloned().collect();
        said.join("\n")
    }

    /// Ends it, and everything it started; gives the code with which it ended by itself, if it did.
    pub(crate) async fn end(mut self) -> io::Result<Option<i32>> {
        drop(self.input.take());
        let by_itself = tokio::time::timeout(GRACE, self.child.wait()).await;
        let (status, code) = match by_itself {
            Ok(status) => status.map(|status| (status, status.code()))?,
            Err(_elapsed) => {
                self.tell_guard();
                (self.child.wait().await?, None)
            }
        };
        self.guard_ended(status);
        if let Some(sweeping) = self.sweeping.take() {
            sweeping.await?;
        }
        Ok(code)
    }

    fn tell_guard(&self) {
        if let Some(guard) = self.guard {
            let _gone = kill_process(guard, Signal::TERM);
        }
    }

    /// A guard that ends by itself leaves nothing behind; one that was killed leaves everything.
    fn guard_ended(&mut self, status: ExitStatus) {
        let sweep = self.sweep;
        if let Some(guard) = self.guard.take()
            && status.code().is_none()
        {
            let guard = guard.as_raw_nonzero().get().unsigned_abs();
            self.sweeping = Some(spawn_blocking(move || sweep(guard)));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // There is none once it was waited for, so that nobody else's process is told.
        self.tell_guard();
    }
}

async fn feed(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = lines.recv().await {
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn listen(stderr: ChildStderr, said: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(line, "the agent said on standard error");
        let mut said = held(&said);
        if said.len() == LAST_WORDS {
            said.pop_front();
        }
        said.push_back(line);
    }
}

fn held(said: &Mutex<VecDeque<String>>) -> MutexGuard<'_, VecDeque<String>> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn why_it_ended_is_heard_though_its_output_ended_before() {
        let mut start = Start::new(vec!["sh".into()], "-c", ".");
        start.args = vec!["exec 1>&-; sleep 0.2; echo no licence >&2".into()];
        let mut program = Program::start(&start).unwrap();
        assert_eq!(program.read(&mut [0; 16]).await.unwrap(), 0);
        assert_eq!(program.last_words().await, "no licence");
        program.end().await.unwrap();
    }
}
