//! Prints the progress of long operations on standard error.

use anstyle::Style;
use brigade_core::pulse::Liveness;
use brigade_core::text::{self, one_line};
use brigade_host::progress::{Ended, Progress};
use brigade_host::worktree::Removed;

use crate::output::{self, BUSY, ERROR, FAINT, READY};

/// Prints one step of an operation.
pub(crate) fn print(progress: Progress) {
    match progress {
        Progress::Member { name, liveness, evidence } => {
            let (style, word, evidence) = (style(liveness), liveness.label(), one_line(&evidence));
            output::eprint_line(&format!(
                "{name}: {style}{word}{style:#} {FAINT}({evidence}){FAINT:#}"
            ));
        }
        Progress::AskedToStop(name, limit) => {
            step(name, &format!("asked to stop within {} s", limit.as_secs()));
        }
        Progress::CannotAnswer(name, why) => {
            let why = one_line(&why);
            step(name, &format!("cannot answer a request to stop, so it is ended now: {why}"));
        }
        Progress::Refuses(name, why) => {
            step(name, &format!("refuses to stop: {}", one_line(&why)));
        }
        Progress::ToldToEnd(name) => step(name, &format!("{BUSY}stopping{BUSY:#}")),
        Progress::WorktreeKept(name, Removed::Stays, tree) => {
            let dir = tree.dir.display();
            step(name, &format!("kept its worktree because it has uncommitted changes: {dir}"));
        }
        Progress::WorktreeKept(name, Removed::Unclear, tree) => {
            let dir = tree.dir.display();
            step(name, &format!("kept its worktree because git cannot read it: {dir}"));
        }
        Progress::WorktreeKept(name, Removed::Unfinished, tree) => {
            let dir = tree.dir.display();
            step(
                name,
                &format!("kept its worktree because a merge or rebase is not finished: {dir}"),
            );
        }
        Progress::WorktreeKept(name, Removed::Ignored(files), tree) => {
            let (dir, files) = (tree.dir.display(), ignored_files(&files));
            step(
                name,
                &format!(
                    "kept its worktree because git ignores {files} (remove it with --discard): {dir}"
                ),
            );
        }
        Progress::WorktreeKept(name, Removed::NewBranch(branch), _) => {
            step(name, &format!("its commits were on no branch; they are now on {branch}"));
        }
        Progress::WorktreeKept(name, _, tree) => {
            step(name, &format!("kept its branch {} because it has commits", tree.branch));
        }
        Progress::Ended(name, Ended::Agreed | Ended::Forced) => step(name, "stopped"),
        Progress::Ended(name, Ended::WasGone) => step(name, "was not running"),
        Progress::Ended(name, Ended::Refused(why)) => {
            step(name, &format!("refused to stop and stays: {}", one_line(&why)));
        }
        Progress::HasUnreadMail(name, unread) => {
            let unread = text::count(unread, "unread message");
            output::note(&format!("{name} has {unread} from before it was stopped"));
        }
        Progress::RunsElsewhere(name, host) => {
            output::note(&format!("{name} runs on {host} and is not started here"));
        }
        Progress::StaysElsewhere(name, host, team) => {
            output::note(&format!("{name} runs on {host}, so team {team} is not deleted"));
        }
        Progress::NotInstalled(what, remedy) => {
            output::note(&format!("not installed here: {what}; {remedy}"));
        }
        Progress::Restored(team, members, tasks, messages) => output::eprint_line(&format!(
            "restored team {team} from the journal: {}, {}, {}",
            text::count(members, "member"),
            text::count(tasks, "task"),
            text::count(messages, "unread message")
        )),
        Progress::NativeNotRestored(name) => output::note(&format!(
            "did not restart {name}, which Claude Code ran itself; `brigade spawn {name} --agent claude` \
             replaces it"
        )),
        Progress::RemoteNotRestored(name) => output::note(&format!(
            "did not restart {name}, which runs on another host; start it there with `brigade resume`"
        )),
        Progress::CommandNotRestored(name, agent) => output::note(&format!(
            "did not restart {name}: its command {agent:?} was never started on this host; if you \
             trust the command, start the member with `brigade spawn {name} --agent …`"
        )),
        Progress::LeadDoesNotListen(team, name) => output::note(&format!(
            "the lead of team {team} reads its mail only while a teammate that it started itself is \
             running; until then messages from {name} wait in the lead's inbox"
        )),
        Progress::WaitingForCommand(team, pid) => {
            let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            output::eprint_line(&format!(
                "waiting for another `brigade up` or `brigade down` of team {team}{process}"
            ));
        }
        Progress::StoppingInterrupted(team) => output::note(&format!(
            "interrupted: stopping team {team}; press Ctrl-C again to kill its members"
        )),
        Progress::KillingInterrupted(team) => output::note(&format!(
            "interrupted again: killing the members of team {team}; press Ctrl-C again to leave at once"
        )),
        Progress::KeyWasAhead(name, made) => output::note(&format!(
            "the key of {name} was from {made}, which is later than now; it was dated again, so that {name} \
             accepts messages from its lead"
        )),
        Progress::LinkStarts(team, servers) => {
            step(
                team,
                &format!("waiting for the first synchronization with {}", servers.join(", ")),
            );
        }
        Progress::NewCredentials(file) => output::note(&format!(
            "the earlier credentials of this host cannot be used any more; its supervisor and members restart with {}",
            file.display()
        )),
        Progress::WaitingForServer(servers, limit) => {
            let limit = match limit.as_secs() {
                0 => String::new(),
                secs => format!(" (up to {secs} s; `--wait=0` fails at once)"),
            };
            output::eprint_line(&format!("waiting for {} to answer{limit}", servers.join(", ")));
        }
    }
}

fn step(name: impl std::fmt::Display, what: &str) {
    output::eprint_line(&format!("{FAINT}{name}:{FAINT:#} {what}"));
}

/// Returns the colour for a member's state.
pub(crate) fn style(liveness: Liveness) -> Style {
    match liveness {
        Liveness::Idle => READY,
        Liveness::Working | Liveness::Waiting | Liveness::Limited => BUSY,
        Liveness::Hung | Liveness::Dead => ERROR,
        Liveness::Starting | Liveness::Paused => FAINT,
    }
}

/// Lists the first files that git ignores.
fn ignored_files(files: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = files.iter().take(SHOWN).map(|file| one_line(file)).collect();
    match files.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
