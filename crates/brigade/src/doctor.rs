//! Diagnoses problems with teams and with the members on this host: detects each problem, explains its consequence
//! and proposes a fix.
//!
//! - `snapshot`: a read-only snapshot of all files and processes, taken once; `team_folder`: one team in the
//!   snapshot;
//! - `locks`, `file_checks`, `members`, `tasks`, `hosted`, `links`, `machine`: the checks;
//! - `nats`: checks for teams in a NATS store, and for the NATS server;
//! - `fix`: the automatic fixes, one safe step each; `guard`: keeps a member from starting during a fix; `anchored`:
//!   file operations that follow no links; `backup`: backups of changed files;
//! - `wording`: phrases that several checks share.
//!
//! To add a check, add a row to [`CHECKS`] and a function that reads the snapshot and reports findings. The
//! checks read files directly instead of through the file store, because the store repairs files and writes
//! journal records while it reads.
//!
//! Time passes between a check and its fix. Therefore [`reexamine`] runs the check of each fix again, right before the
//! fix is applied.

mod anchored;
pub(crate) mod backup;
mod file_checks;
pub(crate) mod fix;
pub(crate) mod guard;
mod hosted;
mod links;
mod locks;
pub(crate) mod machine;
mod members;
mod nats;
pub(crate) mod snapshot;
mod tasks;
mod team_folder;
mod wording;

use std::path::Path;

use serde::Serialize;
use serde::ser::SerializeStruct as _;

use self::CheckScope::{All, Files, ThisHost};
use self::fix::Fix;
use self::nats::NatsFinding;
use self::snapshot::DoctorSnapshot;

/// The kind of store to which a check applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckScope {
    /// Only teams in Claude Code's folder, and brigade's own files for these teams.
    Files,
    /// Teams in any store.
    All,
    /// This host, even if the store cannot be read.
    ThisHost,
}

/// A check for one kind of problem.
pub(crate) struct Check {
    /// The name of the problem.
    pub(crate) name: &'static str,
    /// The consequence of the problem.
    pub(crate) means: &'static str,
    scope: CheckScope,
    run: fn(&DoctorSnapshot, &mut Findings),
}

