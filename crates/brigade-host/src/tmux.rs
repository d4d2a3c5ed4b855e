//! Opens tmux windows for members, on a tmux server that only brigade uses.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brigade_core::hash::Fnv;
use brigade_core::pulse::Process;

use crate::registry::Registry;

/// A tmux server that only brigade uses.
#[derive(Clone, Debug)]
pub struct Tmux {
    /// The name of the server's socket.
    pub socket: String,
    /// The name of the socket that older versions of brigade used. State folders shared it.
    old_socket: String,
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
    /// The id of the process that the window was opened for.
    pub pid: u32,
}

impl Tmux {
    /// Returns the tmux server for a registry. Does not start the server.
    ///
    /// The name of the socket depends on the state folder and on the store: a brigade with another state folder does
    /// not know the members of this registry, and must not take their windows for its own.
    pub fn new(registry: &Registry) -> Self {
        let dir = canonical(registry.dir());
        let key = Fnv::default().bytes(dir.as_os_str().as_encoded_bytes()).finish();
        Self {
            socket: format!("brigade-{key:016x}"),
            old_socket: format!("brigade-{}", registry.key()),
        }
    }

    /// Returns the tmux server that older versions of brigade used.
    fn old(&self) -> Self {
        Self { socket: self.old_socket.clone(), ..self.clone() }
    }

    /// Returns the server that has the window of this process. A member that an older version of brigade started keeps
    /// its window on the old server.
    pub fn server_of(&self, process: Option<&Process>) -> Self {
        let Some(process) = process else { return self.clone() };
        let has_window = |tmux: &Self| tmux.windows().iter().any(|it| it.pid == process.pid);
        let old = self.old();
        if !has_window(self) && has_window(&old) { old } else { self.clone() }
    }

    /// Returns the windows on this server and on the old one, each with the name of the server's socket.
    pub fn all_windows(&self) -> Vec<(String, Window)> {
        let windows = |tmux: &Self| {
            let socket = tmux.socket.clone();
            tmux.windows().into_iter().map(move |window| (socket.clone(), window))
        };
        windows(self).chain(windows(&self.old())).collect()
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
        let form = "#{window_id} #{pane_pid} #{session_name} #{window_name} #{pane_start_command}";
        let listed = self.command().args(["list-windows", "-a", "-F", form]).output();
        let listed = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
        let read = |line: &str| {
            let mut fields = line.splitn(5, ' ').map(str::to_owned);
            let (id, pid) = (fields.next()?, fields.next()?.parse().ok()?);
            let (session, name) = (fields.next()?, fields.next()?);
            let plays = fields.next()?.contains("play --team");
            Some(Window { id, session, name, plays, pid })
        };
        listed.unwrap_or_default().lines().filter_map(read).collect()
    }

    /// Closes a window, which ends the process in the window. Does nothing if another process runs in the window by
    /// now: tmux reuses the ids of windows when its server starts again.
    pub fn close_if_same(&self, window: &Window) -> io::Result<()> {
        let Window { id, pid, .. } = window;
        let is_same = format!("#{{==:#{{pane_pid}},{pid}}}");
        let close = format!("kill-window -t {id}");
        match self.run(["if-shell", "-F", "-t", id, &is_same, &close]) {
            Err(_) if !self.windows().iter().any(|other| other.id == *id) => Ok(()),
            closed => closed,
        }
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

/// Returns the path without symbolic links. Folders at its end need not exist yet.
fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            let missing = path.strip_prefix(existing).into_iter().flat_map(Path::components);
            return real.components().chain(missing).collect();
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding 30: brigades with different state folders must not share a tmux server.
    #[test]
    fn finding_30_the_socket_depends_on_the_state_folder_and_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let socket = |path: &str| Tmux::new(&Registry::new(dir.path().join(path))).socket;
        let one = socket("one/brigade/host/key");
        assert_ne!(one, socket("other/brigade/host/key"));
        assert_ne!(one, socket("one/brigade/host/other-key"));
        // The name stays the same when the folder is created, and when it is reached through a link.
        std::fs::create_dir_all(dir.path().join("one/brigade/host/key")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("one"), dir.path().join("link")).unwrap();
        assert_eq!(one, socket("one/brigade/host/key"));
        assert_eq!(one, socket("link/brigade/host/key"));
        let old = Tmux::new(&Registry::new(dir.path().join("one/brigade/host/key"))).old();
        assert_eq!(old.socket, "brigade-key");
    }
}
