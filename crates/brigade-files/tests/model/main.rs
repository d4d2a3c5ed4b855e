//! The mailbox protocol, checked in every order of its system calls, with kills and long pauses.
//!
//! `world` holds the files and who works on them, `brigade` with `merge` and `native` are the two
//! kinds of process, `rules` the choices of the protocol, `laws` what it promises.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first thing that is not as it should be, and prints what it saw"
)]

mod brigade;
mod explore;
mod ids;
mod laws;
mod merge;
mod native;
mod rules;
mod world;

use brigade::Brigade;
use explore::{Law, explore, told};
use ids::Ids;
use laws::{CORNERS, CORNERS_OF_KILLS, LAWS};
use native::Native;
use rules::{Intent, Rewind, Rules};
use world::{Header, Inbox, Process, World};

/// Who takes part, and what may befall them.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The messages of the two senders, each under its own numbers; see [`laws::SENDERS`].
    senders: [&'static [u8]; 2],
    /// How often the native reader comes.
    rounds: u8,
    /// What stands in the inbox at the start.
    old: &'static [u8],
    kills: u8,
    pauses: u8,
    /// How often all natives die, and one is started that reads.
    restarts: u8,
}

const CASE: Case =
    Case { senders: [&[1], &[]], rounds: 1, old: &[7], kills: 0, pauses: 0, restarts: 0 };
const PAIR: Case = Case { senders: [&[1], &[3]], ..CASE };
const PAUSE: Case = Case { pauses: 1, ..CASE };
const RESTART: Case = Case { restarts: 1, ..PAUSE };
const TWO_AND_RESTART: Case = Case { senders: [&[1, 2], &[]], ..RESTART };
const KILL_AND_PAUSE: Case = Case { kills: 1, ..PAUSE };

impl Case {
    fn start(&self) -> World {
        World {
            inbox: Inbox { file: 1, ids: Ids::of(self.old) },
            lock: None,
            flock: None,
            journal: Ids::default(),
            header: Header { ours: 1, ..Header::default() },
            tmp: 0,
            processes: [
                Process::Brigade(Brigade::sending(self.senders[0])),
                Process::Brigade(Brigade::sending(self.senders[1])),
                Process::Native(Native::writer(9)),
                Process::Native(Native::reader(self.rounds)),
                Process::Brigade(Brigade::flushing(true)),
            ],
            delivered: Ids::default(),
            delivered_before: Ids::default(),
            native_sent: Ids::of(self.old),
            kills: self.kills,
            pauses: self.pauses,
            restarts: self.restarts,
            faults: 0,
        }
    }
}

/// No world that the case can lead to breaks a law.
fn check(case: Case) {
    let mut names = LAWS.map(|(name, _)| name).to_vec();
    let mut laws = LAWS.map(|(_, law)| law).to_vec();
    if case.kills == 0 {
        names.push("lost without a kill");
        laws.push(laws::lost_without_kill);
    }
    let rules = Rules::MENDED;
    let outcome = explore(case.start(), &rules, &laws);
    println!("{case:?}: {} worlds, {} ends, {:.1?}", outcome.worlds, outcome.finals, outcome.time);
    assert!(outcome.finals > 0, "no run of {case:?} comes to its end");
    for (name, breach) in names.iter().zip(outcome.breaches) {
        if let Some(run) = breach {
            panic!("{name} in {case:?}:{}", told(case.start(), &rules, &run));
        }
    }
}

/// Some world that the case can lead to breaks the law.
fn check_breach(what: &str, rules: &Rules, case: Case, law: Law) {
    let outcome = explore(case.start(), rules, &[law]);
    let Some(Some(run)) = outcome.breaches.first() else {
        panic!("{what}: none of {} worlds breaks the law", outcome.worlds);
    };
    let told = told(case.start(), rules, run);
    println!("{what}: {} steps, {} worlds:{told}", run.len(), outcome.worlds);
}

#[test]
fn nothing_befalls_them() {
    check(Case { senders: [&[1, 2], &[3]], ..CASE });
    check(Case { senders: [&[1, 2], &[3, 4]], rounds: 2, old: &[], ..CASE });
}

