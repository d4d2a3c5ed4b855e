//! `brigade attach --takeover`: continues a member's session in the agent's own program.

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdin, stdout};
use std::time::Duration;

use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_core::text::one_line;
use brigade_host::down;
use brigade_host::state::{self, StateSummary};
use brigade_host::steer::{self, HandedOver};
use brigade_wire::name::MemberName;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::commands::TERMINAL_GUARD;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, failed};
use crate::output::{self, FAINT, STRONG};
use crate::slow_notice::with_notice;
use crate::{env, exit};

/// How long a member may take to continue its session. Gemini CLI may have to wait for the next minute.
const CONTINUES_WITHIN: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The variables that describe the terminal. The agent's program gets them from this process, all others from the member.
const TERMINAL_VARIABLES: [&str; 9] = [
    "TERM",
    "COLORTERM",
    "COLORFGBG",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TMUX",
    "TMUX_PANE",
    "NO_COLOR",
    "LC_TERMINAL",
];

/// Shows the cursor, and ends the reporting of the mouse, of pastes and of the focus, which a killed program leaves on.
const RESET_TERMINAL: &[u8] =
    b"\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[0m";
/// Leaves the alternate screen, and the keyboard mode of some terminals.
const LEAVE_SCREEN: &[u8] = b"\x1b[<u\x1b[?1049l";

pub(super) async fn run(context: &CliContext, name: &MemberName) -> Result<u8, CliError> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let error = CliError::usage(CliTrouble::NoTerminal);
        return Err(error.hint(format!(
            "`brigade logs --member {name} --work -f` prints the member's transcript"
        )));
    }
    let lead = context.seat_of(down::team_of_stopped(context).await?, MemberName::lead());
    let notice = format!("waiting for the end of {name}'s turn (ctrl-c cancels)");
    let taken = with_notice(&notice, steer::hand_over(context, &lead, name)).await?;
    let title = taken.command.title.clone();
    announce(name, &taken);
    let code = use_program(&taken).await?;
    if code != Some(0) {
        output::note(&format!("{title} ended {}", how_ended(code)));
    }
    output::eprint_line(&format!("{name} continues the session …"));
    drop(taken);
    until_continued(context, &lead, name).await
}

/// Prints what opens, how to leave it, and what happens then.
fn announce(name: &MemberName, taken: &HandedOver) {
    let command = &taken.command;
    let program = std::path::Path::new(&command.program).file_name().unwrap_or(&command.program);
    let words = std::iter::once(program).chain(command.args.iter().map(OsString::as_os_str));
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let (title, words) = (&command.title, one_line(&words.join(" ")));
    output::eprint_line(&format!(
        "{STRONG}{title}{STRONG:#} opens {name}'s session {FAINT}({words}){FAINT:#}"
    ));
    output::eprint_line("Leave it with its own command, such as /quit.");
    output::eprint_line(&format!(
        "Then {name} continues the session, with the mail that came meanwhile."
    ));
}

fn how_ended(code: Option<i32>) -> String {
    code.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"))
}

/// Runs the agent's program in this terminal until it ends. Returns its exit code.
async fn use_program(taken: &HandedOver) -> Result<Option<i32>, CliError> {
    let listen = |kind| signal(kind).map_err(|source| failed("listen for signals", source));
    // Ctrl-c is for the agent's program.
    let _for_the_program = (listen(SignalKind::interrupt())?, listen(SignalKind::quit())?);
    let (mut terminate, mut hang_up) =
        (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    let attributes = tcgetattr(stdin());
    let mut guard = start_guard(taken)?;
    let status = loop {
        tokio::select! {
            status = guard.wait() => break status,
            _ = terminate.recv() => end_guard(&guard),
            _ = hang_up.recv() => end_guard(&guard),
        }
    };
    let code = status.map_err(|source| failed("wait for the agent's program", source))?.code();
    if let Ok(attributes) = attributes {
        let _gone = tcsetattr(stdin(), OptionalActions::Now, &attributes);
    }
    let leave = if code == Some(0) { &[][..] } else { LEAVE_SCREEN };
    output::print_raw(&[RESET_TERMINAL, leave].concat())?;
    Ok(code)
}

/// Starts the agent's program under a guard, which ends the program if this process is killed. Both inherit the lock of the
/// session, so the member does not continue the session before both have ended.
fn start_guard(taken: &HandedOver) -> Result<Child, CliError> {
    let command = &taken.command;
    let itself = std::env::current_exe();
    let itself = itself.map_err(|source| failed("find the brigade program", source))?;
    taken.lock.share_with_programs().map_err(|source| failed("share the lock", source))?;
    let terminal = TERMINAL_VARIABLES.iter().map(|name| (*name, env::read(name)));
    let mut guard = Command::new(itself);
    guard
        .arg(TERMINAL_GUARD)
        .arg(&command.program)
        .args(&command.args)
        .current_dir(&command.cwd)
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)));
    for (name, value) in terminal {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    let program = command.program.to_string_lossy().into_owned();
    guard.spawn().map_err(|source| failed(format!("start {program}"), source))
}

fn end_guard(guard: &Child) {
    let pid = guard.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _gone = kill_process(pid, Signal::TERM);
    }
}

/// Waits until the member's agent has resumed the session, and prints the state of the member.
async fn until_continued(
    context: &CliContext,
    lead: &Seat,
    name: &MemberName,
) -> Result<u8, CliError> {
    let began = Instant::now();
    loop {
        let summary = state::member_summary(&context.host()?, lead, name, None).await?;
        let words = one_line(&summary.words);
        if has_continued(&summary) {
            output::print(&format!("{STRONG}{name}{STRONG:#}: {words}\n"))?;
            return Ok(exit::DONE);
        }
        if began.elapsed() > CONTINUES_WITHIN {
            output::note(&format!("{name} has not continued yet ({words}); see `brigade status`"));
            return Ok(exit::UNCONFIRMED);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn has_continued(summary: &StateSummary) -> bool {
    match summary.liveness {
        None | Some(Liveness::Starting) => false,
        Some(Liveness::Paused) => !summary.words.starts_with("used in a terminal"),
        Some(_) => true,
    }
}
