//! A service of the user's session that starts this host's teams again at login: a systemd user unit, or a launchd agent on
//! macOS, which is untested.
//!
//! The service runs `brigade resume` once. It contains no secrets: agents get API keys from the environment of the session.

mod format;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::error::{HostError, Trouble, failed, file_failed};
use crate::host::Host;
use crate::leftovers::temp;

/// The first words of every file that brigade writes. A file without them is not brigade's.
const MARK: &str = "Written by `brigade service install`";
/// The name of the systemd unit.
const UNIT: &str = "brigade.service";
/// The label of the launchd agent.
const LABEL: &str = "dev.brigade.resume";

/// The program that starts services when the user logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceManager {
    /// systemd, as on most Linux systems.
    Systemd,
    /// launchd of macOS. Untested.
    Launchd,
}

impl ServiceManager {
    /// Returns the service manager of this platform.
    pub fn of_platform() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }
}

/// The folders and variables of the user's session.
#[derive(Clone, Debug)]
pub struct ServiceEnvironment {
    /// The home directory.
    pub home: PathBuf,
    /// The base folder of configuration files, `~/.config` by default.
    pub config_home: PathBuf,
    /// The variables to set for the service: where programs and folders are. A service does not inherit those of a shell.
    pub variables: Vec<(String, OsString)>,
}

/// The file of the service on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceState {
    /// There is no file.
    Absent,
    /// The file is as brigade would write it now.
    Installed,
    /// Brigade wrote the file with other settings, for example for another store.
    Outdated,
    /// Brigade did not write the file.
    Foreign,
}

/// A service that starts the teams of one store again at login.
#[derive(Clone, Debug)]
pub struct LoginService {
    manager: ServiceManager,
    /// The path of the service's file.
    pub path: PathBuf,
    /// The content of the service's file.
    pub text: String,
}

impl LoginService {
    /// Returns the service for the teams of this host. Nothing is written.
    pub fn new(
        manager: ServiceManager,
        host: &Host,
        environment: &ServiceEnvironment,
    ) -> Result<Self, HostError> {
        let command = utf8(host.self_command.command_line(&["resume"]))?;
        let names = environment.variables.iter().map(|(name, _)| name.clone());
        let values = utf8(environment.variables.iter().map(|(_, value)| value.clone()))?;
        let variables: Vec<(String, String)> = names.zip(values).collect();
        let (path, text) = match manager {
            ServiceManager::Systemd => (
                environment.config_home.join("systemd/user").join(UNIT),
                format::unit(MARK, &command, &variables),
            ),
            ServiceManager::Launchd => (
                environment.home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")),
                format::agent(MARK, LABEL, &command, &variables),
            ),
        };
        Ok(Self { manager, path, text })
    }

    /// Compares the service's file with the one that brigade would write.
    pub fn state(&self) -> Result<ServiceState, HostError> {
        match fs::read(&self.path) {
            Ok(bytes) if bytes == self.text.as_bytes() => Ok(ServiceState::Installed),
            Ok(bytes) => {
                let start = String::from_utf8_lossy(&bytes);
                let is_ours = start.lines().take(3).any(|line| line.contains(MARK));
                Ok(if is_ours { ServiceState::Outdated } else { ServiceState::Foreign })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ServiceState::Absent),
            Err(source) => Err(file_failed("read", &self.path, source)),
        }
    }

