//! The commands, one file each. They are thin wrappers around `brigade-core`. All decisions are made there, so
//! that every front end behaves the same.

mod agent_run;
mod agents;
mod answer;
mod approvals;
mod ask;
mod attach;
mod broadcast;
mod check;
mod claude_member;
mod complete;
mod completions;
mod credentials;
mod demo;
mod diff;
mod differences;
mod doctor;
mod down;
mod guard;
mod history;
mod inbox;
mod init;
mod link;
mod logs;
mod man;
mod mcp;
mod new;
#[cfg(feature = "nats")]
mod org;
mod overview;
mod play;
mod policy;
mod resume;
mod search;
mod send;
mod service;
mod spawn;
mod status;
mod steer;
#[cfg(feature = "nats")]
mod store;
mod task;
mod team;
mod teammate;
mod trust;
mod ui;
mod up;
mod use_team;
mod wait;
mod web;

#[cfg(all(test, feature = "nats"))]
pub(crate) use self::agents::capability_text as agent_capability_text;

pub(crate) use self::guard::GuardPlace;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::sync::Mutex;

use brigade_core::mail::Sent;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[cfg(feature = "nats")]
use crate::cli::StoreCommand;
use crate::cli::{Cli, CliCommand, Deferred, GlobalArgs, TaskCommand, UpArgs};
use crate::context::{CliContext, variable};
use crate::error::{CliError, failed};
use crate::location::{CONFIG_FILE, TeamFileSource, location};
use crate::{allocator, env, exit, output, pager};
use brigade_host::error::output_failed;
use brigade_host::location::Location;
#[cfg(feature = "nats")]
use brigade_host::store_choice::StoreChoice;
use brigade_host::{stopped, supervisor};

