//! What is tried, by whom, and what should come of it.

use serde_json::json;

/// Who tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    /// Leads demo.
    Lead,
    /// Leads demo, but may not answer.
    Deputy,
    /// Of demo.
    Alice,
    /// Of demo.
    Bob,
    /// Of another team.
    Carol,
    /// A bob of a team demo, in another organisation.
    Rival,
    /// Runs the organisation.
    Admin,
    /// Runs the other.
    RivalAdmin,
}

impl By {
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

/// How it is tried.
pub(super) enum How {
    /// A question, or something to be stored.
    Ask { subject: String, headers: Vec<(&'static str, &'static str)>, body: String },
    /// A question whose answer is to go where the asker may not write.
    Bounce { subject: String, body: String, reply: String },
    /// Listening.
    Listen { subject: String },
}

/// What should come of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing is changed, nothing is learned.
    Refused,
    /// It is stored: the attempt is real.
    Changes,
    /// It is told: the attempt is real.
    Learns,
}

pub(super) struct Attempt {
    pub(super) by: By,
    pub(super) name: &'static str,
    pub(super) how: How,
    pub(super) outcome: Outcome,
}

use By::{Admin, Alice, Bob, Carol, Deputy, Lead, Rival};

/// What somebody asks or stores, in vain.
#[expect(clippy::needless_pass_by_value, reason = "a row of the table shows its body as it is")]
fn ask(by: By, name: &'static str, subject: &str, body: impl ToString) -> Attempt {
    let how = How::Ask { subject: subject.into(), headers: Vec::new(), body: body.to_string() };
    Attempt { by, name, how, outcome: Outcome::Refused }
}

fn with(
    by: By,
    name: &'static str,
    subject: &str,
    headers: &[(&'static str, &'static str)],
) -> Attempt {
    let how = How::Ask { subject: subject.into(), headers: headers.to_vec(), body: "x".into() };
    Attempt { by, name, how, outcome: Outcome::Refused }
}

#[expect(clippy::needless_pass_by_value, reason = "a row of the table shows its body as it is")]
fn bounce(by: By, name: &'static str, subject: &str, body: impl ToString, to: &str) -> Attempt {
    let how = How::Bounce { subject: subject.into(), body: body.to_string(), reply: to.into() };
    Attempt { by, name, how, outcome: Outcome::Refused }
}

fn listen(by: By, name: &'static str, subject: &str) -> Attempt {
    let how = How::Listen { subject: subject.into() };
    Attempt { by, name, how, outcome: Outcome::Refused }
}

impl Attempt {
    fn changes(self) -> Self {
        Self { outcome: Outcome::Changes, ..self }
    }

    fn learns(self) -> Self {
        Self { outcome: Outcome::Learns, ..self }
    }
}

/// All of it.
pub(super) fn attempts(bobs_inbox: &str) -> Vec<Attempt> {
    let mut all = speaking();
    all.extend(answering());
    all.extend(reading());
    all.extend(consumers());
    all.extend(listening(bobs_inbox));
    all.extend(writing());
    all.extend(bouncing(bobs_inbox));
    all.extend(elsewhere());
    all.extend(administration());
    all
}

