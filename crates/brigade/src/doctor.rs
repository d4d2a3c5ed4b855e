//! What can go wrong with teams and with the members of this host: how it is noticed, what it means, and
//! what mends it.
//!
//! - `house`: everything there is, read once, by nothing that would change it;
//! - `locks`, `papers`, `members`, `tasks`, `hosted`, `machine`: the checks;
//! - `engine`: teams that live in an engine, and the engine itself;
//! - `deed`: what mends, one safe step each; `aside`: where what was there is kept.
//!
//! To add a check: a row in [`CHECKS`], and a function beside the others that looks at the house and
//! tells what it finds. A store on files is not asked here, for it mends and writes down as it looks.

pub(crate) mod backup;
mod file_checks;
pub(crate) mod fix;
mod hosted;
mod locks;
mod machine;
mod members;
mod nats;
pub(crate) mod snapshot;
mod tasks;

use std::path::Path;

use serde::Serialize;
use serde::ser::SerializeStruct as _;

use self::Of::{All, Files};
use self::fix::Deed;
use self::nats::Ill;
use self::snapshot::House;

/// Where something can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// In Claude Code's folder, and what brigade has beside it.
    Files,
    /// Wherever teams live.
    All,
}

/// One thing that can be wrong.
pub(crate) struct Check {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What comes of it.
    pub(crate) means: &'static str,
    /// Where it can be wrong.
    of: Of,
    look: fn(&House, &mut Found),
}

/// Everything that is looked for. What one deed mends another check may not find any more, so what
/// mends files stands before what starts and ends processes.
#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "stale-lock", of: Files, look: locks::stale,
        means: "its holder is gone; Claude Code 2.1.50 drops what it cannot write at once" },
    Check { name: "broken-lock", of: Files, look: locks::broken,
        means: "a lock is an empty folder; no program can ever take this one, so nothing is written" },
    Check { name: "torn-file", of: Files, look: file_checks::torn,
        means: "Claude Code takes it for empty, and writes over it what it has" },
    Check { name: "big-inbox", of: Files, look: file_checks::big,
        means: "Claude Code reads all of it again and again, and stalls when it is near 1 MB" },
    Check { name: "split-team", of: Files, look: file_checks::split,
        means: "Claude Code 2.1.50 has its roster in one folder and its mail and tasks in another" },
    Check { name: "no-config", of: Files, look: file_checks::no_config,
        means: "there is a folder and no team in it; nobody reads what is there" },
    Check { name: "left-over", of: Files, look: file_checks::left_over,
        means: "a program was killed while it wrote; nobody needs it any more" },
    Check { name: "open-to-others", of: Files, look: file_checks::open_to_others,
        means: "other users of this machine can read what members write to each other" },
    Check { name: "foreign-file", of: Files, look: file_checks::foreign,
        means: "brigade follows no link and reads no other user's file, so it is as if it were not there" },
    Check { name: "unreadable-folder", of: Files, look: file_checks::unreadable,
        means: "to brigade it is as if nothing were in it, and nothing can be written there" },
    Check { name: "returned-member", of: Files, look: members::returned,
        means: "it had left, and a late word about it wrote it back; the team cannot be deleted" },
    Check { name: "ghost-member", of: Files, look: members::ghosts,
        means: "others write to it and wait for it, and nobody is there" },
    Check { name: "stuck-active", of: All, look: members::stuck_active,
        means: "it counts as at work for ever, and Claude Code refuses to delete the team" },
    Check { name: "failed-turn", of: Files, look: members::failed_turn,
        means: "what it was told is not done, and it waits for the next message" },
    Check { name: "inbox-of-nobody", of: Files, look: members::inbox_of_nobody,
        means: "somebody wrote to a name that is not on the team; nobody reads it" },
    Check { name: "long-wait", of: Files, look: members::long_wait,
        means: "whoever asked does nothing until it is answered" },
    Check { name: "session-gone", of: Files, look: members::session_gone,
        means: "its Claude Code ended without clearing up; nobody leads it any more" },
    Check { name: "invisible-task", of: All, look: tasks::invisible,
        means: "Claude Code shows only tasks that have every field" },
    Check { name: "task-of-nobody", of: All, look: tasks::of_nobody,
        means: "nobody works on it, and nobody else may take it" },
    Check { name: "task-circle", of: All, look: tasks::circles,
        means: "each of them waits for the next, so none can ever begin" },
    Check { name: "lost-dependency", of: All, look: tasks::lost_dependency,
        means: "what is not there counts as done, so it may begin too early" },
    Check { name: "orphan-window", of: All, look: hosted::windows,
        means: "an agent works on though its member is not to be any more" },
    Check { name: "orphan-process", of: All, look: hosted::processes,
        means: "an agent works on though its member is not to be any more" },
    Check { name: "given-up", of: All, look: hosted::given_up,
        means: "nobody starts it any more; its tasks went back to the board" },
    Check { name: "dead-member", of: All, look: hosted::dead,
        means: "its mail waits, and nobody starts it again" },
    Check { name: "no-supervisor", of: All, look: hosted::no_supervisor,
        means: "members go on, but nobody starts those that die" },
    Check { name: "team-gone", of: All, look: hosted::team_gone,
        means: "its members are to run here, and have no team to work in" },
    Check { name: "open-worktree", of: All, look: hosted::worktrees,
        means: "it takes room, and work in it that is nowhere else is easily forgotten" },
    Check { name: "old-agent", of: All, look: machine::outdated,
        means: "brigade was tested with a later one; what it says may be misunderstood" },
    Check { name: "no-agent", of: All, look: machine::missing,
        means: "the member cannot be started" },
    Check { name: "no-tmux", of: All, look: machine::no_tmux,
        means: "members that shall have a window cannot be started" },
    Check { name: "team-file", of: All, look: machine::team_file,
        means: "`brigade up` will refuse it" },
    Check { name: "settings", of: All, look: machine::settings,
        means: "Claude Code starts its teammates without brigade, or not at all" },
];

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) means: &'static str,
    /// Where.
    pub(crate) place: String,
    /// What.
    pub(crate) what: String,
    pub(crate) cure: Cure,
}

