//! Prints the progress of long operations on standard error.

use anstyle::Style;
use brigade_core::pulse::Liveness;
use brigade_core::text::one_line;
use brigade_host::progress::{Ended, Progress};
use brigade_host::worktree::Removed;

use crate::output::{self, BUSY, ERROR, FAINT, READY};

/// Prints one step.
pub(crate) fn print(progress: Progress) {
    match progress {
        Progress::Member { name, liveness, evidence } => {
            let (style, word, evidence) = (style(liveness), liveness.word(), one_line(&evidence));
            output::say(&format!("{name}: {style}{word}{style:#} {FAINT}({evidence}){FAINT:#}"));
        }
        Progress::AskedToStop(name, limit) => {
            step(name, &format!("asked to stop, within {} s", limit.as_secs()));
        }
        Progress::Refuses(name, why) => {
            step(name, &format!("would rather stay: {}", one_line(&why)));
        }
        Progress::ToldToEnd(name) => step(name, &format!("{BUSY}told to end{BUSY:#}")),
        Progress::WorktreeKept(name, Removed::Stays, tree) => {
            let dir = tree.dir.display();
            step(
                name,
                &format!("its worktree has changes that are not committed, and stays: {dir}"),
            );
        }
        Progress::WorktreeKept(name, Removed::Unclear, tree) => {
            let dir = tree.dir.display();
            step(name, &format!("git cannot look at its worktree, which stays: {dir}"));
        }
        Progress::WorktreeKept(name, _, tree) => {
            step(name, &format!("its branch {} has commits, and stays", tree.branch));
        }
        Progress::Ended(name, Ended::Agreed) => step(name, "has left"),
        Progress::Ended(name, Ended::WasGone) => step(name, "was gone already"),
        Progress::Ended(name, Ended::Forced) => step(name, "ended"),
        Progress::Ended(name, Ended::Refused(why)) => {
            step(name, &format!("stays: {}", one_line(&why)));
        }
        Progress::RunsElsewhere(name, host) => {
            output::note(&format!("{name} runs on {host}, and is not started here"));
        }
        Progress::StaysElsewhere(name, host, team) => {
            output::note(&format!("{name} runs on {host}; team {team} stays for it"));
        }
        Progress::NotInstalled(what, remedy) => {
            output::note(&format!("not installed here: {what}; {remedy}"));
        }
        Progress::Restored(team, members, tasks, messages) => output::say(&format!(
            "team {team} was gone, and is back: {members} members, {tasks} tasks, {messages} messages nobody \
             had read"
        )),
        Progress::NativeNotRestored(name) => output::note(&format!(
            "{name} was Claude Code's own and stays away; `brigade spawn {name} --agent claude` puts \
             another in its place"
        )),
        Progress::LeadDoesNotListen(team, name) => output::note(&format!(
            "the lead of team {team} reads its mail only while a teammate that it started itself is \
             there; until then what {name} writes to it waits in its inbox"
        )),
        Progress::WaitingForServer(servers) => {
            output::say(&format!("waiting for {} to answer", servers.join(", ")));
        }
    }
}

fn step(name: impl std::fmt::Display, what: &str) {
    output::say(&format!("{FAINT}{name}:{FAINT:#} {what}"));
}

/// The colour of a state.
pub(crate) fn style(liveness: Liveness) -> Style {
    match liveness {
        Liveness::Idle => READY,
        Liveness::Working | Liveness::Waiting | Liveness::Limited => BUSY,
        Liveness::Hung | Liveness::Dead => ERROR,
        Liveness::Starting => FAINT,
    }
}
