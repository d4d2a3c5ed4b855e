//! Ids of requests (shutdown, plan approval, permission). The answer repeats the id of the request.
//!
//! ```
//! use brigade_wire::request_id::RequestId;
//!
//! let id: RequestId = "shutdown-1794657600000@bob".parse().expect("an id");
//! assert!(matches!(&id, RequestId::Shutdown { member, .. } if member.as_str() == "bob"));
//! assert_eq!(id.to_string(), "shutdown-1794657600000@bob");
//! ```

use std::fmt;
use std::str::FromStr;

use crate::name::{AgentId, MemberName, NameError};

/// The id of a request, in one of the three forms that Claude Code uses. Times are in milliseconds since 1970.
/// Other tools use other forms, so messages keep the id as text, and an answer repeats the id unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// The form `shutdown-<ms>@<member>`.
    Shutdown {
        /// When the request was made.
        at: u64,
        /// The member that is asked to shut down.
        member: MemberName,
    },
    /// The form `plan_approval-<ms>@<member>@<team>`.
    PlanApproval {
        /// When the request was made.
        at: u64,
        /// The member that submits the plan.
        agent: AgentId,
    },
    /// The form `perm-<ms>-<token>`.
    Permission {
        /// When the request was made.
        at: u64,
        /// A random token that distinguishes requests made in the same millisecond.
        token: Token,
    },
}

/// The random end of a permission request's id, from the characters `[a-z0-9]`. Claude Code and brigade write
/// seven characters; up to 32 are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// Creates a token of seven characters from random bits, which the caller provides.
    pub fn from_random(bits: u64) -> Self {
        let digit = |place: u32| char::from_digit(((bits >> (place * 8)) % 36) as u32, 36);
        Self((0..7).filter_map(digit).collect())
    }
}

const FORM: NameError = NameError::Form {
    what: "a request id",
    form: "shutdown-<ms>@<member>, plan_approval-<ms>@<member>@<team> or perm-<ms>-<token>",
};

impl FromStr for RequestId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, NameError> {
        if let Some(rest) = id.strip_prefix("shutdown-") {
            let (at, member) = rest.split_once('@').ok_or(FORM)?;
            Ok(Self::Shutdown { at: millis(at)?, member: member.parse()? })
        } else if let Some(rest) = id.strip_prefix("plan_approval-") {
            let (at, agent) = rest.split_once('@').ok_or(FORM)?;
            Ok(Self::PlanApproval { at: millis(at)?, agent: agent.parse()? })
        } else if let Some(rest) = id.strip_prefix("perm-") {
            let (at, token) = rest.split_once('-').ok_or(FORM)?;
            let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
            if token.is_empty() || token.len() > 32 || !token.bytes().all(allowed) {
                return Err(FORM);
            }
            Ok(Self::Permission { at: millis(at)?, token: Token(token.to_owned()) })
        } else {
            Err(FORM)
        }
    }
}

/// Parses decimal digits without a sign or leading zeros, so that each id has exactly one spelling.
fn millis(digits: &str) -> Result<u64, NameError> {
    let only_digits = digits.bytes().all(|b| b.is_ascii_digit());
    if !only_digits || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(FORM);
    }
    digits.parse().map_err(|_| FORM)
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown { at, member } => write!(f, "shutdown-{at}@{member}"),
            Self::PlanApproval { at, agent } => write!(f, "plan_approval-{at}@{agent}"),
            Self::Permission { at, token } => write!(f, "perm-{at}-{}", token.0),
        }
    }
}
