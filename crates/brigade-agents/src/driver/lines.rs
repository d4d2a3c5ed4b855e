//! Lines of JSON out of bytes that come cut anywhere.

use brigade_wire::legible::legible;
use serde_json::Value;

/// A line longer than this is given up. Histories of many megabytes are real; a program that never
/// ends its line must not take all memory.
const LONGEST: usize = 256 << 20;

/// What was heard and not yet taken.
#[derive(Default)]
pub(super) struct Lines {
    heard: Vec<u8>,
    /// Everything before this is taken.
    taken: usize,
    /// Between `taken` and this there is no end of a line.
    searched: usize,
    /// The rest of the present line is passed over.
    skipping: bool,
}

impl Lines {
    /// The program wrote this.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        self.heard.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.heard.extend_from_slice(bytes);
    }

    /// The next whole line that is a JSON object. Whatever else programs print is passed over.
    pub(super) fn next(&mut self) -> Option<Value> {
        loop {
            let ahead = self.heard.get(self.searched..).unwrap_or_default();
            let Some(length) = ahead.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.heard.len();
                if self.searched - self.taken > LONGEST {
                    self.taken = self.searched;
                    self.skipping = true;
                }
                return None;
            };
            let end = self.searched + length;
            let line = self.heard.get(self.taken..end).unwrap_or_default();
            let value = serde_json::from_str::<Value>(&legible(line)).ok();
            self.taken = end + 1;
            self.searched = self.taken;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if let Some(object) = value.filter(Value::is_object) {
                return Some(object);
            }
        }
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("waiting", &(self.heard.len() - self.taken)).finish()
    }
}

/// A JSON object as a line.
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
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.hear(piece);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found
    }

    #[test]
    fn a_line_may_be_cut_anywhere() {
        let bytes = "{\"a\":\"ö\"}\r\n{\"b\":1}\n".as_bytes();
        let whole = [json!({"a": "ö"}), json!({"b": 1})];
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(all(&[first, second]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_object_is_passed_over() {
        assert_eq!(all(&[b"hello\n\n[1]\n7\n{\"a\":\n{\"a\":1}\n{\"b\":"]), [json!({"a": 1})]);
    }

    #[test]
    fn what_only_javascript_writes_is_read() {
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
