//! The attempts: who tries what, and the expected outcome.

use serde_json::json;

/// The client that makes an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attacker {
    /// Lead of team demo.
    Lead,
    /// Lead of team demo, but may not answer.
    Deputy,
    /// Member of team demo.
    Alice,
    /// Member of team demo.
    Bob,
    /// Member of another team.
    Carol,
    /// Member bob of a team demo in another organisation.
    Rival,
    /// Administrator of the organisation.
    Admin,
    /// Administrator of the other organisation.
    RivalAdmin,
}

impl Attacker {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lead => "team-lead",
            Self::Deputy => "deputy",
            Self::Alice => "alice",
            Self::Bob => "bob",
            Self::Carol => "carol",
            Self::Rival => "rival bob",
            Self::Admin => "admin",
            Self::RivalAdmin => "rival",
        }
    }
}

/// The action of the client.
pub(super) enum AttemptKind {
    /// Sends a request, or a message to be stored.
    Ask { subject: String, headers: Vec<(&'static str, &'static str)>, body: String },
    /// Sends a request with a reply subject it may not write to.
    Bounce { subject: String, body: String, reply: String },
    /// Subscribes.
    Listen { subject: String },
}

/// The expected outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedOutcome {
    /// Nothing changes, and the client learns nothing.
    Refused,
    /// The message is stored. Shows that the attempt itself works.
    Changes,
    /// The client receives the secret. Shows that the attempt itself works.
    Learns,
}

pub(super) struct Attempt {
    pub(super) by: Attacker,
    pub(super) name: &'static str,
    pub(super) kind: AttemptKind,
    pub(super) outcome: ExpectedOutcome,
}

use Attacker::{Admin, Alice, Bob, Carol, Deputy, Lead, Rival};

/// A request or write that should be refused.
#[expect(clippy::needless_pass_by_value, reason = "a row of the table shows its body as it is")]
fn ask(by: Attacker, name: &'static str, subject: &str, body: impl ToString) -> Attempt {
    let kind =
        AttemptKind::Ask { subject: subject.into(), headers: Vec::new(), body: body.to_string() };
    Attempt { by, name, kind, outcome: ExpectedOutcome::Refused }
}

fn ask_with_headers(
    by: Attacker,
    name: &'static str,
    subject: &str,
    headers: &[(&'static str, &'static str)],
) -> Attempt {
    let kind =
        AttemptKind::Ask { subject: subject.into(), headers: headers.to_vec(), body: "x".into() };
    Attempt { by, name, kind, outcome: ExpectedOutcome::Refused }
}

#[expect(clippy::needless_pass_by_value, reason = "a row of the table shows its body as it is")]
fn bounce(
    by: Attacker,
    name: &'static str,
    subject: &str,
    body: impl ToString,
    to: &str,
) -> Attempt {
    let kind =
        AttemptKind::Bounce { subject: subject.into(), body: body.to_string(), reply: to.into() };
    Attempt { by, name, kind, outcome: ExpectedOutcome::Refused }
}

fn listen(by: Attacker, name: &'static str, subject: &str) -> Attempt {
    let kind = AttemptKind::Listen { subject: subject.into() };
    Attempt { by, name, kind, outcome: ExpectedOutcome::Refused }
}

impl Attempt {
    fn changes(self) -> Self {
        Self { outcome: ExpectedOutcome::Changes, ..self }
    }

    fn learns(self) -> Self {
        Self { outcome: ExpectedOutcome::Learns, ..self }
    }
}

/// All attempts.
pub(super) fn attempts(bobs_inbox: &str) -> Vec<Attempt> {
    let mut all = sending();
    all.extend(answering());
    all.extend(reading());
    all.extend(consumers());
    all.extend(listening(bobs_inbox));
    all.extend(writing());
    all.extend(bouncing(bobs_inbox));
    all.extend(other_teams());
    all.extend(administration());
    all
}

