//! Every kind of event, recorded by every role with a raw client on three servers, and read by every reader. A
//! reader must report an event only if the table in `brigade_testkit::event_authors` lets its author record it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::event::{Event, Record};
use brigade_core::roster;
use brigade_core::store::Store;
use brigade_nats::identity::CredentialRole;
use brigade_testkit::env::{TestEnv, member, member_plan, team};
use brigade_testkit::event_authors::{EventAttempt, MayRecord, attempts};

use crate::forgery::{organisation, store};
use crate::served::OrgServers;

/// A role: its name, the member it acts as, the member it attacks, and its credentials.
struct Attacker {
    role: &'static str,
    me: &'static str,
    other: &'static str,
    creds: PathBuf,
}

/// An event that a role has sent to the server.
struct Sent {
    role: &'static str,
    /// Occurs in the event, and in no other.
    mark: String,
    attempt: EventAttempt,
    me: &'static str,
}

impl Sent {
    /// Whether the records contain the event.
    fn is_in(&self, records: &[Record]) -> bool {
        records.iter().any(|record| {
            let same_kind = record.event.kind() == self.attempt.event.kind();
            same_kind && self.matches(record)
        })
    }

    /// Some kinds have no text that could contain the mark. Their author tells them apart from real events.
    fn matches(&self, record: &Record) -> bool {
        let text = serde_json::to_string(&record.event).unwrap();
        match record.event {
            Event::TeamDeleted {} => true,
            Event::TaskDeleted { .. } | Event::MemberLeft { .. } => {
                let same = text == serde_json::to_string(&self.attempt.event).unwrap();
                same && record.by.as_deref() == Some(self.me)
            }
            Event::Read { key, .. } | Event::Shown { key, .. } => {
                key == brigade_core::event::MessageKey::from_id(&self.mark)
            }
            _ => text.contains(&self.mark),
        }
    }
}

/// Publishes every attempt of an attacker to every subject that might carry it. The subject of the answers is open only
/// to a lead that may answer; the subject of earlier versions is open to no role. The rival writes into the streams of
/// its own organisation.
async fn attack(servers: &OrgServers, attacker: &Attacker) -> Vec<Sent> {
    let raw = servers.raw(&attacker.creds).await;
    let mut sent = Vec::new();
    let marked = |number: usize| format!("{}-{number}-mark", attacker.role);
    for number in 0..attempts(attacker.me, attacker.other, "").len() {
        let mark = marked(number);
        let attempt = attempts(attacker.me, attacker.other, &mark).swap_remove(number);
        let body = serde_json::to_vec(&attempt.event).unwrap();
        let to = attempt.event.addressee().unwrap_or(attacker.other);
        let subjects = [
            (format!("ev.0.demo.{to}.{}.w", attacker.me), true),
            (format!("ev.0.demo.{to}.{}.a", attacker.me), attacker.role == "lead"),
            (format!("ev.0.demo.{}", attacker.me), false),
            (format!("wk.0.demo.{}", attacker.me), true),
        ];
        for (subject, is_open) in subjects {
            // The server does not answer a request on a forbidden subject.
            let limit = if is_open { Duration::from_secs(5) } else { Duration::from_millis(5) };
            let request = raw.client.request(subject.clone(), body.clone().into());
            let stored = matches!(tokio::time::timeout(limit, request).await, Ok(Ok(_)));
            assert_eq!(stored, is_open, "{}: {subject}", attacker.role);
        }
        sent.push(Sent { role: attacker.role, mark, attempt, me: attacker.me });
    }
    sent
}

