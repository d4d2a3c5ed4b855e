//! Opens tmux windows for members, on a tmux server that only brigade uses.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Stdio};

/// A tmux server that only brigade uses.
#[derive(Clone, Debug)]
pub struct Tmux {
    /// The name of the server's socket.
    pub socket: String,
}

/// A tmux window.
#[derive(Clone, Debug)]
pub struct Window {
    /// The window's id in tmux.
    pub id: String,
    /// The window's session, which is named after the team.
    pub session: String,
    /// The window's name, which is the member's name.
    pub name: String,
    /// Whether the window was opened for running a member.
    pub plays: bool,
}

impl Tmux {
    /// Returns the tmux server for the registry with this key. Does not start the server.
    pub fn new(key: &str) -> Self {
        Self { socket: format!("brigade-{key}") }
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        // Ignore the user's tmux configuration, because a hook in it could change brigade's windows.
        tmux.args(["-L", &self.socket, "-f", "/dev/null"]).stdin(Stdio::null());
        // Remove this variable, because tmux refuses to start a session from inside another tmux session.
        tmux.env_remove("TMUX");
        tmux
    }

    /// Opens a window in a session and runs a command in it. Creates the session if it does not exist.
    pub fn open(&self, session: &str, window: &str, command: &[OsString]) -> io::Result<()> {
        let in_session = format!("={session}:");
        let has_session = self.run([OsStr::new("has-session"), "-t".as_ref(), in_session.as_ref()]);
        let mut args: Vec<OsString> = match has_session {
            Ok(()) => vec!["new-window".into(), "-d".into(), "-t".into(), in_session.into()],
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(_) => {
                let size = ["new-session", "-d", "-x", "160", "-y", "48", "-s"];
                size.iter().map(Into::into).chain([session.into()]).collect()
            }
        };
        args.extend(["-n".into(), window.into(), "--".into()]);
        args.extend_from_slice(command);
        self.run(args)
    }

    /// Returns the windows of all sessions. The list is empty if the tmux server is not running.
    pub fn windows(&self) -> Vec<Window> {
        let form = "#{window_id} #{session_name} #{window_name} #{pane_start_command}";
        let listed = self.command().args(["list-windows", "-a", "-F", form]).output();
        let listed = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
        let read = |line: &str| {
            let mut fields = line.splitn(4, ' ').map(str::to_owned);
            let (id, session, name) = (fields.next()?, fields.next()?, fields.next()?);
            let plays = fields.next()?.contains("play --team");
            Some(Window { id, session, name, plays })
        };
        listed.unwrap_or_default().lines().filter_map(read).collect()
    }

    /// Closes a window, which ends the process in the window.
    pub fn close(&self, window: &str) -> io::Result<()> {
        self.run(["kill-window", "-t", window])
    }

    /// Returns the command that shows a window in the current terminal.
    pub fn show(&self, session: &str, window: &str) -> Command {
        let target = format!("={session}:={window}");
        let mut tmux = self.command();
        tmux.stdin(Stdio::inherit());
        tmux.args(["select-window", "-t", &target, ";", "attach-session", "-t", &target]);
        tmux
    }

    /// Returns the command line with which a person attaches to a session.
    pub fn attach(&self, session: &str) -> String {
        format!("tmux -L {} attach -t {session}", self.socket)
    }

    fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<()> {
        let done = self.command().args(args).output()?;
        if done.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(io::Error::other(format!("tmux: {stderr}")))
    }
}
