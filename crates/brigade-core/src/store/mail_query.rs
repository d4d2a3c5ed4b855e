//! Searches in the history of a mailbox. A store that has an index answers them without reading the whole history.

use std::collections::{HashMap, HashSet};

use brigade_wire::name::MemberName;

use crate::event::{Event, MessageKey, Record, Topic, TopicKind};

/// Selects records of a mailbox.
#[derive(Clone, Copy, Debug)]
pub enum MailQuery<'q> {
    /// The records that added these messages.
    Messages(&'q [MessageKey]),
    /// The records of showing these messages to the member's model.
    Shown(&'q [MessageKey]),
    /// The messages of this kind.
    Topic(TopicKind),
    /// The messages of this kind about one of these requests or tasks.
    About(TopicKind, &'q [&'q str]),
}

impl MailQuery<'_> {
    /// Returns whether the query selects this event.
    pub fn matches(&self, event: &Event) -> bool {
        match self {
            Self::Messages(keys) => event.message().is_some_and(|key| keys.contains(&key)),
            Self::Shown(keys) => matches!(event, Event::Shown { key, .. } if keys.contains(key)),
            Self::Topic(kind) => Topic::of_event(event).is_some_and(|topic| topic.kind == *kind),
            Self::About(kind, ids) => Topic::of_event(event)
                .is_some_and(|topic| topic.kind == *kind && ids.contains(&topic.id.as_str())),
        }
    }
}

/// Selects requests to a member. It does not matter whether they are genuine.
#[derive(Clone, Copy, Debug)]
pub enum RequestQuery<'q> {
    /// All requests.
    All,
    /// The requests that may need an answer. A store may leave out a request if the journal shows that it was answered or
    /// withdrawn, or may return it as well.
    Unsettled,
    /// The requests with this id.
    Id(&'q str),
    /// The request with this number.
    Number(usize),
}

/// A request that was found in a mailbox.
#[derive(Clone, Debug)]
pub struct FoundRequest {
    /// The position among the requests in this mailbox since the team was created, counted from 1.
    pub number: usize,
    /// The record that added the message.
    pub record: Record,
}

impl FoundRequest {
    /// Selects requests from the whole history of a mailbox.
    pub fn select(history: Vec<Record>, created: u64, query: RequestQuery<'_>) -> Vec<Self> {
        let is_request = |record: &Record| {
            Topic::of_event(&record.event).is_some_and(|topic| topic.kind == TopicKind::Request)
        };
        let requests = history.into_iter().filter(is_request);
        let of_team = requests.skip_while(|record| !record.belongs_to_team(created));
        let numbered = of_team.zip(1..).map(|(record, number)| Self { number, record });
        numbered
            .filter(|found| found.record.belongs_to_team(created) && found.is_selected(query))
            .collect()
    }

    /// Returns whether the query selects this request.
    pub fn is_selected(&self, query: RequestQuery<'_>) -> bool {
        match query {
            RequestQuery::All | RequestQuery::Unsettled => true,
            RequestQuery::Id(id) => {
                Topic::of_event(&self.record.event).is_some_and(|topic| topic.id == id)
            }
            RequestQuery::Number(number) => self.number == number,
        }
    }
}

/// Returns the messages to these members in the history that were not read, shown or removed after they were recorded.
pub(super) fn unread(history: Vec<Record>, members: &[MemberName]) -> Vec<Record> {
    let mut known: HashSet<(String, MessageKey)> = HashSet::new();
    let mut unread: Vec<Option<Record>> = Vec::new();
    let mut places: HashMap<(String, MessageKey), usize> = HashMap::new();
    for record in history {
        match &record.event {
            Event::Sent { to, key, .. } | Event::Seen { to, key, .. } => {
                // Only the first record of a message counts.
                let message = (to.clone(), *key);
                if members.iter().any(|member| member.as_str() == to)
                    && known.insert(message.clone())
                {
                    places.insert(message, unread.len());
                    unread.push(Some(record));
                }
            }
            Event::Read { to, key, .. } | Event::Shown { to, key } => {
                let place = places.remove(&(to.clone(), *key));
                if let Some(place) = place.and_then(|place| unread.get_mut(place)) {
                    *place = None;
                }
            }
            _ => {}
        }
    }
    unread.into_iter().flatten().collect()
}

/// Returns the ids among `ids` whose answers this member recorded, according to the history.
pub(super) fn recorded_answers(history: &[Record], by: &str, ids: &[&str]) -> HashSet<String> {
    let recorded = history.iter().filter_map(|record| match &record.event {
        Event::Answered { request_id, .. } if record.by.as_deref() == Some(by) => {
            ids.contains(&request_id.as_str()).then(|| request_id.clone())
        }
        _ => None,
    });
    recorded.collect()
}