/// What mends it.
#[derive(Debug)]
pub(crate) enum Cure {
    /// We do, if told to.
    Deed(Deed),
    /// A person does.
    Advice(String),
}

impl Finding {
    /// What to do, or what would be done, in a line.
    pub(crate) fn remedy(&self) -> String {
        match &self.cure {
            Cure::Deed(deed) => deed.words().0,
            Cure::Advice(advice) => advice.clone(),
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
        document.serialize_field("fixable", &matches!(self.cure, Cure::Deed(_)))?;
        document.serialize_field("remedy", &self.remedy())?;
        document.end()
    }
}

/// What a check has found so far.
#[derive(Debug, Default)]
pub(crate) struct Found(Vec<(String, String, Cure)>);

impl Found {
    /// Something that is mended if we are told to.
    fn fixable(&mut self, place: impl Place, what: impl Into<String>, deed: Deed) {
        self.0.push((place.words(), what.into(), Cure::Deed(deed)));
    }

    /// Something that a person has to see to.
    fn advise(&mut self, place: impl Place, what: impl Into<String>, advice: impl Into<String>) {
        self.0.push((place.words(), what.into(), Cure::Advice(advice.into())));
    }

    /// The one or the other.
    fn tell(&mut self, place: impl Place, what: impl Into<String>, cure: Cure) {
        self.0.push((place.words(), what.into(), cure));
    }
}

/// Where something is wrong: a path, or words.
trait Place {
    fn words(self) -> String;
}

impl Place for &Path {
    fn words(self) -> String {
        self.display().to_string()
    }
}

impl Place for String {
    fn words(self) -> String {
        self
    }
}

/// Looks for everything.
pub(crate) fn examine(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Check { name, means, look, .. } in checks(house) {
        let mut found = Found::default();
        look(house, &mut found);
        let told = found.0.into_iter().map(|(place, what, cure)| Finding {
            check: name,
            means,
            place,
            what,
            cure,
        });
        findings.extend(told);
    }
    for Ill { check, place, what, advice } in house.ills.iter().flatten() {
        let means = nats::CHECKS.iter().find(|(name, _)| name == check);
        findings.push(Finding {
            check,
            means: means.map(|(_, means)| *means).unwrap_or_default(),
            place: place.clone(),
            what: what.clone(),
            cure: Cure::Advice(advice.clone()),
        });
    }
    findings
}

/// What is looked for where the teams of this house live.
fn checks(house: &House) -> impl Iterator<Item = &'static Check> {
    let is_far = house.ills.is_some();
    CHECKS.iter().filter(move |check| check.of == All || !is_far)
}

/// How many checks that were.
pub(crate) fn count(house: &House) -> usize {
    checks(house).count() + house.ills.as_ref().map_or(0, |_| nats::CHECKS.len())
}
