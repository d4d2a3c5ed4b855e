//! Runs members in one process. They send each other messages. If a message names a task that is ready, the
//! member that reads the message does the task. If other tasks become ready as a result, that member sends
//! their numbers to other members.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brigade_agents::driver;
use brigade_agents::teammate::{self, TeammateConfig, TeammateEvent};
use brigade_agents::worker::{Worker, WorkerContext, Workers};
use brigade_core::board::{self, BoardError};
use brigade_core::event::Event;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::children::print_line;
use crate::in_process::{
    CpuTime, Workload, block_on, blockers, create_team, fill_board, join, memory, name,
};
use crate::temp_team::TeamDirs;

/// The longest time to wait until all tasks are done and all messages are shown.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The messages that were sent and shown, and the errors.
#[derive(Debug, Default)]
struct DeliveryLog {
    /// The sender and the recipient of each message, and whether the message must be shown in order.
    sent: Vec<(usize, usize, bool)>,
    shown: HashMap<usize, usize>,
    /// For each pair of sender and recipient, the message that was shown last.
    last: HashMap<(usize, usize), usize>,
    twice: Vec<usize>,
    disorder: Vec<usize>,
    done: usize,
    turns: usize,
    faults: Vec<String>,
}

impl DeliveryLog {
    fn shown(&mut self, id: usize, to: usize) {
        self.shown.entry(id).and_modify(|times| *times += 1).or_insert(1);
        let (from, reader, ordered) = self.sent[id];
        if self.shown[&id] > 1 || reader != to {
            self.twice.push(id);
        }
        if ordered && self.last.insert((from, to), id).is_some_and(|last| last > id) {
            self.disorder.push(id);
        }
    }
}

/// State that all members share.
#[derive(Clone, Debug)]
struct WorkerState {
    load: Workload,
    ids: Arc<Mutex<Vec<TaskId>>>,
    log: Arc<Mutex<DeliveryLog>>,
}

impl WorkerState {
    fn log<T>(&self, write: impl FnOnce(&mut DeliveryLog) -> T) -> T {
        write(&mut self.log.lock().unwrap())
    }

    /// Sends a message with a unique id.
    async fn send(&self, seat: &Seat, from: usize, to: usize, about: &str) {
        let ordered = about.is_empty();
        let id = self.log(|log| {
            log.sent.push((from, to, ordered));
            log.sent.len() - 1
        });
        let text = format!("{:.<300}", format!("#{id}# {about} "));
        if let Err(error) = mail::send(seat, &name(to), text.as_str()).await {
            self.fault(format!("a send failed: {error}"));
        }
    }

    fn fault(&self, what: String) {
        self.log(|log| log.faults.push(what));
    }
}

/// A member, as a worker that runs in this process.
struct TestWorker {
    number: usize,
    shared: WorkerState,
}

impl Worker for TestWorker {
    async fn turn(&mut self, context: &WorkerContext, text: &str) -> Result<String, String> {
        let ids: Vec<usize> = between(text, '#');
        self.shared.log(|log| {
            log.turns += 1;
            for id in ids {
                log.shown(id, self.number);
            }
        });
        for task in between(text, '%') {
            if let Err(error) = self.work(&context.seat, task).await {
                self.shared.fault(format!("task {task}: {error}"));
            }
        }
        Ok("done".to_owned())
    }
}

