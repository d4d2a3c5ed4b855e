//! Tests a slow reader that takes no lock: it opens the inbox, others send messages, and only then it continues to
//! read.
//!
//! Claude Code polls its inbox this way: it opens the file, gets the size and reads that many bytes. However long
//! that takes, the reader must get a consistent inbox.

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
            for (part, percent) in [("opened", 0), ("half read", 50)] {
                let (torn, first) = slow(messages, sends, percent, rounds);
                let text = format!(
                    "inbox of {what}, {part}, {sends} sends, then read: {torn} of {rounds} torn {first}"
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