fn speaking() -> Vec<Attempt> {
    vec![
        ask(Alice, "send as oneself", "mb.0.demo.bob.alice.w", "hello").changes(),
        ask(Alice, "send as another member", "mb.0.demo.team-lead.bob.w", "x"),
        ask(Alice, "send as the lead", "mb.0.demo.bob.team-lead.w", "x"),
        ask(Alice, "send as somebody of no name", "mb.0.demo.bob.system.w", "x"),
        ask(Alice, "send as oneself in another case", "mb.0.demo.bob.Alice.w", "x"),
        ask(Alice, "send with more behind one's name", "mb.0.demo.bob.alice.w.w", "x"),
        ask(Alice, "send as oneself in another shard", "mb.1.demo.bob.alice.w", "x"),
        ask(Alice, "say that there is mail for bob", "wake.mb.0.demo.bob.team-lead.w", "x"),
        ask(Alice, "write down what another did", "ev.0.demo.team-lead", "x"),
        ask(Alice, "write down what another does at its work", "wk.0.demo.bob", "x"),
        ask(Alice, "say how another is", "lv.0.demo.bob", "x"),
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
        ask(Alice, "one letter of another's", "js.DIRECT.GET.MB_0.mb.0.demo.bob.team-lead.w", ""),
        ask(Alice, "everybody's mail", "js.DIRECT.GET.MB_0.mb.0.demo.>", ""),
        ask(Alice, "a whole stream", "js.DIRECT.GET.MB_0.>", ""),
        ask(Alice, "what the question says inside", "js.DIRECT.GET.MB_0", &last),
        ask(Alice, "by number", "js.DIRECT.GET.MB_0", &first),
        ask(
            Alice,
            "an own subject, and another inside",
            "js.DIRECT.GET.MB_0.mb.0.demo.alice.>",
            &last,
        ),
        ask(
            Alice,
            "a batch of many",
            "js.DIRECT.GET.MB_0",
            json!({ "multi_last": [">"], "batch": 9 }),
        ),
        ask(Alice, "by the server's own name for it", "$JS.API.DIRECT.GET.MB_0", &last),
        ask(Alice, "the same, by subject", "$JS.API.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Alice, "a message by the stream's interface", "$JS.API.STREAM.MSG.GET.MB_0", &first),
        ask(Alice, "the same by the seats' name", "js.STREAM.MSG.GET.MB_0", &first),
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
            "a consumer of everybody's mail",
            "js.CONSUMER.CREATE.MB_0.evil.mb.0.demo.>",
            on("mb.0.demo.>"),
        ),
        ask(Alice, "a consumer of one's own mail, another's inside", mine, on(bobs)),
        ask(Alice, "the same with everything inside", mine, on(">")),
        ask(Alice, "the same with several filters", mine, many),
        ask(Alice, "the same with a filter and several", mine, both),
        ask(Alice, "the same with none", mine, none.clone()),
        ask(
            Alice,
            "of another stream than the subject says",
            "js.CONSUMER.CREATE.BD_0.evil.bd.0.demo.>",
            other,
        ),
        ask(Alice, "a consumer without a filter", "js.CONSUMER.CREATE.MB_0.evil", none.clone()),
        ask(Alice, "a consumer without a name", "js.CONSUMER.CREATE.MB_0", on(bobs)),
        ask(Alice, "a consumer of the old kind", "js.CONSUMER.DURABLE.CREATE.MB_0.evil", on(bobs)),
        ask(
            Alice,
            "a consumer by the server's own name for it",
            "$JS.API.CONSUMER.CREATE.MB_0.evil",
            none,
        ),
        ask(
            Alice,
            "more of a consumer whose name is guessed",
            "js.CONSUMER.MSG.NEXT.MB_0.reader",
            next,
        ),
        ask(Alice, "the names of others' consumers", "js.CONSUMER.NAMES.MB_0", "{}"),
        ask(Alice, "the same by the server's own name", "$JS.API.CONSUMER.NAMES.MB_0", "{}"),
        ask(Alice, "the list of others' consumers", "$JS.API.CONSUMER.LIST.MB_0", "{}"),
        ask(
            Alice,
            "to end another's consumer, its name guessed",
            "js.CONSUMER.DELETE.MB_0.reader",
            "",
        ),
    ]
}

fn listening(bobs_inbox: &str) -> Vec<Attempt> {
    vec![
        listen(Bob, "that there is mail for oneself", "wake.mb.0.demo.bob.>").learns(),
        listen(Alice, "that there is mail for another", "wake.mb.0.demo.bob.>"),
        listen(Alice, "that there is mail for anybody", "wake.mb.0.demo.*.team-lead.*"),
        listen(Alice, "everything that is stored", "wake.>"),
        listen(Alice, "another's mail itself", "mb.0.demo.bob.>"),
        listen(Alice, "everything there is", ">"),
        listen(Alice, "all answers of the server", "_INBOX.>"),
        listen(Alice, "the server's answers to another", &format!("{bobs_inbox}.>")),
        listen(Alice, "answers between the accounts", "_R_.>"),
        listen(Alice, "who makes which consumer", "$JS.EVENT.>"),
        listen(Alice, "what the server says of itself", "$SYS.>"),
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
        ask(Alice, "write another's entry in it", "tm.0.demo.doc.m.bob", "x"),
        ask(Alice, "mark another's mail", "mk.0.demo.bob", "x"),
        ask(Alice, "write another's notes", "nt.0.demo.bob.shown", "x"),
        ask(Carol, "write the roster of another team", "tm.0.demo.doc.cfg.carol", "x"),
        ask(Alice, "write down another layout", "tm.0.layout", "{}"),
        with(
            Alice,
            "replace all rosters by one answer",
            "tm.0.demo.q.alice.x",
            &[("Nats-Rollup", "all")],
        ),
        with(Alice, "replace all notes by one", "nt.0.demo.alice.x", &[("Nats-Rollup", "all")]),
        with(
            Alice,
            "replace the whole board by one task",
            "bd.0.demo.1.alice",
            &[("Nats-Rollup", "all")],
        ),
        with(
            Alice,
            "replace all mail by one letter",
            "mb.0.demo.bob.alice.w",
            &[("Nats-Rollup", "all")],
        ),
        with(
            Alice,
            "have it said later, as another",
            "mb.0.demo.bob.alice.w",
            &[
                ("Nats-Schedule", "@every 1s"),
                ("Nats-Schedule-Target", "mb.0.demo.bob.team-lead.a"),
            ],
        ),
        with(
            Alice,
            "have the way of a message told to another's mailbox",
            "ev.0.demo.alice",
            &[("Nats-Trace-Dest", "mb.0.demo.bob.team-lead.a")],
        ),
    ]
}

