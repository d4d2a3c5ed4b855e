//! The permissions of seats: tables of the subjects that each kind of seat may use.
//!
//! The server compares subjects token by token. For example, `mb.0.demo.*.alice.w` allows sending messages to any
//! member of the team `demo`, but only as `alice`. The server refuses all subjects that are not in the tables.

use brigade_wire::name::MemberName;
use serde::Serialize;

use crate::identity::{CredentialRole, SEATS_API};
use crate::layout::{LAYOUT, Stream, Subjects, WAKE};

/// The subjects that a user may publish to and subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// The subjects that the user may publish to.
    pub publish: Vec<String>,
    /// The subjects that the user may subscribe to.
    pub subscribe: Vec<String>,
}

/// The kind of seats that have a permission.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeatKind {
    /// Every seat.
    AnySeat,
    /// Leads.
    Lead,
    /// Seats that may answer requests.
    Answering,
}

use SeatKind::{Answering, AnySeat, Lead};

/// The subjects that each kind of seat may write to. `S` stands for the shard, `T` for the team, and `ME` for each
/// member that the seat may act as.
const WRITES: &[(SeatKind, &str)] = &[
    (AnySeat, "mb.S.T.*.ME.w"),
    (Answering, "mb.S.T.*.ME.a"),
    (AnySeat, "mk.S.T.ME"),
    (Lead, "mk.S.T.*"),
    (AnySeat, "ev.S.T.*.ME.w"),
    (Answering, "ev.S.T.*.ME.a"),
    (AnySeat, "wk.S.T.ME"),
    (AnySeat, "bd.S.T.*.ME"),
    (Lead, "tm.S.T.doc.cfg.ME"),
    (AnySeat, "tm.S.T.doc.m.ME"),
    (AnySeat, "tm.S.T.q.ME.*"),
    (AnySeat, "nt.S.T.ME.*"),
    (Lead, "nt.S.T.*.*"),
    (AnySeat, "lv.S.T.ME"),
];

/// The subjects that each kind of seat may read. On these subjects, a seat can read the last message, read all
/// messages, and watch for new messages.
const READS: &[(SeatKind, Stream, &str)] = &[
    (AnySeat, Stream::Mail, "mb.S.T.ME.>"),
    (AnySeat, Stream::Mail, "mb.S.T.*.ME.*"),
    (Lead, Stream::Mail, "mb.S.T.>"),
    (AnySeat, Stream::Mail, "mk.S.T.ME"),
    (Lead, Stream::Mail, "mk.S.T.*"),
    (AnySeat, Stream::Mail, "ev.S.T.ME.>"),
    (AnySeat, Stream::Mail, "ev.S.T.*.ME.*"),
    (Lead, Stream::Mail, "ev.S.T.>"),
    (AnySeat, Stream::Mail, "wk.S.T.ME"),
    (Lead, Stream::Mail, "wk.S.T.*"),
    (AnySeat, Stream::Board, "bd.S.T.>"),
    (AnySeat, Stream::Team, "tm.S.T.doc.>"),
    (AnySeat, Stream::Team, "tm.S.T.q.ME.*"),
    (Lead, Stream::Team, "tm.S.T.q.>"),
    (AnySeat, Stream::Notes, "nt.S.T.ME.*"),
    (AnySeat, Stream::Notes, "nt.S.T.*.home"),
    (Lead, Stream::Notes, "nt.S.T.>"),
    (AnySeat, Stream::Live, "lv.S.T.>"),
];

/// Returns the permissions of a seat that acts as some members of a team. Returns empty permissions for an
/// administrator, because administrators may do everything in the account that holds the streams.
pub fn rights(
    role: CredentialRole,
    answers: bool,
    subjects: &Subjects,
    members: &[MemberName],
    inbox_prefix: &str,
) -> Permissions {
    let mut permissions = Permissions::default();
    if role == CredentialRole::Admin {
        return permissions;
    }
    let has = |kind| match kind {
        AnySeat => true,
        Lead => role == CredentialRole::Lead,
        Answering => answers,
    };
    for me in members {
        let subject_of = |row: &str| expand(row, subjects, me);
        for (_, row) in WRITES.iter().filter(|(kind, _)| has(*kind)) {
            permissions.publish.push(subject_of(row));
        }
        for (_, stream, row) in READS.iter().filter(|(kind, ..)| has(*kind)) {
            let (stream, subject) = (subjects.stream(*stream), subject_of(row));
            // The request's subject contains the filter. The server refuses a request whose body has another
            // filter.
            permissions.publish.push(format!("{SEATS_API}.DIRECT.GET.{stream}.{subject}"));
            permissions.publish.push(format!("{SEATS_API}.CONSUMER.CREATE.{stream}.*.{subject}"));
            permissions.subscribe.push(format!("{WAKE}.{subject}"));
        }
    }
    let layout = Stream::Team.name(0);
    permissions.publish.push(format!("{SEATS_API}.DIRECT.GET.{layout}.{LAYOUT}"));
    for stream in Stream::ALL {
        // Allow any consumer name. Names are random, and a seat cannot find out the names that others use.
        let stream = subjects.stream(stream);
        permissions.publish.push(format!("{SEATS_API}.CONSUMER.MSG.NEXT.{stream}.*"));
        permissions.publish.push(format!("{SEATS_API}.CONSUMER.DELETE.{stream}.*"));
    }
    permissions.subscribe.push(format!("{inbox_prefix}.>"));
    for subjects in [&mut permissions.publish, &mut permissions.subscribe] {
        subjects.sort();
        subjects.dedup();
    }
    permissions
}

