//! The laws over real files, whole and bent, in a bounded random loop.
//!
//! `BRIGADE_CASES` sets how many cases each law gets; CI runs the default.

use std::env;

use crate::files;
use crate::laws::LAWS;

/// A small generator of our own: the cases of a failed run can be had again from its seed.
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

    fn of<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// Pieces that mean something to the readers.
const PIECES: &[&[u8]] = &[
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

fn bend(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let to = at + random.below((bytes.len() - at + 1).min(64));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => drop(bytes.splice(at..at, random.of(PIECES).iter().copied())),
            3 => drop(bytes.splice(at..to, random.of(PIECES).iter().copied())),
            4 => {
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
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
fn every_law_holds_for_real_files_and_bent_ones() {
    let cases: usize = match env::var("BRIGADE_CASES") {
        Ok(cases) => cases.parse().expect("BRIGADE_CASES is a number"),
        Err(_) => 2_000,
    };
    let mut seeds: Vec<Vec<u8>> = files::all().into_iter().map(|fixture| fixture.bytes).collect();
    // A file of a kilobyte bends into more shapes in the same time than one of ten.
    seeds.retain(|bytes| bytes.len() < 4096);
    seeds.sort();
    seeds.dedup();
    for (name, law) in LAWS {
        seeds.iter().for_each(|bytes| law(bytes));
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for case in 0..cases {
            let (mut bytes, other) = (random.of(&seeds).clone(), random.of(&seeds).clone());
            bend(&mut random, &mut bytes, &other);
            let held = std::panic::catch_unwind(|| law(&bytes));
            assert!(held.is_ok(), "{name}, case {case}: {}", bytes.escape_ascii());
        }
        println!("{name}: {} files, {cases} bent ones", seeds.len());
    }
}
