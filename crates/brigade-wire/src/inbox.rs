//! `teams/<team>/inboxes/<member>.json`: an array of messages.

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
        self.array.elements.iter().zip(&self.places).map(|(&span, places)| match places {
            Some(places) => Entry::Message(Message::new(&self.document, places)),
            None => Entry::Other(self.document.raw(span)),
        })
    }

    /// Every entry that is a message, in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.places.iter().flatten().map(|places| Message::new(&self.document, places))
    }

    /// What the entries say of the generation that wrote them; `None` if there are none.
    pub fn generation(&self) -> Option<Generation> {
        let mut messages = self.messages().peekable();
        messages.peek()?;
        let new = messages.any(|message| message.field("msgV").is_some());
        Some(if new { Generation::New } else { Generation::Old })
    }

    /// The inbox with `read` set to true in each message for which `which` says so.
    pub fn with_read(&self, mut which: impl FnMut(&Message<'_>) -> bool) -> Vec<u8> {
        let mut patch = Patch::default();
        for message in self.messages() {
            if !message.read() && which(&message) {
                patch.replace(message.places.read, "true");
            }
        }
        patch.apply(&self.document)
    }

    /// The inbox without the entries for which `keep` says no.
    pub fn retain(&self, keep: impl FnMut(Entry<'_>) -> bool) -> Vec<u8> {
        let keep: Vec<bool> = self.entries().map(keep).collect();
        let mut patch = Patch::default();
        patch.retain(&self.array, &keep);
        patch.apply(&self.document)
    }

    /// The inbox with more messages behind the last one, laid out like those there. For an inbox in
    /// Claude Code's own layout [`append`] does the same without reading it.
    pub fn with_appended(&self, messages: &[NewMessage<'_>]) -> Vec<u8> {
        let mut patch = Patch::default();
        patch.append(&self.document, &self.array, messages);
        patch.apply(&self.document)
    }
}

/// An inbox without messages, as Claude Code writes it.
pub const EMPTY: &[u8] = b"[]";

const OPEN: &[u8] = b"[\n  {";
const CLOSE: &[u8] = b"\n]";
const LAST: &[u8] = b"\n  }\n]";

/// Adds messages to the end of an inbox, in place. On damage nothing is changed.
///
/// An inbox in Claude Code's own layout is not read, only its ends are looked at, so the cost does
/// not grow with it. That is safe against a torn file: a line break never stands inside a JSON
/// string, and in this layout a line that begins with `]` is the last one, so no beginning of such
/// a file that is shorter than the whole passes for one. Any other layout is read in full.
pub fn append(inbox: &mut Vec<u8>, messages: &[NewMessage<'_>]) -> Result<(), Damage> {
    if inbox.starts_with(OPEN) && inbox.ends_with(LAST) {
        inbox.truncate(inbox.len() - CLOSE.len());
        for message in messages {
            let text = pretty(message, "  ").replace('\n', "\n  ");
            inbox.reserve(text.len() + 4 + CLOSE.len());
            inbox.extend_from_slice(b",\n  ");
            inbox.extend_from_slice(text.as_bytes());
        }
        inbox.extend_from_slice(CLOSE);
    } else {
        *inbox = Inbox::read(inbox)?.with_appended(messages);
    }
    Ok(())
}
