//! What can be answered once.

use std::fmt::Write as _;

use crate::hash::Fnv;

/// What can be answered once, as a name that is safe for any store: letters, digits, `@`, `_`, `-`
/// and `%`, at most 200 of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question(String);

impl Question {
    /// The question that these words name. Different words are different questions, chance apart
    /// where they are very long.
    pub fn new(words: &str) -> Self {
        const LONGEST: usize = 200;
        let mut name = String::new();
        for byte in words.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'@' | b'_' | b'-' => {
                    name.push(char::from(byte));
                }
                _ => {
                    let _infallible = write!(name, "%{byte:02x}");
                }
            }
        }
        if name.len() > LONGEST {
            let hash = Fnv::default().bytes(words.as_bytes()).finish();
            name.truncate(LONGEST - 17);
            let _infallible = write!(name, "%{hash:016x}");
        }
        Self(name)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
