//! One row for each event that a member could try to record: the event, and the members that may record it.

use std::sync::Arc;

use brigade_core::event::{Event, MessageKey, WITHDRAWN, WorkEvent, one_line};
use brigade_core::rights::EventKind;
use brigade_core::store::{Actor, Store, StoreError};
use serde_json::json;

use crate::env::{TestEnv, team};

/// The members that may record the event of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayRecord {
    /// Every member.
    Everyone,
    /// Only the lead.
    Lead,
    /// No member.
    NoMember,
}

/// An event that a member tries to record.
#[derive(Clone, Debug)]
pub struct EventAttempt {
    /// Describes the event.
    pub name: String,
    /// The event.
    pub event: Event,
    /// The members that may record it.
    pub allowed: MayRecord,
}

/// Returns all attempts of member `me` against member `other`. Each event contains `mark`.
pub fn attempts(me: &str, other: &str, mark: &str) -> Vec<EventAttempt> {
    EventKind::ALL.into_iter().flat_map(|kind| rows(kind, me, other, mark)).collect()
}

/// A new kind of event needs a row here.
fn rows(kind: EventKind, me: &str, other: &str, mark: &str) -> Vec<EventAttempt> {
    use MayRecord::{Everyone, Lead, NoMember};
    let key = MessageKey::from_id(mark);
    let message = |from: &str, text: &str| {
        let entry = json!({ "from": from, "text": text, "msg_id": mark, "summary": mark,
            "timestamp": "2026-11-15T12:00:00.000Z", "read": false });
        one_line(entry.to_string().as_bytes())
    };
    let entry = |name: &str| {
        let entry = json!({ "name": name, "agentId": format!("{name}@demo"), "agentType": mark });
        one_line(entry.to_string().as_bytes())
    };
    let approval = json!({ "type": "plan_approval_response", "requestId": "p", "approved": true });
    let approval = approval.to_string();
    let seen = |to: &str, from: &str, text: &str| Event::Seen {
        to: to.into(),
        key,
        message: message(from, text),
    };
    let answered = |kind: &str, to: &str, hand: &str| Event::Answered {
        request_id: mark.into(),
        kind: kind.into(),
        to: to.into(),
        yes: true,
        reason: None,
        hand: hand.into(),
    };
    let worked = |name: &str| Event::Worked {
        name: name.into(),
        act: WorkEvent::Said { text: mark.into() },
    };
    let rows = match kind {
        EventKind::Sent => {
            let sent = |to: &str, from: &str| Event::Sent {
                to: to.into(),
                key,
                team_created: 0,
                power_safe: false,
                message: message(from, "hello"),
            };
            vec![
                ("as oneself", sent(other, me), NoMember),
                ("as another", sent(me, other), NoMember),
            ]
        }
        EventKind::Seen => vec![
            ("one's own message", seen(other, me, "hello"), Everyone),
            ("one's own approval", seen(other, me, &approval), Lead),
            ("a message of a program in one's own inbox", seen(me, "system", "hello"), Everyone),
            ("another's message in one's own inbox", seen(me, other, "hello"), NoMember),
            ("another's approval in one's own inbox", seen(me, other, &approval), NoMember),
            ("a program's approval in one's own inbox", seen(me, "system", &approval), NoMember),
            ("another's message in another's inbox", seen(other, "system", "hello"), NoMember),
            ("another's message to itself", seen(other, other, "hello"), NoMember),
        ],
        EventKind::Read => {
            let read = |to: &str| Event::Read { to: to.into(), key, gone: true };
            vec![("one's own", read(me), NoMember), ("another's", read(other), NoMember)]
        }
        EventKind::Shown => {
            let shown = |to: &str| Event::Shown { to: to.into(), key };
            vec![("one's own", shown(me), NoMember), ("another's", shown(other), NoMember)]
        }
        EventKind::Answered => vec![
            ("a permission request", answered("permission", other, "person"), Lead),
            ("a plan", answered("plan", other, "rule 1 of bob"), Lead),
            ("an unknown kind of request", answered("mode", other, "person"), Lead),
            ("a shutdown request", answered("shutdown", other, "agent"), Everyone),
            ("one's own permission request", answered("permission", me, "person"), NoMember),
            ("one's own shutdown request", answered("shutdown", me, "agent"), NoMember),
            ("one's own request, withdrawn", answered("permission", me, WITHDRAWN), Everyone),
            ("another's request, withdrawn", answered("permission", other, WITHDRAWN), NoMember),
        ],
        EventKind::Salvaged => {
            let salvaged = |to: &str| Event::Salvaged { to: to.into(), copy: mark.into(), kept: 0 };
            vec![("one's own", salvaged(me), NoMember), ("another's", salvaged(other), NoMember)]
        }
        EventKind::Task => {
            let task = json!({ "id": "7", "subject": mark, "description": "", "status": "pending",
                "blocks": [], "blockedBy": [] });
            vec![("", Event::Task { id: 7, task: one_line(task.to_string().as_bytes()) }, NoMember)]
        }
        EventKind::TaskDeleted => vec![("", Event::TaskDeleted { id: 1 }, NoMember)],
        EventKind::TeamCreated => {
            let config = json!({ "name": mark, "createdAt": 1, "leadAgentId": format!("{me}@demo"),
                "members": [{ "name": me, "agentId": format!("{me}@demo") }] });
            vec![(
                "",
                Event::TeamCreated { team: one_line(config.to_string().as_bytes()) },
                NoMember,
            )]
        }
        EventKind::TeamDeleted => vec![("", Event::TeamDeleted {}, NoMember)],
        EventKind::Member => {
            let joined =
                |name: &str| Event::Member { name: name.into(), member: entry(name), joined: true };
            vec![("oneself", joined(me), NoMember), ("another", joined(other), NoMember)]
        }
        EventKind::MemberLeft => {
            let left = |name: &str| Event::MemberLeft { name: name.into() };
            vec![("oneself", left(me), NoMember), ("another", left(other), NoMember)]
        }
        EventKind::TakenOver => {
            let taken = |name: &str, ended: bool| Event::TakenOver {
                name: name.into(),
                program: mark.into(),
                session: None,
                ended,
            };
            vec![
                ("one's own", taken(me, false), Everyone),
                ("the end of one's own", taken(me, true), Everyone),
                ("another's", taken(other, false), NoMember),
                ("the end of another's", taken(other, true), NoMember),
            ]
        }
        EventKind::Worked => {
            vec![("one's own", worked(me), Everyone), ("another's", worked(other), NoMember)]
        }
    };
    let attempt = |(what, event, allowed): (&str, Event, MayRecord)| EventAttempt {
        name: format!("{kind}: {what}"),
        event,
        allowed,
    };
    rows.into_iter().map(attempt).collect()
}

/// A store lets a member record an event only if the table above allows it.
pub async fn only_allowed_events_can_be_recorded(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    for (me, other) in [("alice", "bob"), ("team-lead", "bob")] {
        for attempt in attempts(me, other, "mark") {
            let recorded = env.store.record(&team(), attempt.event, &Actor(me.to_owned())).await;
            match attempt.allowed {
                MayRecord::Everyone => recorded.unwrap(),
                MayRecord::Lead if me == "team-lead" => recorded.unwrap(),
                MayRecord::Lead | MayRecord::NoMember => assert!(
                    matches!(recorded, Err(StoreError::EventRefused(_))),
                    "{me}: {}: {recorded:?}",
                    attempt.name
                ),
            }
        }
    }
}
