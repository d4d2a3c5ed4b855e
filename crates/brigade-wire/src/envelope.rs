//! Renders a message for a model.
//!
//! ```text
//! <teammate-message teammate_id="bob" color="green" summary="tests pass">
//! all 41 of them
//! </teammate-message>
//! ```
//!
//! The text of a message is untrusted. Any text results in exactly one envelope: every `<` in the text becomes
//! `&lt;`, so the text cannot open or close an envelope, a `<system-reminder>` or any other tag. An attribute's
//! value cannot end the attribute early, and only brigade itself can be the sender `system`. In contrast, Claude
//! Code 2.1.50 escapes nothing here, and 2.1.325 escapes only the envelope's own tag. With both versions, a sender
//! can write any other tag that the model obeys.
//!
//! The escaping is reversible. It changes as little as possible, so that code and prose stay readable: `&` is
//! escaped only where it would otherwise begin an escape sequence.

use std::fmt;

use crate::color::Color;
use crate::name::{LEAD, SYSTEM};

/// A message to show to a model. [`Display`](fmt::Display) renders it.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'m> {
    /// The sender.
    pub sender: Sender<'m>,
    /// The sender's colour.
    pub color: Option<Color>,
    /// A short summary for people.
    pub summary: Option<&'m str>,
    /// The content of the message.
    pub text: &'m str,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender<'m> {
    /// The member that the message names as its sender.
    Member(&'m str),
    /// Like [`Self::Member`], but brigade could not verify that this member sent the message.
    Unverified(&'m str),
    /// Brigade itself.
    System,
}

impl fmt::Display for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, impersonates, verified) = match self.sender {
            Sender::System => (SYSTEM, false, true),
            // The sender chose this name, so it may be misleading.
            Sender::Member(name) => (name, impersonates(name), !impersonates(name)),
            Sender::Unverified(name) => (name, impersonates(name), false),
        };
        f.write_str("<teammate-message teammate_id=\"")?;
        if impersonates {
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

/// Returns whether a reader could mistake the name for `system` or for the lead's name. Ignores case and invisible
/// characters. The name `system` itself also counts, because no member may have it.
fn impersonates(name: &str) -> bool {
    let is_visible = |c: &char| !c.is_whitespace() && !c.is_control() && !is_invisible(*c);
    let visible: String = name.chars().filter(is_visible).flat_map(char::to_lowercase).collect();
    visible == SYSTEM || (visible == LEAD && name != LEAD)
}

/// Returns whether a character is invisible, or changes how neighbouring characters are displayed.
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

/// Returns whether a character is in the Unicode tags block, which encodes ASCII invisibly: people do not see the
/// characters, but a model may read them.
fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e0fff}').contains(&c)
}

/// Writes an attribute value. Escapes quotes, tags, line breaks and invisible characters, except the two
/// characters that join emoji.
fn write_attribute(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    write_escaped(f, value, |c, _| match c {
        '<' | '>' | '"' | '\'' => true,
        '\u{200d}' | '\u{fe0f}' => false,
        _ => c.is_control() || is_invisible(c),
    })
}

/// Writes the text. Escapes tags, and control characters except line breaks and tabs.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write_escaped(f, text, |c, next| match c {
        '<' => true,
        '\n' | '\t' => false,
        '\r' => !next.starts_with('\n'),
        _ => c.is_control() || is_tag(c),
    })
}

/// Writes `text`, escaping each character for which `unsafe_here` returns true. The arguments of `unsafe_here` are
/// the character and the text after it.
fn write_escaped(
    f: &mut fmt::Formatter<'_>,
    text: &str,
    unsafe_here: fn(char, &str) -> bool,
) -> fmt::Result {
    let mut unwritten = text;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str();
        let escape = if c == '&' { reads_as_escape(next) } else { unsafe_here(c, next) };
        if escape {
            let before = unwritten.len() - next.len() - c.len_utf8();
            f.write_str(unwritten.get(..before).unwrap_or_default())?;
            unwritten = next;
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                c => write!(f, "&#x{:x};", u32::from(c))?,
            }
        }
    }
    f.write_str(unwritten)
}

/// Returns whether an `&` before this text would begin an escape sequence.
fn reads_as_escape(next: &str) -> bool {
    next.starts_with('#') || ["lt;", "gt;", "quot;", "amp;"].iter().any(|e| next.starts_with(e))
}