fn sending() -> Vec<Attempt> {
    vec![
        ask(Alice, "send as oneself", "mb.0.demo.bob.alice.w", "hello").changes(),
        ask(Alice, "send as another member", "mb.0.demo.team-lead.bob.w", "x"),
        ask(Alice, "send as the lead", "mb.0.demo.bob.team-lead.w", "x"),
        ask(Alice, "send as a sender without a seat", "mb.0.demo.bob.system.w", "x"),
        ask(Alice, "send as oneself in another case", "mb.0.demo.bob.Alice.w", "x"),
        ask(Alice, "send with extra tokens after one's name", "mb.0.demo.bob.alice.w.w", "x"),
        ask(Alice, "send as oneself in another shard", "mb.1.demo.bob.alice.w", "x"),
        ask(Alice, "announce mail for bob", "wake.mb.0.demo.bob.team-lead.w", "x"),
        ask(Alice, "record an event as another", "ev.0.demo.team-lead", "x"),
        ask(Alice, "record work as another", "wk.0.demo.bob", "x"),
        ask(Alice, "write another's pulse", "lv.0.demo.bob", "x"),
    ]
}

fn answering() -> Vec<Attempt> {
    vec![
        ask(Lead, "answer as the lead that may", "mb.0.demo.bob.team-lead.a", super::SECRET)
            .changes(),
        ask(Alice, "answer without the right", "mb.0.demo.bob.alice.a", "yes"),
        ask(Alice, "answer as the lead", "mb.0.demo.bob.team-lead.a", "yes"),
        ask(Deputy, "answer as a lead that may not", "mb.0.demo.bob.deputy.a", "yes"),
        ask(Deputy, "answer as the other lead", "mb.0.demo.bob.team-lead.a", "yes"),
        ask(Alice, "decide a question of the lead's", "tm.0.demo.q.team-lead.plan-2", "yes"),
    ]
}

