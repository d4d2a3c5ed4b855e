//! What can be answered once.

use std::fmt::Write as _;

use brigade_wire::name::MemberName;

use crate::hash::Fnv;

/// What can be answered once, and by whom. Its name is safe for any store: letters, digits, `@`, `_`,
/// `-` and `%`, at most 200 of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    of: MemberName,
    name: String,
}

impl Question {
    /// The question that these words name, for this seat to answer. Different words are different
    /// questions, chance apart where they are very long.
    pub fn new(of: &MemberName, words: &str) -> Self {
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
        Self { of: of.clone(), name }
    }

    /// Whose it is to answer.
    pub fn of(&self) -> &MemberName {
        &self.of
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}
