//! Edits to a document: which bytes to replace, and with what.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::document::{Array, ByteSpan, JsonDocument, Object, Pair};
use crate::layout::{JsonLayout, compact};

/// The edits to one document. They never overlap, because each object or array is edited only once: by one
/// [`ObjectEdit`], or by one of the array functions.
#[derive(Debug, Default)]
pub(crate) struct Patch {
    edits: Vec<(ByteSpan, String)>,
}

impl Patch {
    pub(crate) fn replace(&mut self, span: ByteSpan, with: impl Into<String>) {
        self.edits.push((span, with.into()));
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(ByteSpan { start: at, end: at }, text);
    }

    fn cut(&mut self, start: usize, end: usize) {
        self.replace(ByteSpan { start, end }, "");
    }

    /// Applies the edits and returns the new document. Returns the borrowed original if there are no edits.
    pub(crate) fn apply<'a>(mut self, document: &JsonDocument<'a>) -> Cow<'a, [u8]> {
        if self.edits.is_empty() {
            return Cow::Borrowed(document.bytes);
        }
        // The sort is stable: insertions at the same offset keep their order, and an insertion comes before a cut
        // that begins at the same offset.
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let source = document.bytes;
        let added: usize = self.edits.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity(source.len() + added);
        let mut done = 0;
        for (span, with) in self.edits {
            out.extend_from_slice(source.get(done..span.start).unwrap_or_default());
            out.extend_from_slice(with.as_bytes());
            done = span.end;
        }
        out.extend_from_slice(source.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Appends elements to an array.
    pub(crate) fn append<T: Serialize>(
        &mut self,
        document: &JsonDocument<'_>,
        array: &Array,
        values: &[T],
    ) {
        let layout = JsonLayout::for_array(document, array);
        let values: Vec<String> = values.iter().map(|value| layout.encode(value)).collect();
        match array.elements.last() {
            Some(last) => {
                for value in values {
                    self.insert(last.end, format!(",{}{value}", layout.between()));
                }
            }
            None if values.is_empty() => {}
            None => self.replace(array.span, layout.enclose('[', &values, ']')),
        }
    }

    /// Removes each element whose flag in `keep` is false.
    pub(crate) fn retain(&mut self, array: &Array, keep: &[bool]) {
        let spans: Vec<(ByteSpan, bool)> =
            array.elements.iter().zip(keep).map(|(&span, &keep)| (span, keep)).collect();
        if !self.cut_runs(&spans) {
            self.replace(array.span, "[]");
        }
    }

    /// Removes the parts whose flag is false, together with their commas. If no part would be left, removes nothing
    /// and returns false.
    fn cut_runs(&mut self, parts: &[(ByteSpan, bool)]) -> bool {
        let wanted = |&&(_, keep): &&(ByteSpan, bool)| keep;
        let Some((last_kept, _)) = parts.iter().rfind(wanted) else {
            return parts.is_empty();
        };
        let mut run: Option<usize> = None;
        for &(span, keep) in parts {
            match (keep, run) {
                (false, None) => run = Some(span.start),
                (true, Some(start)) => {
                    self.cut(start, span.start);
                    run = None;
                }
                _ => {}
            }
        }
        if let (Some(_), Some((last, _))) = (run, parts.last()) {
            self.cut(last_kept.end, last.end);
        }
        true
    }
}

/// A change to the value of one key.
struct KeyChange<'d> {
    key: &'d str,
    /// The new value as formatted JSON; `None` removes the key.
    value: Option<String>,
}

/// All changes to one object.
pub(crate) struct ObjectEdit<'d> {
    document: &'d JsonDocument<'d>,
    object: &'d Object,
    layout: JsonLayout,
    changes: Vec<KeyChange<'d>>,
}

impl<'d> ObjectEdit<'d> {
    pub(crate) fn new(document: &'d JsonDocument<'d>, object: &'d Object) -> Self {
        let layout = JsonLayout::for_object(document, object);
        Self { document, object, layout, changes: Vec::new() }
    }

    /// Sets `key` to a value. If the existing value is equal, its bytes stay unchanged.
    pub(crate) fn set(&mut self, key: &'d str, value: &impl Serialize) {
        self.changes.retain(|change| change.key != key);
        let value = self.layout.encode(value);
        let present = self.document.get(self.object, key);
        if present.is_some_and(|span| self.is_equal(span, &value)) {
            return;
        }
        self.changes.push(KeyChange { key, value: Some(value) });
    }

    /// Sets `key` to a value; does nothing if the value is `None`.
    pub(crate) fn set_if(&mut self, key: &'d str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Removes `key`.
    pub(crate) fn remove(&mut self, key: &'d str) {
        self.changes.retain(|change| change.key != key);
        self.changes.push(KeyChange { key, value: None });
    }

    /// Adds the edits of this object to `patch`.
    pub(crate) fn finish(self, patch: &mut Patch) {
        let (mut added, present): (Vec<&KeyChange<'_>>, Vec<&KeyChange<'_>>) = self
            .changes
            .iter()
            .partition(|change| self.document.get(self.object, change.key).is_none());
        added.retain(|change| change.value.is_some());

        let members = &self.object.members;
        let removed = |pair: &Pair| {
            present.iter().any(|c| c.value.is_none() && self.document.is_key(pair, c.key))
        };
        let whole = |pair: &Pair| ByteSpan { start: pair.key.start, end: pair.value.end };
        let parts: Vec<(ByteSpan, bool)> =
            members.iter().map(|p| (whole(p), !removed(p))).collect();
        if !parts.iter().any(|&(_, keep)| keep) {
            // No existing member is left whose formatting could be copied, so format the whole object.
            if !members.is_empty() || !added.is_empty() {
                let added: Vec<String> = added.iter().map(|c| self.member(c)).collect();
                patch.replace(self.object.span, self.layout.enclose('{', &added, '}'));
            }
            return;
        }
        patch.cut_runs(&parts);
        for change in &present {
            if let (Some(span), Some(value)) =
                (self.document.get(self.object, change.key), &change.value)
            {
                patch.replace(span, value);
            }
        }
        // A new key goes to the end, as in JavaScript.
        if let Some(last) = members.iter().rfind(|pair| !removed(pair)) {
            for change in added {
                let member = self.member(change);
                patch.insert(last.value.end, format!(",{}{member}", self.layout.between()));
            }
        }
    }

    /// Returns whether the existing value equals this JSON text.
    fn is_equal(&self, span: ByteSpan, json: &str) -> bool {
        let text = self.document.raw(span);
        let exact = text.as_bytes() == self.document.original(span);
        let read = |text| serde_json::from_str::<Value>(text).ok();
        exact && read(json).is_some_and(|value| read(text) == Some(value))
    }

    fn member(&self, change: &KeyChange<'_>) -> String {
        let value = change.value.as_deref().unwrap_or("null");
        format!("{}{}{value}", compact(&change.key), self.layout.colon())
    }
}

/// Key-value pairs that are written as one JSON object, in this order.
pub(crate) struct Ordered<'m>(Vec<(&'m str, &'m Value)>);

impl<'m> Ordered<'m> {
    /// Creates the object. If a key occurs several times, the last value wins. The value `None` removes the key.
    pub(crate) fn new(pairs: impl Iterator<Item = (&'m str, Option<&'m Value>)>) -> Self {
        let mut last: Vec<(&str, &Value)> = Vec::new();
        for (key, value) in pairs {
            last.retain(|(earlier, _)| *earlier != key);
            last.extend(value.map(|value| (key, value)));
        }
        Self(last)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}
