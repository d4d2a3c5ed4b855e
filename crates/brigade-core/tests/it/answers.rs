//! Claude Code's dialog and a person answer the same request, in any order. Each process may die at any call of the store.
//! Exactly one answer takes effect, and all views show that answer.

use std::sync::Arc;

use brigade_core::approvals;
use brigade_core::handshake::{self, Acceptance, Answer, PermissionAsk, RequestKind};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::{Mark, Outgoing};
use brigade_testkit::env::{TestEnv, member, team};
use brigade_testkit::files::{Files, in_memory};
use brigade_testkit::flaky::FlakyStore;
use brigade_wire::body::Body;
use brigade_wire::inbox::with_message;
use brigade_wire::permission::{Grant, PermissionResponse, PermissionVerdict};
use brigade_wire::protocol::Protocol;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// One step of a case. A process that `dies` does so at a random call of the store.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The person answers with brigade.
    Person { yes: bool, dies: bool },
    /// The dialog's answer arrives in the asking member's inbox.
    Dialog { yes: bool },
    /// The asking member reads its mail.
    Member { dies: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(yes, dies)| Step::Person { yes, dies }),
        any::<bool>().prop_map(|yes| Step::Dialog { yes }),
        any::<bool>().prop_map(|dies| Step::Member { dies }),
    ]
}

/// The asking member, its agent, and the answers that brigade reported as given.
struct Case {
    store: Arc<FlakyStore>,
    env: TestEnv,
    id: String,
    /// The answers that reached the agent.
    effects: Vec<bool>,
    /// The answers that brigade reported as given.
    reported: Vec<bool>,
    dialogs: usize,
}

impl Case {
    async fn new(env: &TestEnv) -> Self {
        let store = Arc::new(FlakyStore::new(Arc::clone(&env.store)));
        let env =
            TestEnv { store: Arc::<FlakyStore>::clone(&store), clock: Arc::clone(&env.clock) };
        let ask = PermissionAsk {
            tool: "commandExecution",
            tool_use_id: "t",
            description: "to see",
            input: &json!({ "command": "make" }),
            request: &Value::Null,
            cwd: "/project",
        };
        let id = handshake::request_permission(&env.seat("bob"), &ask).await.unwrap().request_id;
        Self { store, env, id, effects: Vec::new(), reported: Vec::new(), dialogs: 0 }
    }

    async fn take(&mut self, step: Step, seed: u64) {
        let dies = matches!(step, Step::Person { dies: true, .. } | Step::Member { dies: true });
        self.store.fail(if dies { 300 } else { 0 }, seed);
        match step {
            Step::Person { yes, .. } => self.person_answers(yes).await,
            Step::Dialog { yes } => self.dialog_answers(yes).await,
            // An error ends the member's process; the next one reads the mail again.
            Step::Member { .. } => drop(self.member_reads().await),
        }
        self.store.fail(0, 1);
    }

    async fn person_answers(&mut self, yes: bool) {
        let lead = self.env.seat("team-lead");
        let Ok(request) = approvals::find(&lead, &self.id).await else { return };
        let answer = if yes { Answer::Yes } else { Answer::No("no") };
        if approvals::answer(&lead, &request, answer).await.is_ok() {
            self.reported.push(yes);
        }
    }

    async fn dialog_answers(&mut self, yes: bool) {
        let verdict = match yes {
            true => {
                PermissionVerdict::Success(Grant { updated_input: None, permission_updates: None })
            }
            false => PermissionVerdict::Error("Permission denied".to_owned()),
        };
        let request_id = self.id.clone();
        let answer =
            PermissionResponse { request_id, tool_use_id: None, approved_request: None, verdict };
        self.dialogs += 1;
        let message = Outgoing {
            msg_id: format!("dialog {}", self.dialogs),
            from: "team-lead".into(),
            text: Protocol::from(answer).to_text(),
            summary: None,
            timestamp: "2026-11-15T12:00:00.000Z".into(),
            color: None,
            msg_v: Some(1),
            lead_sig: None,
            team_created: 0,
        };
        self.env.store.send(&team(), &member("bob"), &message).await.unwrap();
    }

    /// Reads the member's mail as the teammate loop does, and passes the valid answer to the agent.
    async fn member_reads(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let bob: Seat = self.env.seat("bob");
        for mail in mail::inbox(&bob, &bob.name, InboxFilter::Unread).await? {
            let answer = with_message(&mail.json, |message| {
                let message = message?;
                let Body::Protocol(Protocol::PermissionResponse(answer)) = message.body() else {
                    return None;
                };
                let id = message.msg_id().map(std::borrow::Cow::into_owned).unwrap_or_default();
                Some((answer, Outgoing::copy_of(&message, id)))
            });
            let Some((answer, message)) = answer? else { continue };
            let kind = RequestKind::Permission;
            let accepted = handshake::accept(&bob, kind, &self.id, mail.key, message).await?;
            let verdict = match accepted {
                Acceptance::Accepted { .. } => Some(answer.verdict),
                Acceptance::Late { first, is_new: true, .. } => match first.answer {
                    Protocol::PermissionResponse(first) => Some(first.verdict),
                    _ => None,
                },
                Acceptance::Late { .. } | Acceptance::Ignored => None,
            };
            // The agent waits for one answer.
            if let Some(verdict) = verdict.filter(|_| self.effects.is_empty()) {
                self.effects.push(matches!(verdict, PermissionVerdict::Success(_)));
            }
            mail::mark(&bob, &[mail.key], Mark::Read).await?;
        }
        Ok(())
    }

    /// Checks the result, after the person has repeated a command that was killed.
    async fn check(mut self, steps: &[Step]) {
        let has_answer = steps.iter().any(|step| !matches!(step, Step::Member { .. }));
        if has_answer {
            self.person_answers(true).await;
            self.person_answers(false).await;
        }
        self.member_reads().await.unwrap();
        if has_answer {
            let [effect] = self.effects[..] else { panic!("{steps:?}: {:?}", self.effects) };
            assert!(
                self.reported.iter().all(|yes| *yes == effect),
                "{steps:?}: {:?}",
                self.reported
            );
        }
        let lead = self.env.seat("team-lead");
        let open = approvals::waiting(&lead).await.unwrap();
        assert_eq!(open.is_empty(), has_answer, "{steps:?}");
    }
}

/// Runs random cases. `new_env` creates a team for each case.
fn check_cases(cases: u32, run: impl Fn(Vec<Step>, u64)) {
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let strategy = (prop::collection::vec(step(), 1..9), any::<u64>());
    runner
        .run(&strategy, |(steps, seed)| {
            run(steps, seed);
            Ok(())
        })
        .unwrap();
}

async fn check_case(env: &TestEnv, steps: &[Step], seed: u64) {
    let mut case = Case::new(env).await;
    for (number, step) in (1..).zip(steps) {
        case.take(*step, seed.wrapping_mul(number)).await;
    }
    case.check(steps).await;
}

#[test]
fn one_answer_takes_effect_in_every_order() {
    check_cases(500, |steps, seed| in_memory(async |env| check_case(&env, &steps, seed).await));
}

#[test]
fn one_answer_takes_effect_in_every_order_in_files() {
    check_cases(200, |steps, seed| {
        Files::run(async |files| check_case(&files.env, &steps, seed).await);
    });
}
