//! Determines what a seat's credentials allow: the subjects that the seat can read, and the name under which it
//! writes.

use std::sync::Arc;

use brigade_core::event::{Record, RefusedEvents};
use brigade_core::store::{Actor, StoreError};
use brigade_wire::name::MemberName;

use crate::identity::{CredentialRole, Identity};
use crate::journal::RecordDecoder;
use crate::layout::{Stream, Subjects};
use crate::read::{ReadRange, StoredMessage};
use crate::store::NatsStore;

impl NatsStore {
    /// Returns the name under which the roster is written. This is the actor's name if the credentials include it,
    /// and otherwise the first name in the credentials. For example, a lead may write on behalf of a new member.
    pub(crate) fn author(&self, by: &Actor) -> Actor {
        let identity = &self.connection.identity;
        let speaks = |name: &MemberName| name.as_str() == by.0;
        match identity.members.first() {
            Some(first) if !identity.members.iter().any(speaks) => Actor(first.to_string()),
            _ => by.clone(),
        }
    }

    /// Returns the filters for all messages of a team that the seat may read.
    pub(crate) fn visible_filters(&self, subjects: &Subjects) -> Vec<(Stream, String)> {
        let mut filters = match &self.connection.identity {
            Identity { role: CredentialRole::Member, members, .. } => members
                .iter()
                .flat_map(|me| {
                    let own = subjects.own_mail(me).into_iter();
                    own.chain([subjects.work_by(me.as_str())])
                })
                .map(|filter| (Stream::Mail, filter))
                .collect(),
            _ => [subjects.mail(), subjects.all_marks(), subjects.events(), subjects.work()]
                .map(|filter| (Stream::Mail, filter))
                .to_vec(),
        };
        filters.extend([(Stream::Board, subjects.board()), (Stream::Team, subjects.roster())]);
        filters
    }

    /// Like `visible_filters`, without the members' work events.
    pub(crate) fn visible_filters_without_work(
        &self,
        subjects: &Subjects,
    ) -> Vec<(Stream, String)> {
        let mut filters = self.visible_filters(subjects);
        filters.retain(|(_, filter)| !filter.starts_with("wk."));
        filters
    }

    /// Returns the filters for one mailbox and for the events about it. In another member's mailbox, a member can see
    /// only the messages that it sent and the events that it recorded itself.
    pub(crate) fn visible_mailbox_filters(
        &self,
        subjects: &Subjects,
        member: &MemberName,
    ) -> Vec<(Stream, String)> {
        let sees = |members: &[MemberName]| members.contains(member);
        let filters = match &self.connection.identity {
            Identity { role: CredentialRole::Member, members, .. } if !sees(members) => {
                let own = |me| [subjects.sent(member, me), subjects.events_between(member, me)];
                members.iter().flat_map(own).collect()
            }
            _ => vec![subjects.mailbox(member), subjects.marks(member), subjects.events_to(member)],
        };
        filters.into_iter().map(|filter| (Stream::Mail, filter)).collect()
    }

    /// Reads the messages that match the filters. Returns them as records, ordered by time.
    pub(crate) async fn read_records(
        &self,
        subjects: &Subjects,
        filters: Vec<(Stream, String)>,
        refused: Arc<RefusedEvents>,
    ) -> Result<Vec<Record>, StoreError> {
        let all = self.read_messages(subjects, filters).await?;
        let mut decoder = RecordDecoder::for_history(&subjects.team, &all, refused);
        Ok(all.iter().flat_map(|stored| decoder.decode(stored)).collect())
    }

    /// Reads the messages that match the filters, ordered by time.
    pub(crate) async fn read_messages(
        &self,
        subjects: &Subjects,
        filters: Vec<(Stream, String)>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut all: Vec<StoredMessage> = Vec::new();
        for (stream, filter) in filters {
            let doing = "read the history";
            all.extend(
                self.connection
                    .read(&subjects.stream(stream), &filter, ReadRange::From(1), doing)
                    .await?,
            );
        }
        all.sort_by_key(|stored| stored.at);
        // A message between two members of the same host matches two filters, so it was read twice.
        all.dedup_by(|a, b| (a.seq, &a.subject) == (b.seq, &b.subject));
        Ok(all)
    }
}