#[test]
fn one_is_killed() {
    check(Case { kills: 1, senders: [&[1, 2], &[]], ..CASE });
    check(Case { kills: 1, old: &[], ..PAIR });
}

#[test]
fn one_is_paused() {
    check(Case { senders: [&[1, 2], &[]], ..PAUSE });
    check(Case { old: &[], pauses: 1, ..PAIR });
}

#[test]
fn one_is_killed_and_one_is_paused() {
    check(KILL_AND_PAUSE);
}

#[test]
fn the_natives_die_and_one_is_started() {
    check(TWO_AND_RESTART);
    check(Case { kills: 1, ..RESTART });
}

#[test]
#[ignore = "two minutes and more, in a release build: `just model`"]
fn many_are_killed_and_paused() {
    check(Case { rounds: 2, pauses: 2, ..CASE });
    check(Case { pauses: 1, ..PAIR });
    check(Case { kills: 2, ..PAIR });
    check(Case { kills: 2, pauses: 1, senders: [&[1, 2], &[]], ..CASE });
    check(Case { kills: 1, pauses: 2, ..CASE });
    check(Case { kills: 1, pauses: 1, ..PAIR });
    check(Case { pauses: 1, restarts: 1, ..PAIR });
    check(Case { kills: 1, pauses: 2, restarts: 1, ..CASE });
}

#[test]
fn every_rule_is_needed() {
    let [lost, native_lost, doubled, stands_twice, _] = LAWS.map(|(_, law)| law);
    let all = Rules::MENDED;
    let kill = Case { kills: 1, ..CASE };
    let kills = Case { kills: 2, ..CASE };
    let two = Case { senders: [&[1, 2], &[]], ..PAUSE };
    let table = [
        ("told of the merge after it", Rules { intent: Intent::Late, ..all }, kill, doubled),
        ("told of the merge as done", Rules { intent: Intent::Blind, ..all }, kill, lost),
        ("no second look", Rules { recheck: false, ..all }, PAUSE, native_lost),
        ("second look too early", Rules { check_last: false, ..all }, PAUSE, native_lost),
        ("second look without age", Rules { mind_age: false, ..all }, PAUSE, native_lost),
        ("no look at ids", Rules { dedup: false, ..all }, two, stands_twice),
        ("temp file not disowned", Rules { disown_first: false, ..all }, kills, lost),
        ("no rewind", Rules { rewind: Rewind::Never, ..all }, PAUSE, lost),
        ("rewind by content, once", Rules { rewind: Rewind::First, ..all }, PAUSE, lost),
        ("risk after the steal", Rules { risk_first: false, ..all }, KILL_AND_PAUSE, lost),
        ("no look back", Rules { look_back: false, ..all }, PAUSE, lost),
        ("no last look", Rules { last_look: false, ..all }, RESTART, lost),
        ("merged later", Rules { merge_at_once: false, ..all }, TWO_AND_RESTART, doubled),
        ("in doubt after a restart", Rules { no_doubt: false, ..all }, RESTART, doubled),
    ];
    for (what, rules, case, law) in table {
        check_breach(what, &rules, case, law);
    }
    let rules = Rules { look_at_taken: false, ..all };
    check_breach("no look at the lock taken", &rules, two, laws::lost_without_kill);
}

#[test]
fn as_first_written_it_loses_messages() {
    let [lost, native_lost, ..] = LAWS.map(|(_, law)| law);
    check_breach("lost by a kill", &Rules::FIRST, Case { kills: 1, ..CASE }, lost);
    check_breach("lost by a pause", &Rules::FIRST, PAUSE, lost);
    check_breach("native lost", &Rules::FIRST, PAUSE, native_lost);
}

/// Each excuse in a law stands for runs that do happen.
#[test]
fn no_corner_is_idle() {
    for (what, law) in CORNERS {
        check_breach(what, &Rules::MENDED, PAUSE, law);
    }
    for (what, law) in CORNERS_OF_KILLS {
        check_breach(what, &Rules::MENDED, KILL_AND_PAUSE, law);
    }
}
