//! An hour in which nobody answers, with members at work and no real time gone by.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_agents::driver::{
    Access, Agent, Ask, AskId, Can, Driver, End, Event, Invocation, Launch, MidTurn, Note, Output,
    ReadOnly, Resumes, Told, ToolServer, Verdict,
};
use brigade_agents::program::Start;
use brigade_agents::teammate::{self, Plan, Player, Sight};
use brigade_core::approvals::{self, Approval, Wanted};
use brigade_core::clock::Clock;
use brigade_core::handshake::{Answer, Kind};
use brigade_core::pulse::Process;
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::env::House;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// A clock that goes with the runtime's, which stands still while there is something to do.
#[derive(Debug)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
        start + SignedDuration::try_from(self.0.elapsed()).unwrap()
    }
}

/// An agent that asks once and waits.
#[derive(Debug)]
struct Asker {
    ask: Option<Ask>,
    out: VecDeque<Output>,
}

impl Asker {
    fn tell(&mut self, events: impl IntoIterator<Item = Event>) {
        self.out.extend(events.into_iter().map(Output::Event));
    }
}

impl Driver for Asker {
    fn invocation(&self) -> Invocation {
        Invocation::default()
    }

    fn start(&mut self) {
        self.tell([Event::Ready { session: "s".into() }]);
    }

    fn hear(&mut self, _: &[u8]) {}

    fn prompt(&mut self, note: Note, _: &str) {
        let then = self.ask.take().map_or(Event::TurnEnded(End::Done), Event::Asks);
        self.tell([Event::Taken(note), Event::TurnStarted, then]);
    }

    fn steer(&mut self, note: Note, _: &str) {
        self.tell([Event::NotTaken(note)]);
    }

    fn answer(&mut self, _: AskId, verdict: &Verdict) {
        self.tell([Event::Said(format!("{verdict:?}")), Event::TurnEnded(End::Done)]);
    }

    fn interrupt(&mut self) {}

    fn set_access(&mut self, _: Access) {}

    fn next(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
}

/// What it asks for is its model's business.
fn asker(launch: Launch) -> Box<dyn Driver> {
    let ask = Ask {
        id: AskId(1),
        tool: "shell".into(),
        tool_use_id: "t".into(),
        description: "to see".into(),
        input: json!({ "command": "make" }),
        plan: launch.model,
    };
    Box::new(Asker { ask: Some(ask), out: VecDeque::new() })
}

fn plan(house: &House, name: &str, plan: Option<&str>) -> Plan {
    let can = Can {
        mid_turn: MidTurn::Held,
        read_only: ReadOnly::Asking,
        usage: Told::Nothing,
        resumes: Resumes::AtOnce,
    };
    let agent = Agent {
        name: "asker",
        title: "Asker",
        program: "cat",
        package: "",
        tested: "",
        native: false,
        can,
        driver: asker,
    };
    // It says nothing, and stays for as long as it is spoken to.
    let mut start = Start::new(Vec::new(), "cat", "/");
    start.sweep = |_| {};
    let mut launch = Launch::new("/work", ToolServer::default());
    launch.model = plan.map(str::to_owned);
    launch.access = if plan.is_some() { Access::ReadOnly } else { Access::Ask };
    let mut plan = Plan::new(house.seat(name), agent, Player::Program(start), launch);
    plan.host = "here".to_owned();
    plan.process = Process { pid: 1, began: String::new() };
    plan
}

/// Waits, in no time, until something is so.
async fn until(what: &str, so: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if so().await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("after a minute it is not so that {what}");
}

/// Runs a test on a team whose clock is the runtime's.
fn in_no_time<F: Future<Output = ()>>(test: impl FnOnce(House) -> F) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(PausedClock(Instant::now()));
        let mut house = House::build(Arc::new(MemoryStore::new(Arc::clone(&clock)))).await;
        house.clock = clock;
        test(house).await;
    });
}

