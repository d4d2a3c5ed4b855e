//! Links at work: woken, not asked to look.

use std::time::{Duration, Instant};

use brigade_link::News;
use brigade_testkit::contract::run;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation::{New, Old};
use brigade_wire::task::TaskChange;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::world::{Host, two};

/// A link that runs until this is dropped.
struct Running {
    _stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(host: &Host) -> Self {
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

/// Waits until something is so, and tells how long it took.
async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) -> Duration {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    start.elapsed()
}

#[test]
fn mail_and_tasks_go_over_at_once() {
    run(async {
        let (_, a, b) = two().await;
        let links = [Running::start(&a), Running::start(&b)];
        until("both are in step", || async {
            !a.said().is_empty() || a.texts("x").await.is_empty()
        })
        .await;
        a.write(New, "alice", "bob", "first");
        until("the first", || async { b.texts("bob").await.len() == 1 }).await;
        // Well below the sweep, which is two seconds here.
        a.write(Old, "alice", "bob", "second");
        let took = until("the second", || async { b.texts("bob").await.len() == 2 }).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        a.make_task("one", &[]);
        until("the task", || async { b.board().await.len() == 1 }).await;
        b.change_task(1, &TaskChange { owner: Change::Set("bob"), ..TaskChange::default() });
        until("the claim", || async { a.board().await[0].2 == "bob" }).await;
        for link in links {
            link.end().await;
        }
    });
}

#[test]
fn a_cut_is_said_once_and_what_waited_goes_over_after_it() {
    run(async {
        let (_, a, b) = two().await;
        let links = [Running::start(&a), Running::start(&b)];
        b.write(New, "bob", "alice", "before");
        until("the first", || async { a.texts("alice").await.len() == 1 }).await;
        b.far.cut(true);
        for number in 0..5 {
            b.write(Old, "bob", "alice", &format!("{number}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(a.texts("alice").await, ["before"]);
        b.far.cut(false);
        until("the rest", || async { a.texts("alice").await.len() == 6 }).await;
        assert_eq!(a.texts("alice").await, ["before", "0", "1", "2", "3", "4"]);
        until("it is said", || async { b.news.lock().unwrap().contains(&News::Back) }).await;
        let said = b.said();
        assert_eq!(
            said.iter().filter(|news| matches!(news, News::Cut { .. })).count(),
            1,
            "{said:?}"
        );
        for link in links {
            link.end().await;
        }
    });
}

#[test]
fn an_engine_that_does_not_answer_is_as_good_as_none() {
    run(async {
        let (_, a, b) = two().await;
        let link = Running::start(&b);
        until("it runs", || async { b.news.lock().unwrap().is_empty() }).await;
        b.far.hang(true);
        b.write(New, "bob", "alice", "patience");
        let cut = || async { b.news.lock().unwrap().iter().any(|n| matches!(n, News::Cut { .. })) };
        until("it is said", cut).await;
        b.far.hang(false);
        until("it is back", || async { b.news.lock().unwrap().contains(&News::Back) }).await;
        link.end().await;
        a.sync().await;
        assert_eq!(a.texts("alice").await, ["patience"]);
    });
}

#[test]
fn who_is_cut_off_does_not_read_the_past_again() {
    run(async {
        let (_, a, b) = two().await;
        let link = Running::start(&b);
        let came = |count| {
            let a = &a;
            move || async move {
                a.sync().await;
                a.texts("alice").await.len() == count
            }
        };
        b.write(New, "bob", "alice", "before");
        until("the first", came(1)).await;
        let before = b.far.pasts();
        let said = |is: fn(&News) -> bool| {
            let news = b.news.lock().unwrap();
            news.iter().filter(|news| is(news)).count()
        };
        for cut in 1..=5 {
            b.far.cut(true);
            b.write(Old, "bob", "alice", &format!("{cut}"));
            let is_cut = || async { said(|news| matches!(news, News::Cut { .. })) == cut };
            until("it is cut off", is_cut).await;
            b.far.cut(false);
            until("what waited", came(cut + 1)).await;
            // It arrives before all else is looked at; only then the next cut is another.
            until("it is back", || async { said(|news| *news == News::Back) == cut }).await;
        }
        // One at most for each cut: of the mailbox for which something was under way.
        let more = b.far.pasts() - before;
        assert!(more <= 5, "{more}");
        link.end().await;
    });
}
