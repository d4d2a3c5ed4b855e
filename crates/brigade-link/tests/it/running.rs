//! Tests of links that keep running and react to events.

use std::time::{Duration, Instant};

use brigade_link::LinkEvent;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation::{New, Old};
use brigade_wire::task::TaskChange;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::world::{TestHost, two_hosts};

/// A link that runs until this value is dropped.
struct RunningLink {
    _stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningLink {
    fn start(host: &TestHost) -> Self {
        let (sender, stop) = oneshot::channel::<()>();
        let mut link = host.link();
        let task = tokio::spawn(async move {
            let stop = async { drop(stop.await) };
            link.run(stop).await.unwrap();
        });
        Self { _stop: sender, task }
    }

    async fn end(self) {
        let Self { _stop, task } = self;
        drop(_stop);
        task.await.unwrap();
    }
}

/// Waits until a condition holds, and returns how long that took.
async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) -> Duration {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < Duration::from_secs(20), "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    start.elapsed()
}

fn count_events(host: &TestHost, is: fn(&LinkEvent) -> bool) -> usize {
    host.events.lock().unwrap().iter().filter(|event| is(event)).count()
}

fn is_cut(event: &LinkEvent) -> bool {
    matches!(event, LinkEvent::Cut { .. })
}

/// Waits until a host's link has reported this many disconnections.
async fn until_cut(host: &TestHost, times: usize) {
    let is = || async { count_events(host, is_cut) >= times };
    until("the disconnection is reported", is).await;
}

/// Waits until a host's link has reported this many reconnections.
async fn until_reconnected(host: &TestHost, times: usize) {
    let is = || async { count_events(host, |event| *event == LinkEvent::Back) >= times };
    until("the reconnection is reported", is).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_and_tasks_are_forwarded_immediately() {
    let (_, a, b) = two_hosts().await;
    let links = [RunningLink::start(&a), RunningLink::start(&b)];
    a.write(New, "alice", "bob", "first");
    until("the first message arrives", || async { b.texts("bob").await.len() == 1 }).await;
    // The limit below is well under the interval between full checks, which is two seconds here.
    a.write(Old, "alice", "bob", "second");
    let took =
        until("the second message arrives", || async { b.texts("bob").await.len() == 2 }).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    a.make_task("one", &[]);
    until("the task arrives", || async { b.board().await.len() == 1 }).await;
    b.change_task(1, &TaskChange { owner: Change::Set("bob"), ..TaskChange::default() });
    until("the claim arrives", || async { a.board().await[0].2 == "bob" }).await;
    for link in links {
        link.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnection_is_reported_once_and_waiting_mail_is_sent_afterwards() {
    let (_, a, b) = two_hosts().await;
    let links = [RunningLink::start(&a), RunningLink::start(&b)];
    b.write(New, "bob", "alice", "before");
    until("the first message arrives", || async { a.texts("alice").await.len() == 1 }).await;
    b.flaky.cut(true);
    for number in 0..5 {
        b.write(Old, "bob", "alice", &format!("{number}"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(a.texts("alice").await, ["before"]);
    b.flaky.cut(false);
    until("the waiting messages arrive", || async { a.texts("alice").await.len() == 6 }).await;
    assert_eq!(a.texts("alice").await, ["before", "0", "1", "2", "3", "4"]);
    until_reconnected(&b, 1).await;
    assert_eq!(count_events(&b, is_cut), 1, "{:?}", b.drain_events());
    for link in links {
        link.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_store_counts_as_unreachable() {
    let (_, a, b) = two_hosts().await;
    let link = RunningLink::start(&b);
    b.write(New, "bob", "alice", "before");
    let has_arrived = || async {
        a.sync().await;
        a.texts("alice").await.len() == 1
    };
    until("the first message arrives", has_arrived).await;
    b.flaky.hang(true);
    b.write(New, "bob", "alice", "waiting");
    until_cut(&b, 1).await;
    b.flaky.hang(false);
    until_reconnected(&b, 1).await;
    link.end().await;
    a.sync().await;
    assert_eq!(a.texts("alice").await, ["before", "waiting"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_does_not_read_the_whole_history_again() {
    let (_, a, b) = two_hosts().await;
    let link = RunningLink::start(&b);
    let has_arrived = |count| {
        let a = &a;
        move || async move {
            a.sync().await;
            a.texts("alice").await.len() == count
        }
    };
    b.write(New, "bob", "alice", "before");
    until("the first message arrives", has_arrived(1)).await;
    let before = b.flaky.history_reads();
    for cut in 1..=5 {
        b.flaky.cut(true);
        b.write(Old, "bob", "alice", &format!("{cut}"));
        until_cut(&b, cut).await;
        b.flaky.cut(false);
        until("the waiting message arrives", has_arrived(cut + 1)).await;
        // The message arrives before the full check has finished. Wait for that check, because the
        // link reports the next disconnection only after that check has finished.
        until_reconnected(&b, cut).await;
    }
    // After each disconnection, the link may read only one history again: the history of the
    // mailbox that it was synchronizing.
    let more = b.flaky.history_reads() - before;
    assert!(more <= 5, "{more}");
    link.end().await;
}
