//! Runs a team member that is implemented with one of the compared libraries. Reads commands from standard input,
//! and prints the result of each call and its duration in microseconds (`US`).
//!
//!   brigade-bench-peers brigade|power|agent-teams <root> <team> <name> <reader>
//!
//! | command | output |
//! |---|---|
//! | `send N` | `sent N US` |
//! | `burst FIRST COUNT` | `acked N` or `refused N WHY` for each message, then `end US` |
//! | `read` | `read COUNT US`: the number of unread messages |
//! | `mark` | `marked COUNT US`: the number of messages that were marked as read |
//! | `add N` | `added ID US` |
//! | `claim ID` | `claimed ID US`, `taken ID US` or `failed ID US WHY` |
//! | `claims COUNT` | `claimed ID` or `failed ID WHY` for each task that was free, then `end US` |
//! | `watch` | `ready`, then `heard SENDER/N NANOSECONDS` (since 1970) for each message, until the process ends |
//!
//! The members written in other languages (`native.js`, `anyteam.py`) use the same protocol.

mod ours;
mod theirs;

use std::io::{BufRead as _, Write as _};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use brigade_files::Durability;

/// The result of a claim.
enum Claim {
    Got,
    Taken,
    Failed(String),
}

/// The operations of a member, implemented with one library.
trait LibraryMember {
    fn send(&self, number: usize) -> Result<(), String>;
    fn read(&self) -> usize;
    fn mark(&self) -> usize;
    fn add(&self, number: usize) -> String;
    fn claim(&self, id: &str) -> Claim;
    fn watch(&self);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, root, team, name, reader] = args.try_into().expect("five arguments; see the top of main.rs");
    let member: Box<dyn LibraryMember> = match kind.as_str() {
        "brigade" => Box::new(ours::Ours::new(&root, &team, &name, &reader, Durability::Process)),
        "power" => Box::new(ours::Ours::new(&root, &team, &name, &reader, Durability::Power)),
        "agent-teams" => Box::new(theirs::Theirs::new(&root, &team, &name, &reader)),
        other => panic!("unknown library {other}"),
    };
    print_line("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["send", number] => {
                let (done, us) = timed(|| member.send(number.parse().unwrap()));
                done.unwrap();
                print_line(&format!("sent {number} {us}"));
            }
            ["burst", first, count] => {
                let (first, count): (usize, usize) =
                    (first.parse().unwrap(), count.parse().unwrap());
                let ((), us) = timed(|| {
                    for number in first..first + count {
                        match member.send(number) {
                            Ok(()) => print_line(&format!("acked {number}")),
                            Err(why) => print_line(&format!("refused {number} {why}")),
                        }
                    }
                });
                print_line(&format!("end {us}"));
            }
            ["read"] => {
                let (count, us) = timed(|| member.read());
                print_line(&format!("read {count} {us}"));
            }
            ["mark"] => {
                let (count, us) = timed(|| member.mark());
                print_line(&format!("marked {count} {us}"));
            }
            ["add", number] => {
                let (id, us) = timed(|| member.add(number.parse().unwrap()));
                print_line(&format!("added {id} {us}"));
            }
            ["claim", id] => {
                let (claim, us) = timed(|| member.claim(id));
                match claim {
                    Claim::Got => print_line(&format!("claimed {id} {us}")),
                    Claim::Taken => print_line(&format!("taken {id} {us}")),
                    Claim::Failed(why) => print_line(&format!("failed {id} {us} {why}")),
                }
            }
            ["claims", count] => {
                let ((), us) = timed(|| {
                    for id in 1..=count.parse::<usize>().unwrap() {
                        match member.claim(&id.to_string()) {
                            Claim::Got => print_line(&format!("claimed {id}")),
                            Claim::Taken => {}
                            Claim::Failed(why) => print_line(&format!("failed {id} {why}")),
                        }
                    }
                });
                print_line(&format!("end {us}"));
            }
            ["watch"] => member.watch(),
            other => panic!("unknown command {other:?}"),
        }
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, u128) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed().as_micros())
}

fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", line.replace('\n', " ")).unwrap();
    out.flush().unwrap();
}

/// Returns a text of 500 bytes that starts with the sender's name and the message number.
fn text(from: &str, number: usize) -> String {
    format!("{:.<500}", format!("{from}/{number} "))
}

/// Prints that a message arrived, and the current time.
fn print_heard(text: &str) {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    print_line(&format!("heard {} {at}", text.split(' ').next().unwrap_or_default()));
}

/// Runs a future on this thread.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}
