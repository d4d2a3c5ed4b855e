//! What each seat may do: the table of allowed subjects.
//!
//! The server compares subjects token by token. `mb.0.demo.*.alice.w`, for example, allows sending to any member
//! of the team `demo`, and only as `alice`. Everything not in the table is refused.

use brigade_wire::name::MemberName;
use serde::Serialize;

use crate::identity::{Role, SEATS_API};
use crate::layout::{LAYOUT, Place, Stream, WAKE};

/// The subjects a user may publish and subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// The subjects it may publish.
    pub publish: Vec<String>,
    /// The subjects it may subscribe to.
    pub subscribe: Vec<String>,
}

/// Which seats have a right.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Every seat.
    Every,
    /// Leads.
    Lead,
    /// Seats that may answer.
    Answering,
}

use Whose::{Answering, Every, Lead};

/// Writes. `S` stands for the shard, `T` for the team, and `ME` for each name of the seat.
const WRITES: &[(Whose, &str)] = &[
    (Every, "mb.S.T.*.ME.w"),
    (Answering, "mb.S.T.*.ME.a"),
    (Every, "mk.S.T.ME"),
    (Lead, "mk.S.T.*"),
    (Every, "ev.S.T.ME"),
    (Every, "wk.S.T.ME"),
    (Every, "bd.S.T.*.ME"),
    (Lead, "tm.S.T.doc.cfg.ME"),
    (Every, "tm.S.T.doc.m.ME"),
    (Every, "tm.S.T.q.ME.*"),
    (Every, "nt.S.T.ME.*"),
    (Lead, "nt.S.T.*.*"),
    (Every, "lv.S.T.ME"),
];

/// Reads: the last message, all messages, and notification of new ones.
const READS: &[(Whose, Stream, &str)] = &[
    (Every, Stream::Mail, "mb.S.T.ME.>"),
    (Every, Stream::Mail, "mb.S.T.*.ME.*"),
    (Lead, Stream::Mail, "mb.S.T.>"),
    (Every, Stream::Mail, "mk.S.T.ME"),
    (Lead, Stream::Mail, "mk.S.T.*"),
    (Every, Stream::Mail, "ev.S.T.*"),
    (Every, Stream::Mail, "wk.S.T.ME"),
    (Lead, Stream::Mail, "wk.S.T.*"),
    (Every, Stream::Board, "bd.S.T.>"),
    (Every, Stream::Team, "tm.S.T.>"),
    (Every, Stream::Notes, "nt.S.T.>"),
    (Every, Stream::Live, "lv.S.T.>"),
];

/// The permissions of a seat that acts as some members of a team. Empty for an administrator, who is in the
/// other account and may do everything there.
pub fn rights(
    role: Role,
    answers: bool,
    place: &Place,
    members: &[MemberName],
    inbox_prefix: &str,
) -> Permissions {
    let mut its = Permissions::default();
    if role == Role::Admin {
        return its;
    }
    let has = |whose| match whose {
        Every => true,
        Lead => role == Role::Lead,
        Answering => answers,
    };
    for me in members {
        let said = |row: &str| said(row, place, me);
        for (_, row) in WRITES.iter().filter(|(whose, _)| has(*whose)) {
            its.publish.push(said(row));
        }
        for (_, stream, row) in READS.iter().filter(|(whose, ..)| has(*whose)) {
            let (stream, subject) = (place.stream(*stream), said(row));
            // The filter is part of the request's subject; the server refuses a body with another filter.
            its.publish.push(format!("{SEATS_API}.DIRECT.GET.{stream}.{subject}"));
            its.publish.push(format!("{SEATS_API}.CONSUMER.CREATE.{stream}.*.{subject}"));
            its.subscribe.push(format!("{WAKE}.{subject}"));
        }
    }
    let layout = Stream::Team.name(0);
    its.publish.push(format!("{SEATS_API}.DIRECT.GET.{layout}.{LAYOUT}"));
    for stream in Stream::ALL {
        // Any name is allowed here: consumer names are random and not revealed to other seats.
        let stream = place.stream(stream);
        its.publish.push(format!("{SEATS_API}.CONSUMER.MSG.NEXT.{stream}.*"));
        its.publish.push(format!("{SEATS_API}.CONSUMER.DELETE.{stream}.*"));
    }
    its.subscribe.push(format!("{inbox_prefix}.>"));
    for subjects in [&mut its.publish, &mut its.subscribe] {
        subjects.sort();
        subjects.dedup();
    }
    its
}

