//! Checks the invariants in `fuzz/laws.rs` on random lines.
//!
//! `BRIGADE_CASES` sets the number of lines; CI uses the default.

use std::env;

use crate::policy_laws;

/// A small random number generator with a fixed seed, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

#[test]
fn every_invariant_holds_for_random_lines() {
    let cases: usize = match env::var("BRIGADE_CASES") {
        Ok(cases) => cases.parse().expect("BRIGADE_CASES is a number"),
        Err(_) => 20_000,
    };
    let rules = policy_laws::allow(&policy_laws::PATTERNS);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut allowed = 0;
    for case in 0..cases {
        let mut line = String::new();
        let count = if case % 2 == 0 { policy_laws::PIECES.len() } else { 20 };
        for _ in 0..=random.below(7) {
            line.push_str(policy_laws::PIECES[random.below(count)]);
        }
        allowed += usize::from(policy_laws::is_allowed(&rules, &line));
        let result = std::panic::catch_unwind(|| policy_laws::check(line.as_bytes()));
        assert!(result.is_ok(), "case {case}: {line:?}");
    }
    // A loop that checks only lines that wait would prove nothing.
    assert!(allowed > cases / 50, "only {allowed} of {cases} lines were allowed");
}
