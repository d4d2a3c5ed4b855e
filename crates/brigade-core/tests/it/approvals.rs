//! Requests that wait for the lead's answer, and which members may answer them.

mod hour;
mod personal;
mod rules;

use std::path::{Path, PathBuf};

use brigade_core::approvals::{self, Approval, ApprovalSubject, MemberRules, RuleAnswer};
use brigade_core::authority::Denied;
use brigade_core::event::{Event, Record};
use brigade_core::handshake::{self, Answer, HandshakeError, PermissionAsk};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::policy::RuleDecision;
use brigade_core::roster;
use brigade_core::seat::{Seat, SeatUser};
use brigade_core::store::Question;
use brigade_testkit::env::{TestEnv, member, team, write};
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use serde_json::{Value, json};

use brigade_testkit::files::{Files, in_memory};

use crate::policy::rule;

/// Requests permission to run a command as member `who`. Returns the request id.
async fn ask(env: &TestEnv, who: &str, command: &str) -> String {
    ask_with(env, who, command, &Value::Null).await
}

/// Like [`ask`], with other fields of the agent's request.
async fn ask_with(env: &TestEnv, who: &str, command: &str, request: &Value) -> String {
    let permission = PermissionAsk {
        tool: "commandExecution",
        tool_use_id: "t",
        description: "to see",
        input: &json!({ "command": format!("/bin/bash -lc '{command}'"), "cwd": "/elsewhere" }),
        request,
        cwd: "/project",
    };
    handshake::request_permission(&env.seat(who), &permission).await.unwrap().request_id
}

fn rules(of: &MemberName) -> MemberRules {
    let rules = match of.as_str() {
        "bob" => vec![rule(RuleDecision::Deny, "rm *"), rule(RuleDecision::Allow, "git *")],
        _ => Vec::new(),
    };
    MemberRules { rules, folder: "/elsewhere".into(), ..MemberRules::default() }
}

/// Applies [`rules`]. No path contains a symbolic link.
async fn apply(seat: &Seat) -> Result<Vec<RuleAnswer>, HandshakeError> {
    approvals::apply_rules(seat, rules, Path::to_owned).await
}

/// Returns the recorded answers as text: who answered which request, and the answer.
async fn answers(env: &TestEnv) -> Vec<String> {
    let history = env.store.history(&team()).await.unwrap();
    let answers =
        history.into_iter().map(Record::into_inner).filter_map(|record| match record.event {
            Event::Answered { kind, to, yes, reason, hand, .. } => {
                let by = record.by.unwrap_or_default();
                let reason = reason.unwrap_or_default();
                Some(
                    format!("{by} by {hand} to {to}'s {kind}: {yes} {reason}")
                        .trim_end()
                        .to_owned(),
                )
            }
            _ => None,
        });
    answers.collect()
}

#[test]
fn a_request_shows_the_agents_own_tool_and_input() {
    in_memory(async |env| {
        let id = ask(&env, "bob", "cargo test").await;
        let lead = env.seat("team-lead");
        let [waiting] = &*approvals::waiting(&lead).await.unwrap() else { panic!("not one") };
        assert_eq!((waiting.number, waiting.request_id.as_str()), (1, id.as_str()));
        assert_eq!(waiting.from, member("bob"));
        let ApprovalSubject::Permission { tool, input, cwd, description, .. } = &waiting.subject
        else {
            panic!("{waiting:?}")
        };
        assert_eq!((tool.as_str(), description.as_str()), ("commandExecution", "to see"));
        assert_eq!(cwd.as_deref(), Some("/elsewhere"));
        assert_eq!(brigade_core::policy::command(input).as_deref(), Some("cargo test"));
    });
}

