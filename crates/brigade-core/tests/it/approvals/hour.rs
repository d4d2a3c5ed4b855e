//! Tests with requests that wait for an hour. The clock is paused, so no real time passes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_agents::driver::{
    Access, Agent, AgentAsk, AgentCapabilities, AgentEvent, AskId, Driver, DriverOutput,
    Invocation, LaunchOptions, LoginCheck, MidTurn, PermissionAnswer, ReadOnly, ResumeTiming,
    TextNumber, ToolServer, TurnEnd, UsageReporting,
};
use brigade_agents::program::ProgramCommand;
use brigade_agents::teammate::{self, AgentRunner, TeammateConfig, TeammateEvent};
use brigade_core::approvals::{self, Approval, ApprovalSubject};
use brigade_core::clock::Clock;
use brigade_core::handshake::{Answer, RequestKind};
use brigade_core::pulse::Process;
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::env::TestEnv;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// A clock that follows the runtime's paused time, which advances only while all async tasks wait.
#[derive(Debug)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
        start + SignedDuration::try_from(self.0.elapsed()).unwrap()
    }
}

/// An agent that sends one request and waits for the answer.
#[derive(Debug)]
struct Asker {
    ask: Option<AgentAsk>,
    out: VecDeque<DriverOutput>,
}

impl Asker {
    fn emit(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        self.out.extend(events.into_iter().map(DriverOutput::Event));
    }
}

impl Driver for Asker {
    fn invocation(&self) -> Invocation {
        Invocation::default()
    }

    fn start(&mut self) {
        self.emit([AgentEvent::Ready { session: "s".into() }]);
    }

    fn on_output(&mut self, _: &[u8]) {}

    fn prompt(&mut self, note: TextNumber, _: &str) {
        let then = self.ask.take().map_or(AgentEvent::TurnEnded(TurnEnd::Done), AgentEvent::Asks);
        self.emit([AgentEvent::Taken(note), AgentEvent::TurnStarted, then]);
    }

    fn steer(&mut self, note: TextNumber, _: &str) {
        self.emit([AgentEvent::NotTaken(note)]);
    }

    fn answer(&mut self, _: AskId, verdict: &PermissionAnswer) {
        self.emit([AgentEvent::Said(format!("{verdict:?}")), AgentEvent::TurnEnded(TurnEnd::Done)]);
    }

    fn interrupt(&mut self) {}

    fn set_access(&mut self, _: Access) {}

    fn next(&mut self) -> Option<DriverOutput> {
        self.out.pop_front()
    }
}

/// Creates the agent. If a model name is set, the agent submits that name as a plan; otherwise it asks for a
/// permission.
fn asker(launch: LaunchOptions) -> Box<dyn Driver> {
    let ask = AgentAsk {
        id: AskId(1),
        tool: "shell".into(),
        tool_use_id: "t".into(),
        description: "to see".into(),
        input: json!({ "command": "make" }),
        request: Value::Null,
        plan: launch.model,
    };
    Box::new(Asker { ask: Some(ask), out: VecDeque::new() })
}

fn plan(env: &TestEnv, name: &str, plan: Option<&str>) -> TeammateConfig {
    let can = AgentCapabilities {
        mid_turn: MidTurn::Held,
        read_only: ReadOnly::Asking,
        usage: UsageReporting::Nothing,
        resumes: ResumeTiming::AtOnce,
    };
    let agent = Agent {
        name: "asker",
        title: "Asker",
        program: "cat",
        package: "",
        tested: "",
        login: "",
        login_check: LoginCheck::None,
        native: false,
        variables: &[],
        can,
        interactive: &[],
        busy_session: "",
        driver: asker,
    };
    // `cat` prints nothing and exits when its input is closed.
    let mut start = ProgramCommand::new(Vec::new(), "cat", "/");
    start.sweep = |_| {};
    let mut launch = LaunchOptions::new("/project", ToolServer::default());
    launch.model = plan.map(str::to_owned);
    launch.access = if plan.is_some() { Access::ReadOnly } else { Access::Ask };
    let mut plan = TeammateConfig::new(env.seat(name), agent, AgentRunner::Program(start), launch);
    plan.host = "here".to_owned();
    plan.process = Process { pid: 1, began: String::new() };
    plan
}

/// Waits up to a minute of paused time until a condition holds.
async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if condition().await {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("timed out waiting until {what}");
}

