//! Seats use a raw client to attempt actions that their credentials do not allow.
//!
//! The server must refuse each attempt: it reports an error or does not answer, nothing changes, and the seat
//! learns nothing. As a control, seats with the right credentials make some of the same attempts, which succeed.

pub(crate) mod streams;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use brigade_nats::identity::CredentialRole;
use futures_util::StreamExt as _;

use self::streams::state;
use self::table::{Attempt, AttemptKind, ExpectedOutcome, attempts};
use crate::served::{OrgServers, RawClient};

/// Message content that only its recipient may see.
const SECRET: &str = "for-bobs-eyes-only";
/// How long to wait for the server's answer or permission error.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(400);

/// The running servers and all clients of the test.
struct AttackSetup {
    /// The servers, stopped on drop.
    _servers: OrgServers,
    /// Maps the names in `attempts.txt` to clients.
    clients: BTreeMap<&'static str, RawClient>,
    /// Prefix of the subjects on which bob receives answers.
    bobs_inbox: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_is_refused_by_the_server() {
    brigade_testkit::needs!(NatsServer);
    let setup = AttackSetup::assemble().await;
    let mut wrong = Vec::new();
    let all = attempts(&setup.bobs_inbox);
    let refused = all.iter().filter(|attempt| attempt.outcome == ExpectedOutcome::Refused).count();
    assert_eq!(refused, 129, "docs/security.md states this number");
    for attempt in &all {
        let (verdict, as_expected) = setup.run(attempt).await;
        let mark = if as_expected { "ok" } else { "WRONG" };
        println!("{mark:5} {:9} {:64} {verdict}", attempt.by, attempt.name);
        if !as_expected {
            wrong.push(attempt.name);
        }
    }
    println!("{refused} attempts refused, {} allowed as they should be", all.len() - refused);
    assert!(wrong.is_empty(), "attempts with an unexpected outcome: {wrong:#?}");
}

impl AttackSetup {
    async fn assemble() -> Self {
        let servers = OrgServers::start(1);
        let mut acme = servers.organisation("acme").await;
        let mut rival = servers.organisation("rival").await;
        let member = (CredentialRole::Member, false);
        let mut clients = BTreeMap::new();
        for (by, team, name, role) in [
            ("lead", "demo", "team-lead", (CredentialRole::Lead, true)),
            ("deputy", "demo", "deputy", (CredentialRole::Lead, false)),
            ("alice", "demo", "alice", member),
            ("bob", "demo", "bob", member),
            ("carol", "other", "carol", member),
        ] {
            let seat = servers.grant(&mut acme, team, &[name], role);
            clients.insert(by, servers.raw(&seat.file).await);
        }
        let stolen = servers.grant(&mut rival, "demo", &["bob"], member);
        clients.insert("rival", servers.raw(&stolen.file).await);
        for (by, organisation) in [("admin", &acme), ("rival admin", &rival)] {
            let admin = servers.raw(&servers.folder.admin(&organisation.name)).await;
            clients.insert(by, admin);
        }
        let bob = acme.seats.iter().find(|seat| seat.members[0].as_str() == "bob").unwrap();
        let bobs_inbox = format!("_INBOX.{}", bob.key);
        let setup = Self { _servers: servers, clients, bobs_inbox };
        setup.write_messages().await;
        setup
    }

    /// Writes one message of each kind, with clients that have the permission to write it.
    async fn write_messages(&self) {
        for (by, subject) in [
            ("lead", "mb.0.demo.bob.team-lead.w"),
            ("lead", "mb.0.demo.bob.team-lead.a"),
            ("bob", "mk.0.demo.bob"),
            ("lead", "tm.0.demo.doc.cfg.team-lead"),
            ("bob", "tm.0.demo.doc.m.bob"),
            ("bob", "nt.0.demo.bob.shown"),
            ("lead", "tm.0.demo.q.team-lead.plan-1"),
            ("bob", "bd.0.demo.1.bob"),
            ("alice", "ev.0.demo.bob.alice.w"),
            ("bob", "lv.0.demo.bob"),
            ("carol", "bd.0.other.1.carol"),
            ("carol", "mb.0.other.carol.carol.w"),
        ] {
            let client = &self.clients[by].client;
            let answer = client.request(subject, SECRET.into()).await;
            let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
            let answer = String::from_utf8_lossy(&answer.payload).into_owned();
            assert!(answer.contains("\"seq\""), "{subject}: {answer}");
        }
    }