/// A rule for a command does not grant the permissions that the agent asks for in addition.
#[test]
fn finding_15_a_rule_grants_no_additional_permissions() {
    in_memory(async |env| {
        for request in [
            json!({ "additionalPermissions": { "network": { "enabled": true } } }),
            json!({ "networkApprovalContext": { "host": "example.com", "protocol": "https" } }),
            json!({ "grantRoot": "/" }),
            json!({ "kind": "writeStdin" }),
        ] {
            ask_with(&env, "bob", "git status", &request).await;
        }
        ask_with(&env, "bob", "git status", &json!({ "kind": "command", "reason": "x" })).await;
        ask_with(&env, "bob", "rm x", &json!({ "grantRoot": "/" })).await;
        let ruled =
            approvals::apply_rules(&env.seat("team-lead"), rules, Path::to_owned).await.unwrap();
        let ruled: Vec<_> =
            ruled.iter().map(|found| (found.approval.number, found.decision)).collect();
        assert_eq!(ruled, [(5, RuleDecision::Allow), (6, RuleDecision::Deny)]);
    });
}

#[test]
fn rules_answer_matching_requests_and_keep_the_rest_waiting() {
    in_memory(async |env| {
        for (who, command) in [
            ("bob", "git status"),
            ("bob", "cargo test"),
            ("bob", "git status; rm x"),
            ("bob", "git status && ls"),
            ("alice", "git status"),
        ] {
            ask(&env, who, command).await;
        }
        handshake::submit_plan(&env.seat("bob"), "git away", None).await.unwrap();
        let lead = env.seat("team-lead");
        let ruled = apply(&lead).await.unwrap();
        let ruled: Vec<_> = ruled
            .iter()
            .map(|found| (found.approval.number, found.rule.number, found.decision))
            .collect();
        assert_eq!(ruled, [(1, 2, RuleDecision::Allow), (3, 1, RuleDecision::Deny)]);
        assert_eq!(apply(&lead).await.unwrap(), []);
        let waiting = approvals::waiting(&lead).await.unwrap();
        assert_eq!(waiting.iter().map(|found| found.number).collect::<Vec<_>>(), [2, 4, 5, 6]);
        assert_eq!(
            answers(&env).await,
            [
                "team-lead by rule 2 of bob to bob's permission: true",
                "team-lead by rule 1 of bob to bob's permission: false denied by rule 1 for bob",
            ]
        );
        // Only the lead's seat can apply rules.
        let refused = apply(&env.seat("bob")).await.unwrap_err();
        assert!(matches!(refused, HandshakeError::Denied(Denied::LeadOnly { .. })), "{refused}");
    });
}

/// Finding 14: a rule does not allow a command that runs outside the member's folder, even if a symbolic link leads
/// there.
#[test]
fn finding_14_the_real_folder_of_a_command_counts() {
    in_memory(async |env| {
        ask(&env, "bob", "git status").await;
        let lead = env.seat("team-lead");
        let elsewhere = |path: &Path| match path.to_str() {
            Some("/elsewhere") => PathBuf::from("/real"),
            _ => path.to_owned(),
        };
        let rules_in = |folder: &str| {
            let folder = PathBuf::from(folder);
            move |name: &MemberName| MemberRules { folder: folder.clone(), ..rules(name) }
        };
        for folder in ["/other", "/elsewhere/sub", "/"] {
            let outside = |path: &Path| match path.to_str() {
                Some("/elsewhere") => PathBuf::from("/outside"),
                _ => Path::new("/inside").join(path.strip_prefix("/").unwrap()),
            };
            let ruled = approvals::apply_rules(&lead, rules_in(folder), outside).await.unwrap();
            assert_eq!(ruled, [], "{folder}");
        }
        // Both paths lead to the same folder.
        let ruled = approvals::apply_rules(&lead, rules_in("/real"), elsewhere).await.unwrap();
        assert_eq!(ruled.len(), 1);
    });
}

/// Two supervisors and a person answer at once: each request gets one answer and one record.
#[test]
fn each_request_is_answered_once() {
    Files::run(async |files| {
        for _ in 0..10 {
            ask(&files.env, "bob", "git status").await;
        }
        let ruling = |env: TestEnv| async move {
            let ruled = apply(&env.seat("team-lead")).await.unwrap();
            ruled.len()
        };
        let person = |env: TestEnv| async move {
            let lead = env.seat("team-lead");
            let mut given = 0;
            for waiting in approvals::waiting(&lead).await.unwrap() {
                given += usize::from(approvals::answer(&lead, &waiting, Answer::Yes).await.is_ok());
            }
            given
        };
        let all = [
            tokio::spawn(ruling(files.reopen())),
            tokio::spawn(ruling(files.reopen())),
            tokio::spawn(person(files.reopen())),
        ];
        let mut given = 0;
        for one in all {
            given += one.await.unwrap();
        }
        assert_eq!(given, 10);
        assert_eq!(files.env.texts("bob").await.len(), 10);
        assert_eq!(answers(&files.env).await.len(), 10);
    });
}

