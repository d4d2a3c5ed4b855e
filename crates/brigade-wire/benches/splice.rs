//! What it costs to append one message to an inbox image of 10,000 (5 MB), against a memcpy of the
//! same bytes in the same run. Exits with 1 when the worse of the two ratios is above the bar.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a command that prints a figure")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::{NewMessage, Stamp};

const MESSAGES: usize = 10_000;
const ROUNDS: usize = 200;
const BAR: f64 = 3.0;

fn main() -> ExitCode {
    let text = "A message of ordinary length, with \"quotes\", a line break\nand an é. ".repeat(4);
    let message = NewMessage {
        from: "alice",
        text: &text,
        summary: Some("what it is about"),
        timestamp: "2026-11-15T00:00:29.290Z",
        color: None,
        read: true,
        stamp: Stamp::New { msg_id: "56d568aa-6291-4f20-8a6c-349d8adefbd7", lead_sig: None },
    };
    let mut image = inbox::EMPTY.to_vec();
    inbox::append(&mut image, &vec![message.clone(); MESSAGES]).expect("a whole inbox");
    let one = std::slice::from_ref(&message);

    // The memcpy goes into memory that is already there, the cheapest there is.
    let mut copy = vec![0; image.len()];
    let mut spliced = Vec::with_capacity(image.len() + 4096);
    let mut best = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        let times = [
            time(|| copy.copy_from_slice(black_box(&image))),
            // The store's case: the image was read into memory, and grows by one message.
            {
                spliced.clear();
                spliced.extend_from_slice(&image);
                time(|| inbox::append(black_box(&mut spliced), one).expect("a whole inbox"))
            },
            // The same with a copy of the image in the price.
            time(|| {
                spliced.clear();
                spliced.extend_from_slice(black_box(&image));
                inbox::append(&mut spliced, one).expect("a whole inbox");
            }),
            // And with new memory for the result.
            time(|| {
                let mut fresh = Vec::with_capacity(image.len() + 4096);
                fresh.extend_from_slice(black_box(&image));
                inbox::append(&mut fresh, one).expect("a whole inbox");
                black_box(fresh);
            }),
        ];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let read = || Inbox::read(black_box(&image)).expect("a whole inbox");
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
        |what: &str, time| println!("{what:32} {:>9.1} µs  {:>7.3} x", micros(time), ratio(time));
    row("append by splice, in place", in_place);
    row("copy the image and splice", copied);
    row("the same into new memory", fresh);
    row("append by parse", parsed);
    row("count what is unread", unread);
    let worst = ratio(copied).max(ratio(fresh));
    let met = worst <= BAR;
    println!("worst splice ratio {worst:.3}, bar {BAR}: {}", if met { "met" } else { "NOT MET" });
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
