//! Windows of tmux, on a server of brigade's own: nobody else's panes can be met there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Stdio};

/// brigade's own server of tmux.
#[derive(Clone, Debug)]
pub struct Tmux {
    /// The name of its socket.
    pub socket: String,
}

/// A window.
#[derive(Clone, Debug)]
pub struct Window {
    /// tmux's own name for it.
    pub id: String,
    /// The team's name.
    pub session: String,
    /// The member's name.
    pub name: String,
    /// Whether it was opened for a member to be played in.
    pub plays: bool,
}

impl Tmux {
    /// The server for what runs on this host, by a word of its own.
    pub fn new(key: &str) -> Self {
        Self { socket: format!("brigade-{key}") }
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        // Nothing of the user's settings: a hook there could do anything to our windows.
        tmux.args(["-L", &self.socket, "-f", "/dev/null"]).stdin(Stdio::null());
        // Who is in a window of its own tmux already may open one here.
        tmux.env_remove("TMUX");
        tmux
    }

    /// Opens a window that runs a program.
    pub fn open(&self, session: &str, window: &str, words: &[OsString]) -> io::Result<()> {
        let in_session = format!("={session}:");
        let there = self.run([OsStr::new("has-session"), "-t".as_ref(), in_session.as_ref()]);
        let mut args: Vec<OsString> = match there {
            Ok(()) => vec!["new-window".into(), "-d".into(), "-t".into(), in_session.into()],
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(_) => {
                let size = ["new-session", "-d", "-x", "160", "-y", "48", "-s"];
                size.iter().map(Into::into).chain([session.into()]).collect()
            }
        };
        args.extend(["-n".into(), window.into(), "--".into()]);
        args.extend_from_slice(words);
        self.run(args)
    }

    /// The windows there are; none if there is no server.
    pub fn windows(&self) -> Vec<Window> {
        let form = "#{window_id} #{session_name} #{window_name} #{pane_start_command}";
        let listed = self.command().args(["list-windows", "-a", "-F", form]).output();
        let listed = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
        let read = |line: &str| {
            let mut words = line.splitn(4, ' ').map(str::to_owned);
            let (id, session, name) = (words.next()?, words.next()?, words.next()?);
            let plays = words.next()?.contains("play --team");
            Some(Window { id, session, name, plays })
        };
        listed.unwrap_or_default().lines().filter_map(read).collect()
    }

    /// Closes a window, which ends what runs in it.
    pub fn close(&self, window: &str) -> io::Result<()> {
        self.run(["kill-window", "-t", window])
    }

    /// What shows a window of a session to a person, in place of what the terminal showed.
    pub fn show(&self, session: &str, window: &str) -> Command {
        let target = format!("={session}:={window}");
        let mut tmux = self.command();
        tmux.stdin(Stdio::inherit());
        tmux.args(["select-window", "-t", &target, ";", "attach-session", "-t", &target]);
        tmux
    }

    /// How a person looks at a session.
    pub fn attach(&self, session: &str) -> String {
        format!("tmux -L {} attach -t {session}", self.socket)
    }

    fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<()> {
        let done = self.command().args(args).output()?;
        if done.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(io::Error::other(format!("tmux: {said}")))
    }
}
