//! Every world that can be reached, breadth first, so that the first breach has a shortest run.
//!
//! By hand, because the crates for it bring a web server and second versions of other crates.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use crate::rules::Rules;
use crate::world::{Action, World};

/// Does a world break the promise?
pub(crate) type Law = fn(&World) -> bool;

pub(crate) struct Outcome {
    pub(crate) worlds: usize,
    pub(crate) finals: usize,
    pub(crate) time: Duration,
    /// For each law the shortest run to a world that breaks it.
    pub(crate) breaches: Vec<Option<Vec<Action>>>,
}

/// Walks all worlds, or until each law is broken.
pub(crate) fn explore(start: World, rules: &Rules, laws: &[Law]) -> Outcome {
    let clock = Instant::now();
    // Worlds are known by 64 bits of hash: at 10^8 of them, one is mistaken for another in one run
    // of four thousand.
    let mut seen = HashSet::<u64, BuildHasherDefault<Same>>::default();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut trail: Vec<(u32, Action)> = vec![(0, Action::Age)];
    let mut level = vec![(0, start)];
    let mut outcome =
        Outcome { worlds: 1, finals: 0, time: Duration::ZERO, breaches: vec![None; laws.len()] };
    let mut actions = Vec::new();
    seen.insert(hasher.hash_one(start));
    while !level.is_empty() && (laws.is_empty() || outcome.breaches.iter().any(Option::is_none)) {
        let mut below = Vec::new();
        for (place, world) in level {
            actions.clear();
            world.actions(&mut actions);
            outcome.finals += usize::from(world.is_final());
            assert!(!actions.is_empty() || world.is_final(), "stuck: {world:#?}");
            for (law, breach) in laws.iter().zip(&mut outcome.breaches) {
                if breach.is_none() && law(&world) {
                    *breach = Some(run_to(&trail, place));
                }
            }
            for &action in &actions {
                let next = world.next(rules, action);
                if seen.insert(hasher.hash_one(next)) {
                    below.push((u32::try_from(trail.len()).expect("fewer worlds"), next));
                    trail.push((place, action));
                }
            }
        }
        level = below;
    }
    outcome.worlds = trail.len();
    outcome.time = clock.elapsed();
    outcome
}

fn run_to(trail: &[(u32, Action)], mut place: u32) -> Vec<Action> {
    let mut run = Vec::new();
    while place != 0 {
        let (before, action) = trail[usize::try_from(place).expect("small")];
        run.push(action);
        place = before;
    }
    run.reverse();
    run
}

/// A run in words: who did what, and the files where they changed.
pub(crate) fn told(start: World, rules: &Rules, run: &[Action]) -> String {
    let mut world = start;
    let mut text = String::new();
    for &action in run {
        let next = world.next(rules, action);
        let what = match action {
            Action::Step(index) => world.processes[usize::from(index)].told(),
            _ => String::new(),
        };
        let _ = write!(text, "\n  {action:?} {what}");
        if (next.inbox, next.lock) != (world.inbox, world.lock) {
            let _ = write!(text, " -> inbox {:?}, lock {:?}", next.inbox, next.lock);
        }
        if next.header != world.header {
            let _ = write!(text, " -> {:?}", next.header);
        }
        world = next;
    }
    let _ = write!(
        text,
        "\n  end: inbox {:?}, delivered {:?}, journal {:?}, faults {:#b}",
        world.inbox.ids, world.delivered, world.journal, world.faults
    );
    text
}

/// Hashes are hashed enough.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole numbers are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
