//! Property test: native members write and read messages and claim tasks at random. Links crash at
//! any point and lose their saved states. The shared store disconnects. Its operations fail, before
//! or after they take effect. In the end, each recipient has read every message exactly once, and
//! all boards are equal.

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

use super::world::{TestHost, board, hosts, sync};

/// Number of random test cases.
const CASES: u32 = 16;
/// The members, and the host of each.
const MEMBERS: [(&str, usize); 5] =
    [("team-lead", 0), ("alice", 0), ("bob", 1), ("carol", 2), ("dora", 2)];

/// One random step of a test case.
#[derive(Clone, Debug)]
enum SimStep {
    Write {
        from: usize,
        to: usize,
        old: bool,
    },
    Take {
        member_index: usize,
        old: bool,
    },
    MakeTask {
        host: usize,
    },
    Claim {
        claimant: usize,
        task: u64,
    },
    Sync {
        host: usize,
    },
    /// The link of a host is polled this many times and then killed.
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

fn step() -> impl Strategy<Value = SimStep> {
    let member = 0..MEMBERS.len();
    let host = 0..3_usize;
    prop_oneof![
        6 => (member.clone(), member.clone(), any::<bool>())
            .prop_map(|(from, to, old)| SimStep::Write { from, to, old }),
        2 => (member.clone(), any::<bool>()).prop_map(|(member_index, old)| SimStep::Take { member_index, old }),
        2 => host.clone().prop_map(|host| SimStep::MakeTask { host }),
        3 => (member, 1..6_u64).prop_map(|(claimant, task)| SimStep::Claim { claimant, task }),
        3 => host.clone().prop_map(|host| SimStep::Sync { host }),
        4 => (host.clone(), 0..200_u16).prop_map(|(host, polls)| SimStep::Crash { host, polls }),
        1 => (host.clone(), any::<bool>()).prop_map(|(host, cut)| SimStep::Cut { host, cut }),
        1 => (host.clone(), 0..300_u64, any::<u64>())
            .prop_map(|(host, rate, seed)| SimStep::Fail { host, rate, seed }),
        1 => host.prop_map(|host| SimStep::Forget { host }),
    ]
}

fn generation(old: bool) -> Generation {
    if old { Old } else { New }
}

/// Polls a link `polls` times, then drops it.
async fn crash(mut link: Link, polls: u16) {
    let mut pass = std::pin::pin!(link.once());
    let mut remaining = polls;
    std::future::poll_fn(|context| {
        if remaining == 0 {
            return Poll::Ready(());
        }
        remaining -= 1;
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

/// The messages that were written to each member, and the subjects of the tasks that were created.
#[derive(Default)]
struct ExpectedState {
    written: BTreeMap<&'static str, Vec<String>>,
    count: usize,
    tasks: Vec<String>,
}

async fn apply(hosts: &[TestHost; 3], step: &SimStep, expected: &mut ExpectedState) {
    match *step {
        SimStep::Write { from, to, old } if from != to => {
            let ((from, host), (to, _)) = (MEMBERS[from], MEMBERS[to]);
            expected.count += 1;
            let text = format!("{} from {from} to {to}", expected.count);
            hosts[host].write(generation(old), from, to, &text);
            expected.written.entry(to).or_default().push(text);
        }
        SimStep::Write { .. } => {}
        SimStep::Take { member_index, old } => {
            let (name, host) = MEMBERS[member_index];
            hosts[host].read_inbox(generation(old), name);
        }
        SimStep::MakeTask { host } => {
            let subject = format!("task {} of {}", expected.tasks.len(), hosts[host].name);
            hosts[host].make_task(&subject, &[]);
            expected.tasks.push(subject);
        }
        SimStep::Claim { claimant, task } => {
            let (claimant, host) = MEMBERS[claimant];
            let free = hosts[host].board().await.iter().any(|(id, _, owner, status)| {
                *id == task && owner.is_empty() && status == "pending"
            });
            if free {
                let status = Some(Status::InProgress);
                let change =
                    TaskChange { owner: Change::Set(claimant), status, ..TaskChange::default() };
                hosts[host].change_task(task, &change);
            }
        }
        SimStep::Sync { host } => drop(hosts[host].link().once().await),
        SimStep::Crash { host, polls } => crash(hosts[host].link(), polls).await,
        SimStep::Cut { host, cut } => hosts[host].flaky.cut(cut),
        SimStep::Fail { host, rate, seed } => hosts[host].flaky.fail(rate, seed),
        SimStep::Forget { host } => hosts[host].notebook.lose(),
    }
}

async fn three_hosts() -> (Arc<dyn Store>, [TestHost; 3]) {
    let (shared_store, hosts) = hosts(["a", "b", "c"]);
    hosts[0].lead().await;
    for host in &hosts {
        host.sync().await;
    }
    for (name, host) in &MEMBERS[1..] {
        hosts[*host].join(name).await;
    }
    sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
    (shared_store, hosts)
}

/// Runs all steps, then synchronizes without failures and checks the result.
async fn run_steps(steps: &[SimStep]) -> Result<(), TestCaseError> {
    let (shared_store, hosts) = three_hosts().await;
    let mut expected = ExpectedState::default();
    for step in steps {
        apply(&hosts, step, &mut expected).await;
    }
    for host in &hosts {
        host.flaky.cut(false);
        host.flaky.fail(0, 0);
    }
    for _ in 0..2 {
        sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
        for (name, host) in MEMBERS {
            hosts[host].read_inbox(New, name);
        }
    }
    sync(&[&hosts[0], &hosts[1], &hosts[2]]).await;
    for (name, host) in MEMBERS {
        let mut read = hosts[host].read_texts(name);
        // Ignore notices, because links wrote them, not members.
        read.retain(|text| !text.starts_with("Your ") && !text.starts_with("Task "));
        read.sort();
        let mut written = expected.written.remove(name).unwrap_or_default();
        written.sort();
        prop_assert_eq!(read, written, "mail of {}", name);
    }
    let shared = board(shared_store.as_ref()).await;
    for host in &hosts {
        prop_assert_eq!(&host.board().await, &shared, "board of {}", host.name);
    }
    let mut subjects: Vec<String> = shared.into_iter().map(|(_, subject, ..)| subject).collect();
    subjects.sort();
    expected.tasks.sort();
    prop_assert_eq!(subjects, expected.tasks, "every task should exist exactly once");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_message_arrives_once_and_all_boards_are_equal(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let mut outcome = Ok(());
        run(async { outcome = run_steps(&steps).await });
        outcome?;
    }
}