    async fn state(&self) -> BTreeMap<String, String> {
        let mut all = state(&self.clients["admin"].client, "acme").await;
        all.append(&mut state(&self.clients["rival admin"].client, "rival").await);
        all
    }

    /// Runs one of the attempts. Returns a description of the outcome, and whether the outcome was expected.
    async fn run(&self, attempt: &Attempt) -> (String, bool) {
        let raw = &self.clients[attempt.by];
        let (client, subject) = (&raw.client, attempt.subject.clone());
        raw.take_events();
        let before = self.state().await;
        let heard = match &attempt.kind {
            AttemptKind::Ask { headers, body } => {
                let (headers, body) = (map(headers), body.clone().into());
                let inbox = client.new_inbox();
                let mut answers = client.subscribe(inbox.clone()).await.unwrap();
                let sent = client.publish_with_reply_and_headers(subject, inbox, headers, body);
                sent.await.unwrap();
                first(raw, &mut answers).await
            }
            AttemptKind::Bounce { body, reply } => {
                let sent = client.publish_with_reply(subject, reply.clone(), body.clone().into());
                sent.await.unwrap();
                tokio::time::sleep(ANSWER_TIMEOUT).await;
                None
            }
            AttemptKind::Listen => {
                let mut heard = client.subscribe(subject).await.unwrap();
                client.flush().await.unwrap();
                raw.sees_event("violation", Duration::from_millis(100)).await;
                self.send_mail().await;
                let heard = first(raw, &mut heard).await;
                // Compare with the state after `send_mail`, because that mail is not an effect of the attempt.
                return self.judge(attempt, heard, &self.state().await).await;
            }
        };
        self.judge(attempt, heard, &before).await
    }

    async fn judge(
        &self,
        attempt: &Attempt,
        heard: Option<String>,
        before: &BTreeMap<String, String>,
    ) -> (String, bool) {
        let after = self.state().await;
        let changed: Vec<&String> = after
            .keys()
            .chain(before.keys())
            .filter(|key| after.get(*key) != before.get(*key))
            .collect();
        let violation = self.clients[attempt.by]
            .take_events()
            .into_iter()
            .find(|event| event.contains("iolation"));
        let error = heard.as_deref().filter(|answer| answer.contains("\"error\""));
        let learned = heard.as_deref().is_some_and(|answer| answer.contains(SECRET));
        let verdict = match (&violation, error, &heard) {
            (Some(_), ..) => "permissions violation".to_owned(),
            (None, Some(error), _) => {
                error.split("\"error\"").nth(1).unwrap().chars().take(90).collect()
            }
            (None, None, Some(answer)) => {
                format!("answered: {}", answer.trim().chars().take(60).collect::<String>())
            }
            (None, None, None) => "no answer, no effect".to_owned(),
        };
        let verdict =
            if changed.is_empty() { verdict } else { format!("{verdict}; changed {changed:?}") };
        let as_expected = match attempt.outcome {
            ExpectedOutcome::Refused => {
                let nothing =
                    heard.as_deref().is_none_or(|answer| error.is_some() || is_negative(answer));
                changed.is_empty() && !learned && nothing
            }
            ExpectedOutcome::Changes => !changed.is_empty(),
            ExpectedOutcome::Learns => learned,
        };
        (verdict, as_expected)
    }

    /// Sends mail to bob and reads bob's mailbox, while the attacker is subscribed.
    async fn send_mail(&self) {
        let lead = &self.clients["lead"].client;
        lead.request("mb.0.demo.bob.team-lead.w", SECRET.into()).await.unwrap();
        let bob = &self.clients["bob"].client;
        bob.request("js.DIRECT.GET.MB_0.mb.0.demo.bob.>", "".into()).await.unwrap();
    }
}

/// Waits for the first answer. Returns `None` if the server reports a permissions violation, or on timeout.
async fn first(raw: &RawClient, answers: &mut async_nats::Subscriber) -> Option<String> {
    tokio::select! {
        answer = answers.next() => answer.map(|message| {
            let status = message.status.map(|status| status.to_string()).unwrap_or_default();
            let headers = message.headers.map(|headers| format!("{headers:?}")).unwrap_or_default();
            format!("{status} {} {headers}", String::from_utf8_lossy(&message.payload))
        }),
        _ = raw.sees_event("violation", ANSWER_TIMEOUT) => None,
    }
}

/// Whether an answer has the status "not found", "request timeout" or "no responders".
fn is_negative(answer: &str) -> bool {
    ["404", "408", "503"].iter().any(|status| answer.starts_with(status))
}

fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (key, value) in headers {
        map.insert(*key, *value);
    }
    map
}
