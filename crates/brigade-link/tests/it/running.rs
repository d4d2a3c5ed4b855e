//! Tests of running links, which react to events.

use std::time::{Duration, Instant};

use brigade_link::LinkEvent;
use brigade_testkit::contract::run;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation::{New, Old};
use brigade_wire::task::TaskChange;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::world::{TestHost, two_hosts};

/// A link that runs until this is dropped.
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

#[test]
fn mail_and_tasks_are_forwarded_immediately() {
    run(async {
        let (_, a, b) = two_hosts().await;
        let links = [RunningLink::start(&a), RunningLink::start(&b)];
        until("both are in step", || async {
            !a.drain_events().is_empty() || a.texts("x").await.is_empty()
        })
        .await;
        a.write(New, "alice", "bob", "first");
        until("the first message arrives", || async { b.texts("bob").await.len() == 1 }).await;
        // Well below the interval of the full check, which is two seconds here.
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
    });
}

#[test]
fn a_disconnection_is_reported_once_and_waiting_mail_is_sent_afterwards() {
    run(async {
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
        until("the reconnection is reported", || async {
            b.events.lock().unwrap().contains(&LinkEvent::Back)
        })
        .await;
        let events = b.drain_events();
        assert_eq!(
            events.iter().filter(|event| matches!(event, LinkEvent::Cut { .. })).count(),
            1,
            "{events:?}"
        );
        for link in links {
            link.end().await;
        }
    });
}

#[test]
fn a_hanging_store_counts_as_unreachable() {
    run(async {
        let (_, a, b) = two_hosts().await;
        let link = RunningLink::start(&b);
        until("the link runs", || async { b.events.lock().unwrap().is_empty() }).await;
        b.flaky.hang(true);
        b.write(New, "bob", "alice", "waiting");
        let is_cut = || async {
            b.events.lock().unwrap().iter().any(|event| matches!(event, LinkEvent::Cut { .. }))
        };
        until("the disconnection is reported", is_cut).await;
        b.flaky.hang(false);
        until("the reconnection is reported", || async {
            b.events.lock().unwrap().contains(&LinkEvent::Back)
        })
        .await;
        link.end().await;
        a.sync().await;
        assert_eq!(a.texts("alice").await, ["waiting"]);
    });
}

#[test]
fn reconnecting_does_not_read_the_whole_history_again() {
    run(async {
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
        let count_events = |is: fn(&LinkEvent) -> bool| {
            let events = b.events.lock().unwrap();
            events.iter().filter(|event| is(event)).count()
        };
        for cut in 1..=5 {
            b.flaky.cut(true);
            b.write(Old, "bob", "alice", &format!("{cut}"));
            let is_cut =
                || async { count_events(|event| matches!(event, LinkEvent::Cut { .. })) == cut };
            until("the disconnection is reported", is_cut).await;
            b.flaky.cut(false);
            until("the waiting message arrives", has_arrived(cut + 1)).await;
            // The message arrives before the full check has finished. Only after that does the next
            // disconnection count as a new one.
            until("the reconnection is reported", || async {
                count_events(|event| *event == LinkEvent::Back) == cut
            })
            .await;
        }
        // At most one for each disconnection: that of the mailbox with a message in progress.
        let more = b.flaky.history_reads() - before;
        assert!(more <= 5, "{more}");
        link.end().await;
    });
}