/// All checks. Fixes run in the order of their checks: those that repair files come before those that start or
/// stop processes.
#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "stale-lock", scope: Files, run: locks::stale,
        means: "its holder is gone; Claude Code 2.1.50 drops writes while the file is locked" },
    Check { name: "broken-lock", scope: Files, run: locks::broken,
        means: "a lock must be an empty folder; no program can take this one, so nothing can be written" },
    Check { name: "torn-file", scope: Files, run: file_checks::torn,
        means: "Claude Code treats it as empty and overwrites it" },
    Check { name: "big-inbox", scope: Files, run: file_checks::big,
        means: "Claude Code rereads the whole file again and again, and stalls near 1 MB" },
    Check { name: "split-team", scope: Files, run: file_checks::split,
        means: "Claude Code 2.1.50 keeps its roster in one folder and its mail and tasks in another" },
    Check { name: "no-config", scope: Files, run: file_checks::no_config,
        means: "the folder contains no team, so no program reads it" },
    Check { name: "left-over", scope: Files, run: file_checks::left_over,
        means: "a program was killed while writing; the file is no longer needed" },
    Check { name: "open-to-others", scope: Files, run: file_checks::open_to_others,
        means: "other users of this machine can read the members' messages" },
    Check { name: "foreign-file", scope: Files, run: file_checks::foreign,
        means: "brigade ignores links and files of other users" },
    Check { name: "unreadable-folder", scope: Files, run: file_checks::unreadable,
        means: "brigade can neither read nor write files in it" },
    Check { name: "read-only", scope: Files, run: file_checks::read_only,
        means: "teams can be read but not changed, and members cannot run" },
    Check { name: "board-without-team", scope: Files, run: file_checks::board_without_team,
        means: "deleting the team was interrupted; no member can use these tasks" },
    Check { name: "returned-member", scope: Files, run: members::returned,
        means: "it left, but a late write restored its roster entry; the team cannot be deleted" },
    Check { name: "ghost-member", scope: Files, run: members::ghosts,
        means: "others send it messages and wait for it, but it is not running" },
    Check { name: "stuck-active", scope: All, run: members::stuck_active,
        means: "it stays marked as active, so Claude Code refuses to delete the team" },
    Check { name: "failed-turn", scope: Files, run: members::failed_turn,
        means: "its last instructions were not carried out; it waits for the next message" },
    Check { name: "inbox-of-nobody", scope: Files, run: members::inbox_of_nobody,
        means: "messages were sent to a name that is not on the team; no member reads them" },
    Check { name: "long-wait", scope: Files, run: members::long_wait,
        means: "the member waits until its request is answered" },
    Check { name: "session-gone", scope: Files, run: members::session_gone,
        means: "its Claude Code session ended without deleting the team, which has no lead now" },
    Check { name: "invisible-task", scope: All, run: tasks::invisible,
        means: "Claude Code shows only tasks that have every field" },
    Check { name: "task-of-nobody", scope: All, run: tasks::of_nobody,
        means: "no member works on it, and no other member can claim it" },
    Check { name: "task-circle", scope: All, run: tasks::circles,
        means: "each of these tasks waits for the next one, so none can start" },
    Check { name: "lost-dependency", scope: All, run: tasks::lost_dependency,
        means: "a missing task counts as completed, so this task may start too early" },
    Check { name: "orphan-window", scope: ThisHost, run: hosted::windows,
        means: "the agent is still running after its member was removed" },
    Check { name: "orphan-process", scope: ThisHost, run: hosted::processes,
        means: "the agent is still running after its member was removed" },
    Check { name: "given-up", scope: ThisHost, run: hosted::given_up,
        means: "the supervisor no longer restarts it; its tasks are unassigned" },
    Check { name: "dead-member", scope: All, run: hosted::dead,
        means: "its mail waits, and nothing restarts it" },
    Check { name: "agent-failed", scope: Files, run: hosted::agent_failed,
        means: "it does no work; the next message starts its agent again" },
    Check { name: "future-key", scope: Files, run: hosted::future_key,
        means: "the clock was set back; Claude Code rejects its lead's messages" },
    Check { name: "no-supervisor", scope: ThisHost, run: hosted::no_supervisor,
        means: "members keep running, but those that die are not restarted" },
    Check { name: "team-gone", scope: All, run: hosted::team_gone,
        means: "its members should run on this host but have no team" },
    Check { name: "dead-link", scope: ThisHost, run: links::dead,
        means: "members on other hosts do not get this host's messages and tasks, nor the other way round" },
    Check { name: "open-worktree", scope: ThisHost, run: hosted::worktrees,
        means: "it takes disk space, and uncommitted work in it is easily forgotten" },
    Check { name: "old-agent", scope: ThisHost, run: machine::outdated,
        means: "brigade was tested with a later version and may misread the agent's output" },
    Check { name: "logged-out", scope: ThisHost, run: machine::logged_out,
        means: "its agent has no credentials, so its turns fail" },
    Check { name: "no-agent", scope: ThisHost, run: machine::missing,
        means: "the member cannot be started" },
    Check { name: "no-tmux", scope: ThisHost, run: machine::no_tmux,
        means: "members that run in a tmux window cannot be started" },
    Check { name: "team-file", scope: ThisHost, run: machine::team_file,
        means: "`brigade up` will refuse the file" },
    Check { name: "policy-file", scope: ThisHost, run: machine::policy_file,
        means: "no rule answers requests, so each of them waits for you" },
    Check { name: "settings", scope: ThisHost, run: machine::settings,
        means: "Claude Code starts its teammates without brigade, or not at all" },
];

/// A problem that a check found.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) means: &'static str,
    /// The file, member, task or host that has the problem.
    pub(crate) place: String,
    /// A description of the problem.
    pub(crate) what: String,
    pub(crate) cure: Cure,
}

/// How to solve a problem.
#[derive(Debug)]
pub(crate) enum Cure {
    /// `--fix` applies this fix.
    Automatic(Fix),
    /// A person has to solve the problem, with this advice.
    Manual(String),
}

