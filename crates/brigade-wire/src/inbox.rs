//! `teams/<team>/inboxes/<member>.json`: an array of messages.
//!
//! ```
//! use brigade_wire::inbox::Inbox;
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let bytes = br#"[{"from": "bob", "text": "done", "timestamp": "", "read": false, "theirs": 1}]"#;
//! let inbox = Inbox::read(bytes)?;
//! let read = inbox.with_read(|message| message.from() == "bob");
//! assert!(read.ends_with(br#""read": true, "theirs": 1}]"#));
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;

use memchr::{memchr, memmem};
use serde_json::value::RawValue;

use crate::document::{Array, Damage, JsonDocument};
use crate::generation::Generation;
use crate::layout::pretty;
use crate::message::{InboxEntry, Message, MessageSpans, NewMessage};
use crate::patch::Patch;

/// A view of an inbox file.
#[derive(Debug)]
pub struct Inbox<'a> {
    document: JsonDocument<'a>,
    array: Array,
    /// For each entry, the positions of the message's fields; `None` if the entry is not a message.
    messages: Vec<Option<MessageSpans>>,
}

impl<'a> Inbox<'a> {
    /// Reads an inbox. Accepts inboxes with entries that are not messages.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = JsonDocument::new(bytes);
        let array = document.root_array("an array of messages")?;
        let messages =
            array.elements.iter().map(|&span| MessageSpans::find(&document, span)).collect();
        Ok(Self { document, array, messages })
    }

    /// Returns the bytes from which the inbox was read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Returns every entry, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = InboxEntry<'_>> {
        let entries = self.array.elements.iter().zip(&self.messages).enumerate();
        entries.map(|(index, (&span, message))| match message {
            Some(spans) => InboxEntry::Message(Message::new(&self.document, spans, index)),
            None => InboxEntry::Other(self.document.original(span)),
        })
    }

    /// Returns every entry that is a message, in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.entries().filter_map(|entry| match entry {
            InboxEntry::Message(message) => Some(message),
            InboxEntry::Other(_) => None,
        })
    }

    /// Returns the generation that writes this inbox, judging by its messages; `None` if the inbox has no
    /// messages. This result takes precedence over [`Team::generation`](crate::team::Team::generation). The two
    /// results differ in a team of the old generation whose members run the new program.
    pub fn generation(&self) -> Option<Generation> {
        let mut messages = self.messages().peekable();
        messages.peek()?;
        let new = messages.any(|message| message.field("msgV").is_some());
        Some(if new { Generation::New } else { Generation::Old })
    }

    /// Returns the inbox with `read` set to true in each unread message for which `which` returns true. Returns
    /// the borrowed original if nothing changes.
    pub fn with_read(&self, mut which: impl FnMut(&Message<'_>) -> bool) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        for message in self.messages() {
            if !message.read() && which(&message) {
                patch.replace(message.spans.read, "true");
            }
        }
        patch.apply(&self.document)
    }

    /// Returns the inbox without the entries for which `keep` returns false. Returns the borrowed original if
    /// nothing changes.
    pub fn retain(&self, keep: impl FnMut(InboxEntry<'_>) -> bool) -> Cow<'a, [u8]> {
        let keep: Vec<bool> = self.entries().map(keep).collect();
        let mut patch = Patch::default();
        patch.retain(&self.array, &keep);
        patch.apply(&self.document)
    }

    /// Returns the inbox with messages added at the end, formatted like the existing messages. For an inbox in
    /// Claude Code's own layout, [`append`] does the same without parsing the inbox.
    pub fn with_appended(&self, messages: &[NewMessage<'_>]) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        patch.append(&self.document, &self.array, messages);
        patch.apply(&self.document)
    }
}

/// Returns the complete entries of a damaged inbox, in order. Omits incomplete entries, and objects that may be
/// part of an incomplete entry.
pub fn salvage(bytes: &[u8]) -> Vec<&[u8]> {
    let mut complete = Vec::new();
    let mut rest = bytes;
    // An entry is an object that is not inside another object. After an incomplete entry, the next entry is an
    // object that starts on a new line, with Claude Code's indentation.
    while let Some(start) = memchr(b'{', rest) {
        let Some(from) = rest.get(start..) else { break };
        let mut values = serde_json::Deserializer::from_slice(from).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                complete.push(value.get().as_bytes());
                rest = from.get(value.get().len()..).unwrap_or_default();
            }
            _ => {
                let Some(next) = memmem::find(from, b"\n  {") else { break };
                rest = from.get(next..).unwrap_or_default();
            }
        }
    }
    complete
}

/// Returns the bytes of an inbox that consists of these entries.
pub fn from_entries(entries: &[&[u8]]) -> Vec<u8> {
    if entries.is_empty() {
        return EMPTY.to_vec();
    }
    [b"[\n  ".as_slice(), &entries.join(b",\n  ".as_slice()), CLOSE].concat()
}

/// An empty inbox, as Claude Code writes it.
pub const EMPTY: &[u8] = b"[]";

const OPEN: &[u8] = b"[\n  {";
const CLOSE: &[u8] = b"\n]";
const LAST_ENTRY_END: &[u8] = b"\n  }\n]";

/// Appends messages to an inbox in place. If it finds that the inbox is damaged, fails and changes nothing.
///
/// If an inbox begins and ends as Claude Code writes it, this function does not parse the inbox, but only searches
/// the bytes for signs of damage. It rejects a file that was cut off, that still contains the end of a longer
/// earlier version, or that was only partly stored on disk. It does not notice other damage: it then appends the
/// messages, and the damage stays. An inbox in any other layout is parsed.
pub fn append(inbox: &mut Vec<u8>, messages: &[NewMessage<'_>]) -> Result<(), Damage> {
    if has_native_layout(inbox) {
        inbox.truncate(inbox.len() - CLOSE.len());
        for message in messages {
            let text = pretty(message, "  ").replace('\n', "\n  ");
            inbox.extend_from_slice(b",\n  ");
            inbox.extend_from_slice(text.as_bytes());
        }
        inbox.extend_from_slice(CLOSE);
    } else {
        let appended = match Inbox::read(inbox)?.with_appended(messages) {
            Cow::Owned(appended) => appended,
            Cow::Borrowed(_) => return Ok(()),
        };
        *inbox = appended;
    }
    Ok(())
}

/// Returns whether these bytes are a complete, non-empty inbox in Claude Code's own layout.
///
/// A JSON string contains no line break, so in this layout only the last line begins with `]`. A file that was cut
/// off has no line that begins with `]`. A file that still contains the end of a longer earlier version has two.
/// A file that was only partly stored on disk contains NUL bytes.
fn has_native_layout(inbox: &[u8]) -> bool {
    inbox.starts_with(OPEN)
        && inbox.ends_with(LAST_ENTRY_END)
        && memmem::find(inbox, CLOSE) == Some(inbox.len() - CLOSE.len())
        && memchr(0, inbox).is_none()
}

/// Returns whether an inbox entry is marked as read. An entry that is not a message counts as read.
pub fn is_read(json: &[u8]) -> Result<bool, Damage> {
    with_message(json, |message| message.is_none_or(|message| message.read()))
}

/// Parses one inbox entry and passes it to `read`. Passes `None` if the entry is not a message.
pub fn with_message<T>(
    json: &[u8],
    read: impl FnOnce(Option<Message<'_>>) -> T,
) -> Result<T, Damage> {
    let inbox = [b"[".as_slice(), json, b"]"].concat();
    let inbox = Inbox::read(&inbox)?;
    Ok(read(inbox.messages().next()))
}
