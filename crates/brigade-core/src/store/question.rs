//! A question that can be answered only once.

use std::fmt::Write as _;

use brigade_wire::name::MemberName;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// A question that can be answered only once, and the member that may answer it. The question's name is valid in
/// every store: it has at most 200 characters and contains only letters, digits, `@`, `_`, `-` and `%`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    member: MemberName,
    name: String,
}

impl Question {
    /// Creates a question for this member. Different texts give different questions.
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
            // A member chooses the ids of its requests, so it must not be able to find two texts with one hash.
            let hash = HEXLOWER.encode(&Sha256::digest(text));
            name.truncate(MAX_LEN - 2 - hash.len());
            // An escaped byte never begins with `%x`, so no short text has this name.
            let _infallible = write!(name, "%x{hash}");
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

#[cfg(test)]
mod tests {
    use super::Question;

    #[test]
    fn long_questions_end_with_a_sha256() {
        let name = |text: &str| Question::new(&"bob".parse().unwrap(), text).as_str().to_owned();
        assert_eq!(name("plan/1"), "plan%2f1");
        assert_eq!(name(&"a".repeat(200)), "a".repeat(200));
        let long = name(&"a".repeat(201));
        assert_eq!(long.len(), 200);
        assert_eq!(
            long.rsplit_once("%x").unwrap().1,
            "a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50"
        );
        assert_ne!(long, name(&"a".repeat(202)));
    }
}
