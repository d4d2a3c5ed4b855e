//! The commands, one file each. Each is a few lines over `brigade-core`: what can be done is decided
//! there, so that no two front ends disagree.

mod agents;
mod answer;
mod approvals;
mod broadcast;
mod check;
mod completions;
mod diff;
mod doctor;
mod down;
mod guard;
mod inbox;
mod init;
mod log;
mod man;
mod mcp;
mod new;
mod overview;
mod play;
mod resume;
mod send;
mod spawn;
mod status;
mod task;
mod team;
mod teammate;
mod up;

use std::fs::OpenOptions;
use std::sync::Mutex;

use brigade_core::handshake::Answer;
use brigade_core::mail::Sent;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, Command};
use crate::context::{Context, variable};
use crate::error::{CliError, Trouble};
use crate::host::supervisor;
use crate::{env, output};

/// Does what the command line says, and gives the exit code.
pub(crate) fn run(cli: Cli) -> Result<u8, CliError> {
    start_log()?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time();
    if matches!(
        cli.command,
        Some(
            Command::Agents
                | Command::Doctor(_)
                | Command::Down(_)
                | Command::Guard { .. }
                | Command::Mcp
                | Command::Play
                | Command::Resume(_)
                | Command::Spawn(_)
                | Command::Stop(_)
                | Command::Supervise
                | Command::Teammate { .. }
                | Command::Up(_)
        )
    ) {
        runtime.enable_io();
    }
    let runtime = runtime.build().map_err(|source| {
        let doing = "start the runtime".into();
        CliError::failed(Trouble::Io { doing, source })
    })?;
    runtime.block_on(dispatch(cli))
}

async fn dispatch(cli: Cli) -> Result<u8, CliError> {
    let global = cli.global;
    match cli.command {
        None => overview::run(&Context::glancing(global)?).await,
        Some(Command::Team(command)) => team::run(global, command).await,
        Some(Command::Send { to, words }) => send::run(&Context::new(global)?, &to, words).await,
        Some(Command::Broadcast { words }) => broadcast::run(&Context::new(global)?, words).await,
        Some(Command::Inbox { name, unread, mark_read }) => {
            let context = Context::new(global)?;
            inbox::run(&context, name, inbox::Choice { unread, mark_read }).await
        }
        Some(Command::Log { follow }) => log::run(&Context::glancing(global)?, follow).await,
        Some(Command::Task(command)) => task::run(&Context::new(global)?, command).await,
        Some(Command::Approvals(asked)) => {
            approvals::run(&Context::new(global)?, asked.follow).await
        }
        Some(Command::Approve(asked)) => {
            answer::run(&Context::new(global)?, &asked.which, Answer::Yes).await
        }
        Some(Command::Deny(asked)) => {
            let no = Answer::No(&asked.reason);
            answer::run(&Context::new(global)?, &[asked.which], no).await
        }
        Some(Command::Agents) => agents::run(global.json).await,
        Some(Command::Init { undo: true, .. }) => init::undo(global.json),
        Some(Command::Init { yes, undo: false }) => init::run(global, yes),
        Some(Command::New(new)) => new::run(global.json, new),
        Some(Command::Up(up)) if up.check => check::check(global.json, up.file.as_deref()),
        Some(Command::Mcp) => mcp::run(&Context::new(global)?).await,
        Some(Command::Up(up)) => up::run(&Context::new(global)?, &up).await,
        Some(Command::Status) => status::run(&Context::glancing(global)?).await,
        Some(Command::Doctor(doctor)) => doctor::run(&Context::new(global)?, doctor).await,
        Some(Command::Down(down)) => down::run(&Context::new(global)?, &down).await,
        Some(Command::Diff { name, stat }) => diff::run(&Context::glancing(global)?, &name, stat),
        Some(Command::Stop(stop)) => down::stop(&Context::new(global)?, &stop).await,
        Some(Command::Resume(resume)) => resume::run(&Context::new(global)?, &resume).await,
        Some(Command::Supervise) => supervisor::run(&Context::new(global)?).await,
        Some(Command::Play) => play::run(&Context::new(global)?).await,
        Some(Command::Spawn(spawn)) => spawn::run(&Context::new(global)?, &spawn).await,
        Some(Command::Teammate { arguments }) => teammate::run(global, arguments).await,
        Some(Command::Guard { program }) => guard::run(&program).await,
        Some(Command::Completions { shell }) => completions::run(shell),
        Some(Command::Man { dir }) => man::run(dir.as_deref()),
    }
}

/// Starts logging, if somebody asked for it; nobody else pays for it.
fn start_log() -> Result<(), CliError> {
    let filter = variable(env::LOG, str::parse::<Targets>)?;
    let Some(filter) = filter else { return Ok(()) };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    let log = tracing_subscriber::registry().with(filter);
    match env::read(env::LOG_FILE) {
        None => log.with(layer.with_writer(std::io::stderr)).init(),
        Some(path) => {
            let file = OpenOptions::new().append(true).create(true).open(&path);
            let file = file.map_err(|source| {
                let doing = format!("open the log file {}", path.display());
                CliError::failed(Trouble::Io { doing, source })
            })?;
            log.with(layer.with_writer(Mutex::new(file))).init();
        }
    }
    Ok(())
}

/// Why an acknowledged message is not where it is read; says so on standard error.
fn waits(sent: &Sent) -> Option<String> {
    let why = sent.caveat()?;
    output::note(&format!("acknowledged; {why}"));
    Some(sent.receipt.waits.as_ref().map_or(why, ToString::to_string))
}