/// Reads the team's events in every way a store offers.
async fn read_all(
    reader: &Arc<dyn Store>,
    watched: Vec<Record>,
) -> Vec<(&'static str, Vec<Record>)> {
    let (mut stream, _) = reader.event_stream(&team()).await.unwrap();
    let mut streamed = Vec::new();
    while let Some(batch) = stream.next().await {
        streamed.extend(batch.records.iter().map(|(_, record)| Record::clone(record)));
        if batch.caught_up {
            break;
        }
    }
    let mut all = vec![
        ("history", reader.history(&team()).await.unwrap()),
        ("history without work", reader.history_without_work(&team()).await.unwrap()),
        ("watch", watched),
        ("event stream", streamed),
    ];
    for owner in ["team-lead", "alice", "bob"] {
        let mailbox = reader.mailbox_history(&team(), &member(owner)).await.unwrap();
        all.push(("mailbox", mailbox));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_count_only_if_their_author_may_record_them() {
    brigade_testkit::needs!(NatsServer);
    let (servers, mut acme, env) = organisation(3).await;
    let mut rival = servers.organisation("rival").await;
    let member_seat = (CredentialRole::Member, false);
    let attackers = [
        ("lead", "team-lead", "bob", vec!["team-lead"], (CredentialRole::Lead, true)),
        (
            "silent lead",
            "team-lead",
            "bob",
            vec!["team-lead", "carl"],
            (CredentialRole::Lead, false),
        ),
        ("member", "alice", "bob", vec!["alice"], member_seat),
        ("former member", "carol", "bob", vec!["carol"], member_seat),
        ("link", "bob", "alice", vec!["bob", "alice"], member_seat),
    ];
    let attackers = attackers.map(|(role, me, other, members, rights)| {
        let creds = servers.grant(&mut acme, "demo", &members, rights).file;
        Attacker { role, me, other, creds }
    });
    let stolen = servers.grant(&mut rival, "demo", &["bob"], member_seat).file;
    let rival = Attacker { role: "rival", me: "bob", other: "alice", creds: stolen };
    let lead = env.seat("team-lead");
    roster::join(&lead, &member("carol"), member_plan()).await.unwrap();
    roster::leave(&lead, &member("carol")).await.unwrap();
    let readers = [
        Arc::clone(&env.store),
        store(&servers, &attackers[0].creds).await,
        store(&servers, &attackers[4].creds).await,
    ];
    let mut watches = Vec::new();
    for reader in &readers {
        watches.push(reader.watch(&team()).await.unwrap());
    }
    let mut sent = Vec::new();
    for attacker in attackers.iter().chain([&rival]) {
        sent.extend(attack(&servers, attacker).await);
    }
    let mut wrong = BTreeSet::new();
    let mut checked = 0;
    for (number, (reader, mut watch)) in readers.iter().zip(watches).enumerate() {
        let mut watched = Vec::new();
        while let Ok(Some(record)) =
            tokio::time::timeout(Duration::from_secs(2), watch.next()).await
        {
            watched.push(record);
        }
        for (way, records) in read_all(reader, watched).await {
            for sent in &sent {
                checked += 1;
                let found = sent.is_in(&records);
                let allowed = match sent.attempt.allowed {
                    _ if ["rival", "former member"].contains(&sent.role) => false,
                    MayRecord::Everyone => true,
                    MayRecord::Lead => sent.role == "lead",
                    MayRecord::NoMember => false,
                };
                // Only the admin's history must contain every allowed event: members do not see the work of others.
                let missing = number == 0 && way == "history" && allowed && !found;
                if (found && !allowed) || missing {
                    wrong.insert(format!("{way}: {} by {}: {found}", sent.attempt.name, sent.role));
                }
            }
        }
    }
    println!("{checked} combinations of event, author and reader checked");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let refused: usize = env.store.refused_events(&team()).iter().map(|(_, count)| count).sum();
    assert!(refused > 0, "the store counts refused events");
    still_works(&env).await;
}

/// The team has the same members as before, and the lead can still send mail.
async fn still_works(env: &TestEnv) {
    let config = env.store.team(&team()).await.unwrap().unwrap();
    let config = brigade_wire::team::Team::read(&config.bytes).unwrap().member_names();
    assert_eq!(config, ["team-lead", "alice", "bob"]);
    env.say("team-lead", "bob", "still here").await;
    let texts = env.texts("bob").await;
    assert_eq!(texts, [("still here".to_owned(), false)]);
}
