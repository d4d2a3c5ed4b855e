//! A JSON document, represented by the positions of its values in the original bytes.
//!
//! Nothing in this module holds a decoded copy of a document. A view knows where each value begins and ends, and
//! decodes the value on demand. A [`Patch`](crate::patch::Patch) replaces exactly the bytes of a value.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::legible::legible;

/// Why bytes are not a complete document. A damaged document is never treated as empty: another process may be
/// writing the file, or may have died while writing it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The file has no bytes or only white space: a program has truncated it and not written the content yet.
    #[error("the file is blank; another program may be writing it")]
    Blank,
    /// The text ends before the document is complete.
    #[error("cut off after {len} bytes")]
    CutOff {
        /// The length of the text in bytes.
        len: usize,
    },
    /// A complete document is followed by the rest of a longer old version.
    #[error("complete up to byte {end}, then followed by the end of an older version")]
    Tail {
        /// The offset at which the complete document ends.
        end: usize,
    },
    /// The text is not JSON.
    #[error("not JSON at line {line}, column {column}")]
    Syntax {
        /// The line number, counted from 1.
        line: usize,
        /// The column number, counted from 1.
        column: usize,
    },
    /// The JSON value has another type than expected.
    #[error("expected {expected}, found {found}")]
    Shape {
        /// A description of the expected value.
        expected: &'static str,
        /// The kind of value that was found.
        found: JsonKind,
    },
}

/// A type of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are JSON's own")]
pub enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl fmt::Display for JsonKind {
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

/// The position of a value: the offset of its first byte, and the offset after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl ByteSpan {
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// The members of a JSON object, in their original order.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) span: ByteSpan,
    pub(crate) members: Vec<Pair>,
}

/// A key and its value in a JSON object. The key's span includes the quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) key: ByteSpan,
    pub(crate) value: ByteSpan,
}

/// The elements of a JSON array, in order.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) span: ByteSpan,
    pub(crate) elements: Vec<ByteSpan>,
}

/// A document's original bytes, and the text that is parsed instead of them (see [`legible`]).
#[derive(Clone, Debug)]
pub(crate) struct JsonDocument<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) text: Cow<'a, str>,
}

