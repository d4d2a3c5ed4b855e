//! Measures how long it takes to append one message to an inbox of 10,000 messages (5 MB). Exits with 1 if copying
//! the inbox and appending to the copy takes more than `MAX_RATIO` times as long as a memcpy of the same bytes.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::{GenerationFields, NewMessage};

const MESSAGES: usize = 10_000;
const ROUNDS: usize = 200;
const MAX_RATIO: f64 = 3.0;

fn main() -> ExitCode {
    let text = "A message of ordinary length, with \"quotes\", a line break\nand an é. ".repeat(4);
    let message = NewMessage {
        from: "alice",
        text: &text,
        summary: Some("the subject of it"),
        timestamp: "2026-11-15T00:00:29.290Z",
        color: None,
        read: true,
        stamp: GenerationFields::New {
            msg_id: "56d568aa-6291-4f20-8a6c-349d8adefbd7",
            lead_sig: None,
        },
    };
    let mut image = inbox::EMPTY.to_vec();
    inbox::append(&mut image, &vec![message.clone(); MESSAGES]).expect("an inbox");
    let one = std::slice::from_ref(&message);

    // The memcpy writes to memory that is already allocated, which is the fastest case.
    let mut copy = vec![0; image.len()];
    let mut spliced = Vec::with_capacity(image.len() + 4096);
    let mut best = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        let times = [
            time(|| copy.copy_from_slice(black_box(&image))),
            // As in the store: the inbox is in memory, and one message is appended.
            {
                spliced.clear();
                spliced.extend_from_slice(&image);
                time(|| inbox::append(black_box(&mut spliced), one).expect("an inbox"))
            },
            // The same, including a copy of the inbox.
            time(|| {
                spliced.clear();
                spliced.extend_from_slice(black_box(&image));
                inbox::append(&mut spliced, one).expect("an inbox");
            }),
            // The same, including allocation of memory for the result.
            time(|| {
                let mut fresh = Vec::with_capacity(image.len() + 4096);
                fresh.extend_from_slice(black_box(&image));
                inbox::append(&mut fresh, one).expect("an inbox");
                black_box(fresh);
            }),
        ];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let read = || Inbox::read(black_box(&image)).expect("an inbox");
    let best_of = |work: &dyn Fn() -> usize| {
        let round = || time(|| _ = black_box(work()));
        (0..20).map(|_| round()).min().unwrap_or_default()
    };
    let unread = best_of(&|| read().messages().filter(|message| !message.read()).count());
    let parsed = best_of(&|| read().with_appended(one).len());

    let [memcpy, in_place, copied, fresh] = best;
    println!("inbox of {MESSAGES} messages, {} bytes; best of {ROUNDS} rounds", image.len());
    println!("memcpy                           {:>9.1} µs", micros(memcpy));
    let ratio = |time: Duration| time.as_secs_f64() / memcpy.as_secs_f64();
    let row =
        |label: &str, time| println!("{label:32} {:>9.1} µs  {:>7.3} x", micros(time), ratio(time));
    row("append by splicing, in place", in_place);
    row("copy the inbox and splice", copied);
    row("the same with allocation", fresh);
    row("append by parsing", parsed);
    row("count unread messages", unread);
    let worst = ratio(copied).max(ratio(fresh));
    let met = worst <= MAX_RATIO;
    let result = if met { "ok" } else { "TOO SLOW" };
    println!("worst splice ratio {worst:.3}, limit {MAX_RATIO}: {result}");
    ExitCode::from(u8::from(!met))
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