fn reading() -> Vec<Attempt> {
    let last = json!({ "last_by_subj": "mb.0.demo.bob.team-lead.w" });
    let first = json!({ "seq": 1 });
    vec![
        ask(Bob, "one's own mailbox", "js.DIRECT.GET.MB_0.mb.0.demo.bob.>", "").learns(),
        ask(Lead, "a member's mailbox, by the lead", "js.DIRECT.GET.MB_0.mb.0.demo.>", "").learns(),
        ask(Alice, "another's mailbox", "js.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Alice, "one message of another's", "js.DIRECT.GET.MB_0.mb.0.demo.bob.team-lead.w", ""),
        ask(Alice, "all mail of the team", "js.DIRECT.GET.MB_0.mb.0.demo.>", ""),
        ask(Alice, "a whole stream", "js.DIRECT.GET.MB_0.>", ""),
        ask(Alice, "a subject in the body", "js.DIRECT.GET.MB_0", &last),
        ask(Alice, "by sequence", "js.DIRECT.GET.MB_0", &first),
        ask(
            Alice,
            "an own subject, another in the body",
            "js.DIRECT.GET.MB_0.mb.0.demo.alice.>",
            &last,
        ),
        ask(
            Alice,
            "a batch of many",
            "js.DIRECT.GET.MB_0",
            json!({ "multi_last": [">"], "batch": 9 }),
        ),
        ask(Alice, "by the server's API subject", "$JS.API.DIRECT.GET.MB_0", &last),
        ask(Alice, "the same, by subject", "$JS.API.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Alice, "a message by the stream API", "$JS.API.STREAM.MSG.GET.MB_0", &first),
        ask(Alice, "the same by the seats' prefix", "js.STREAM.MSG.GET.MB_0", &first),
        ask(Alice, "another's marks", "js.DIRECT.GET.MB_0.mk.0.demo.bob", ""),
    ]
}

fn consumers() -> Vec<Attempt> {
    let on = |filter: &str| {
        json!({ "stream_name": "MB_0", "config": {
            "name": "evil", "filter_subject": filter, "ack_policy": "none", "mem_storage": true,
        }})
    };
    let bobs = "mb.0.demo.bob.>";
    let mine = "js.CONSUMER.CREATE.MB_0.evil.mb.0.demo.alice.>";
    let many = json!({ "stream_name": "MB_0", "config": {
        "name": "evil", "filter_subjects": ["mb.0.demo.alice.>", bobs], "ack_policy": "none",
    }});
    let both = json!({ "stream_name": "MB_0", "config": {
        "name": "evil", "filter_subject": "mb.0.demo.alice.>", "filter_subjects": [bobs],
        "ack_policy": "none",
    }});
    let none = json!({ "stream_name": "MB_0", "config": { "name": "evil", "ack_policy": "none" } });
    let other = json!({ "stream_name": "MB_0", "config": {
        "name": "evil", "filter_subject": "bd.0.demo.>", "ack_policy": "none",
    }});
    let next = json!({ "batch": 1, "no_wait": true });
    vec![
        ask(
            Alice,
            "a consumer of another's mail",
            "js.CONSUMER.CREATE.MB_0.evil.mb.0.demo.bob.>",
            on(bobs),
        ),
        ask(
            Alice,
            "a consumer of all mail",
            "js.CONSUMER.CREATE.MB_0.evil.mb.0.demo.>",
            on("mb.0.demo.>"),
        ),
        ask(Alice, "a consumer of one's own mail, another's in the body", mine, on(bobs)),
        ask(Alice, "the same with a wildcard in the body", mine, on(">")),
        ask(Alice, "the same with several filters", mine, many),
        ask(Alice, "the same with a filter and several", mine, both),
        ask(Alice, "the same with none", mine, none.clone()),
        ask(
            Alice,
            "of another stream than the subject names",
            "js.CONSUMER.CREATE.BD_0.evil.bd.0.demo.>",
            other,
        ),
        ask(Alice, "a consumer without a filter", "js.CONSUMER.CREATE.MB_0.evil", none.clone()),
        ask(Alice, "a consumer without a name", "js.CONSUMER.CREATE.MB_0", on(bobs)),
        ask(Alice, "a consumer of the old kind", "js.CONSUMER.DURABLE.CREATE.MB_0.evil", on(bobs)),
        ask(
            Alice,
            "a consumer by the server's API subject",
            "$JS.API.CONSUMER.CREATE.MB_0.evil",
            none,
        ),
        ask(
            Alice,
            "messages of a consumer with a guessed name",
            "js.CONSUMER.MSG.NEXT.MB_0.reader",
            next,
        ),
        ask(Alice, "the names of others' consumers", "js.CONSUMER.NAMES.MB_0", "{}"),
        ask(Alice, "the same by the server's API subject", "$JS.API.CONSUMER.NAMES.MB_0", "{}"),
        ask(Alice, "the list of others' consumers", "$JS.API.CONSUMER.LIST.MB_0", "{}"),
        ask(
            Alice,
            "delete another's consumer, its name guessed",
            "js.CONSUMER.DELETE.MB_0.reader",
            "",
        ),
    ]
}

fn listening(bobs_inbox: &str) -> Vec<Attempt> {
    vec![
        listen(Bob, "announcements of one's own mail", "wake.mb.0.demo.bob.>").learns(),
        listen(Alice, "announcements of another's mail", "wake.mb.0.demo.bob.>"),
        listen(Alice, "announcements of all mail", "wake.mb.0.demo.*.team-lead.*"),
        listen(Alice, "announcements of everything", "wake.>"),
        listen(Alice, "another's mail itself", "mb.0.demo.bob.>"),
        listen(Alice, "every subject", ">"),
        listen(Alice, "all answers of the server", "_INBOX.>"),
        listen(Alice, "the server's answers to another", &format!("{bobs_inbox}.>")),
        listen(Alice, "answers between the accounts", "_R_.>"),
        listen(Alice, "JetStream events", "$JS.EVENT.>"),
        listen(Alice, "system events", "$SYS.>"),
        listen(Carol, "mail of another team", "wake.mb.0.demo.bob.>"),
        listen(Rival, "mail of the same name in another organisation", "wake.mb.0.demo.bob.>"),
    ]
}

fn writing() -> Vec<Attempt> {
    vec![
        ask(Alice, "claim a task as oneself", "bd.0.demo.1.alice", "x").changes(),
        ask(Alice, "claim a task as another", "bd.0.demo.1.bob", "x"),
        ask(Alice, "claim a task of another team", "bd.0.other.1.alice", "x"),
        ask(Alice, "write the roster", "tm.0.demo.doc.cfg.alice", "x"),
        ask(Alice, "write the roster as the lead", "tm.0.demo.doc.cfg.team-lead", "x"),
        ask(Deputy, "write the roster as another lead", "tm.0.demo.doc.cfg.team-lead", "x"),
        ask(Alice, "write another's roster entry", "tm.0.demo.doc.m.bob", "x"),
        ask(Alice, "mark another's mail", "mk.0.demo.bob", "x"),
        ask(Alice, "write another's notes", "nt.0.demo.bob.shown", "x"),
        ask(Carol, "write the roster of another team", "tm.0.demo.doc.cfg.carol", "x"),
        ask(Alice, "change the layout", "tm.0.layout", "{}"),
        ask_with_headers(
            Alice,
            "replace all rosters by one answer",
            "tm.0.demo.q.alice.x",
            &[("Nats-Rollup", "all")],
        ),
        ask_with_headers(
            Alice,
            "replace all notes by one",
            "nt.0.demo.alice.x",
            &[("Nats-Rollup", "all")],
        ),
        ask_with_headers(
            Alice,
            "replace the whole board by one task",
            "bd.0.demo.1.alice",
            &[("Nats-Rollup", "all")],
        ),
        ask_with_headers(
            Alice,
            "replace all mail by one message",
            "mb.0.demo.bob.alice.w",
            &[("Nats-Rollup", "all")],
        ),
        ask_with_headers(
            Alice,
            "schedule a message as another",
            "mb.0.demo.bob.alice.w",
            &[
                ("Nats-Schedule", "@every 1s"),
                ("Nats-Schedule-Target", "mb.0.demo.bob.team-lead.a"),
            ],
        ),
        ask_with_headers(
            Alice,
            "send a message trace to another's mailbox",
            "ev.0.demo.alice",
            &[("Nats-Trace-Dest", "mb.0.demo.bob.team-lead.a")],
        ),
    ]
}

/// The server does not check the reply subject of a request.
fn bouncing(bobs_inbox: &str) -> Vec<Attempt> {
    let (own, task) = ("js.DIRECT.GET.MB_0.ev.0.demo.*", "js.DIRECT.GET.BD_0.bd.0.demo.>");
    let approval = "mb.0.demo.carl.team-lead.a";
    let push = |name: &str, to: &str| {
        json!({ "stream_name": "BD_0", "config": {
            "name": name, "filter_subject": "bd.0.demo.>", "ack_policy": "none",
            "deliver_subject": to,
        }})
    };
    let (make, other) =
        ("js.CONSUMER.CREATE.BD_0.one.bd.0.demo.>", "js.CONSUMER.CREATE.BD_0.two.bd.0.demo.>");
    vec![
        bounce(
            Admin,
            "an answer stored as an approval, inside one account",
            "$JS.API.DIRECT.GET.BD_0.bd.0.demo.>",
            "",
            "mb.0.demo.dan.team-lead.a",
        )
        .changes(),
        bounce(Alice, "an answer as the lead's approval", task, "", approval),
        bounce(Alice, "an own event as the lead's approval", own, "", approval),
        bounce(Alice, "a receipt as the lead's approval", "ev.0.demo.alice", "x", approval),
        bounce(Alice, "an answer as a task of another team", task, "", "bd.0.other.1.carol"),
        bounce(Alice, "an answer that purges a stream", task, "", "$JS.API.STREAM.PURGE.MB_0"),
        bounce(Alice, "an answer that deletes a stream", task, "", "$JS.API.STREAM.DELETE.MB_0"),
        bounce(
            Alice,
            "a receipt that purges a stream",
            "ev.0.demo.alice",
            "{}",
            "$JS.API.STREAM.PURGE.MB_0",
        ),
        bounce(
            Alice,
            "an answer that purges by the seats' prefix",
            task,
            "",
            "js.STREAM.PURGE.MB_0",
        ),
        bounce(
            Alice,
            "an answer that asks for another's mail",
            task,
            "",
            "js.DIRECT.GET.MB_0.mb.0.demo.bob.>",
        ),
        bounce(Alice, "an answer as the server's to another", task, "", &format!("{bobs_inbox}.1")),
        bounce(Alice, "an answer that announces mail", task, "", "wake.mb.0.demo.bob.team-lead.w"),
        bounce(
            Alice,
            "a consumer that delivers as the lead",
            make,
            push("one", approval),
            "_INBOX.nobody",
        ),
        bounce(
            Alice,
            "a consumer that purges a stream",
            other,
            push("two", "$JS.API.STREAM.PURGE.MB_0"),
            "_INBOX.nobody",
        ),
        bounce(
            Rival,
            "an answer into another organisation",
            "js.DIRECT.GET.BD_0.bd.0.demo.>",
            "",
            approval,
        ),
    ]
}

fn other_teams() -> Vec<Attempt> {
    vec![
        ask(Carol, "send into another team", "mb.0.demo.bob.carol.w", "x"),
        ask(Carol, "send into another team as its member", "mb.0.demo.bob.alice.w", "x"),
        ask(Carol, "mail of another team", "js.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Carol, "the board of another team", "js.DIRECT.GET.BD_0.bd.0.demo.>", ""),
        ask(Carol, "the roster of another team", "js.DIRECT.GET.TM_0.tm.0.demo.doc.>", ""),
        ask(Carol, "all boards", "js.DIRECT.GET.BD_0.bd.0.>", ""),
        ask(Carol, "a pulse of another team", "js.DIRECT.GET.LV_0.lv.0.demo.bob", ""),
        ask(
            Rival,
            "mail of the same name in another organisation",
            "js.DIRECT.GET.MB_0.mb.0.demo.bob.>",
            "",
        ),
        ask(
            Rival,
            "board of the same team name in another organisation",
            "js.DIRECT.GET.BD_0.bd.0.demo.>",
            "",
        ),
        ask(
            Rival,
            "roster of the same team name in another organisation",
            "js.DIRECT.GET.TM_0.tm.0.demo.doc.>",
            "",
        ),
    ]
}

fn administration() -> Vec<Attempt> {
    let copy = |key: &str, value| {
        let mut config = json!({ "name": "EVIL", "retention": "limits", "storage": "memory",
            "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0 });
        config[key] = value;
        config
    };
    let open = json!({ "name": "MB_0", "subjects": ["mb.0.>", "mk.0.>", "ev.0.>"],
        "republish": { "src": ">", "dest": "_INBOX.>" } });
    let backup = json!({ "deliver_subject": "_INBOX.x" });
    let of = "$JS.API.STREAM";
    vec![
        ask(Alice, "purge a stream", &format!("{of}.PURGE.MB_0"), "{}"),
        ask(Lead, "purge a stream, by a lead", &format!("{of}.PURGE.MB_0"), "{}"),
        ask(Alice, "purge a stream by the seats' prefix", "js.STREAM.PURGE.MB_0", "{}"),
        ask(Alice, "delete a stream", &format!("{of}.DELETE.MB_0"), ""),
        ask(Alice, "delete a message", &format!("{of}.MSG.DELETE.MB_0"), r#"{"seq":1}"#),
        ask(Alice, "change a stream to receive all of it", &format!("{of}.UPDATE.MB_0"), open),
        ask(
            Alice,
            "make a stream",
            &format!("{of}.CREATE.EVIL"),
            copy("subjects", json!(["evil.>"])),
        ),
        ask(
            Alice,
            "make a mirror",
            &format!("{of}.CREATE.EVIL"),
            copy("mirror", json!({ "name": "MB_0" })),
        ),
        ask(
            Alice,
            "make a stream with sources",
            &format!("{of}.CREATE.EVIL"),
            copy("sources", json!([{ "name": "MB_0" }])),
        ),
        ask(
            Rival,
            "make a mirror, from another organisation",
            &format!("{of}.CREATE.EVIL"),
            copy("mirror", json!({ "name": "MB_0" })),
        ),
        ask(Alice, "take a snapshot", &format!("{of}.SNAPSHOT.MB_0"), backup),
        ask(Alice, "stream info", &format!("{of}.INFO.MB_0"), ""),
        ask(Alice, "stream names", &format!("{of}.NAMES"), "{}"),
        ask(Alice, "account info", "$JS.API.INFO", ""),
        ask(Alice, "make a stream's leader step down", &format!("{of}.LEADER.STEPDOWN.MB_0"), ""),
        ask(Alice, "make the cluster's leader step down", "$JS.API.META.LEADER.STEPDOWN", ""),
        ask(Alice, "list servers", "$SYS.REQ.SERVER.PING", ""),
        ask(Alice, "update an account", "$SYS.REQ.CLAIMS.UPDATE", "x"),
        ask(Admin, "the same by the administrator", "$SYS.REQ.CLAIMS.UPDATE", "x"),
        ask(Admin, "list servers, by the administrator", "$SYS.REQ.SERVER.PING", ""),
        ask(
            Admin,
            "delete a message, by the administrator",
            &format!("{of}.MSG.DELETE.MB_0"),
            r#"{"seq":2}"#,
        )
        .changes(),
    ]
}
