//! Access to the server: named tokens, one-time login links and browser sessions.
//!
//! Secrets are random; only their SHA-256 digests are stored, in one file of brigade's own folder. The file is read for each
//! request, so that a token that was revoked stops working at once, also in a running server.

mod book;
mod secret;

pub use self::book::{AccessBook, AccessError, AccessGrant, IssuedSecret, TokenRecord};
pub use self::secret::Secret;
pub(crate) use self::secret::{digest, random_name};

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    /// Reading and every action.
    Full,
    /// Only listing and answering requests.
    ApproveOnly,
    /// Only reading.
    ReadOnly,
}

impl TokenKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Full, Self::ApproveOnly, Self::ReadOnly];

    /// Returns whether a token of this kind has this right.
    pub fn has(self, right: Right) -> bool {
        match self {
            Self::Full => true,
            Self::ApproveOnly => matches!(right, Right::SeeRequests | Right::AnswerRequests),
            Self::ReadOnly => matches!(right, Right::Read | Right::SeeRequests),
        }
    }

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ApproveOnly => "approve-only",
            Self::ReadOnly => "read-only",
        }
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TokenKind {
    type Err = UnknownTokenKind;

    fn from_str(text: &str) -> Result<Self, UnknownTokenKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownTokenKind)
    }
}

/// The text is not the name of a kind of token.
#[derive(Debug, Error)]
#[error("use full, approve-only or read-only")]
pub struct UnknownTokenKind;

/// The right that a request to the server needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// See which requests wait, and their content.
    SeeRequests,
    /// Answer requests.
    AnswerRequests,
    /// Read everything.
    Read,
    /// Change something.
    Write,
}

impl Right {
    /// Returns whether the right is needed for changes.
    pub fn changes(self) -> bool {
        matches!(self, Self::AnswerRequests | Self::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_these_rights() {
        let rights = [Right::SeeRequests, Right::AnswerRequests, Right::Read, Right::Write];
        let table = TokenKind::ALL.map(|kind| (kind.as_str(), rights.map(|right| kind.has(right))));
        assert_eq!(
            table,
            [
                ("full", [true, true, true, true]),
                ("approve-only", [true, true, false, false]),
                ("read-only", [true, false, true, false]),
            ]
        );
        for kind in TokenKind::ALL {
            assert_eq!(kind.as_str().parse::<TokenKind>().unwrap(), kind);
        }
        assert!("all".parse::<TokenKind>().is_err());
    }
}
