//! An agent's program, running: fed, heard, and ended with everything it started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

/// How many lines of standard error are kept.
const LAST_WORDS: usize = 20;
/// How long a program has to end by itself when its input is closed. Some never do.
const GRACE: Duration = Duration::from_millis(500);

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it is started with: a program that makes a session for it, and ends all of that session
    /// when it ends, when it is told to, or when we die.
    pub guard: Vec<OsString>,
    /// Ends what a guard left behind that was itself killed, by the process it was.
    pub sweep: fn(Pid),
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

/// A program that was started.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// The process that guards it, until it is known to have ended.
    guard: Option<Pid>,
    sweep: fn(Pid),
    /// Ends what its guard left behind.
    sweeping: Option<JoinHandle<()>>,
    /// Written by a task of its own: a program that does not read must not keep us from hearing it.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: ChildStdout,
    said: Arc<Mutex<VecDeque<String>>>,
}

impl Program {
    /// Starts a program.
    pub fn start(start: &Start) -> io::Result<Self> {
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
        tokio::spawn(listen(stderr, Arc::clone(&said)));
        let guard = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let sweep = start.sweep;
        Ok(Self { child, guard, sweep, sweeping: None, input: Some(input), output, said })
    }

    /// Writes to its standard input, sooner or later. If it has ended, nobody reads it.
    pub fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ended = input.send(bytes);
        }
    }

    /// What it wrote to its standard output; nothing once it has ended.
    pub async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            tokio::select! {
                read = self.output.read(room) => return read,
                // A program whose guard was killed goes on, with nobody to end it.
                status = self.child.wait(), if self.guard.is_some() => self.guard_ended(status?),
            }
        }
    }

    /// The last lines it wrote to its standard error.
    pub fn last_words(&self) -> String {
        let said: Vec<String> = held(&self.said).iter().cloned().collect();
        said.join("\n")
    }

    /// The process that guards it.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends it, and everything it started; gives the code with which it ended by itself, if it did.
    pub async fn end(mut self) -> io::Result<Option<i32>> {
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
