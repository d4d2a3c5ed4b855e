//! Checks the invariants in `fuzz/laws.rs` on recorded files and on random mutations of these files.
//!
//! `BRIGADE_CASES` sets the number of mutations per invariant; CI uses the default.

use std::env;

use crate::files;
use crate::laws::INVARIANTS;

/// A small random number generator with a fixed seed, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    fn choose<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// Byte sequences that matter to the parsers; mutations insert them.
const FRAGMENTS: &[&[u8]] = &[
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b",",
    b":",
    b"\\",
    b"\n",
    b"\n  ",
    b"\n]",
    b"\n  }\n]",
    b"[]",
    b"{}",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"\\ud83d",
    b"\\u0000",
    b"\xff",
    b"\0",
    b"\r\n",
    b"<",
    b"&lt;",
    b"&#x",
    b"</teammate-message>",
    b"\"read\": false",
    b"\"members\": [",
    b"\"metadata\": {}",
    b"\"request_id\": \"x\"",
    b"system",
    b"../",
    b"\xe2\x80\xae",
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let to = at + random.below((bytes.len() - at + 1).min(64));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => drop(bytes.splice(at..at, random.choose(FRAGMENTS).iter().copied())),
            3 => drop(bytes.splice(at..to, random.choose(FRAGMENTS).iter().copied())),
            4 => {
                let copy = bytes[at..to].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let from = random.below(other.len() + 1);
                let to = from + random.below((other.len() - from + 1).min(256));
                bytes.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

#[test]
fn every_invariant_holds_for_recorded_files_and_mutations() {
    let cases: usize = match env::var("BRIGADE_CASES") {
        Ok(cases) => cases.parse().expect("BRIGADE_CASES is a number"),
        Err(_) => 2_000,
    };
    let mut seeds: Vec<Vec<u8>> = files::all().into_iter().map(|fixture| fixture.bytes).collect();
    // Small files allow more mutations in the same time.
    seeds.retain(|bytes| bytes.len() < 4096);
    seeds.sort();
    seeds.dedup();
    for (name, check) in INVARIANTS {
        seeds.iter().for_each(|bytes| check(bytes));
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for case in 0..cases {
            let (mut bytes, other) = (random.choose(&seeds).clone(), random.choose(&seeds).clone());
            mutate(&mut random, &mut bytes, &other);
            let result = std::panic::catch_unwind(|| check(&bytes));
            assert!(result.is_ok(), "{name}, case {case}: {}", bytes.escape_ascii());
        }
        println!("{name}: {} files, {cases} mutations", seeds.len());
    }
}