#[test]
fn a_late_answer_reports_the_first_one() {
    in_memory(async |env| {
        let agent = env.seat("team-lead").with_user(SeatUser::Agent { answers: true });
        let id = ask(&env, "bob", "make").await;
        handshake::answer_permission(&agent, &id, Answer::No("not now")).await.unwrap();
        let lead = env.seat("team-lead");
        let found = approvals::find(&lead, "1").await.unwrap();
        let error = approvals::answer(&lead, &found, Answer::Yes).await.unwrap_err();
        let HandshakeError::Answered { first: Some(first), .. } = error else { panic!("{error}") };
        let text = first.to_string();
        assert!(text.starts_with("an agent said no at 2026-11-15T12:"), "{text}");
        assert!(text.ends_with(": not now"), "{text}");
        assert_eq!(answers(&env).await, ["team-lead by agent to bob's permission: false not now"]);
    });
}

#[test]
fn an_agent_without_the_right_cannot_answer() {
    in_memory(async |env| {
        let id = ask(&env, "bob", "make").await;
        let plan = handshake::submit_plan(&env.seat("bob"), "p", None).await.unwrap().request_id;
        let agent = env.seat("team-lead").with_user(SeatUser::Agent { answers: false });
        for refused in [
            handshake::answer_permission(&agent, &id, Answer::Yes).await,
            handshake::answer_permission(&agent, &id, Answer::No("no")).await,
            handshake::answer_plan(&agent, &plan, Answer::Yes).await,
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.starts_with("only a human may answer a p"), "{refused}");
        }
        // The agent may still do everything else that a lead may do.
        handshake::request_shutdown(&agent, "bob", None).await.unwrap();
        let lead = env.seat("team-lead");
        assert_eq!(approvals::waiting(&lead).await.unwrap().len(), 2);
        let make = |_: &MemberName| MemberRules {
            rules: vec![rule(RuleDecision::Allow, "make")],
            folder: "/elsewhere".into(),
            ..MemberRules::default()
        };
        assert_eq!(approvals::apply_rules(&lead, make, Path::to_owned).await.unwrap().len(), 1);
        handshake::answer_plan(&lead, &plan, Answer::Yes).await.unwrap();
    });
}

/// A request keeps its number when others are answered, and can be found by its number or its id.
#[test]
fn request_numbers_are_stable() {
    in_memory(async |env| {
        let first = ask(&env, "bob", "one").await;
        let second = ask(&env, "alice", "two").await;
        let lead = env.seat("team-lead");
        let number =
            async |word: &str| approvals::find(&lead, word).await.map(|found| found.number);
        assert_eq!(number(&second).await.unwrap(), 2);
        handshake::answer_permission(&lead, &first, Answer::Yes).await.unwrap();
        assert_eq!(approvals::find(&lead, "2").await.unwrap().request_id, second);
        assert_eq!(number("1").await.unwrap(), 1);
        let unknown = number("3").await.unwrap_err();
        let HandshakeError::Unknown { open, .. } = &unknown else { panic!("{unknown}") };
        assert_eq!(
            (unknown.to_string().as_str(), open.as_slice()),
            ("no approval request 3", [2].as_slice())
        );
        // After a member left, its requests are no longer open.
        roster::leave(&lead, &member("alice")).await.unwrap();
        assert_eq!(approvals::waiting(&lead).await.unwrap(), []);
    });
}

