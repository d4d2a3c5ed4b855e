//! The socket over which a person's commands reach the process of a member.
//!
//! The socket is in the member's folder of the registry, which only the user can enter. A request and its reply are one line of
//! JSON each. While a session is handed over, the connection stays open: when it is closed, also by a kill of the other
//! process, the member continues the session.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use brigade_agents::teammate::{CommandResult, InteractiveCommand, MemberCommand, MemberInput};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// The name of the socket in the member's folder.
const SOCKET: &str = "control";
/// The longest request. The first text of a new session is part of a request.
const MAX_REQUEST: u64 = 1 << 20;

/// A command for a member's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub(crate) enum ControlRequest {
    Interrupt,
    Pause,
    Unpause,
    Restart { fresh: Option<String>, model: Option<String> },
    HandOver,
}

/// The reply of a member's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub(crate) enum ControlReply {
    Done,
    Interrupted { ended: usize },
    NotInTurn,
    HandedOver { command: HandedOverCommand },
    Failed { why: String },
}

/// The command that continues the session in the agent's own interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOverCommand {
    /// The program.
    pub program: OsString,
    /// The program's arguments.
    pub args: Vec<OsString>,
    /// All environment variables of the program, except those that describe the terminal.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The id of the session.
    pub session: String,
    /// The display name of the agent.
    pub title: String,
}

impl From<InteractiveCommand> for HandedOverCommand {
    fn from(command: InteractiveCommand) -> Self {
        let InteractiveCommand { program, args, env, cwd, session, title } = command;
        Self { program, args, env, cwd, session, title }
    }
}

impl From<CommandResult> for ControlReply {
    fn from(result: CommandResult) -> Self {
        match result {
            CommandResult::Done => Self::Done,
            CommandResult::Interrupted { ended } => Self::Interrupted { ended },
            CommandResult::NotInTurn => Self::NotInTurn,
            CommandResult::HandedOver(command) => Self::HandedOver { command: command.into() },
            CommandResult::Failed(why) => Self::Failed { why },
            _ => {
                Self::Failed { why: "this version of brigade does not know the result".to_owned() }
            }
        }
    }
}

/// The socket of a member whose process is this one.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
}

impl ControlSocket {
    /// Opens the socket in the member's folder. The caller must hold the member's lock.
    pub fn open(member_dir: &Path) -> io::Result<Self> {
        match std::fs::remove_file(member_dir.join(SOCKET)) {
            // A process that was killed left its socket behind.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = short_path(member_dir, |path| UnixListener::bind(path))?;
        Ok(Self { listener })
    }

    /// Passes the commands of all connections to the member. Never returns.
    pub async fn serve(self, inputs: mpsc::UnboundedSender<MemberInput>) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if is_own_user(&stream) => {
                    let inputs = inputs.clone();
                    tokio::spawn(async move {
                        if let Err(error) = answer(stream, &inputs).await {
                            tracing::warn!(%error, "a command for this member failed");
                        }
                    });
                }
                Ok(_) => tracing::warn!("refused a command from another user"),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a command for this member");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }
}

fn is_own_user(stream: &UnixStream) -> bool {
    let allowed = [geteuid().as_raw(), 0];
    stream.peer_cred().is_ok_and(|peer| allowed.contains(&peer.uid()))
}

async fn answer(stream: UnixStream, inputs: &mpsc::UnboundedSender<MemberInput>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read.take(MAX_REQUEST));
    let mut line = String::new();
    lines.read_line(&mut line).await?;
    let request: ControlRequest = serde_json::from_str(&line)?;
    let (release, released) = oneshot::channel();
    let command = match request {
        ControlRequest::Interrupt => MemberCommand::Interrupt,
        ControlRequest::Pause => MemberCommand::Pause,
        ControlRequest::Unpause => MemberCommand::Unpause,
        ControlRequest::Restart { fresh, model } => MemberCommand::Restart { fresh, model },
        ControlRequest::HandOver => MemberCommand::HandOver(released),
    };
    let (reply, result) = oneshot::channel();
    let ended = || io::Error::other("the member has ended");
    inputs.send(MemberInput::Command(command, reply)).map_err(|_| ended())?;
    let mut closed = String::new();
    let reply = tokio::select! {
        result = result => ControlReply::from(result.map_err(|_| ended())?),
        // The other process has ended before the member's turn did. Dropping `release` withdraws the command.
        _closed = lines.read_line(&mut closed) => return Ok(()),
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    if matches!(reply, ControlReply::HandedOver { .. }) {
        let _closed = lines.read_line(&mut closed).await;
    }
    drop(release);
    Ok(())
}

/// A connection to the process of a member.
#[derive(Debug)]
pub(crate) struct ControlConnection {
    stream: BufReader<UnixStream>,
}

impl ControlConnection {
    /// Connects to the process that runs the member in this folder.
    pub(crate) async fn open(member_dir: &Path) -> io::Result<Self> {
        // `UnixStream::connect` is asynchronous, but connecting to a local socket does not block.
        let stream = short_path(member_dir, std::os::unix::net::UnixStream::connect)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream: BufReader::new(UnixStream::from_std(stream)?) })
    }

    /// Sends a request and waits for the reply.
    pub(crate) async fn request(&mut self, request: &ControlRequest) -> io::Result<ControlReply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).await?;
        let mut reply = String::new();
        if self.stream.read_line(&mut reply).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&reply)?)
    }

    /// Returns whether the member's process still has the connection open.
    pub(crate) fn is_open(&self) -> bool {
        let read = self.stream.get_ref().try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Calls `using` with a path of the socket that is short enough: the system limits the length of a socket's path.
#[cfg(target_os = "linux")]
fn short_path<T>(dir: &Path, using: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let folder = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    using(PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())))
}

/// Calls `using` with the path of the socket. Fails if the path is too long for the system. Untested.
#[cfg(not(target_os = "linux"))]
fn short_path<T>(dir: &Path, using: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    using(dir.join(SOCKET))
}
