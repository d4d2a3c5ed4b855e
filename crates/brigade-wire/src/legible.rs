//! Converts JSON that only JavaScript accepts into text that `serde_json` can parse, without changing its length.
//!
//! Real files contain two things that JavaScript accepts and `serde_json` rejects: bytes that are not UTF-8, and
//! half of a surrogate pair (from a summary that was cut in the middle of an emoji). Both are replaced with text
//! of the same length. So an offset in the parsable text is also an offset in the original bytes. Only the
//! original bytes are ever written back.
//!
//! ```
//! use brigade_wire::legible::legible;
//!
//! let cut = b"\"half an emoji: \\ud83d\"";
//! assert_eq!(legible(cut).len(), cut.len());
//! ```

use std::borrow::Cow;

/// Returns the bytes as text that `serde_json` can parse, with all offsets unchanged.
pub fn legible(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => replace_lone_surrogates(text),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| '?'));
            }
            match replace_lone_surrogates(&text) {
                Cow::Owned(replaced) => Cow::Owned(replaced),
                Cow::Borrowed(_) => Cow::Owned(text),
            }
        }
    }
}

/// Replaces each escaped half of a surrogate pair with an escaped U+FFFD.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut replaced: Option<String> = None;
    let mut done = 0;
    for at in lone_surrogates(text) {
        let out = replaced.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push_str("\\ufffd");
        done = at + UNIT;
    }
    match replaced {
        Some(mut out) => {
            out.push_str(text.get(done..).unwrap_or_default());
            Cow::Owned(out)
        }
        None => Cow::Borrowed(text),
    }
}

/// The length of one escaped UTF-16 unit, `\uXXXX`.
const UNIT: usize = 6;

/// Returns the offset of the backslash of each unpaired surrogate.
fn lone_surrogates(text: &str) -> impl Iterator<Item = usize> {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let at = next + text.get(next..)?.find('\\')?;
            match unit(text, at) {
                // Another escape. Skip both characters: in `\\`, the second backslash does not start an escape.
                None => next = at + 1 + text.get(at + 1..)?.chars().next()?.len_utf8(),
                Some(0xD800..=0xDBFF) if matches!(unit(text, at + UNIT), Some(0xDC00..=0xDFFF)) => {
                    next = at + 2 * UNIT;
                }
                Some(0xD800..=0xDFFF) => {
                    next = at + UNIT;
                    return Some(at);
                }
                Some(_) => next = at + UNIT,
            }
        }
    })
}

/// Returns the value of the `\uXXXX` at offset `at`, if there is one.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + UNIT)?.strip_prefix("\\u")?;
    // `from_str_radix` would also accept a sign, so check the digits first.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let text = legible(bytes);
        assert_eq!(text, expected);
        assert_eq!(text.len(), bytes.len(), "offsets must not change");
    }

    #[test]
    fn replacement_keeps_the_length() {
        check(b"plain", "plain");
        check(b"\"a\xff\xc3\"", "\"a??\"");
        check(br#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(br#""cut \ud83d""#, r#""cut \ufffd""#);
        check(br#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(br#""\uD83D\n""#, r#""\ufffd\n""#);
        check(br#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(br#""an escaped backslash \\ud83d""#, r#""an escaped backslash \\ud83d""#);
        check(br#""\\\ud83d""#, r#""\\\ufffd""#);
        check(br#""\u+123\ud83""#, r#""\u+123\ud83""#);
        check("\\é\\ud83d".as_bytes(), "\\é\\ufffd");
        check(b"\\", "\\");
        check(b"\\ud83d\xff", "\\ufffd?");
    }
}
