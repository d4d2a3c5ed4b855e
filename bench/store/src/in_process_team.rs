//! The crowd at work: everybody writes to everybody, and who is told of a task that is ready does it and
//! tells somebody of those that became ready by it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brigade_core::board::{self, BoardError};
use brigade_core::driver;
use brigade_core::event::Event;
use brigade_core::mail::{self, Which, Words};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_core::teammate::{self, Plan, Sight};
use brigade_core::worker::{Desk, Worker, Workers};
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::children::say;
use crate::crowd::{Load, Used, block_on, blockers, fill_board, found, join, memory, name};
use crate::place::Spot;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What was sent and shown, by everybody.
#[derive(Debug, Default)]
struct Book {
    /// From whom to whom each message went, and whether its sender sent one after the other.
    sent: Vec<(usize, usize, bool)>,
    shown: HashMap<usize, usize>,
    /// The last message shown of each sender to each reader.
    last: HashMap<(usize, usize), usize>,
    twice: Vec<usize>,
    disorder: Vec<usize>,
    done: usize,
    turns: usize,
    faults: Vec<String>,
}

impl Book {
    fn shown(&mut self, id: usize, to: usize) {
        self.shown.entry(id).and_modify(|times| *times += 1).or_insert(1);
        let (from, meant, ordered) = self.sent[id];
        if self.shown[&id] > 1 || meant != to {
            self.twice.push(id);
        }
        if ordered && self.last.insert((from, to), id).is_some_and(|last| last > id) {
            self.disorder.push(id);
        }
    }
}

/// What everybody in the crowd knows.
#[derive(Clone, Debug)]
struct Crowd {
    load: Load,
    ids: Arc<Mutex<Vec<TaskId>>>,
    book: Arc<Mutex<Book>>,
}

impl Crowd {
    fn book<T>(&self, write: impl FnOnce(&mut Book) -> T) -> T {
        write(&mut self.book.lock().unwrap())
    }

    /// Sends a message that can be told from all others.
    async fn send(&self, seat: &Seat, from: usize, to: usize, about: &str) {
        let ordered = about.is_empty();
        let id = self.book(|book| {
            book.sent.push((from, to, ordered));
            book.sent.len() - 1
        });
        let text = format!("{:.<300}", format!("#{id}# {about} "));
        let sent = mail::send(seat, &name(to), Words { text: &text, summary: None }).await;
        if let Err(error) = sent {
            self.fault(format!("a message was refused: {error}"));
        }
    }

    fn fault(&self, what: String) {
        self.book(|book| book.faults.push(what));
    }
}

/// One of the crowd.
struct Hand {
    number: usize,
    crowd: Crowd,
}

impl Worker for Hand {
    async fn turn(&mut self, desk: &Desk, text: &str) -> Result<String, String> {
        let ids: Vec<usize> = between(text, '#');
        self.crowd.book(|book| {
            book.turns += 1;
            for id in ids {
                book.shown(id, self.number);
            }
        });
        for task in between(text, '%') {
            if let Err(error) = self.work(&desk.seat, task).await {
                self.crowd.fault(format!("task {task}: {error}"));
            }
        }
        Ok("done".to_owned())
    }
}