impl Finding {
    /// Returns the advice, or what `--fix` would do, in one line.
    pub(crate) fn remedy(&self) -> String {
        match &self.cure {
            Cure::Automatic(fix) => fix.description().0,
            Cure::Manual(advice) => advice.clone(),
        }
    }

    /// Replaces an automatic fix with advice to apply it later, because fixes need the store.
    fn postpone(&mut self) {
        if let Cure::Automatic(fix) = &self.cure {
            let (will, _) = fix.description();
            self.cure = Cure::Manual(format!(
                "when the NATS server can be used again, run `brigade doctor --fix` to {will}"
            ));
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Finding", 6)?;
        document.serialize_field("check", self.check)?;
        document.serialize_field("place", &self.place)?;
        document.serialize_field("what", &self.what)?;
        document.serialize_field("means", self.means)?;
        document.serialize_field("fixable", &matches!(self.cure, Cure::Automatic(_)))?;
        document.serialize_field("remedy", &self.remedy())?;
        document.end()
    }
}

/// The problems that a check has found so far, each as place, description and cure.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<(String, String, Cure)>);

impl Findings {
    /// Adds a problem that `--fix` can fix.
    fn fixable(&mut self, place: impl ProblemPlace, what: impl Into<String>, fix: Fix) {
        self.0.push((place.text(), what.into(), Cure::Automatic(fix)));
    }

    /// Adds a problem that a person has to solve.
    fn advise(
        &mut self,
        place: impl ProblemPlace,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push((place.text(), what.into(), Cure::Manual(advice.into())));
    }

    /// Adds a problem with either kind of cure.
    fn add(&mut self, place: impl ProblemPlace, what: impl Into<String>, cure: Cure) {
        self.0.push((place.text(), what.into(), cure));
    }
}

/// Where a problem is: a path or a description.
trait ProblemPlace {
    fn text(self) -> String;
}

impl ProblemPlace for &Path {
    fn text(self) -> String {
        self.display().to_string()
    }
}

impl ProblemPlace for String {
    fn text(self) -> String {
        self
    }
}

/// Runs all checks.
pub(crate) fn examine(snapshot: &DoctorSnapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Check { name, means, run, .. } in checks(snapshot) {
        let mut found = Findings::default();
        run(snapshot, &mut found);
        let found = found.0.into_iter().map(|(place, what, cure)| Finding {
            check: name,
            means,
            place,
            what,
            cure,
        });
        findings.extend(found);
    }
    for NatsFinding { check, place, what, advice } in snapshot.nats_findings.iter().flatten() {
        let means = nats::CHECKS.iter().find(|(name, _)| name == check);
        findings.push(Finding {
            check,
            means: means.map(|(_, means)| *means).unwrap_or_default(),
            place: place.clone(),
            what: what.clone(),
            cure: Cure::Manual(advice.clone()),
        });
    }
    if snapshot.is_store_away {
        findings.iter_mut().for_each(Finding::postpone);
    }
    findings
}

/// Runs one check again, and returns its cure for the problem at this place; `None` if the problem is gone.
pub(crate) fn reexamine(snapshot: &DoctorSnapshot, check: &str, place: &str) -> Option<Cure> {
    let check = checks(snapshot).find(|other| other.name == check)?;
    let mut found = Findings::default();
    (check.run)(snapshot, &mut found);
    found.0.into_iter().find(|(other, ..)| other == place).map(|(_, _, cure)| cure)
}

/// Returns the checks that apply to the kind of store in this snapshot.
fn checks(snapshot: &DoctorSnapshot) -> impl Iterator<Item = &'static Check> {
    let uses_nats = snapshot.nats_findings.is_some();
    let is_away = snapshot.is_store_away;
    CHECKS.iter().filter(move |check| match check.scope {
        ThisHost => true,
        All => !is_away,
        Files => !uses_nats,
    })
}

/// Returns the number of checks that apply, including the checks of the NATS server.
pub(crate) fn count(snapshot: &DoctorSnapshot) -> usize {
    checks(snapshot).count() + snapshot.nats_findings.as_ref().map_or(0, |_| nats::CHECKS.len())
}
