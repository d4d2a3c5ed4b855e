//! Splits a byte stream, received in arbitrary pieces, into lines of JSON.

use brigade_wire::legible::legible;
use serde_json::Value;

/// Maximum length of a line, in bytes. Longer lines are skipped. The limit is high, because a line with a
/// session's history can have many megabytes. Without a limit, a program that never writes a newline would use up
/// all memory.
const MAX_LINE: usize = 256 << 20;

/// Buffers the program's output until a line is complete.
#[derive(Default)]
pub(super) struct JsonLines {
    buffer: Vec<u8>,
    /// The bytes of `buffer` before this index were already returned or skipped.
    consumed: usize,
    /// There is no newline in `buffer` between `consumed` and this index.
    searched: usize,
    /// Whether to skip the rest of the current line.
    skipping: bool,
}

impl JsonLines {
    /// Appends bytes that the program wrote.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.searched -= self.consumed;
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line that is a JSON object. Skips all other lines.
    pub(super) fn next(&mut self) -> Option<Value> {
        loop {
            let ahead = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(length) = ahead.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                if self.searched - self.consumed > MAX_LINE {
                    self.consumed = self.searched;
                    self.skipping = true;
                }
                return None;
            };
            let end = self.searched + length;
            let line = self.buffer.get(self.consumed..end).unwrap_or_default();
            let value = serde_json::from_str::<Value>(&legible(line)).ok();
            self.consumed = end + 1;
            self.searched = self.consumed;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if let Some(object) = value.filter(Value::is_object) {
                return Some(object);
            }
        }
    }
}

impl std::fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonLines").field("waiting", &(self.buffer.len() - self.consumed)).finish()
    }
}

/// Serializes a JSON object as one line.
pub(super) fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<Value> {
        let mut lines = JsonLines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found
    }

    #[test]
    fn a_line_may_be_split_anywhere() {
        let bytes = "{\"a\":\"ö\"}\r\n{\"b\":1}\n".as_bytes();
        let whole = [json!({"a": "ö"}), json!({"b": 1})];
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(all(&[first, second]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn lines_that_are_not_objects_are_skipped() {
        assert_eq!(all(&[b"hello\n\n[1]\n7\n{\"a\":\n{\"a\":1}\n{\"b\":"]), [json!({"a": 1})]);
    }

    #[test]
    fn lone_surrogates_and_invalid_utf8_are_replaced() {
        assert_eq!(all(&[b"{\"a\":\"\\ud83d\"}\n"]), [json!({"a": "\u{fffd}"})]);
        assert_eq!(all(&[b"{\"a\":\"\xff\"}\n"]), [json!({"a": "?"})]);
    }

    #[test]
    fn a_long_line_in_small_pieces_is_searched_once() {
        let text = "x".repeat(1 << 20);
        let bytes = line(&json!({ "a": text }));
        let pieces: Vec<_> = bytes.chunks(100).collect();
        assert_eq!(all(&pieces), [json!({ "a": text })]);
    }
}
