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

use crate::document::{Array, Damage, Document};
use crate::generation::Generation;
use crate::layout::pretty;
use crate::message::{Entry, Message, NewMessage, Places};
use crate::patch::Patch;

/// An inbox, as a view over its bytes.
#[derive(Debug)]
pub struct Inbox<'a> {
    document: Document<'a>,
    array: Array,
    /// For each element, where the parts of the message stand, if it is one.
    places: Vec<Option<Places>>,
}

impl<'a> Inbox<'a> {
    /// Reads an inbox. Entries that are no messages do not spoil the others.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let document = Document::new(bytes);
        let array = document.root_array("an array of messages")?;
        let places = array.elements.iter().map(|&span| Places::find(&document, span)).collect();
        Ok(Self { document, array, places })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.document.bytes
    }

    /// Every entry, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        let entries = self.array.elements.iter().zip(&self.places).enumerate();
        entries.map(|(index, (&span, places))| match places {
            Some(places) => Entry::Message(Message::new(&self.document, places, index)),
            None => Entry::Other(self.document.original(span)),
        })
    }

    /// Every entry that is a message, in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.entries().filter_map(|entry| match entry {
            Entry::Message(message) => Some(message),
            Entry::Other(_) => None,
        })
    }

    /// What the messages say of the generation that writes this inbox; `None` if there are none. In
    /// a team of the old form whose members run the new program this differs from what
    /// [`Team::generation`](crate::team::Team::generation) says, and is the one to follow.
    pub fn generation(&self) -> Option<Generation> {
        let mut messages = self.messages().peekable();
        messages.peek()?;
        let new = messages.any(|message| message.field("msgV").is_some());
        Some(if new { Generation::New } else { Generation::Old })
    }

    /// The inbox with `read` set to true in each unread message for which `which` says so; borrowed
    /// if there is none.
    pub fn with_read(&self, mut which: impl FnMut(&Message<'_>) -> bool) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        for message in self.messages() {
            if !message.read() && which(&message) {
                patch.replace(message.places.read, "true");
            }
        }
        patch.apply(&self.document)
    }

    /// The inbox without the entries for which `keep` says no; borrowed if there is none.
    pub fn retain(&self, keep: impl FnMut(Entry<'_>) -> bool) -> Cow<'a, [u8]> {
        let keep: Vec<bool> = self.entries().map(keep).collect();
        let mut patch = Patch::default();
        patch.retain(&self.array, &keep);
        patch.apply(&self.document)
    }

    /// The inbox with more messages behind the last one, laid out like those there. For an inbox in
    /// Claude Code's own layout [`append`] does the same without reading it.
    pub fn with_appended(&self, messages: &[NewMessage<'_>]) -> Cow<'a, [u8]> {
        let mut patch = Patch::default();
        patch.append(&self.document, &self.array, messages);
        patch.apply(&self.document)
    }
}

/// The whole entries in the bytes of an inbox that cannot be read, in order. What is torn, or stands
/// where nobody can tell what it belongs to, is left out.
pub fn salvage(bytes: &[u8]) -> Vec<&[u8]> {
    let mut whole = Vec::new();
    let mut rest = bytes;
    // An entry begins where an object does that is not inside another: behind the opening bracket,
    // behind the entry before it, or, past something torn, at the indentation of Claude Code.
    while let Some(start) = memchr(b'{', rest) {
        let Some(from) = rest.get(start..) else { break };
        let mut values = serde_json::Deserializer::from_slice(from).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                whole.push(value.get().as_bytes());
                rest = from.get(value.get().len()..).unwrap_or_default();
            }
            _ => {
                let Some(next) = memmem::find(from, b"\n  {") else { break };
                rest = from.get(next..).unwrap_or_default();
            }
        }
    }
    whole
}

/// The bytes of an inbox of these entries.
pub fn of_entries(entries: &[&[u8]]) -> Vec<u8> {
    if entries.is_empty() {
        return EMPTY.to_vec();
    }
    [b"[\n  ".as_slice(), &entries.join(b",\n  ".as_slice()), CLOSE].concat()
}

/// An inbox without messages, as Claude Code writes it.
pub const EMPTY: &[u8] = b"[]";

const OPEN: &[u8] = b"[\n  {";
const CLOSE: &[u8] = b"\n]";
const LAST: &[u8] = b"\n  }\n]";

/// Adds messages to the end of an inbox, in place. On damage nothing is changed.
///
/// An inbox in Claude Code's own layout is not parsed. Its ends are looked at, and it is searched at
/// the speed of memory for what a torn file has and a whole one has not, so that what was cut off,
/// written over a longer one or never reached the disk is refused. What was broken in another way,
/// by hand or by another program, may be appended to and stays as broken as it was. An inbox in any
/// other layout is read in full.
pub fn append(inbox: &mut Vec<u8>, messages: &[NewMessage<'_>]) -> Result<(), Damage> {
    if is_native(inbox) {
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

/// Whether these are the bytes of a whole inbox with messages in Claude Code's own layout.
///
/// A line break never stands inside a JSON string, so in this layout a line that begins with `]` is
/// the last one. A file that was cut off has no such line, one that was written over a longer one
/// has two, and one of which a part never reached the disk has NULs.
fn is_native(inbox: &[u8]) -> bool {
    inbox.starts_with(OPEN)
        && inbox.ends_with(LAST)
        && memmem::find(inbox, CLOSE) == Some(inbox.len() - CLOSE.len())
        && memchr(0, inbox).is_none()
}
