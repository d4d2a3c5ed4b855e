//! A question that can be answered only once.

use std::fmt::Write as _;

use brigade_wire::name::MemberName;

use crate::hash::Fnv;

/// A question that can be answered only once, and the member that may answer it. The question's name is valid in
/// every store: it has at most 200 characters, and only letters, digits, `@`, `_`, `-` and `%`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    member: MemberName,
    name: String,
}

impl Question {
    /// Creates a question for this member. Different texts give different questions, unless the hashes of two very
    /// long texts collide.
    pub fn new(member: &MemberName, text: &str) -> Self {
        const MAX_LEN: usize = 200;
        let mut name = String::new();
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'@' | b'_' | b'-' => {
                    name.push(char::from(byte));
                }
                _ => {
                    let _infallible = write!(name, "%{byte:02x}");
                }
            }
        }
        if name.len() > MAX_LEN {
            let hash = Fnv::default().bytes(text.as_bytes()).finish();
            name.truncate(MAX_LEN - 17);
            let _infallible = write!(name, "%{hash:016x}");
        }
        Self { member: member.clone(), name }
    }

    /// Returns the member that may answer the question.
    pub fn member(&self) -> &MemberName {
        &self.member
    }

    /// Returns the question's name, encoded for use in a store.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}
