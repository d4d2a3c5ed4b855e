//! Questions that can be answered only once.

use std::fmt::Write as _;

use brigade_wire::name::MemberName;

use crate::hash::Fnv;

/// A question that can be answered only once, and the member who may answer it. Its name is safe in every store: at
/// most 200 characters, only letters, digits, `@`, `_`, `-` and `%`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    member: MemberName,
    name: String,
}

impl Question {
    /// A question for this member. Different names are different questions, except for hash collisions between very
    /// long names.
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

    /// The member who may answer it.
    pub fn member(&self) -> &MemberName {
        &self.member
    }

    /// The encoded name.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}
