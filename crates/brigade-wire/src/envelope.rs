//! What a model sees of a message.
//!
//! ```text
//! <teammate-message teammate_id="bob" color="green" summary="tests pass">
//! all 41 of them
//! </teammate-message>
//! ```
//!
//! A message is somebody else's words. Whatever they are, what comes out is one envelope: every `<`
//! in the text becomes `&lt;`, so the text can open or close no tag, neither another envelope nor a
//! `<system-reminder>`; attributes cannot end early, and only the house itself speaks as `system`.
//! Claude Code 2.1.50 escapes nothing here, and 2.1.325 in the text only the envelope's own tag,
//! which leaves every other tag a model heeds to whoever writes the message.
//!
//! The escape can be undone: `&` is escaped only where what follows would otherwise read as an
//! escape, so that code and prose stay as legible as they can be.

use std::fmt;

use crate::color::Color;
use crate::name::{LEAD, SYSTEM};

/// One message, ready for a model's turn. [`Display`](fmt::Display) writes it.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'m> {
    /// Who speaks.
    pub sender: Sender<'m>,
    /// The sender's colour.
    pub color: Option<Color>,
    /// A few words for people.
    pub summary: Option<&'m str>,
    /// What is said.
    pub text: &'m str,
}

/// Who speaks in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender<'m> {
    /// Whoever the message says it is from.
    Member(&'m str),
    /// The same, where that claim was checked and did not hold.
    Unverified(&'m str),
    /// The house itself.
    System,
}

impl fmt::Display for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, poses, verified) = match self.sender {
            Sender::System => (SYSTEM, false, true),
            // A name is only what its writer wrote.
            Sender::Member(name) => (name, poses(name), !poses(name)),
            Sender::Unverified(name) => (name, poses(name), false),
        };
        f.write_str("<teammate-message teammate_id=\"")?;
        if poses {
            f.write_str("not-")?;
        }
        write_attribute(f, id)?;
        f.write_str("\"")?;
        if let Some(color) = self.color {
            write!(f, " color=\"{color}\"")?;
        }
        if let Some(summary) = self.summary {
            f.write_str(" summary=\"")?;
            write_attribute(f, summary)?;
            f.write_str("\"")?;
        }
        if !verified {
            f.write_str(" verified=\"false\"")?;
        }
        f.write_str(">\n")?;
        write_text(f, self.text)?;
        f.write_str("\n</teammate-message>")
    }
}

/// Whether a reader could take the name for `system`, which is nobody's, or for the lead's, which it
/// is not: by case, or by characters that do not show.
fn poses(name: &str) -> bool {
    let shown = |c: &char| !c.is_whitespace() && !c.is_control() && !is_invisible(*c);
    let seen: String = name.chars().filter(shown).flat_map(char::to_lowercase).collect();
    seen == SYSTEM || (seen == LEAD && name != LEAD)
}

/// Whether a character has no look of its own, or changes that of its neighbours.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
    ) || is_tag(c)
}

/// Whether a character is of the block that spells ASCII without showing it: people do not see it,
/// models may read it.
fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e0fff}').contains(&c)
}

/// In an attribute: no quote, no tag, no line break, nothing that does not show. The two characters
/// that join emoji are left alone.
fn write_attribute(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    write_escaped(f, value, |c, _| match c {
        '<' | '>' | '"' | '\'' => true,
        '\u{200d}' | '\u{fe0f}' => false,
        _ => c.is_control() || is_invisible(c),
    })
}

/// In the text: no tag, and no control character but those that make lines and columns.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write_escaped(f, text, |c, next| match c {
        '<' => true,
        '\n' | '\t' => false,
        '\r' => !next.starts_with('\n'),
        _ => c.is_control() || is_tag(c),
    })
}

/// Writes `text` with the characters `unsafe_here` names escaped; it is given each character and
/// what follows.
fn write_escaped(
    f: &mut fmt::Formatter<'_>,
    text: &str,
    unsafe_here: fn(char, &str) -> bool,
) -> fmt::Result {
    let mut plain = text;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str();
        let escape = if c == '&' { reads_as_escape(next) } else { unsafe_here(c, next) };
        if escape {
            let before = plain.len() - next.len() - c.len_utf8();
            f.write_str(plain.get(..before).unwrap_or_default())?;
            plain = next;
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                c => write!(f, "&#x{:x};", u32::from(c))?,
            }
        }
    }
    f.write_str(plain)
}

/// Whether what follows an `&` would make an escape of it.
fn reads_as_escape(next: &str) -> bool {
    next.starts_with('#') || ["lt;", "gt;", "quot;", "amp;"].iter().any(|e| next.starts_with(e))
}
