//! Whoever has credentials tries to do what they are not for, with a raw client.
//!
//! Each attempt has to be refused by the server: it says so, or it does not answer; and in either case
//! nothing is changed and nothing was learned. The same attempts by those who may show that they are real.

pub(crate) mod streams;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use brigade_nats::identity::Role;
use futures_util::StreamExt as _;

use self::streams::state;
use self::table::{Attempt, By, How, Outcome, attempts};
use crate::served::{Raw, Served};

/// What nobody but its reader may ever see.
const SECRET: &str = "for-bobs-eyes-only";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(400);

/// Everybody of the play.
struct Cast {
    /// Ends the servers when the play is over.
    _served: Served,
    clients: BTreeMap<By, Raw>,
    /// Where bob hears the server's answers.
    bobs_inbox: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_is_refused_by_the_server() {
    let cast = Cast::assemble().await;
    let mut wrong = Vec::new();
    let all = attempts(&cast.bobs_inbox);
    let refused = all.iter().filter(|its| its.outcome == Outcome::Refused).count();
    assert_eq!(refused, 117, "docs/security.md says how many");
    for attempt in &all {
        let (verdict, as_expected) = cast.try_out(attempt).await;
        let mark = if as_expected { "ok" } else { "WRONG" };
        println!("{mark:5} {:9} {:64} {verdict}", attempt.by.name(), attempt.name);
        if !as_expected {
            wrong.push(attempt.name);
        }
    }
    println!("{refused} attempts refused, {} allowed as they should be", all.len() - refused);
    assert!(wrong.is_empty(), "not as expected: {wrong:#?}");
}

impl Cast {
    async fn assemble() -> Self {
        let served = Served::start(1);
        let mut acme = served.organisation("acme").await;
        let mut rival = served.organisation("rival").await;
        let member = (Role::Member, false);
        let mut clients = BTreeMap::new();
        for (by, team, name, role) in [
            (By::Lead, "demo", "team-lead", (Role::Lead, true)),
            (By::Deputy, "demo", "deputy", (Role::Lead, false)),
            (By::Alice, "demo", "alice", member),
            (By::Bob, "demo", "bob", member),
            (By::Carol, "other", "carol", member),
        ] {
            let seat = served.grant(&mut acme, team, &[name], role);
            clients.insert(by, served.raw(&seat.file).await);
        }
        let stolen = served.grant(&mut rival, "demo", &["bob"], member);
        clients.insert(By::Rival, served.raw(&stolen.file).await);
        for (by, organisation) in [(By::Admin, &acme), (By::RivalAdmin, &rival)] {
            let admin = served.raw(&served.folder.admin(&organisation.name)).await;
            clients.insert(by, admin);
        }
        let bob = acme.seats.iter().find(|seat| seat.members[0].as_str() == "bob").unwrap();
        let bobs_inbox = format!("_INBOX.{}", bob.key);
        let cast = Self { _served: served, clients, bobs_inbox };
        cast.set_the_scene().await;
        cast
    }

    /// Something of everything, each written by whoever may.
    async fn set_the_scene(&self) {
        for (by, subject) in [
            (By::Lead, "mb.0.demo.bob.team-lead.w"),
            (By::Lead, "mb.0.demo.bob.team-lead.a"),
            (By::Bob, "mk.0.demo.bob"),
            (By::Lead, "tm.0.demo.doc.cfg.team-lead"),
            (By::Bob, "tm.0.demo.doc.m.bob"),
            (By::Bob, "nt.0.demo.bob.shown"),
            (By::Lead, "tm.0.demo.q.team-lead.plan-1"),
            (By::Bob, "bd.0.demo.1.bob"),
            (By::Alice, "ev.0.demo.alice"),
            (By::Bob, "lv.0.demo.bob"),
            (By::Carol, "bd.0.other.1.carol"),
            (By::Carol, "mb.0.other.carol.carol.w"),
        ] {
            let client = &self.clients[&by].client;
            let answer = client.request(subject, SECRET.into()).await;
            let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
            let said = String::from_utf8_lossy(&answer.payload).into_owned();
            assert!(said.contains("\"seq\""), "{subject}: {said}");
        }
    }