/// Runs a test on a team that uses the runtime's paused clock.
fn with_paused_clock<F: Future<Output = ()>>(test: impl FnOnce(TestEnv) -> F) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(PausedClock(Instant::now()));
        let mut env = TestEnv::build(Arc::new(MemoryStore::new(Arc::clone(&clock)))).await;
        env.clock = clock;
        test(env).await;
    });
}

/// A member's process is killed while it waits for an answer. The new process withdraws that request.
#[test]
fn a_request_is_withdrawn_when_its_process_dies() {
    with_paused_clock(async |env| {
        let lead = env.seat("team-lead");
        let first_waits = async || {
            approvals::waiting(&lead).await.unwrap().iter().any(|waiting| waiting.number == 1)
        };
        let run =
            || teammate::run_observed(plan(&env, "bob", None), mpsc::unbounded_channel().1, drop);
        env.say("team-lead", "bob", "go").await;
        tokio::select! {
            ended = run() => panic!("bob has ended: {ended:?}"),
            () = until("bob's request is open", first_waits) => {}
        }
        assert!(first_waits().await);
        tokio::select! {
            ended = run() => panic!("bob has ended: {ended:?}"),
            () = until("bob's request is withdrawn", async || !first_waits().await) => {}
        }
    });
}

#[test]
fn a_plan_and_a_permission_wait_for_an_hour() {
    with_paused_clock(async |env| {
        let sights = RefCell::new(Vec::new());
        let see = |sight: TeammateEvent| sights.borrow_mut().push(sight);
        let no_input = || mpsc::unbounded_channel().1;
        let alice =
            teammate::run_observed(plan(&env, "alice", Some("First, look.")), no_input(), see);
        let bob = teammate::run_observed(plan(&env, "bob", None), no_input(), see);
        tokio::select! {
            ended = alice => panic!("alice has ended: {ended:?}"),
            ended = bob => panic!("bob has ended: {ended:?}"),
            () = hour(&env, &sights) => {}
        }
    });
}

async fn hour(env: &TestEnv, sights: &RefCell<Vec<TeammateEvent>>) {
    let lead = env.seat("team-lead");
    for name in ["alice", "bob"] {
        env.say("team-lead", name, "go").await;
    }
    let waiting = async || approvals::waiting(&lead).await.unwrap();
    until("two requests are open", async || waiting().await.len() == 2).await;
    let asked = waiting().await;
    sleep(Duration::from_secs(3600)).await;

    assert_eq!(waiting().await, asked);
    for approval in &asked {
        let age = env.clock.now().duration_since(approval.at);
        assert!(age >= SignedDuration::from_hours(1), "{age:?}");
        // Neither the member that asked nor another teammate can answer.
        for name in ["alice", "bob"] {
            let seat = env.seat(name);
            let refused = approvals::answer(&seat, approval, Answer::Yes).await.unwrap_err();
            let refused = refused.to_string();
            assert!(refused.starts_with("only the lead may answer a p"), "{refused}");
            let refused = approvals::waiting(&seat).await.unwrap_err().to_string();
            assert!(refused.starts_with("only the lead may list"), "{refused}");
        }
    }
    for name in ["alice", "bob"] {
        let texts = env.texts(name).await;
        assert_eq!(texts, [("go".to_owned(), true)], "{name} got another message");
    }
    let was_answered = |sight: &TeammateEvent| matches!(sight, TeammateEvent::Answered { .. });
    assert!(!sights.borrow().iter().any(was_answered), "{:?}", sights.borrow());

    let request = |kind: RequestKind| -> &Approval {
        asked.iter().find(|approval| approval.subject.kind() == kind).unwrap()
    };
    let ApprovalSubject::Plan { plan, .. } = &request(RequestKind::Plan).subject else {
        panic!("the request is not a plan")
    };
    assert_eq!(plan, "First, look.");
    approvals::answer(&lead, request(RequestKind::Plan), Answer::Yes).await.unwrap();
    approvals::answer(&lead, request(RequestKind::Permission), Answer::No("not now"))
        .await
        .unwrap();
    let said = async |text: &str| {
        let said = TeammateEvent::Did(AgentEvent::Said(text.to_owned()));
        sights.borrow().contains(&said)
    };
    until("alice's agent is allowed to continue", async || said("Allow").await).await;
    until("bob's agent is denied permission", async || said("Deny(\"not now\")").await).await;
    assert_eq!(waiting().await, []);
}
