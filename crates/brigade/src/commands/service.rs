//! `brigade service …`

use std::ffi::OsString;
use std::path::PathBuf;

use brigade_agents::driver::AGENTS;
use brigade_core::text::one_line;
use brigade_host::error::ErrorKind;
use brigade_host::service::{
    self, LoginService, ManagerCommand, ServiceEnvironment, ServiceManager, ServiceState,
};
use serde_json::json;

use crate::cli::{GlobalArgs, ServiceCommand};
use crate::context::host_alone;
use crate::error::{CliError, CliTrouble};
use crate::output::{self, FAINT, STRONG};
use crate::{confirm, env, exit};

/// The variables that tell brigade and the agents where programs and folders are. None of them is a secret.
const KEPT: [&str; 10] = [
    env::PATH,
    env::XDG_STATE_HOME,
    env::XDG_CONFIG_HOME,
    env::CLAUDE_CONFIG_DIR,
    env::CLAUDE,
    env::CODEX_HOME,
    env::GEMINI_CLI_HOME,
    env::HOST,
    env::AGENT_ENV,
    env::DURABILITY,
];

pub(crate) fn run(global: &GlobalArgs, command: &ServiceCommand) -> Result<u8, CliError> {
    let service = LoginService::new(
        ServiceManager::of_platform(),
        &host_alone(global)?,
        &environment().ok_or_else(|| CliError::failed(CliTrouble::NoHome))?,
    )?;
    // Claude Code's model could have chosen the command.
    let is_agent = env::read(env::ANSWERS).is_some() || env::read(env::CLAUDE_SESSION).is_some();
    match command {
        ServiceCommand::Install { yes } => install(global.json, &service, is_agent, *yes),
        ServiceCommand::Status => status(global.json, &service),
        ServiceCommand::Remove => remove(global.json, &service, is_agent),
    }
}

fn environment() -> Option<ServiceEnvironment> {
    let named = AGENTS.iter().map(|agent| format!("BRIGADE_{}", agent.name.to_uppercase()));
    let names = KEPT.iter().map(|&name| name.to_owned()).chain(named);
    let variables: Vec<(String, OsString)> =
        names.filter_map(|name| Some((name.clone(), env::read(&name)?))).collect();
    Some(ServiceEnvironment {
        home: PathBuf::from(env::read(env::HOME)?),
        config_home: env::config_dir()?.parent()?.to_owned(),
        variables,
    })
}

fn install(json: bool, service: &LoginService, is_agent: bool, yes: bool) -> Result<u8, CliError> {
    let path = one_line(&service.path.to_string_lossy());
    let state = service.state()?;
    if !json && !matches!(state, ServiceState::Installed | ServiceState::Foreign) {
        output::print(&format!(
            "{STRONG}{path}{STRONG:#}\n\
             runs `brigade resume` when you log in. That starts the teams of this host again\n\
             that were running. Teams that you took down stay down.\n\n{}\n",
            indented(&service.text)
        ))?;
        if !yes {
            if !confirm::can_ask(json) {
                let error = CliError::usage(CliTrouble::NobodyToAsk);
                return Err(
                    error.hint("`brigade service install --yes` installs it without asking")
                );
            }
            if !confirm::ask("install and enable it?")? {
                return Ok(confirm::declined("nothing was changed"));
            }
        }
    }
    service.write(is_agent)?;
    let failure = first_failure(&service.enabling());
    let enabled = failure.is_none();
    if json {
        output::print_json(&json!({ "path": service.path, "enabled": enabled }))?;
    } else if enabled {
        output::print(&format!("installed and enabled {path}\n"))?;
        hint_linger();
    }
    match failure {
        None => Ok(exit::DONE),
        Some(why) => Err(not_enabled(&path, &why, &service.enabling())),
    }
}

fn status(json: bool, service: &LoginService) -> Result<u8, CliError> {
    let state = service.state()?;
    let is_installed = matches!(state, ServiceState::Installed | ServiceState::Outdated);
    let enabled = is_installed && service.asking().run().is_ok();
    if json {
        let (path, lingers) = (&service.path, is_lingering());
        output::print_json(
            &json!({ "path": path, "state": state, "enabled": enabled, "lingers": lingers }),
        )?;
        return Ok(if is_installed { exit::DONE } else { exit::NOTHING });
    }
    let path = one_line(&service.path.to_string_lossy());
    let words = match state {
        ServiceState::Absent => "not installed",
        ServiceState::Foreign => "not installed: brigade did not write this file",
        ServiceState::Outdated => "installed with other settings than those of this command",
        ServiceState::Installed => "installed",
    };
    let enabled_words = match (is_installed, enabled) {
        (false, _) => "",
        (true, true) => ", enabled",
        (true, false) => ", not enabled",
    };
    output::print(&format!("{words}{enabled_words} {FAINT}({path}){FAINT:#}\n"))?;
    match state {
        ServiceState::Absent => output::hint("`brigade service install` installs it"),
        ServiceState::Outdated => output::hint("`brigade service install` writes it again"),
        ServiceState::Installed if enabled => hint_linger(),
        ServiceState::Installed => {
            output::hint(&format!("enable it with `{}`", lines(&service.enabling())));
        }
        ServiceState::Foreign => {}
    }
    Ok(if is_installed { exit::DONE } else { exit::NOTHING })
}

fn remove(json: bool, service: &LoginService, is_agent: bool) -> Result<u8, CliError> {
    let state = service.state()?;
    let is_installed = matches!(state, ServiceState::Installed | ServiceState::Outdated);
    // The service manager forgets a service only while its file exists.
    let failure = if is_installed { first_failure(&service.disabling()) } else { None };
    let removed = service.delete(is_agent)?;
    if json {
        output::print_json(&json!({ "path": service.path, "removed": removed }))?;
    }
    if !removed {
        let error = CliError::new(ErrorKind::Nothing, CliTrouble::NoService);
        return Err(error.hint("`brigade service install` installs it"));
    }
    if !json {
        let path = one_line(&service.path.to_string_lossy());
        output::print(&format!("removed {path}; running members were not stopped\n"))?;
    }
    if let Some(why) = failure {
        let commands = lines(&service.disabling());
        output::note(&format!("the service may still be enabled: {why}; `{commands}` disables it"));
    }
    Ok(exit::DONE)
}

/// Runs commands until one fails. Returns why it failed.
fn first_failure(commands: &[ManagerCommand]) -> Option<String> {
    commands.iter().find_map(|command| command.run().err()).map(|why| one_line(&why))
}

fn not_enabled(path: &str, why: &str, commands: &[ManagerCommand]) -> CliError {
    let trouble = CliTrouble::ServiceNotEnabled { path: path.to_owned(), why: why.to_owned() };
    let error = CliError::new(ErrorKind::Partly, trouble);
    error.hint(format!("enable it with `{}`", lines(commands)))
}

fn lines(commands: &[ManagerCommand]) -> String {
    commands.iter().map(ManagerCommand::line).collect::<Vec<_>>().join(" && ")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn is_lingering() -> bool {
    let user = env::read("USER").and_then(|user| user.into_string().ok());
    user.is_some_and(|user| service::lingers(&user))
}

/// Says when the service starts, if the user's services end with the last login.
fn hint_linger() {
    if ServiceManager::of_platform() == ServiceManager::Systemd && !is_lingering() {
        output::hint("`loginctl enable-linger` also starts the teams at boot, before you log in");
    }
}
