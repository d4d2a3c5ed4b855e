//! Which subjects of a team a seat can read, and under which name it writes. Both follow from its credentials.

use brigade_core::event::Record;
use brigade_core::store::{Actor, StoreError};
use brigade_wire::name::MemberName;

use crate::identity::{Identity, Role};
use crate::journal::Scribe;
use crate::layout::{Place, Stream};
use crate::read::{Stored, Which};
use crate::store::NatsStore;

impl NatsStore {
    /// The name under which to write the roster: the actor's, if the credentials include it. Otherwise the
    /// first name in the credentials, as when a lead adds a member.
    pub(crate) fn author(&self, by: &Actor) -> Actor {
        let identity = &self.engine.identity;
        let speaks = |name: &MemberName| name.as_str() == by.0;
        match identity.members.first() {
            Some(first) if !identity.members.iter().any(speaks) => Actor(first.to_string()),
            _ => by.clone(),
        }
    }

    /// Everything stored for a team that the seat may read.
    pub(crate) fn subjects(&self, place: &Place) -> Vec<(Stream, String)> {
        let mut subjects = match &self.engine.identity {
            Identity { role: Role::Member, members, .. } => members
                .iter()
                .flat_map(|me| {
                    [
                        place.mailbox(me),
                        place.sent_by(me),
                        place.marks(me),
                        place.work_by(me.as_str()),
                    ]
                })
                .map(|filter| (Stream::Mail, filter))
                .collect(),
            _ => [place.mail(), place.all_marks(), place.work()]
                .map(|filter| (Stream::Mail, filter))
                .to_vec(),
        };
        subjects.extend([
            (Stream::Mail, place.records()),
            (Stream::Board, place.board()),
            (Stream::Team, place.roster()),
        ]);
        subjects
    }

    /// Like `subjects`, without the members' work events.
    pub(crate) fn subjects_but_work(&self, place: &Place) -> Vec<(Stream, String)> {
        let mut subjects = self.subjects(place);
        subjects.retain(|(_, filter)| !filter.starts_with("wk."));
        subjects
    }

    /// One mailbox. A member sees only its own messages in another member's mailbox.
    pub(crate) fn subjects_of(&self, place: &Place, of: &MemberName) -> Vec<(Stream, String)> {
        let sees = |members: &[MemberName]| members.contains(of);
        let filters = match &self.engine.identity {
            Identity { role: Role::Member, members, .. } if !sees(members) => {
                members.iter().map(|me| place.sent(of, me)).collect()
            }
            _ => vec![place.mailbox(of), place.marks(of)],
        };
        filters.into_iter().map(|filter| (Stream::Mail, filter)).collect()
    }

    /// Reads the messages under some subjects and returns them as records, ordered by time.
    pub(crate) async fn tell(
        &self,
        place: &Place,
        subjects: Vec<(Stream, String)>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut all: Vec<Stored> = Vec::new();
        for (stream, filter) in subjects {
            let doing = "read the history";
            all.extend(
                self.engine.read(&place.stream(stream), &filter, Which::From(1), doing).await?,
            );
        }
        all.sort_by_key(|stored| stored.at);
        // A message between two members of the same host matches two filters.
        all.dedup_by(|a, b| (a.seq, &a.subject) == (b.seq, &b.subject));
        let mut scribe = Scribe::default();
        Ok(all.iter().flat_map(|stored| scribe.tell(stored)).collect())
    }
}
