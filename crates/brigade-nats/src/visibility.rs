//! What a seat sees of a team, and in whose name it writes: as far as its credentials go.

use brigade_core::event::Record;
use brigade_core::store::{Actor, StoreError};
use brigade_wire::name::MemberName;

use crate::identity::{Identity, Role};
use crate::journal::Scribe;
use crate::layout::{Place, Stream};
use crate::read::{Stored, Which};
use crate::store::NatsStore;

impl NatsStore {
    /// In whose name the roster is written: the actor's, or, where the credentials are those of another
    /// who does it for them, as a lead does who lets somebody join, that one's.
    pub(crate) fn author(&self, by: &Actor) -> Actor {
        let identity = &self.engine.identity;
        let speaks = |name: &MemberName| name.as_str() == by.0;
        match identity.members.first() {
            Some(first) if !identity.members.iter().any(speaks) => Actor(first.to_string()),
            _ => by.clone(),
        }
    }

    /// All that is stored of a team, as far as the seat may see it.
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

    /// The same without members' work.
    pub(crate) fn subjects_but_work(&self, place: &Place) -> Vec<(Stream, String)> {
        let mut subjects = self.subjects(place);
        subjects.retain(|(_, filter)| !filter.starts_with("wk."));
        subjects
    }

    /// The same of one mailbox: of another's a member sees what it has sent there itself.
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

    /// What is stored under some subjects, told in order of time.
    pub(crate) async fn tell(
        &self,
        place: &Place,
        subjects: Vec<(Stream, String)>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut all: Vec<Stored> = Vec::new();
        for (stream, filter) in subjects {
            let doing = "read what happened";
            all.extend(
                self.engine.read(&place.stream(stream), &filter, Which::From(1), doing).await?,
            );
        }
        all.sort_by_key(|stored| stored.at);
        // A message from one of a host's members to another stands under two subjects.
        all.dedup_by(|a, b| (a.seq, &a.subject) == (b.seq, &b.subject));
        let mut scribe = Scribe::default();
        Ok(all.iter().flat_map(|stored| scribe.tell(stored)).collect())
    }
}
