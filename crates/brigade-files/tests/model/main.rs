//! Model checker for the mailbox protocol: explores every order of its system calls, with kills and
//! long pauses.
//!
//! `state` holds the files and the processes that use them. `brigade` (with `merge`) and `native`
//! are the two kinds of process. `rules` lists the protocol's design choices, and `properties`
//! lists what the protocol guarantees.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first failure and prints the run that led to it"
)]

mod brigade;
mod explore;
mod ids;
mod merge;
mod native;
mod properties;
mod rules;
mod state;

use brigade::BrigadeProcess;
use explore::{Property, describe, explore};
use ids::Ids;
use native::NativeProcess;
use properties::{EXCEPTIONS, EXCEPTIONS_WITH_KILLS, PROPERTIES};
use rules::{Intent, ProtocolRules, Rewind};
use state::{ModelHeader, ModelInbox, ModelProcess, ModelState};

/// The processes of a run, and the faults that may happen.
#[derive(Clone, Copy, Debug)]
struct ModelScenario {
    /// The messages of the two senders. [`properties::SENDERS`] lists the ids for each sender.
    senders: [&'static [u8]; 2],
    /// How many times the native reader reads the inbox.
    reads: u8,
    /// The messages in the inbox at the start.
    old: &'static [u8],
    kills: u8,
    pauses: u8,
    /// How many times all native processes die and a new reader starts.
    restarts: u8,
}

const BASE: ModelScenario =
    ModelScenario { senders: [&[1], &[]], reads: 1, old: &[7], kills: 0, pauses: 0, restarts: 0 };
const PAIR: ModelScenario = ModelScenario { senders: [&[1], &[3]], ..BASE };
const PAUSE: ModelScenario = ModelScenario { pauses: 1, ..BASE };
const RESTART: ModelScenario = ModelScenario { restarts: 1, ..PAUSE };
const TWO_AND_RESTART: ModelScenario = ModelScenario { senders: [&[1, 2], &[]], ..RESTART };
const KILL_AND_PAUSE: ModelScenario = ModelScenario { kills: 1, ..PAUSE };

impl ModelScenario {
    fn start(&self) -> ModelState {
        ModelState {
            inbox: ModelInbox { file: 1, ids: Ids::from_slice(self.old) },
            lock: None,
            flock: None,
            journal: Ids::default(),
            header: ModelHeader { ours: 1, ..ModelHeader::default() },
            tmp: 0,
            processes: [
                ModelProcess::Brigade(BrigadeProcess::sender(self.senders[0])),
                ModelProcess::Brigade(BrigadeProcess::sender(self.senders[1])),
                ModelProcess::Native(NativeProcess::writer(9)),
                ModelProcess::Native(NativeProcess::reader(self.reads)),
                ModelProcess::Brigade(BrigadeProcess::flusher(true)),
            ],
            delivered: Ids::default(),
            delivered_before: Ids::default(),
            native_sent: Ids::from_slice(self.old),
            kills: self.kills,
            pauses: self.pauses,
            restarts: self.restarts,
            faults: 0,
        }
    }
}

/// Checks that no reachable state violates a property.
fn check(scenario: ModelScenario) {
    let mut names = PROPERTIES.map(|(name, _)| name).to_vec();
    let mut properties = PROPERTIES.map(|(_, property)| property).to_vec();
    if scenario.kills == 0 {
        names.push("lost without a kill");
        properties.push(properties::lost_without_kill);
    }
    let rules = ProtocolRules::CURRENT;
    let outcome = explore(scenario.start(), &rules, &properties);
    println!(
        "{scenario:?}: {} states, {} final states, {:.1?}",
        outcome.states, outcome.final_states, outcome.time
    );
    assert!(outcome.final_states > 0, "no run of {scenario:?} finishes");
    for (name, violation) in names.iter().zip(outcome.violations) {
        if let Some(run) = violation {
            panic!("{name} in {scenario:?}:{}", describe(scenario.start(), &rules, &run));
        }
    }
}

/// Checks that some reachable state violates the property.
fn check_violation(what: &str, rules: &ProtocolRules, scenario: ModelScenario, property: Property) {
    let outcome = explore(scenario.start(), rules, &[property]);
    let Some(Some(run)) = outcome.violations.first() else {
        panic!("{what}: none of {} states violates the property", outcome.states);
    };
    let description = describe(scenario.start(), rules, run);
    println!("{what}: {} steps, {} states:{description}", run.len(), outcome.states);
}

#[test]
fn no_faults() {
    check(ModelScenario { senders: [&[1, 2], &[3]], ..BASE });
    check(ModelScenario { senders: [&[1, 2], &[3, 4]], reads: 2, old: &[], ..BASE });
}

#[test]
fn one_kill() {
    check(ModelScenario { kills: 1, senders: [&[1, 2], &[]], ..BASE });
    check(ModelScenario { kills: 1, old: &[], ..PAIR });
}

#[test]
fn one_pause() {
    check(ModelScenario { senders: [&[1, 2], &[]], ..PAUSE });
    check(ModelScenario { old: &[], pauses: 1, ..PAIR });
}

#[test]
fn one_kill_and_one_pause() {
    check(KILL_AND_PAUSE);
}

#[test]
fn natives_die_and_one_restarts() {
    check(TWO_AND_RESTART);
    check(ModelScenario { kills: 1, ..RESTART });
}

#[test]
#[ignore = "takes more than two minutes in a release build: `just model`"]
fn many_kills_and_pauses() {
    check(ModelScenario { reads: 2, pauses: 2, ..BASE });
    check(ModelScenario { pauses: 1, ..PAIR });
    check(ModelScenario { kills: 2, ..PAIR });
    check(ModelScenario { kills: 2, pauses: 1, senders: [&[1, 2], &[]], ..BASE });
    check(ModelScenario { kills: 1, pauses: 2, ..BASE });
    check(ModelScenario { kills: 1, pauses: 1, ..PAIR });
    check(ModelScenario { pauses: 1, restarts: 1, ..PAIR });
    check(ModelScenario { kills: 1, pauses: 2, restarts: 1, ..BASE });
}

#[test]
fn every_rule_is_needed() {
    let [lost, native_lost, delivered_twice, duplicated_in_inbox, _] =
        PROPERTIES.map(|(_, property)| property);
    let kill = ModelScenario { kills: 1, ..BASE };
    let kills = ModelScenario { kills: 2, ..BASE };
    let two = ModelScenario { senders: [&[1, 2], &[]], ..PAUSE };
    let lost_without_kill = properties::lost_without_kill;
    type RuleChange = fn(&mut ProtocolRules);
    let table: [(&str, RuleChange, ModelScenario, Property); 15] = [
        (
            "header written after the merge",
            |r| r.intent = Intent::AfterRename,
            kill,
            delivered_twice,
        ),
        ("header written as if merged", |r| r.intent = Intent::AsDone, kill, lost),
        ("no recheck", |r| r.recheck = false, PAUSE, native_lost),
        ("recheck too early", |r| r.check_last = false, PAUSE, native_lost),
        ("recheck without age", |r| r.check_age = false, PAUSE, native_lost),
        ("no deduplication", |r| r.dedup = false, two, duplicated_in_inbox),
        ("temp file unlinked before the header", |r| r.clear_header_first = false, kills, lost),
        ("no rewind", |r| r.rewind = Rewind::Never, PAUSE, lost),
        ("rewind of the original protocol", |r| r.rewind = Rewind::Original, PAUSE, lost),
        ("risk recorded after the steal", |r| r.record_risk_first = false, KILL_AND_PAUSE, lost),
        ("no lock check after the rename", |r| r.check_lock_after = false, PAUSE, lost),
        ("no final comparison", |r| r.final_compare = false, RESTART, lost),
        ("no merge on restart", |r| r.merge_on_restart = false, TWO_AND_RESTART, delivered_twice),
        ("risk kept", |r| r.clear_risk_on_restart = false, RESTART, delivered_twice),
        ("removed lock not verified", |r| r.verify_removed = false, two, lost_without_kill),
    ];
    for (what, change, scenario, property) in table {
        let mut rules = ProtocolRules::CURRENT;
        change(&mut rules);
        check_violation(what, &rules, scenario, property);
    }
}

#[test]
fn the_original_protocol_loses_messages() {
    let [lost, native_lost, ..] = PROPERTIES.map(|(_, property)| property);
    let (rules, kill) = (&ProtocolRules::ORIGINAL, ModelScenario { kills: 1, ..BASE });
    check_violation("lost by a kill", rules, kill, lost);
    check_violation("lost by a pause", rules, PAUSE, lost);
    check_violation("native message lost", rules, PAUSE, native_lost);
}

/// Checks that every exception is needed: if the exception is left out, some run violates the property.
#[test]
fn every_exception_is_needed() {
    for (what, property) in EXCEPTIONS {
        check_violation(what, &ProtocolRules::CURRENT, PAUSE, property);
    }
    for (what, property) in EXCEPTIONS_WITH_KILLS {
        check_violation(what, &ProtocolRules::CURRENT, KILL_AND_PAUSE, property);
    }
}
