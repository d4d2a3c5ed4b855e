//! Asks the programs of agents whether a person has logged in, before a member fails in its first turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use brigade_agents::driver::{self, Agent, LoginCheck, LoginProbe, LoginState};
use brigade_wire::name::MemberName;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::empty_folder::private_empty_folder;
use crate::installed::Programs;
use crate::spec::MemberSpec;

/// How long a program may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a program may take to end after the end of its input, before it is killed.
const END_WITHIN: Duration = Duration::from_millis(500);
/// The largest answer that is read, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Names and values of environment variables.
pub type EnvVariables = Vec<(OsString, OsString)>;

/// The environment in which agents run, as the front end knows it.
pub struct LoginSettings<'s> {
    /// The search path and the variables that locate programs.
    pub programs: &'s Programs,
    /// Returns the variables that a member with this agent inherits. The second argument is the list of its team file.
    pub inherited: fn(&Agent, Option<&[String]>) -> EnvVariables,
    /// Returns the arguments that the person adds to the program of the agent with this name.
    pub arguments: fn(&str) -> Vec<String>,
    /// The folder for temporary files. Programs that are asked for no member run in an empty folder in it.
    pub temp_dir: PathBuf,
}

/// A question to the program of an agent.
struct LoginQuery {
    agent: Agent,
    program: PathBuf,
    arguments: Vec<String>,
    variables: EnvVariables,
    /// The folder of the member, or the folder of the person.
    folder: PathBuf,
    /// Whether the question is for a member, which would run the program in its folder.
    is_for_member: bool,
    temp_dir: PathBuf,
}

/// The answer about the agent of some members.
#[derive(Clone, Debug)]
pub struct MemberLogin {
    /// The agent.
    pub agent: Agent,
    /// The members with this agent, in the same environment.
    pub members: Vec<MemberName>,
    /// Whether a person has logged in.
    pub state: LoginState,
}

/// Returns the word for a state in JSON.
pub fn state_key(state: LoginState) -> &'static str {
    match state {
        LoginState::LoggedOut => "logged_out",
        LoginState::Present => "credentials_present",
        LoginState::Unknown => "unknown",
    }
}

/// Asks the installed programs of these agents, all at the same time. The answers have the order of `agents`; for an agent that is
/// not installed, the answer is `None`.
pub async fn check_agents(
    settings: &LoginSettings<'_>,
    agents: &[Agent],
    folder: &Path,
) -> Vec<Option<LoginState>> {
    let query = |agent: &Agent| {
        let program = settings.programs.program(agent)?;
        let query = settings.query(*agent, program, None, folder);
        Some(LoginQuery { is_for_member: false, ..query })
    };
    ask_all(agents.iter().map(query).collect()).await
}

/// Asks the programs of these members' agents, all at the same time. Members with the same program and variables share one
/// question. Leaves out members whose program is not installed or cannot be asked.
pub async fn check_members(
    settings: &LoginSettings<'_>,
    members: impl IntoIterator<Item = &MemberSpec>,
) -> Vec<MemberLogin> {
    let mut shared: Vec<(LoginQuery, Vec<MemberName>)> = Vec::new();
    for spec in members {
        let Some(choice) = driver::agent(&spec.agent) else { continue };
        let program = match &spec.program {
            Some(program) => settings.programs.find(program.as_os_str()),
            None => settings.programs.program(&choice.agent),
        };
        let Some(program) = program.filter(|_| !driver::is_command(&spec.agent)) else { continue };
        let query = settings.query(choice.agent, program, spec.env.as_deref(), &spec.cwd);
        let is_same = |(other, _): &&mut (LoginQuery, Vec<MemberName>)| {
            other.program == query.program
                && other.variables == query.variables
                && other.folder == query.folder
        };
        match shared.iter_mut().find(is_same) {
            Some((_, names)) => names.push(spec.name.clone()),
            None => shared.push((query, vec![spec.name.clone()])),
        }
    }
    let agents: Vec<(Agent, Vec<MemberName>)> =
        shared.iter().map(|(query, names)| (query.agent, names.clone())).collect();
    let states = ask_all(shared.into_iter().map(|(query, _)| Some(query)).collect()).await;
    let found = agents.into_iter().zip(states.into_iter().flatten());
    found.map(|((agent, members), state)| MemberLogin { agent, members, state }).collect()
}

impl LoginSettings<'_> {
    fn query(
        &self,
        agent: Agent,
        program: PathBuf,
        listed: Option<&[String]>,
        folder: &Path,
    ) -> LoginQuery {
        LoginQuery {
            agent,
            program,
            arguments: (self.arguments)(agent.name),
            variables: (self.inherited)(&agent, listed),
            folder: folder.to_owned(),
            is_for_member: true,
            temp_dir: self.temp_dir.clone(),
        }
    }
}

