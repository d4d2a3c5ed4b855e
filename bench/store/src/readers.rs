//! Tests a slow reader that takes no lock. The reader opens the inbox. Then other members send messages.
//! After that, the reader reads the rest of the inbox.
//!
//! Claude Code polls its inbox this way: it opens the file, gets its size, and reads that many bytes. The reader
//! must get a consistent inbox, however long the read takes.

use std::fs::File;
use std::io::Read;

use brigade_files::Durability;

use crate::Length;
use crate::cost::native_inbox;
use crate::figures::BenchReport;
use crate::temp_team::{TempTeam, send};

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    let rounds = length.pick(30, 200);
    for (what, messages) in [("3 messages", 3), ("2,000 messages", 2_000)] {
        for sends in [1, 2, 3] {
            // How much of the inbox the reader reads before the sends, in percent.
            for (part, percent) in [("opens it", 0), ("reads half of it", 50)] {
                let (torn, first) = slow(messages, sends, percent, rounds);
                let text = format!(
                    "torn reads of an inbox with {what}, if the reader {part} before {sends} sends: {torn} of {rounds} {first}"
                );
                report.check(torn == 0, text);
            }
        }
    }
}

fn slow(messages: usize, sends: usize, percent: usize, rounds: usize) -> (usize, String) {
    let temp = TempTeam::with_team(&["writer"]);
    std::fs::write(temp.dirs.inbox(), native_inbox(messages)).unwrap();
    let writer = temp.dirs.seat("writer", Durability::Process);
    send(&writer, 0);
    let (mut torn, mut first) = (0, String::new());
    for _ in 0..rounds {
        let mut file = File::open(temp.dirs.inbox()).unwrap();
        let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let mut bytes = vec![0; size * percent / 100];
        file.read_exact(&mut bytes).unwrap();
        for number in 0..sends {
            send(&writer, number);
        }
        file.take((size - bytes.len()) as u64).read_to_end(&mut bytes).unwrap();
        if let Err(error) = serde_json::from_slice::<Vec<serde_json::Value>>(&bytes) {
            torn += 1;
            if first.is_empty() {
                first = format!("(got {} of {size} bytes: {error})", bytes.len());
            }
        }
    }
    (torn, first)
}