/// Runs a command and returns its exit code.
pub(crate) fn run(mut cli: Cli) -> Result<u8, CliError> {
    start_log()?;
    cli.global.home = home(&cli)?;
    // The dashboard shows its team, and other programs start the other commands.
    cli.global.is_silent = matches!(
        cli.command,
        Some(
            CliCommand::Ui(_)
                | CliCommand::Mcp
                | CliCommand::Play
                | CliCommand::Supervise
                | CliCommand::Teammate { .. }
                | CliCommand::Use(_)
                | CliCommand::Web(_)
        )
    );
    let mut runtime = match &cli.command {
        // Requests of several clients run at the same time.
        Some(CliCommand::Web(_)) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_time();
    let uses_nats = cli.global.home.nats().is_some();
    if uses_nats
        || matches!(
            cli.command,
            Some(
                CliCommand::Agents
                    | CliCommand::Attach(_)
                    | CliCommand::Demo(_)
                    | CliCommand::Doctor(_)
                    | CliCommand::Down(_)
                    | CliCommand::Interrupt(_)
                    | CliCommand::Link(_)
                    | CliCommand::Mcp
                    | CliCommand::Pause(_)
                    | CliCommand::Restart(_)
                    | CliCommand::Unpause(_)
                    | CliCommand::Play
                    | CliCommand::Resume(_)
                    | CliCommand::Spawn(_)
                    | CliCommand::Status(_)
                    | CliCommand::Stop(_)
                    | CliCommand::Supervise
                    | CliCommand::Teammate { .. }
                    | CliCommand::Ui(_)
                    | CliCommand::Up(_)
                    | CliCommand::Web(_)
            )
        )
    {
        runtime.enable_io();
    }
    #[cfg(feature = "nats")]
    if matches!(cli.command, Some(CliCommand::Org(_))) {
        runtime.enable_io();
    }
    let is_paged = !cli.global.json && !cli.global.no_pager && can_be_long(&cli.command);
    if is_paged {
        // The pager needs signals.
        runtime.enable_io();
        pager::start();
    }
    let runtime = build(&mut runtime)?;
    runtime.spawn(allocator::release_memory_periodically());
    let done = runtime.block_on(dispatch(cli));
    let shown = pager::finish().map_err(output_failed);
    done.and_then(|code| shown.map(|()| code))
}

/// Returns whether the output of a command can be longer than the terminal, and ends by itself.
fn can_be_long(command: &Option<CliCommand>) -> bool {
    match command {
        Some(CliCommand::Logs(logs)) => !logs.follow,
        Some(CliCommand::Inbox(Deferred(inbox))) => !inbox.follow,
        Some(CliCommand::Approvals(Deferred(asked))) => !asked.follow && !asked.watch,
        Some(CliCommand::Task(Deferred(args))) => matches!(
            args.command,
            None | Some(
                TaskCommand::List(_) | TaskCommand::Show { .. } | TaskCommand::Graph { .. }
            )
        ),
        Some(CliCommand::Diff(_) | CliCommand::Man { dir: None }) => true,
        _ => false,
    }
}

fn build(runtime: &mut tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, CliError> {
    runtime.build().map_err(|source| failed("start the runtime", source))
}

/// The first argument when brigade starts itself as the guard of an agent's program.
pub(crate) const GUARD: &str = "guard";

/// The first argument when brigade starts itself as the guard of a program that a person uses in this terminal.
pub(crate) const TERMINAL_GUARD: &str = "terminal-guard";

/// The first argument of the command that completes command lines.
pub(crate) const COMPLETE: &str = "__complete";

/// Completes a command line. `args` are the shell and the words.
pub(crate) fn run_complete(args: &[OsString]) -> Result<u8, CliError> {
    complete::run(args)
}

/// Runs a program under a guard. `program` is the program's name, followed by its arguments.
pub(crate) fn run_guard(program: &[OsString], place: GuardPlace) -> Result<u8, CliError> {
    build(tokio::runtime::Builder::new_current_thread().enable_all())?
        .block_on(guard::run(program, place))
}

/// Returns the store that holds the teams. `init`, and the commands that brigade or Claude Code starts, take
/// the store only from options and environment variables, never from a brigade.toml.
fn home(cli: &Cli) -> Result<Location, CliError> {
    match &cli.command {
        Some(
            CliCommand::Agents
            | CliCommand::Completions { .. }
            | CliCommand::Demo(_)
            | CliCommand::Man { .. }
            | CliCommand::New(_)
            | CliCommand::Trust(_),
        ) => Ok(Location::Files),
        Some(
            CliCommand::Init { .. }
            | CliCommand::Play
            | CliCommand::Supervise
            | CliCommand::Teammate { .. },
        ) => location(&cli.global, TeamFileSource::Ignored),
        #[cfg(feature = "nats")]
        Some(CliCommand::Store(Deferred(StoreCommand::Check { name: Some(name) }))) => {
            let store = Some(StoreChoice::Named(name.clone()));
            let global = GlobalArgs { store, ..cli.global.clone() };
            location(&global, TeamFileSource::CurrentFolder)
        }
        #[cfg(feature = "nats")]
        Some(CliCommand::Store(Deferred(command)))
            if !matches!(command, StoreCommand::Check { .. }) =>
        {
            Ok(Location::Files)
        }
        // These commands read the server addresses from the organisation's folder.
        #[cfg(feature = "nats")]
        Some(CliCommand::Org(command)) if !command.uses_store() => Ok(Location::Files),
        // `up --check` finds the brigade.toml and reports its mistakes itself.
        Some(CliCommand::Up(up)) if up.check => Ok(Location::Files),
        Some(CliCommand::Up(Deferred(UpArgs { file, .. }))) => {
            let file = file.clone().map_or_else(check::found, Ok)?;
            trust::require(cli.global.json, &file)?;
            location(&cli.global, TeamFileSource::File(&file))
        }
        _ => location(&cli.global, TeamFileSource::CurrentFolder),
    }
}

async fn dispatch(cli: Cli) -> Result<u8, CliError> {
    let global = cli.global;
    match cli.command {
        None => overview::run(&CliContext::reading(global).await?).await,
        Some(CliCommand::Team(Deferred(command))) => team::run(global, command).await,
        Some(CliCommand::Send { to, message }) => {
            changing(global, async |context| send::run(context, &to, message).await).await
        }
        Some(CliCommand::Broadcast { message }) => {
            changing(global, async |context| broadcast::run(context, message).await).await
        }
        Some(CliCommand::Ask(Deferred(args))) => {
            changing(global, async |context| ask::run(context, args).await).await
        }
        Some(CliCommand::Inbox(Deferred(args))) => {
            let context = CliContext::new(global).await?;
            explained(&context, async |context| inbox::run(context, args).await).await
        }
        Some(CliCommand::Logs(args)) => logs::run(&CliContext::reading(global).await?, &args).await,
        Some(CliCommand::Service(command)) => service::run(&global, &command),
        Some(CliCommand::Web(Deferred(args))) => web::run(global, args).await,
        Some(CliCommand::Use(args)) => {
            let named = global.team.is_some();
            use_team::run(&CliContext::reading(global).await?, &args, named).await
        }
        Some(CliCommand::Search(args)) => {
            search::run(&CliContext::reading(global).await?, &args).await
        }
        Some(CliCommand::Wait(Deferred(args))) => {
            let context = CliContext::reading(global).await?;
            explained(&context, async |context| wait::run(context, args.request()).await).await
        }
        Some(CliCommand::History(Deferred(command))) => {
            history::run(&CliContext::reading(global).await?, command).await
        }
        Some(CliCommand::Ui(Deferred(ui))) => {
            // A replay reads a journal file and needs no NATS server.
            let home = if ui.replay.is_some() { Location::Files } else { global.home };
            ui::run(CliContext::new(GlobalArgs { home, ..global }).await?, ui).await
        }
        Some(CliCommand::Attach(Deferred(args))) => {
            attach::run(CliContext::new(global).await?, args).await
        }
        Some(CliCommand::Task(Deferred(args))) => {
            changing(global, async |context| task::run(context, args.command).await).await
        }
        Some(CliCommand::Approvals(Deferred(asked))) => {
            approvals::run(&CliContext::new(global).await?, asked).await
        }
        Some(CliCommand::Approve(asked)) => {
            changing(global, async |context| answer::approve(context, &asked).await).await
        }
        Some(CliCommand::Deny(asked)) => {
            changing(global, async |context| answer::deny(context, &asked).await).await
        }
        Some(CliCommand::Policy(Deferred(command))) => {
            policy::run(&CliContext::reading(global).await?, command)
        }
        Some(CliCommand::Demo(Deferred(args))) => demo::run(global.json, args).await,
        Some(CliCommand::Agents) => agents::run(global.json).await,
        Some(CliCommand::Init { undo: true, .. }) => init::undo(&global),
        Some(CliCommand::Init { yes, undo: false }) => init::run(&global, yes),
        Some(CliCommand::New(Deferred(new))) => {
            new::run(&CliContext::reading(global).await?, new).await
        }
        Some(CliCommand::Trust(args)) => trust::run(global.json, &args),
        Some(CliCommand::Up(up)) if up.check => check::check(&global, up.file.as_deref()).await,
        Some(CliCommand::Mcp) => mcp::run(CliContext::new(global).await?).await,
        Some(CliCommand::Up(up)) => {
            let named = global.team.clone();
            changing(global, async |context| up::run(context, &up, named.as_ref()).await).await
        }
        Some(CliCommand::Link(Deferred(asked))) => link::run(global, asked).await,
        Some(CliCommand::Status(asked)) => {
            let team = asked.which.clone().or(global.team.clone());
            let global = GlobalArgs { team, ..global.at_once() };
            match CliContext::reading(global.clone()).await {
                Err(away) if away.is_unreachable() && !asked.metrics => {
                    status::local::run(&global, away)
                }
                context => status::run(&context?, &asked).await,
            }
        }
        Some(CliCommand::Doctor(Deferred(doctor))) => {
            let global = global.at_once();
            match CliContext::new(global.clone()).await {
                Err(away) if away.is_unreachable() => {
                    doctor::without_store(&global, &doctor, &away)
                }
                context => doctor::run(&context?, doctor).await,
            }
        }
        Some(CliCommand::Down(down)) => {
            let global = if down.how.now { global.at_once() } else { global };
            match CliContext::new(global.clone()).await {
                Err(away) if away.is_unreachable() => {
                    down::without_store(&global, &down, away).await
                }
                context => {
                    let context = context?;
                    let done = down::run(&context, &down).await;
                    warn_about_changes(&context);
                    done
                }
            }
        }
        Some(CliCommand::Diff(diff)) => diff::run(&CliContext::reading(global).await?, &diff).await,
        Some(CliCommand::Interrupt(who)) => {
            changing(global, async |context| steer::interrupt(context, &who).await).await
        }
        Some(CliCommand::Pause(who)) => {
            changing(global, async |context| steer::pause(context, &who, true).await).await
        }
        Some(CliCommand::Unpause(who)) => {
            changing(global, async |context| steer::pause(context, &who, false).await).await
        }
        Some(CliCommand::Restart(asked)) => {
            changing(global, async |context| steer::restart(context, &asked).await).await
        }
        Some(CliCommand::Stop(stop)) => {
            let global = if stop.how.now { global.at_once() } else { global };
            let stopped = changing(global, async |context| down::stop(context, &stop).await).await;
            stopped.map_err(|error| match error.is_unreachable() {
                true => error.hint(down::NOW_HINT),
                false => error,
            })
        }
        Some(CliCommand::Resume(resume)) => {
            changing(global, async |context| resume::run(context, &resume).await).await
        }
        Some(CliCommand::Supervise) => supervise(&CliContext::lasting(global).await?).await,
        Some(CliCommand::Play) => play::run(&CliContext::lasting(global).await?).await,
        #[cfg(feature = "nats")]
        Some(CliCommand::Org(Deferred(command))) => org::run(global, command).await,
        #[cfg(feature = "nats")]
        Some(CliCommand::Store(Deferred(command))) => store::run(global, command).await,
        Some(CliCommand::Spawn(spawn)) => spawn::run(&CliContext::new(global).await?, &spawn).await,
        Some(CliCommand::Teammate { arguments }) => teammate::run(global, arguments).await,
        Some(CliCommand::Completions { shell }) => completions::run(shell),
        Some(CliCommand::Man { dir }) => man::run(dir.as_deref()),
    }
}

/// Runs a command that changes teams. Then prints warnings about the changes, for example if a later step failed.
pub(crate) async fn changing(
    global: GlobalArgs,
    run: impl AsyncFnOnce(&CliContext) -> Result<u8, CliError>,
) -> Result<u8, CliError> {
    let context = CliContext::new(global).await?;
    let done = explained(&context, run).await;
    warn_about_changes(&context);
    done
}

/// Runs a command. If it fails because a member does not exist, the error says whether the member was stopped.
async fn explained(
    context: &CliContext,
    run: impl AsyncFnOnce(&CliContext) -> Result<u8, CliError>,
) -> Result<u8, CliError> {
    match run(context).await {
        Err(error) => Err(stopped::explain(context, error).await),
        done => done,
    }
}

pub(crate) fn warn_about_changes(context: &CliContext) {
    for note in context.change_notes() {
        output::warning(&note);
    }
}

/// Runs the supervisor, which logs to standard error.
async fn supervise(context: &CliContext) -> Result<u8, CliError> {
    let log = |line: &str| output::eprint_line(&format!("{} {line}", jiff::Timestamp::now()));
    let config = env::config_dir().map(|dir| dir.join(CONFIG_FILE));
    supervisor::run(context, config, &log).await?;
    Ok(exit::DONE)
}

/// Starts logging if `BRIGADE_LOG` is set. Otherwise logging costs nothing.
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
                failed(format!("open the log file {}", path.display()), source)
            })?;
            log.with(layer.with_writer(Mutex::new(file))).init();
        }
    }
    Ok(())
}

/// Prints a note if an acknowledged message will reach the recipient late, and returns the reason.
fn note_delay(sent: &Sent) -> Option<String> {
    let why = sent.caveat()?;
    output::note(&format!("stored; {why}"));
    Some(sent.receipt.pending.as_ref().map_or(why, ToString::to_string))
}