async fn ask_all(queries: Vec<Option<LoginQuery>>) -> Vec<Option<LoginState>> {
    let mut states: Vec<Option<LoginState>> = Vec::new();
    let mut running = JoinSet::new();
    for (at, query) in queries.into_iter().enumerate() {
        states.push(query.as_ref().map(|_| LoginState::Unknown));
        if let Some(query) = query {
            running.spawn(async move { (at, ask(&query).await) });
        }
    }
    while let Some(answer) = running.join_next().await {
        if let Ok((at, state)) = answer
            && let Some(known) = states.get_mut(at)
        {
            *known = Some(state);
        }
    }
    states
}

/// Asks one program. Whatever goes wrong, the answer is unknown.
async fn ask(query: &LoginQuery) -> LoginState {
    let (arguments, environment, is_neutral) = match &query.agent.login_check {
        LoginCheck::Command { arguments, .. } => (*arguments, &[][..], !query.is_for_member),
        LoginCheck::CodexAccount => (&["app-server"][..], &[][..], !query.is_for_member),
        // The program would leave the record of an empty session among those of the member's folder.
        LoginCheck::AcpSession { arguments, environment, .. } => (*arguments, *environment, true),
        LoginCheck::None => return LoginState::Unknown,
    };
    let folder = match is_neutral {
        true => private_empty_folder(&query.temp_dir),
        false => Ok(query.folder.clone()),
    };
    let folder = match folder {
        Ok(folder) => folder,
        Err(error) => {
            tracing::warn!(%error, "cannot create a folder to ask {} in", query.agent.name);
            return LoginState::Unknown;
        }
    };
    let mut command = Command::new(&query.program);
    command.args(&query.arguments).args(arguments);
    command.env_clear().envs(query.variables.iter().cloned()).envs(environment.iter().copied());
    command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.process_group(0).kill_on_drop(true).spawn() else {
        return LoginState::Unknown;
    };
    let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let probe = LoginProbe::new(&query.agent.login_check, &folder.to_string_lossy());
    let answer = async {
        match (probe, &query.agent.login_check) {
            (Some(probe), _) => converse(&mut child, probe).await,
            (None, LoginCheck::Command { read, .. }) => {
                let (code, output) = run_to_end(&mut child).await?;
                Some(read(code, &output))
            }
            _ => None,
        }
    };
    let answer = timeout(ANSWER_WITHIN, answer).await.ok().flatten();
    // Most programs end with their input, and clean up.
    drop(child.stdin.take());
    let _still_running = timeout(END_WITHIN, child.wait()).await;
    drop(group);
    match answer.unwrap_or(LoginState::Unknown) {
        LoginState::LoggedOut if has_project_files(query) => LoginState::Unknown,
        state => state,
    }
}

/// Returns whether the member's folder, or one above it, has a file that could contain credentials for this agent.
fn has_project_files(query: &LoginQuery) -> bool {
    let LoginCheck::AcpSession { project_files, .. } = &query.agent.login_check else {
        return false;
    };
    let home = query.variables.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home);
    // The program reads the files in the home directory in any case.
    let is_home = |folder: &Path| home.is_some_and(|home| folder == Path::new(home));
    let mut folders = query.folder.ancestors().take_while(|folder| !is_home(folder));
    folders.any(|folder| project_files.iter().any(|file| folder.join(file).exists()))
}

/// Kills the processes of a group when it is dropped.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _already_gone = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn converse(child: &mut Child, mut probe: LoginProbe) -> Option<LoginState> {
    let mut output = child.stdout.take()?;
    let mut buffer = vec![0; 16 * 1024];
    let mut total = 0;
    loop {
        while let Some(bytes) = probe.next_write() {
            let input = child.stdin.as_mut()?;
            input.write_all(&bytes).await.ok()?;
            input.flush().await.ok()?;
        }
        let read = output.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        total += read;
        if total > MAX_OUTPUT {
            return None;
        }
        if let Some(state) = probe.on_output(buffer.get(..read)?) {
            return Some(state);
        }
    }
}

/// Returns the exit code of a program and what it printed.
async fn run_to_end(child: &mut Child) -> Option<(i32, String)> {
    drop(child.stdin.take());
    let mut output = child.stdout.take()?.take(u64::try_from(MAX_OUTPUT).ok()?);
    let mut text = Vec::new();
    // A child of the program may keep the pipe open, so also stop reading when the program has exited.
    let code = tokio::select! {
        _all = output.read_to_end(&mut text) => child.wait().await.ok()?.code()?,
        status = child.wait() => {
            let code = status.ok()?.code()?;
            tokio::select! {
                _rest = output.read_to_end(&mut text) => {}
                () = sleep(Duration::from_millis(50)) => {}
            }
            code
        }
    };
    Some((code, String::from_utf8_lossy(&text).into_owned()))
}
