//! Explores every reachable state, breadth first. Therefore the first run that violates a property
//! is also the shortest.
//!
//! This search does not use a model-checking crate, because the available ones would add a web
//! server and second versions of other crates to our dependencies.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use crate::rules::ProtocolRules;
use crate::state::{ModelAction, ModelState};

/// A property, as a function that returns whether a state violates it.
pub(crate) type Property = fn(&ModelState) -> bool;

pub(crate) struct Exploration {
    pub(crate) states: usize,
    pub(crate) final_states: usize,
    pub(crate) time: Duration,
    /// For each property, the shortest run to a state that violates it.
    pub(crate) violations: Vec<Option<Vec<ModelAction>>>,
}

/// Explores all states, or stops once every property has been violated.
pub(crate) fn explore(
    start: ModelState,
    rules: &ProtocolRules,
    properties: &[Property],
) -> Exploration {
    let clock = Instant::now();
    // States are identified by a 64-bit hash. With 10^8 states, the chance that two of them collide
    // is one in four thousand.
    let mut seen = HashSet::<u64, BuildHasherDefault<IdentityHasher>>::default();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut predecessors: Vec<(u32, ModelAction)> = vec![(0, ModelAction::LockGetsStale)];
    let mut frontier = vec![(0, start)];
    let mut outcome = Exploration {
        states: 1,
        final_states: 0,
        time: Duration::ZERO,
        violations: vec![None; properties.len()],
    };
    let mut actions = Vec::new();
    seen.insert(hasher.hash_one(start));
    while !frontier.is_empty()
        && (properties.is_empty() || outcome.violations.iter().any(Option::is_none))
    {
        let mut next_frontier = Vec::new();
        for (index, state) in frontier {
            actions.clear();
            state.actions(&mut actions);
            outcome.final_states += usize::from(state.is_final());
            assert!(
                !actions.is_empty() || state.is_final(),
                "no action is possible, but the run is not finished: {state:#?}"
            );
            for (property, violation) in properties.iter().zip(&mut outcome.violations) {
                if violation.is_none() && property(&state) {
                    *violation = Some(path_to(&predecessors, index));
                }
            }
            for &action in &actions {
                let next = state.next(rules, action);
                if seen.insert(hasher.hash_one(next)) {
                    next_frontier.push((
                        u32::try_from(predecessors.len()).expect("at most 2^32 states"),
                        next,
                    ));
                    predecessors.push((index, action));
                }
            }
        }
        frontier = next_frontier;
    }
    outcome.states = predecessors.len();
    outcome.time = clock.elapsed();
    outcome
}

fn path_to(predecessors: &[(u32, ModelAction)], mut index: u32) -> Vec<ModelAction> {
    let mut run = Vec::new();
    while index != 0 {
        let (before, action) = predecessors[usize::try_from(index).expect("fits usize")];
        run.push(action);
        index = before;
    }
    run.reverse();
    run
}

/// Describes a run: its steps, and the files that each step changed.
pub(crate) fn describe(start: ModelState, rules: &ProtocolRules, run: &[ModelAction]) -> String {
    let mut state = start;
    let mut text = String::new();
    for &action in run {
        let next = state.next(rules, action);
        let what = match action {
            ModelAction::Step(index) => state.processes[usize::from(index)].describe(),
            _ => String::new(),
        };
        let _ = write!(text, "\n  {action:?} {what}");
        if (next.inbox, next.lock) != (state.inbox, state.lock) {
            let _ = write!(text, " -> inbox {:?}, lock {:?}", next.inbox, next.lock);
        }
        if next.header != state.header {
            let _ = write!(text, " -> {:?}", next.header);
        }
        state = next;
    }
    let _ = write!(
        text,
        "\n  end: inbox {:?}, delivered {:?}, journal {:?}, faults {:#b}",
        state.inbox.ids, state.delivered, state.journal, state.faults
    );
    text
}

/// A hasher that returns its input, because the keys are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 keys are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