fn said(row: &str, place: &Place, me: &MemberName) -> String {
    let shard = place.shard.to_string();
    let tokens = row.split('.').map(|token| match token {
        "S" => shard.as_str(),
        "T" => place.team.as_str(),
        "ME" => me.as_str(),
        token => token,
    });
    tokens.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(role: Role, answers: bool, members: &[&str]) -> Permissions {
        let place = Place { shard: 3, team: "demo".parse().unwrap() };
        let members: Vec<MemberName> = members.iter().map(|name| name.parse().unwrap()).collect();
        rights(role, answers, &place, &members, "_INBOX.UKEY")
    }

    #[test]
    fn a_member_can_write_only_as_itself() {
        let its = of(Role::Member, false, &["alice"]);
        let writes: Vec<&str> =
            its.publish.iter().map(String::as_str).filter(|its| !its.starts_with("js.")).collect();
        assert_eq!(
            writes,
            [
                "bd.3.demo.*.alice",
                "ev.3.demo.alice",
                "lv.3.demo.alice",
                "mb.3.demo.*.alice.w",
                "mk.3.demo.alice",
                "nt.3.demo.alice.*",
                "tm.3.demo.doc.m.alice",
                "tm.3.demo.q.alice.*",
                "wk.3.demo.alice",
            ]
        );
        assert!(its.publish.contains(&"js.CONSUMER.CREATE.MB_3.*.mb.3.demo.alice.>".to_owned()));
        assert!(its.subscribe.contains(&"wake.mb.3.demo.alice.>".to_owned()));
        assert!(its.subscribe.contains(&"_INBOX.UKEY.>".to_owned()));
        assert!(its.subscribe.iter().all(|its| its.starts_with("wake.") || its.contains("UKEY")));
    }

    #[test]
    fn a_lead_writes_the_roster_and_answers_only_if_allowed() {
        let answering = of(Role::Lead, true, &["team-lead"]);
        let silent = of(Role::Lead, false, &["team-lead"]);
        let answer = "mb.3.demo.*.team-lead.a".to_owned();
        assert!(answering.publish.contains(&answer));
        assert!(!silent.publish.contains(&answer));
        assert!(silent.publish.contains(&"tm.3.demo.doc.cfg.team-lead".to_owned()));
        assert!(silent.publish.contains(&"nt.3.demo.*.*".to_owned()));
    }

    #[test]
    fn a_host_can_act_as_each_of_its_members() {
        let its = of(Role::Member, false, &["alice", "Bob"]);
        for me in ["alice", "Bob"] {
            assert!(its.publish.contains(&format!("mb.3.demo.*.{me}.w")));
            assert!(its.subscribe.contains(&format!("wake.mb.3.demo.{me}.>")));
        }
        let once = its.publish.iter().filter(|its| its.contains("bd.3.demo.>")).count();
        assert_eq!(once, 2, "one direct get and one consumer");
    }

    /// Seats get only API subjects limited to their team, or to consumers by name.
    #[test]
    fn seats_get_no_general_access_to_the_server_api() {
        for role in [Role::Member, Role::Lead] {
            for subject in of(role, true, &["alice"]).publish {
                assert!(!subject.starts_with('$') && !subject.starts_with('>'), "{subject}");
                let by_name = ["js.CONSUMER.MSG.NEXT.", "js.CONSUMER.DELETE."];
                if subject.starts_with("js.") && !by_name.iter().any(|its| subject.starts_with(its))
                {
                    let of_team = subject.contains(".3.demo.") || subject.ends_with(LAYOUT);
                    assert!(of_team, "{subject}");
                }
            }
        }
    }
}