impl<'a> JsonDocument<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: legible(bytes) }
    }

    /// Returns the root, which must be an object. `expected` describes the document in error messages.
    pub(crate) fn root_object(&self, expected: &'static str) -> Result<Object, Damage> {
        self.object(self.root_span()).ok_or_else(|| self.damage(expected))
    }

    /// Returns the root, which must be an array. `expected` describes the document in error messages.
    pub(crate) fn root_array(&self, expected: &'static str) -> Result<Array, Damage> {
        self.array(self.root_span()).ok_or_else(|| self.damage(expected))
    }

    /// Returns the span of the root in a complete document: everything except the surrounding white space.
    fn root_span(&self) -> ByteSpan {
        let blank = |c| matches!(c, ' ' | '\t' | '\r' | '\n');
        let (text, start) =
            (self.text.trim_end_matches(blank), self.text.trim_start_matches(blank));
        ByteSpan { start: self.text.len() - start.len(), end: text.len() }
    }

    /// Returns why the root could not be read.
    fn damage(&self, expected: &'static str) -> Damage {
        let mut values = serde_json::Deserializer::from_str(&self.text).into_iter::<&RawValue>();
        match values.next() {
            None => Damage::Blank,
            Some(Err(error)) if error.is_eof() => Damage::CutOff { len: self.bytes.len() },
            Some(Err(error)) => Damage::Syntax { line: error.line(), column: error.column() },
            Some(Ok(root)) => match self.span_of(root) {
                root if root.end < self.root_span().end => Damage::Tail { end: root.end },
                root => Damage::Shape { expected, found: self.kind(root) },
            },
        }
    }

    /// Returns the parsable text of a value.
    pub(crate) fn raw(&self, span: ByteSpan) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Returns the original bytes of a value.
    pub(crate) fn original(&self, span: ByteSpan) -> &'a [u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    pub(crate) fn kind(&self, span: ByteSpan) -> JsonKind {
        match self.raw(span).bytes().next() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'n') => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }

    pub(crate) fn object(&self, span: ByteSpan) -> Option<Object> {
        let pairs: BorrowedMembers<'_> = serde_json::from_str(self.raw(span)).ok()?;
        let pair = |(key, value)| Pair { key: self.span_of(key), value: self.span_of(value) };
        Some(Object { span, members: pairs.0.into_iter().map(pair).collect() })
    }

    pub(crate) fn array(&self, span: ByteSpan) -> Option<Array> {
        let elements: Vec<&RawValue> = serde_json::from_str(self.raw(span)).ok()?;
        let elements = elements.into_iter().map(|e| self.span_of(e)).collect();
        Some(Array { span, elements })
    }

    /// Returns the value of `key`. If the object contains the key twice, the last value wins, as in JavaScript.
    pub(crate) fn get(&self, object: &Object, key: &str) -> Option<ByteSpan> {
        object.members.iter().rev().find(|pair| self.is_key(pair, key)).map(|pair| pair.value)
    }

    pub(crate) fn is_key(&self, pair: &Pair, key: &str) -> bool {
        self.string(pair.key).is_some_and(|found| found == key)
    }

    pub(crate) fn string(&self, span: ByteSpan) -> Option<Cow<'_, str>> {
        let raw = self.raw(span);
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(raw).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    pub(crate) fn boolean(&self, span: ByteSpan) -> Option<bool> {
        match self.raw(span) {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns a non-negative integer in any notation: `7`, `7.0` and `7e0` are the same number in JavaScript.
    pub(crate) fn integer(&self, span: ByteSpan) -> Option<u64> {
        /// 2^53. A JavaScript number cannot represent every integer above this value.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.kind(span) != JsonKind::Number {
            return None;
        }
        // serde_json is not used here, because its fast float parsing is not exact.
        let text = self.raw(span);
        let number: f64 = text.parse().ok()?;
        let whole = number.fract() == 0.0 && (0.0..EXACT).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        text.parse().ok().or(whole.then_some(number as u64))
    }

    /// Returns the span of a value that serde borrowed from `self.text`.
    fn span_of(&self, part: &RawValue) -> ByteSpan {
        let start = part.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        ByteSpan { start, end: start + part.get().len() }
    }
}

/// The fields of one object, decoded on demand. A field that is absent or has another type is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectFields<'d> {
    pub(crate) document: &'d JsonDocument<'d>,
    pub(crate) object: &'d Object,
}

impl<'d> ObjectFields<'d> {
    pub(crate) fn string(self, key: &str) -> Option<Cow<'d, str>> {
        self.document.string(self.span(key)?)
    }

    pub(crate) fn strings(self, key: &str) -> Option<Vec<Cow<'d, str>>> {
        let array = self.document.array(self.span(key)?)?;
        array.elements.into_iter().map(|element| self.document.string(element)).collect()
    }

    pub(crate) fn boolean(self, key: &str) -> Option<bool> {
        self.document.boolean(self.span(key)?)
    }

    pub(crate) fn integer(self, key: &str) -> Option<u64> {
        self.document.integer(self.span(key)?)
    }

    /// Returns the JSON of a field, byte for byte. If that JSON is not valid UTF-8, returns its parsable text.
    pub(crate) fn json(self, key: &str) -> Option<&'d str> {
        let span = self.span(key)?;
        let original = str::from_utf8(self.document.original(span));
        Some(original.unwrap_or_else(|_| self.document.raw(span)))
    }

    fn span(self, key: &str) -> Option<ByteSpan> {
        self.document.get(self.object, key)
    }
}

/// The members of an object, borrowed from the object's text.
struct BorrowedMembers<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for BorrowedMembers<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = BorrowedMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(BorrowedMembers(pairs))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}