/// A member chooses the id of its request. An answer is for the request that was shown, not for another request with
/// that number or that id.
#[test]
fn an_answer_is_for_the_request_that_was_shown() {
    in_memory(async |env| {
        let asks = |from: &str, id: &str, command: &str| {
            let request = json!({ "type": "permission_request", "request_id": id, "agent_id": from,
                "tool_name": "Bash", "tool_use_id": "t", "description": "d",
                "input": { "command": command }, "permission_suggestions": [] });
            request.to_string()
        };
        for (from, id, command) in [("bob", "2", "ls"), ("alice", "perm-1", "rm -rf /")] {
            write(&env, from, "team-lead", &asks(from, id, command)).await;
        }
        let lead = env.seat("team-lead");
        let [bobs, alices] = approvals::waiting(&lead).await.unwrap().try_into().unwrap();
        assert_eq!((bobs.request_id.as_str(), alices.number), ("2", 2));
        approvals::answer(&lead, &bobs, Answer::Yes).await.unwrap();
        let waiting = approvals::waiting(&lead).await.unwrap();
        assert_eq!(waiting.as_slice(), std::slice::from_ref(&alices));
        // A front end shows a later request with the same id. The first request with an id is the only one.
        write(&env, "bob", "team-lead", &asks("bob", "perm-1", "make")).await;
        let history = env.store.mailbox_history(&team(), &lead.name).await.unwrap();
        let shown =
            history.iter().filter_map(|record| Approval::from_record(record, 0)).next_back();
        let error = approvals::answer(&lead, &shown.unwrap(), Answer::Yes).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the permission request \"perm-1\" is not the one that was shown; nothing was answered"
        );
        assert_eq!(approvals::waiting(&lead).await.unwrap(), [alices]);
    });
}

/// A request that was answered in Claude Code's own dialog is no longer open.
#[test]
fn an_answer_by_another_program_counts() {
    Files::run(async |files| {
        let id = ask(&files.env, "bob", "make").await;
        let other = ask(&files.env, "bob", "make").await;
        let response = json!({
            "type": "permission_response", "request_id": id, "subtype": "error", "error": "no",
        });
        let entry = json!([{
            "from": "team-lead", "text": response.to_string(), "timestamp": "2026-11-15T12:00:00.000Z",
            "read": false,
        }]);
        std::fs::write(files.inbox("bob"), entry.to_string()).unwrap();
        let lead = files.env.seat("team-lead");
        let waiting = approvals::waiting(&lead).await.unwrap();
        assert_eq!(waiting.iter().map(|found| &found.request_id).collect::<Vec<_>>(), [&other]);
        let late = handshake::answer_permission(&lead, &id, Answer::Yes).await.unwrap_err();
        let HandshakeError::Answered { first: Some(first), .. } = late else { panic!("{late}") };
        assert_eq!(first.to_string(), "Claude Code said no at 2026-11-15T12:00:00.000Z: no");
    });
}

/// If a process stores its answer but dies before it sends the answer, `apply_rules` sends the answer later.
#[test]
fn an_unfinished_answer_is_sent_later() {
    Files::run(async |files| {
        let id = ask(&files.env, "bob", "make").await;
        let lead = files.env.seat("team-lead");
        std::fs::create_dir(files.inbox("bob")).unwrap();
        handshake::answer_permission(&lead, &id, Answer::Yes).await.unwrap_err();
        std::fs::remove_dir(files.inbox("bob")).unwrap();
        assert_eq!(approvals::waiting(&lead).await.unwrap(), []);
        assert_eq!(apply(&lead).await.unwrap(), []);
        assert_eq!(files.env.texts("bob").await.len(), 1);
        assert_eq!(apply(&lead).await.unwrap(), []);
        assert_eq!(files.env.texts("bob").await.len(), 1);
    });
}

#[test]
fn a_withdrawn_request_no_longer_waits() {
    in_memory(async |env| {
        let (lead, bob) = (env.seat("team-lead"), env.seat("bob"));
        let gone = ask(&env, "bob", "make").await;
        let still = ask(&env, "bob", "make").await;
        let neighbours = ask(&env, "alice", "make").await;
        handshake::submit_plan(&bob, "p", None).await.unwrap();
        handshake::withdraw(&bob, |id| id != still).await.unwrap();
        let waiting = approvals::waiting(&lead).await.unwrap();
        assert_eq!(waiting.iter().map(|found| found.number).collect::<Vec<_>>(), [2, 3, 4]);
        let late = handshake::answer_permission(&lead, &gone, Answer::Yes).await.unwrap_err();
        let HandshakeError::Answered { first: Some(first), .. } = late else { panic!("{late}") };
        assert!(first.to_string().starts_with("it was withdrawn at 2026-"), "{first}");
        // An answered request cannot be withdrawn.
        handshake::answer_permission(&lead, &neighbours, Answer::Yes).await.unwrap();
        handshake::withdraw(&env.seat("alice"), |_| true).await.unwrap();
        assert_eq!(env.texts("alice").await.len(), 1);
        assert_eq!(env.texts("bob").await, []);
        assert_eq!(
            answers(&env).await,
            [
                "bob by taken back to bob's permission: false the request was withdrawn",
                "team-lead by person to alice's permission: true",
            ]
        );
    });
}