impl Hand {
    /// Does a task, if nobody else has it, and passes on those that became ready by it.
    async fn work(&self, seat: &Seat, task: usize) -> Result<(), BoardError> {
        let width = self.crowd.load.members;
        let ids = self.crowd.ids.lock().unwrap().clone();
        match board::claim(seat, ids[task]).await {
            Ok(()) => {}
            // Two were told: both did the last of what it waited for.
            Err(BoardError::Taken { .. } | BoardError::Done(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        board::done(seat, ids[task]).await?;
        self.crowd.book(|book| book.done += 1);
        let layer = (task / width + 1) * width;
        for next in layer..(layer + width).min(ids.len()) {
            let waits_for = blockers(next, width);
            if waits_for.contains(&task) && all_done(seat, &ids, &waits_for).await? {
                let to = (self.number + 1 + next % (width - 1)) % width;
                self.crowd.send(seat, self.number, to, &format!("%{next}%")).await;
            }
        }
        Ok(())
    }
}

async fn all_done(seat: &Seat, ids: &[TaskId], tasks: &[usize]) -> Result<bool, BoardError> {
    for &task in tasks {
        let document = board::show(seat, ids[task]).await?;
        let task = Task::read(&document.bytes).unwrap();
        if task.status() != Some(Status::Completed) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The numbers in a text that stand between two of these signs.
fn between(text: &str, sign: char) -> Vec<usize> {
    text.split(sign).filter_map(|piece| piece.parse().ok()).collect()
}

pub(crate) fn play(spot: &Spot, load: Load) {
    let found = block_on(at_work(spot, load));
    say(&found.to_string());
}

async fn at_work(spot: &Spot, load: Load) -> Value {
    let lead = found(spot).await;
    let crowd = Crowd { load, ids: Arc::default(), book: Arc::default() };
    let began = Instant::now();
    let (tell, mut ready) = mpsc::unbounded_channel();
    let mut seats = Vec::new();
    for number in 0..load.members {
        let seat = join(&lead, number).await;
        seats.push(seat.clone());
        let (hand, tell) = (crowd.clone(), tell.clone());
        let workers = Workers::new(move || Hand { number, crowd: hand.clone() });
        let troubled = crowd.clone();
        let sights = move |sight| match sight {
            Sight::Did(driver::Event::Ready { .. }) => drop(tell.send(())),
            Sight::Trouble(what) => troubled.fault(what),
            _ => {}
        };
        let (_nobody, typed) = mpsc::unbounded_channel();
        tokio::spawn(teammate::run_seen(Plan::in_process(seat, workers), typed, sights));
    }
    for _ in 0..load.members {
        ready.recv().await.unwrap();
    }
    let (up, when_up) = (began.elapsed().as_secs_f64(), memory("VmRSS:"));
    let ids = fill_board(&lead, load).await;
    crowd.ids.lock().unwrap().clone_from(&ids);
    let reports = Arc::new(Mutex::new(0));
    tokio::spawn(read_reports(lead.clone(), Arc::clone(&reports)));

    let used = Used::so_far();
    let share = (load.messages - load.tasks) / load.members;
    let senders = seats.iter().cloned().enumerate().map(|(number, seat)| {
        let crowd = crowd.clone();
        tokio::spawn(async move {
            if number < load.tasks {
                let own = format!("%{number}%");
                crowd.send(&seat, number, (number + 1) % load.members, &own).await;
            }
            for sent in 0..share {
                let to = (number + 1 + sent % (load.members - 1)) % load.members;
                crowd.send(&seat, number, to, "").await;
                // The store does not wait for anything that others could use the thread for.
                tokio::task::yield_now().await;
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    for sender in senders {
        sender.await.unwrap();
    }
    let start = Instant::now();
    loop {
        let all = crowd.book(|book| book.done >= load.tasks && book.shown.len() >= book.sent.len());
        // What never comes is told below by its number.
        if all || start.elapsed() > PATIENCE {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (took, processor) = used.since();
    let most = memory("VmHWM:");
    // What comes once more would come now.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (not_once, early) = judge(&lead, &ids, load.members).await;
    crowd.book(|book| {
        let lost: Vec<usize> =
            (0..book.sent.len()).filter(|id| !book.shown.contains_key(id)).collect();
        json!({
            "up": up, "when_up": when_up, "took": took, "processor": processor, "most": most,
            "sent": book.sent.len(), "shown": book.shown.len(), "turns": book.turns,
            "done": book.done, "reports": *reports.lock().unwrap(),
            "lost": lost, "twice": book.twice, "disorder": book.disorder,
            "not_once": not_once, "early": early, "faults": book.faults,
        })
    })
}

/// The lead reads what it is told, as a lead does.
async fn read_reports(lead: Seat, reports: Arc<Mutex<usize>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let new = mail::inbox(&lead, &lead.name, Which::Unread).await.unwrap();
        let keys: Vec<_> = new.iter().map(|mail| mail.key).collect();
        mail::mark(&lead, &keys, Mark::Read).await.unwrap();
        *reports.lock().unwrap() += keys.len();
    }
}

/// By the team's journal: the tasks not claimed once and completed once, and those claimed while
/// something they wait for was not completed.
async fn judge(lead: &Seat, ids: &[TaskId], width: usize) -> (Vec<usize>, Vec<usize>) {
    let place: HashMap<u64, usize> =
        ids.iter().enumerate().map(|(place, id)| (id.get(), place)).collect();
    let mut was: BTreeMap<usize, Option<Status>> = BTreeMap::new();
    let mut counts: HashMap<(usize, Status), usize> = HashMap::new();
    let mut early = Vec::new();
    for record in lead.store.history(&lead.team).await.unwrap() {
        let Event::Task { id, task } = &record.event else { continue };
        let (task, number) = (Task::read(task.get().as_bytes()).unwrap(), place[id]);
        let status = task.status();
        if was.insert(number, status) == Some(status) {
            continue;
        }
        *counts.entry((number, status.unwrap())).or_default() += 1;
        let done = |of: &usize| was.get(of) == Some(&Some(Status::Completed));
        if status == Some(Status::InProgress) && !blockers(number, width).iter().all(done) {
            early.push(number);
        }
    }
    let once = |number: usize, status| counts.get(&(number, status)) == Some(&1);
    let not_once = (0..ids.len())
        .filter(|&number| !once(number, Status::InProgress) || !once(number, Status::Completed))
        .collect();
    (not_once, early)
}