fn expand(row: &str, subjects: &Subjects, me: &MemberName) -> String {
    let shard = subjects.shard.to_string();
    let tokens = row.split('.').map(|token| match token {
        "S" => shard.as_str(),
        "T" => subjects.team.as_str(),
        "ME" => me.as_str(),
        token => token,
    });
    tokens.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(role: CredentialRole, answers: bool, members: &[&str]) -> Permissions {
        let subjects = Subjects { shard: 3, team: "demo".parse().unwrap() };
        let members: Vec<MemberName> = members.iter().map(|name| name.parse().unwrap()).collect();
        rights(role, answers, &subjects, &members, "_INBOX.UKEY")
    }

    #[test]
    fn a_member_can_write_only_as_itself() {
        let Permissions { publish, subscribe, .. } =
            permissions(CredentialRole::Member, false, &["alice"]);
        let writes = publish.iter().filter(|subject| !subject.starts_with("js."));
        let writes: Vec<&str> = writes.map(String::as_str).collect();
        assert_eq!(
            writes,
            [
                "bd.3.demo.*.alice",
                "ev.3.demo.*.alice.w",
                "lv.3.demo.alice",
                "mb.3.demo.*.alice.w",
                "mk.3.demo.alice",
                "nt.3.demo.alice.*",
                "tm.3.demo.doc.m.alice",
                "tm.3.demo.q.alice.*",
                "wk.3.demo.alice",
            ]
        );
        assert!(publish.contains(&"js.CONSUMER.CREATE.MB_3.*.mb.3.demo.alice.>".to_owned()));
        assert!(subscribe.contains(&"wake.mb.3.demo.alice.>".to_owned()));
        assert!(subscribe.contains(&"_INBOX.UKEY.>".to_owned()));
        let is_own = |subject: &String| subject.starts_with("wake.") || subject.contains("UKEY");
        assert!(subscribe.iter().all(is_own), "{subscribe:?}");
    }

    #[test]
    fn a_lead_writes_the_roster_and_answers_only_if_allowed() {
        let answering = permissions(CredentialRole::Lead, true, &["team-lead"]);
        let not_answering = permissions(CredentialRole::Lead, false, &["team-lead"]);
        let answer = "mb.3.demo.*.team-lead.a".to_owned();
        assert!(answering.publish.contains(&answer));
        assert!(!not_answering.publish.contains(&answer));
        assert!(not_answering.publish.contains(&"tm.3.demo.doc.cfg.team-lead".to_owned()));
        assert!(not_answering.publish.contains(&"nt.3.demo.*.*".to_owned()));
    }

    #[test]
    fn a_host_can_act_as_each_of_its_members() {
        let permissions = permissions(CredentialRole::Member, false, &["alice", "Bob"]);
        for me in ["alice", "Bob"] {
            assert!(permissions.publish.contains(&format!("mb.3.demo.*.{me}.w")));
            assert!(permissions.subscribe.contains(&format!("wake.mb.3.demo.{me}.>")));
        }
        let count =
            permissions.publish.iter().filter(|subject| subject.contains("bd.3.demo.>")).count();
        assert_eq!(count, 2, "the host needs one subject for a direct get, and one for a consumer");
    }

    /// Checks that every API subject that a seat may use either names the seat's team or names a consumer.
    #[test]
    fn seats_get_no_general_access_to_the_server_api() {
        for role in [CredentialRole::Member, CredentialRole::Lead] {
            for subject in permissions(role, true, &["alice"]).publish {
                assert!(!subject.starts_with('$') && !subject.starts_with('>'), "{subject}");
                let by_name = ["js.CONSUMER.MSG.NEXT.", "js.CONSUMER.DELETE."];
                if subject.starts_with("js.")
                    && !by_name.iter().any(|prefix| subject.starts_with(prefix))
                {
                    let of_team = subject.contains(".3.demo.") || subject.ends_with(LAYOUT);
                    assert!(of_team, "{subject}");
                }
            }
        }
    }
}