    /// Writes the service's file. Fails if there is a file that brigade did not write, or if an agent runs the command.
    pub fn write(&self, is_agent: bool) -> Result<(), HostError> {
        check_person(is_agent, "install a service")?;
        let state = self.state()?;
        match state {
            ServiceState::Installed => return Ok(()),
            ServiceState::Foreign => return Err(self.foreign()),
            ServiceState::Absent | ServiceState::Outdated => {}
        }
        let temp = temp(&self.path);
        let write = || {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o644).open(&temp)?;
            file.write_all(self.text.as_bytes())?;
            file.sync_all()?;
            match state {
                // Unlike `rename`, this does not replace a file that another program has written meanwhile.
                ServiceState::Absent => fs::hard_link(&temp, &self.path),
                _ => fs::rename(&temp, &self.path),
            }
        };
        let written = write();
        let _gone = fs::remove_file(&temp);
        written.map_err(|source| file_failed("write", &self.path, source))
    }

    /// Deletes the service's file. Returns false if there is none. Fails if brigade did not write it.
    pub fn delete(&self, is_agent: bool) -> Result<bool, HostError> {
        check_person(is_agent, "remove a service")?;
        match self.state()? {
            ServiceState::Absent => return Ok(false),
            ServiceState::Foreign => return Err(self.foreign()),
            ServiceState::Installed | ServiceState::Outdated => {}
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_failed("remove", &self.path, error))
            }
            removed => Ok(removed.is_ok()),
        }
    }

    fn foreign(&self) -> HostError {
        let path = self.path.clone();
        let error = HostError::failed(Trouble::ForeignService { path });
        error.hint("move the file away first, or leave it and run `brigade resume` yourself")
    }

    /// Returns the commands that enable the service after its file was written.
    pub fn enabling(&self) -> Vec<ManagerCommand> {
        match self.manager {
            ServiceManager::Systemd => vec![
                ManagerCommand::new("systemctl", &["--user", "daemon-reload"]),
                ManagerCommand::new("systemctl", &["--user", "enable", UNIT]),
            ],
            ServiceManager::Launchd => {
                let path = self.path.to_string_lossy();
                vec![ManagerCommand::new("launchctl", &["bootstrap", &gui_domain(), &path])]
            }
        }
    }

    /// Returns the commands that disable the service before its file is deleted. They do not end any process of a member.
    pub fn disabling(&self) -> Vec<ManagerCommand> {
        match self.manager {
            ServiceManager::Systemd => {
                vec![ManagerCommand::new("systemctl", &["--user", "disable", UNIT])]
            }
            ServiceManager::Launchd => {
                let service = format!("{}/{LABEL}", gui_domain());
                vec![ManagerCommand::new("launchctl", &["bootout", &service])]
            }
        }
    }

    /// Returns the command that succeeds if the service is enabled.
    pub fn asking(&self) -> ManagerCommand {
        match self.manager {
            ServiceManager::Systemd => {
                ManagerCommand::new("systemctl", &["--user", "is-enabled", "--quiet", UNIT])
            }
            ServiceManager::Launchd => {
                ManagerCommand::new("launchctl", &["print", &format!("{}/{LABEL}", gui_domain())])
            }
        }
    }
}

/// A command of the service manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerCommand {
    program: &'static str,
    arguments: Vec<String>,
}

impl ManagerCommand {
    fn new(program: &'static str, arguments: &[&str]) -> Self {
        Self { program, arguments: arguments.iter().map(|&argument| argument.to_owned()).collect() }
    }

    /// Returns the command as a person types it.
    pub fn line(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }

    /// Runs the command. The error is what the command printed.
    pub fn run(&self) -> Result<(), String> {
        let output = Command::new(self.program).args(&self.arguments).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(if said.is_empty() { format!("{}", output.status) } else { said })
            }
            Err(error) => Err(format!("cannot start {}: {error}", self.program)),
        }
    }
}

/// Returns launchd's name for the session of this user.
fn gui_domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn check_person(is_agent: bool, what: &'static str) -> Result<(), HostError> {
    if !is_agent {
        return Ok(());
    }
    let error = HostError::failed(Trouble::PersonOnly { what });
    Err(error.hint("run the command in a terminal that no agent uses"))
}

/// Returns texts that can be written into a service's file, on one line each.
fn utf8(texts: impl IntoIterator<Item = OsString>) -> Result<Vec<String>, HostError> {
    let text = |text: OsString| {
        let text = text.into_string().ok().filter(|text| !text.contains(char::is_control));
        text.ok_or_else(|| {
            let why =
                io::Error::other("a path or variable is not UTF-8, or has control characters");
            failed("describe the service", why)
        })
    };
    texts.into_iter().map(text).collect()
}

/// Returns whether the user's services keep running without a login, as `loginctl enable-linger` sets it.
pub fn lingers(user: &str) -> bool {
    !user.contains('/') && Path::new("/var/lib/systemd/linger").join(user).exists()
}
