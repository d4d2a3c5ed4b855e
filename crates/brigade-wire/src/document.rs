//! A JSON document as places in its own text.
//!
//! Nothing here holds a decoded copy of a document. A view knows where each value begins and ends,
//! decodes it when asked, and a [`Patch`](crate::patch::Patch) replaces exactly those bytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::legible::legible;

/// Why bytes are not a whole document. None of these means "nothing there": the file was caught
/// while somebody wrote it, or was left behind by a writer that died.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// No bytes, or only white space: the window of a write in place.
    #[error("no bytes at all, as left by a write in place that has not finished")]
    Blank,
    /// The text stops before the document does.
    #[error("cut off after {len} bytes")]
    CutOff {
        /// How much is there.
        len: usize,
    },
    /// A whole document with something behind it: new text over a longer old one.
    #[error("whole up to byte {end}, then the tail of something else")]
    Tail {
        /// Where the whole document ends.
        end: usize,
    },
    /// Not JSON.
    #[error("not JSON at line {line}, column {column}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// JSON, but of another shape.
    #[error("expected {expected}, found {found}")]
    Shape {
        /// What should stand there.
        expected: &'static str,
        /// What does.
        found: Kind,
    },
}

/// A kind of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are JSON's own")]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        })
    }
}

/// The place of a value: from its first byte to behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// The members of an object, in order, as they stand.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) span: Span,
    pub(crate) members: Vec<Pair>,
}

/// One member of an object; the key's span includes its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) key: Span,
    pub(crate) value: Span,
}

/// The elements of an array, in order.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) span: Span,
    pub(crate) elements: Vec<Span>,
}

/// The bytes of a document and the text they are read as.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) text: Cow<'a, str>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: legible(bytes) }
    }

    /// The root, which must be an object; `expected` says what of.
    pub(crate) fn root_object(&self, expected: &'static str) -> Result<Object, Damage> {
        self.object(self.outline()).ok_or_else(|| self.damage(expected))
    }

    /// The root, which must be an array; `expected` says what of.
    pub(crate) fn root_array(&self, expected: &'static str) -> Result<Array, Damage> {
        self.array(self.outline()).ok_or_else(|| self.damage(expected))
    }

    /// Where the root stands if the document is whole: everything but the white space around it.
    fn outline(&self) -> Span {
        let blank = |c| matches!(c, ' ' | '\t' | '\r' | '\n');
        let (text, start) =
            (self.text.trim_end_matches(blank), self.text.trim_start_matches(blank));
        Span { start: self.text.len() - start.len(), end: text.len() }
    }

    /// Why the root could not be read as what was expected.
    fn damage(&self, expected: &'static str) -> Damage {
        let mut values = serde_json::Deserializer::from_str(&self.text).into_iter::<&RawValue>();
        match values.next() {
            None => Damage::Blank,
            Some(Err(error)) if error.is_eof() => Damage::CutOff { len: self.bytes.len() },
            Some(Err(error)) => Damage::Syntax { line: error.line(), column: error.column() },
            Some(Ok(root)) => match self.place(root) {
                root if root.end < self.outline().end => Damage::Tail { end: root.end },
                root => Damage::Shape { expected, found: self.kind(root) },
            },
        }
    }

    /// The legible text of a value.
    pub(crate) fn raw(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// The bytes of a value, as they stand.
    pub(crate) fn original(&self, span: Span) -> &'a [u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    pub(crate) fn kind(&self, span: Span) -> Kind {
        match self.raw(span).bytes().next() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    pub(crate) fn object(&self, span: Span) -> Option<Object> {
        let pairs: Pairs<'_> = serde_json::from_str(self.raw(span)).ok()?;
        let pair = |(key, value)| Pair { key: self.place(key), value: self.place(value) };
        Some(Object { span, members: pairs.0.into_iter().map(pair).collect() })
    }

    pub(crate) fn array(&self, span: Span) -> Option<Array> {
        let elements: Vec<&RawValue> = serde_json::from_str(self.raw(span)).ok()?;
        let elements = elements.into_iter().map(|e| self.place(e)).collect();
        Some(Array { span, elements })
    }

    /// The value of `key`. Where a key stands twice the last one counts, as in JavaScript.
    pub(crate) fn get(&self, object: &Object, key: &str) -> Option<Span> {
        object.members.iter().rev().find(|pair| self.is_key(pair, key)).map(|pair| pair.value)
    }

    pub(crate) fn is_key(&self, pair: &Pair, key: &str) -> bool {
        self.string(pair.key).is_some_and(|found| found == key)
    }

    pub(crate) fn string(&self, span: Span) -> Option<Cow<'_, str>> {
        let raw = self.raw(span);
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(raw).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    pub(crate) fn boolean(&self, span: Span) -> Option<bool> {
        match self.raw(span) {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A whole number from 0, however it is written: `7`, `7.0` and `7e0` are one to JavaScript.
    pub(crate) fn integer(&self, span: Span) -> Option<u64> {
        /// The first number from which JavaScript no longer counts every one.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.kind(span) != Kind::Number {
            return None;
        }
        // Not serde_json's floats, which it reads fast rather than to the last digit.
        let text = self.raw(span);
        let number: f64 = text.parse().ok()?;
        let whole = number.fract() == 0.0 && (0.0..EXACT).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        text.parse().ok().or(whole.then_some(number as u64))
    }

    /// The place of a part that was borrowed from this very text.
    fn place(&self, part: &RawValue) -> Span {
        let start = part.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        Span { start, end: start + part.get().len() }
    }
}

/// The fields of one object, decoded when asked for. What is absent or of another kind is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'d> {
    pub(crate) document: &'d Document<'d>,
    pub(crate) object: &'d Object,
}

impl<'d> Fields<'d> {
    pub(crate) fn string(self, key: &str) -> Option<Cow<'d, str>> {
        self.document.string(self.place(key)?)
    }

    pub(crate) fn strings(self, key: &str) -> Option<Vec<Cow<'d, str>>> {
        let array = self.document.array(self.place(key)?)?;
        array.elements.into_iter().map(|element| self.document.string(element)).collect()
    }

    pub(crate) fn boolean(self, key: &str) -> Option<bool> {
        self.document.boolean(self.place(key)?)
    }

    pub(crate) fn integer(self, key: &str) -> Option<u64> {
        self.document.integer(self.place(key)?)
    }

    /// The JSON of a field as it stands; legible text where that is not UTF-8.
    pub(crate) fn json(self, key: &str) -> Option<&'d str> {
        let place = self.place(key)?;
        let original = str::from_utf8(self.document.original(place));
        Some(original.unwrap_or_else(|_| self.document.raw(place)))
    }

    fn place(self, key: &str) -> Option<Span> {
        self.document.get(self.object, key)
    }
}

/// An object's members, borrowed from its text.
struct Pairs<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Pairs<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
