//! Finds replies that were found twice: an agent's text, and the message with the same text that brigade sent at the end of the turn,
//! or that the agent itself sent.

use std::collections::HashMap;

use brigade_core::event::{Event, WorkEvent};
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::name::TeamName;
use brigade_wire::protocol::Protocol;
use jiff::{SignedDuration, Timestamp};

use super::FoundRecord;

/// How much time may be between an agent's text and the message with the same text. The message is sent in the same turn or at its
/// end.
const MAX_DISTANCE: SignedDuration = SignedDuration::from_mins(1);

/// The notice of the end of a turn has only the beginning of a long text, followed by `…`. A shorter text that ends so is not cut.
const MIN_CUT_LENGTH: usize = 1_000;

/// Removes the texts of agents that were also found as messages.
pub(super) fn remove(records: &mut Vec<FoundRecord>) {
    let mut sent: HashMap<(TeamName, String), Vec<(Timestamp, String)>> = HashMap::new();
    for found in records.iter() {
        if let Some((author, text)) = message(&found.record.event) {
            let by_author = sent.entry((found.team.clone(), author)).or_default();
            by_author.push((found.record.at, text));
        }
    }
    records.retain(|found| {
        let Event::Worked { name, act: WorkEvent::Said { text } } = &found.record.event else {
            return true;
        };
        let is_same = |(at, message): &(Timestamp, String)| {
            found.record.at.duration_since(*at).abs() <= MAX_DISTANCE && repeats(message, text)
        };
        let by_author = sent.get(&(found.team.clone(), name.clone()));
        !by_author.is_some_and(|messages| messages.iter().any(is_same))
    });
}

/// Returns whether a message has this text, or the beginning of it.
fn repeats(message: &str, text: &str) -> bool {
    let text = text.trim();
    let beginning = message.strip_suffix('…').filter(|text| text.len() >= MIN_CUT_LENGTH);
    message == text || beginning.is_some_and(|beginning| text.starts_with(beginning))
}

/// Returns the sender and the text of a message in plain text, or of a notice with the last text of a turn.
fn message(event: &Event) -> Option<(String, String)> {
    let (Event::Sent { message, .. } | Event::Seen { message, .. }) = event else { return None };
    let read = with_message(message.get().as_bytes(), |message| {
        let message = message?;
        let text = match message.body() {
            Body::Text => message.text().into_owned(),
            Body::Protocol(Protocol::IdleNotification(idle)) => idle.result?,
            _ => return None,
        };
        Some((message.from().into_owned(), text.trim().to_owned()))
    });
    read.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_repeats_a_text_or_the_beginning_of_a_long_one() {
        let long = "word ".repeat(500);
        let cut = format!("{}…", long.get(..2_000).unwrap());
        for (message, text, expected) in [
            ("done", "done\n", true),
            ("done", "Done", false),
            ("don…", "done", false),
            (cut.as_str(), long.as_str(), true),
            (cut.as_str(), "word", false),
        ] {
            assert_eq!(repeats(message, text), expected, "{message}");
        }
    }
}