    async fn state(&self) -> BTreeMap<String, String> {
        let mut all = state(&self.clients[&By::Admin].client, "acme").await;
        all.append(&mut state(&self.clients[&By::RivalAdmin].client, "rival").await);
        all
    }

    /// Tries it. Tells what came of it, and whether it should have.
    async fn try_out(&self, attempt: &Attempt) -> (String, bool) {
        let raw = &self.clients[&attempt.by];
        raw.told();
        let before = self.state().await;
        let heard = match &attempt.how {
            How::Ask { subject, headers, body } => {
                let headers = map(headers);
                let inbox = raw.client.new_inbox();
                let mut answers = raw.client.subscribe(inbox.clone()).await.unwrap();
                let client = &raw.client;
                client
                    .publish_with_reply_and_headers(
                        subject.clone(),
                        inbox,
                        headers,
                        body.clone().into(),
                    )
                    .await
                    .unwrap();
                first(raw, &mut answers).await
            }
            How::Bounce { subject, body, reply } => {
                let client = &raw.client;
                client
                    .publish_with_reply(subject.clone(), reply.clone(), body.clone().into())
                    .await
                    .unwrap();
                tokio::time::sleep(PATIENCE).await;
                None
            }
            How::Listen { subject } => {
                let mut heard = raw.client.subscribe(subject.clone()).await.unwrap();
                raw.client.flush().await.unwrap();
                raw.hears("violation", Duration::from_millis(100)).await;
                self.say_something().await;
                let heard = first(raw, &mut heard).await;
                // What was just said is part of the scene from now on.
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
        let violation =
            self.clients[&attempt.by].told().into_iter().find(|its| its.contains("iolation"));
        let error = heard.as_deref().filter(|said| said.contains("\"error\""));
        let learned = heard.as_deref().is_some_and(|said| said.contains(SECRET));
        let verdict = match (&violation, error, &heard) {
            (Some(_), ..) => "permissions violation".to_owned(),
            (None, Some(error), _) => {
                error.split("\"error\"").nth(1).unwrap().chars().take(90).collect()
            }
            (None, None, Some(said)) => {
                format!("answered: {}", said.trim().chars().take(60).collect::<String>())
            }
            (None, None, None) => "no answer, no effect".to_owned(),
        };
        let verdict =
            if changed.is_empty() { verdict } else { format!("{verdict}; changed {changed:?}") };
        let as_expected = match attempt.outcome {
            Outcome::Refused => {
                let nothing = heard.as_deref().is_none_or(|said| error.is_some() || is_no(said));
                changed.is_empty() && !learned && nothing
            }
            Outcome::Changes => !changed.is_empty(),
            Outcome::Learns => learned,
        };
        (verdict, as_expected)
    }

    /// Mail for bob, while somebody listens.
    async fn say_something(&self) {
        let lead = &self.clients[&By::Lead].client;
        lead.request("mb.0.demo.bob.team-lead.w", SECRET.into()).await.unwrap();
        let bob = &self.clients[&By::Bob].client;
        bob.request("js.DIRECT.GET.MB_0.mb.0.demo.bob.>", "".into()).await.unwrap();
    }
}

/// The first answer, or what the server thinks of the question.
async fn first(raw: &Raw, answers: &mut async_nats::Subscriber) -> Option<String> {
    tokio::select! {
        answer = answers.next() => answer.map(|its| {
            let status = its.status.map(|status| status.to_string()).unwrap_or_default();
            let headers = its.headers.map(|headers| format!("{headers:?}")).unwrap_or_default();
            format!("{status} {} {headers}", String::from_utf8_lossy(&its.payload))
        }),
        _ = raw.hears("violation", PATIENCE) => None,
    }
}

/// Whether an answer says that there is nothing there, the question is none, or nobody takes it.
fn is_no(said: &str) -> bool {
    ["404", "408", "503"].iter().any(|status| said.starts_with(status))
}

fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (key, value) in headers {
        map.insert(*key, *value);
    }
    map
}