/// The server does not look at where an answer is to go.
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
        bounce(Alice, "an own record as the lead's approval", own, "", approval),
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
        bounce(Alice, "an answer that purges by the seats' name", task, "", "js.STREAM.PURGE.MB_0"),
        bounce(
            Alice,
            "an answer that asks for another's mail",
            task,
            "",
            "js.DIRECT.GET.MB_0.mb.0.demo.bob.>",
        ),
        bounce(Alice, "an answer as the server's to another", task, "", &format!("{bobs_inbox}.1")),
        bounce(
            Alice,
            "an answer that says there is mail",
            task,
            "",
            "wake.mb.0.demo.bob.team-lead.w",
        ),
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

fn elsewhere() -> Vec<Attempt> {
    vec![
        ask(Carol, "send into another team", "mb.0.demo.bob.carol.w", "x"),
        ask(Carol, "send into another team as its member", "mb.0.demo.bob.alice.w", "x"),
        ask(Carol, "mail of another team", "js.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Carol, "the board of another team", "js.DIRECT.GET.BD_0.bd.0.demo.>", ""),
        ask(Carol, "the roster of another team", "js.DIRECT.GET.TM_0.tm.0.demo.doc.>", ""),
        ask(Carol, "all boards", "js.DIRECT.GET.BD_0.bd.0.>", ""),
        ask(Carol, "who is there in another team", "js.DIRECT.GET.LV_0.lv.0.demo.bob", ""),
        ask(Rival, "the mail of a namesake", "js.DIRECT.GET.MB_0.mb.0.demo.bob.>", ""),
        ask(Rival, "the board of a namesake's team", "js.DIRECT.GET.BD_0.bd.0.demo.>", ""),
        ask(Rival, "the roster of a namesake's team", "js.DIRECT.GET.TM_0.tm.0.demo.doc.>", ""),
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
        ask(Alice, "purge a stream by the seats' name", "js.STREAM.PURGE.MB_0", "{}"),
        ask(Alice, "delete a stream", &format!("{of}.DELETE.MB_0"), ""),
        ask(Alice, "delete a message", &format!("{of}.MSG.DELETE.MB_0"), r#"{"seq":1}"#),
        ask(Alice, "change a stream, to hear all of it", &format!("{of}.UPDATE.MB_0"), open),
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
        ask(Alice, "how a stream is", &format!("{of}.INFO.MB_0"), ""),
        ask(Alice, "which streams there are", &format!("{of}.NAMES"), "{}"),
        ask(Alice, "how the account is", "$JS.API.INFO", ""),
        ask(
            Alice,
            "have a stream led by another server",
            &format!("{of}.LEADER.STEPDOWN.MB_0"),
            "",
        ),
        ask(Alice, "have the cluster led by another server", "$JS.API.META.LEADER.STEPDOWN", ""),
        ask(Alice, "which servers there are", "$SYS.REQ.SERVER.PING", ""),
        ask(Alice, "tell the servers of an account", "$SYS.REQ.CLAIMS.UPDATE", "x"),
        ask(Admin, "the same by who runs the organisation", "$SYS.REQ.CLAIMS.UPDATE", "x"),
        ask(Admin, "which servers there are, by who runs it", "$SYS.REQ.SERVER.PING", ""),
        ask(
            Admin,
            "delete a message, by who runs it",
            &format!("{of}.MSG.DELETE.MB_0"),
            r#"{"seq":2}"#,
        )
        .changes(),
    ]
}
