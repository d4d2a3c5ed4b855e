//! What holds whatever happens: natives write, read and claim; links crash anywhere; the engine is cut off,
//! fails before and after it did the thing; what links remember is lost. In the end every message was taken
//! by the one it was for exactly once, and there is one board.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use brigade_core::store::Store;
use brigade_link::Link;
use brigade_testkit::contract::run;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation::{self, New, Old};
use brigade_wire::task::{Status, TaskChange};
use proptest::prelude::*;

use super::world::{Host, board, engine, sync};

/// How many lives are lived.
const CASES: u32 = 16;
/// The members, and the host of each.
const MEMBERS: [(&str, usize); 5] =
    [("team-lead", 0), ("alice", 0), ("bob", 1), ("carol", 2), ("dora", 2)];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Deed {
    Write {
        from: usize,
        to: usize,
        old: bool,
    },
    Take {
        of: usize,
        old: bool,
    },
    MakeTask {
        host: usize,
    },
    Claim {
        by: usize,
        task: u64,
    },
    Sync {
        host: usize,
    },
    /// The link of a host goes on for so many polls, and is killed.
    Crash {
        host: usize,
        polls: u16,
    },
    Cut {
        host: usize,
        cut: bool,
    },
    Fail {
        host: usize,
        rate: u64,
        seed: u64,
    },
    Forget {
        host: usize,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let member = 0..MEMBERS.len();
    let host = 0..3_usize;
    prop_oneof![
        6 => (member.clone(), member.clone(), any::<bool>())
            .prop_map(|(from, to, old)| Deed::Write { from, to, old }),
        2 => (member.clone(), any::<bool>()).prop_map(|(of, old)| Deed::Take { of, old }),
        2 => host.clone().prop_map(|host| Deed::MakeTask { host }),
        3 => (member, 1..6_u64).prop_map(|(by, task)| Deed::Claim { by, task }),
        3 => host.clone().prop_map(|host| Deed::Sync { host }),
        4 => (host.clone(), 0..200_u16).prop_map(|(host, polls)| Deed::Crash { host, polls }),
        1 => (host.clone(), any::<bool>()).prop_map(|(host, cut)| Deed::Cut { host, cut }),
        1 => (host.clone(), 0..300_u64, any::<u64>())
            .prop_map(|(host, rate, seed)| Deed::Fail { host, rate, seed }),
        1 => host.prop_map(|host| Deed::Forget { host }),
    ]
}

fn generation(old: bool) -> Generation {
    if old { Old } else { New }
}

/// Polls a link so many times, and drops it.
async fn crash(mut link: Link, polls: u16) {
    let mut pass = std::pin::pin!(link.once());
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        match pass.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await;
}

/// What was written, to whom; and the tasks that were made.
#[derive(Default)]
struct Ledger {
    written: BTreeMap<&'static str, Vec<String>>,
    count: usize,
    tasks: Vec<String>,
}

async fn happen(hosts: &[Host; 3], deed: &Deed, ledger: &mut Ledger) {
    match *deed {
        Deed::Write { from, to, old } if from != to => {
            let ((from, host), (to, _)) = (MEMBERS[from], MEMBERS[to]);
            ledger.count += 1;
            let text = format!("{} from {from} to {to}", ledger.count);
            hosts[host].write(generation(old), from, to, &text);
            ledger.written.entry(to).or_default().push(text);
        }
        Deed::Write { .. } => {}
        Deed::Take { of, old } => {
            let (of, host) = MEMBERS[of];
            hosts[host].take(generation(old), of);
        }
        Deed::MakeTask { host } => {
            let subject = format!("task {} of {}", ledger.tasks.len(), hosts[host].name);
            hosts[host].make_task(&subject, &[]);
            ledger.tasks.push(subject);
        }
        Deed::Claim { by, task } => {
            let (by, host) = MEMBERS[by];
            let free = hosts[host].board().await.iter().any(|(id, _, owner, status)| {
                *id == task && owner.is_empty() && status == "pending"
            });
            if free {
                let status = Some(Status::InProgress);
                let change = TaskChange { owner: Change::Set(by), status, ..TaskChange::default() };
                hosts[host].change_task(task, &change);
            }
        }
        Deed::Sync { host } => drop(hosts[host].link().once().await),
        Deed::Crash { host, polls } => crash(hosts[host].link(), polls).await,
        Deed::Cut { host, cut } => hosts[host].far.cut(cut),
        Deed::Fail { host, rate, seed } => hosts[host].far.fail(rate, seed),
        Deed::Forget { host } => hosts[host].notes.lose(),
    }
}

async fn three() -> (Arc<dyn Store>, [Host; 3]) {
    let engine = engine();
    let hosts = [Host::new("a", &engine), Host::new("b", &engine), Host::new("c", &engine)];
    hosts[0].lead().await;
    for host in &hosts {
        host.sync().await;
    }
    for (name, host) in &MEMBERS[1..] {
        hosts[*host].join(name).await;
    }
    sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
    (engine, hosts)
}

/// Lets all of it happen, and then peace.
async fn live(deeds: &[Deed]) -> Result<(), TestCaseError> {
    let (engine, hosts) = three().await;
    let mut ledger = Ledger::default();
    for deed in deeds {
        happen(&hosts, deed, &mut ledger).await;
    }
    for host in &hosts {
        host.far.cut(false);
        host.far.fail(0, 0);
    }
    for _ in 0..2 {
        sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
        for (name, host) in MEMBERS {
            hosts[host].take(New, name);
        }
    }
    sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
    for (name, host) in MEMBERS {
        let mut taken = hosts[host].taken(name);
        // What a link has to tell is not what somebody wrote.
        taken.retain(|text| !text.starts_with("Your ") && !text.starts_with("Task "));
        taken.sort();
        let mut written = ledger.written.remove(name).unwrap_or_default();
        written.sort();
        prop_assert_eq!(taken, written, "the mail of {}", name);
    }
    let far = board(engine.as_ref()).await;
    for host in &hosts {
        prop_assert_eq!(&host.board().await, &far, "the board of {}", host.name);
    }
    let mut subjects: Vec<String> = far.into_iter().map(|(_, subject, ..)| subject).collect();
    subjects.sort();
    ledger.tasks.sort();
    prop_assert_eq!(subjects, ledger.tasks, "every task once");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_message_arrives_once_and_there_is_one_board(
        deeds in proptest::collection::vec(deed(), 1..40)
    ) {
        let mut outcome = Ok(());
        run(async { outcome = live(&deeds).await });
        outcome?;
    }
}