impl TestWorker {
    /// Does a task unless another member has claimed it. Sends the numbers of unblocked tasks to other members.
    async fn work(&self, seat: &Seat, task: usize) -> Result<(), BoardError> {
        let width = self.shared.load.members;
        let ids = self.shared.ids.lock().unwrap().clone();
        match board::claim(seat, ids[task]).await {
            Ok(()) => {}
            // If two members completed the task's blockers at the same time, both may have sent its number.
            Err(BoardError::Taken { .. } | BoardError::Done(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        board::done(seat, ids[task]).await?;
        self.shared.log(|log| log.done += 1);
        let layer = (task / width + 1) * width;
        for next in layer..(layer + width).min(ids.len()) {
            let waits_for = blockers(next, width);
            if waits_for.contains(&task) && all_done(seat, &ids, &waits_for).await? {
                let to = (self.number + 1 + next % (width - 1)) % width;
                self.shared.send(seat, self.number, to, &format!("%{next}%")).await;
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

/// Splits a text at this character. Returns the pieces that are numbers.
fn between(text: &str, sign: char) -> Vec<usize> {
    text.split(sign).filter_map(|piece| piece.parse().ok()).collect()
}

pub(crate) fn run(dirs: &TeamDirs, load: Workload) {
    let found = block_on(run_team(dirs, load));
    print_line(&found.to_string());
}

async fn run_team(dirs: &TeamDirs, load: Workload) -> Value {
    let lead = create_team(dirs).await;
    let shared = WorkerState { load, ids: Arc::default(), log: Arc::default() };
    let began = Instant::now();
    let (started, mut ready) = mpsc::unbounded_channel();
    let mut seats = Vec::new();
    for number in 0..load.members {
        let seat = join(&lead, number).await;
        seats.push(seat.clone());
        let (state, started) = (shared.clone(), started.clone());
        let workers = Workers::new(move || TestWorker { number, shared: state.clone() });
        let state = shared.clone();
        let observe = move |event| match event {
            TeammateEvent::Did(driver::AgentEvent::Ready { .. }) => drop(started.send(())),
            TeammateEvent::Trouble(what) => state.fault(what),
            _ => {}
        };
        let (_keyboard, typed) = mpsc::unbounded_channel();
        tokio::spawn(teammate::run_observed(
            TeammateConfig::in_process(seat, workers),
            typed,
            observe,
        ));
    }
    for _ in 0..load.members {
        ready.recv().await.unwrap();
    }
    let (up, when_up) = (began.elapsed().as_secs_f64(), memory("VmRSS:"));
    let ids = fill_board(&lead, load).await;
    shared.ids.lock().unwrap().clone_from(&ids);
    let reports = Arc::new(Mutex::new(0));
    tokio::spawn(read_reports(lead.clone(), Arc::clone(&reports)));

    let used = CpuTime::now();
    let share = (load.messages - load.tasks) / load.members;
    let senders = seats.iter().cloned().enumerate().map(|(number, seat)| {
        let shared = shared.clone();
        tokio::spawn(async move {
            if number < load.tasks {
                let own = format!("%{number}%");
                shared.send(&seat, number, (number + 1) % load.members, &own).await;
            }
            for sent in 0..share {
                let to = (number + 1 + sent % (load.members - 1)) % load.members;
                shared.send(&seat, number, to, "").await;
                // Let other async tasks run: the file store never yields to them.
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
        let all = shared.log(|log| log.done >= load.tasks && log.shown.len() >= log.sent.len());
        // After a timeout, missing messages are reported below.
        if all || start.elapsed() > TIMEOUT {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (took, processor) = used.since();
    let most = memory("VmHWM:");
    // Wait for messages that are wrongly delivered a second time.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (not_once, early) = check_tasks(&lead, &ids, load.members).await;
    shared.log(|log| {
        let lost: Vec<usize> =
            (0..log.sent.len()).filter(|id| !log.shown.contains_key(id)).collect();
        json!({
            "up": up, "when_up": when_up, "took": took, "processor": processor, "most": most,
            "sent": log.sent.len(), "shown": log.shown.len(), "turns": log.turns,
            "done": log.done, "reports": *reports.lock().unwrap(),
            "lost": lost, "twice": log.twice, "disorder": log.disorder,
            "not_once": not_once, "early": early, "faults": log.faults,
        })
    })
}

/// Reads the lead's mail in a loop, and counts the messages.
async fn read_reports(lead: Seat, reports: Arc<Mutex<usize>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let new = mail::inbox(&lead, &lead.name, InboxFilter::Unread).await.unwrap();
        let keys: Vec<_> = new.iter().map(|mail| mail.key).collect();
        mail::mark(&lead, &keys, Mark::Read).await.unwrap();
        *reports.lock().unwrap() += keys.len();
    }
}

/// Reads the journal. Returns the tasks whose number of claims or completions is not 1, and the tasks that were
/// claimed before their blockers were completed.
async fn check_tasks(lead: &Seat, ids: &[TaskId], width: usize) -> (Vec<usize>, Vec<usize>) {
    let numbers: HashMap<u64, usize> =
        ids.iter().enumerate().map(|(number, id)| (id.get(), number)).collect();
    let mut was: BTreeMap<usize, Option<Status>> = BTreeMap::new();
    let mut counts: HashMap<(usize, Status), usize> = HashMap::new();
    let mut early = Vec::new();
    for record in lead.store.history(&lead.team).await.unwrap() {
        let Event::Task { id, task } = &record.event else { continue };
        let (task, number) = (Task::read(task.get().as_bytes()).unwrap(), numbers[id]);
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