/// A member withdraws a request by answering a question of its own; the lead's question stays unanswered. If a
/// member could answer the lead's question, it could answer yes, and the lead's process would send that yes. A
/// store that restricts what each seat may write would refuse such a write anyway.
#[test]
fn withdrawing_does_not_decide_the_leads_question() {
    in_memory(async |env| {
        let (lead, bob) = (env.seat("team-lead"), env.seat("bob"));
        let config = env.store.team(&team()).await.unwrap().unwrap();
        let created = Team::read(&config.bytes).unwrap().created_at().unwrap();
        let is_decided = async |of: &str, name: String| {
            let question = Question::new(&member(of), &format!("{of}@{created}-{name}"));
            env.store.decided(&team(), &question).await.unwrap().is_some()
        };
        let gone = ask(&env, "bob", "make").await;
        handshake::withdraw(&bob, |_| true).await.unwrap();
        assert!(!is_decided("team-lead", format!("permission-{gone}")).await);
        assert!(is_decided("bob", format!("takes-back-permission-{gone}")).await);
        assert_eq!(approvals::waiting(&lead).await.unwrap(), []);
        assert_eq!(apply(&lead).await.unwrap(), []);
        handshake::answer_permission(&lead, &gone, Answer::Yes).await.unwrap_err();
        assert_eq!(env.texts("bob").await, [], "a message was sent");

        let answered = ask(&env, "bob", "make").await;
        handshake::answer_permission(&lead, &answered, Answer::Yes).await.unwrap();
        assert!(is_decided("team-lead", format!("permission-{answered}")).await);
    });
}

/// Returns the number of unread messages in the lead's inbox.
async fn unread(lead: &Seat) -> usize {
    mail::inbox(lead, &lead.name, InboxFilter::Unread).await.unwrap().len()
}

/// Answered and withdrawn requests must not count towards the limit of unread mail.
#[test]
fn answered_and_withdrawn_requests_are_marked_as_read() {
    in_memory(async |env| {
        let lead = env.seat("team-lead");
        let id = ask(&env, "bob", "make").await;
        assert_eq!(unread(&lead).await, 1);
        handshake::answer_permission(&lead, &id, Answer::No("not now")).await.unwrap();
        assert_eq!(unread(&lead).await, 0);
        let plan = handshake::submit_plan(&env.seat("bob"), "a plan", None).await.unwrap();
        handshake::answer_plan(&lead, &plan.request_id, Answer::Yes).await.unwrap();
        ask(&env, "bob", "git status").await;
        apply(&lead).await.unwrap();
        assert_eq!(unread(&lead).await, 0);
        let withdrawn = ask(&env, "bob", "cargo test").await;
        let waiting = ask(&env, "bob", "cargo build").await;
        handshake::withdraw(&env.seat("bob"), |id| id == withdrawn).await.unwrap();
        apply(&lead).await.unwrap();
        assert_eq!(unread(&lead).await, 1);
        assert_eq!(approvals::waiting(&lead).await.unwrap()[0].request_id, waiting);
    });
}

/// A Claude Code lead reads its inbox itself. It must find the request there.
#[test]
fn requests_to_a_claude_code_lead_stay_unread() {
    Files::run(async |files| {
        let lead = files.env.seat("team-lead");
        // Without this file, the team is one that Claude Code created.
        std::fs::remove_file(files.team_state_dir().join("created")).unwrap();
        let id = ask(&files.env, "bob", "make").await;
        handshake::answer_permission(&lead, &id, Answer::Yes).await.unwrap();
        assert_eq!(unread(&lead).await, 1);
    });
}