/// A member whose process is killed while it waits: the next one does not wait for that. It may ask anew.
#[test]
fn a_request_dies_with_the_process_that_asked() {
    in_no_time(async |house| {
        let lead = house.seat("team-lead");
        let first_waits = async || {
            approvals::waiting(&lead).await.unwrap().iter().any(|waiting| waiting.number == 1)
        };
        let life =
            || teammate::run_seen(plan(&house, "bob", None), mpsc::unbounded_channel().1, drop);
        house.say("team-lead", "bob", "go").await;
        tokio::select! {
            over = life() => panic!("bob is gone: {over:?}"),
            () = until("bob asks", first_waits) => {}
        }
        assert!(first_waits().await);
        tokio::select! {
            over = life() => panic!("bob is gone: {over:?}"),
            () = until("nobody asks", async || !first_waits().await) => {}
        }
    });
}

#[test]
fn a_plan_and_a_permission_wait_for_an_hour() {
    in_no_time(async |house| {
        let sights = RefCell::new(Vec::new());
        let see = |sight: Sight| sights.borrow_mut().push(sight);
        let nobody_types = || mpsc::unbounded_channel().1;
        let alice =
            teammate::run_seen(plan(&house, "alice", Some("First, look.")), nobody_types(), see);
        let bob = teammate::run_seen(plan(&house, "bob", None), nobody_types(), see);
        tokio::select! {
            over = alice => panic!("alice is gone: {over:?}"),
            over = bob => panic!("bob is gone: {over:?}"),
            () = hour(&house, &sights) => {}
        }
    });
}

async fn hour(house: &House, sights: &RefCell<Vec<Sight>>) {
    let lead = house.seat("team-lead");
    for name in ["alice", "bob"] {
        house.say("team-lead", name, "go").await;
    }
    let waiting = async || approvals::waiting(&lead).await.unwrap();
    until("two requests wait", async || waiting().await.len() == 2).await;
    let asked = waiting().await;
    sleep(Duration::from_secs(3600)).await;

    assert_eq!(waiting().await, asked);
    for approval in &asked {
        let age = house.clock.now().duration_since(approval.at);
        assert!(age >= SignedDuration::from_hours(1), "{age:?}");
        // Neither the one who asks nor its neighbour answers.
        for name in ["alice", "bob"] {
            let seat = house.seat(name);
            let refused = approvals::answer(&seat, approval, Answer::Yes).await.unwrap_err();
            let refused = refused.to_string();
            assert!(refused.starts_with("only the lead may answer a p"), "{refused}");
            let refused = approvals::waiting(&seat).await.unwrap_err().to_string();
            assert!(refused.starts_with("only the lead may see"), "{refused}");
        }
    }
    for name in ["alice", "bob"] {
        let texts = house.texts(name).await;
        assert_eq!(texts, [("go".to_owned(), true)], "{name} was told something");
    }
    let was_answered = |sight: &Sight| matches!(sight, Sight::Answered { .. });
    assert!(!sights.borrow().iter().any(was_answered), "{:?}", sights.borrow());

    let of =
        |kind: Kind| -> &Approval { asked.iter().find(|its| its.wanted.kind() == kind).unwrap() };
    let Wanted::Plan { plan, .. } = &of(Kind::Plan).wanted else { panic!("no plan") };
    assert_eq!(plan, "First, look.");
    approvals::answer(&lead, of(Kind::Plan), Answer::Yes).await.unwrap();
    approvals::answer(&lead, of(Kind::Permission), Answer::No("not now")).await.unwrap();
    let said = async |words: &str| {
        let said = Sight::Did(Event::Said(words.to_owned()));
        sights.borrow().contains(&said)
    };
    until("alice may go on", async || said("Allow").await).await;
    until("bob may not", async || said("Deny(\"not now\")").await).await;
    assert_eq!(waiting().await, []);
}
