//! Names, parsed once and safe for ever: no value of these types can leave its directory, end a
//! line or hold a character that does not show.
//!
//! What Claude Code or another tool has already put on disk may be named differently. Such names
//! are read as plain strings, and reach a path only through [`inbox_stem`] or [`team_dir`].
//!
//! ```
//! use brigade_wire::name::{AgentId, MemberName, NameError};
//!
//! # fn main() -> Result<(), NameError> {
//! let bob: AgentId = "bob@demo".parse()?;
//! assert_eq!((bob.name.as_str(), bob.team.as_str()), ("bob", "demo"));
//! assert!("../bob".parse::<MemberName>().is_err());
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// The longest name, in bytes; Claude Code's own limit for a teammate.
pub const MAX_NAME: usize = 64;

/// The lead's name in every team.
pub const LEAD: &str = "team-lead";

/// The sender Claude Code uses for its own notices. No member may bear it.
pub const SYSTEM: &str = "system";

/// Why a name was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing there.
    #[error("the {what} is empty")]
    Empty {
        /// What was being named.
        what: &'static str,
    },
    /// More than [`MAX_NAME`] bytes.
    #[error("the {what} is {len} bytes long; at most {MAX_NAME} are allowed")]
    TooLong {
        /// What was being named.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// A character that would change meaning in a path, a line or Claude Code's own file names.
    #[error("the {what} has {} at byte {at}; {allowed}", Shown(*found))]
    Character {
        /// What was being named.
        what: &'static str,
        /// The first character that does not belong.
        found: char,
        /// Its place.
        at: usize,
        /// What would have been accepted.
        allowed: &'static str,
    },
    /// A name with a meaning of its own on the wire.
    #[error("the {what} '{SYSTEM}' is reserved: Claude Code's own notices come from it")]
    Reserved {
        /// What was being named.
        what: &'static str,
    },
    /// Another name would have the same inbox.
    #[error("'{name}' would share an inbox with {other:?}; choose another name")]
    Taken {
        /// The name asked for.
        name: String,
        /// The name already there.
        other: String,
    },
    /// Not of the form it should have.
    #[error("not {what}; expected {form}")]
    Form {
        /// What was expected.
        what: &'static str,
        /// How it is written.
        form: &'static str,
    },
}

/// A character as a person can see it, whatever it does to a terminal.
struct Shown(char);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", self.0)
        } else {
            write!(f, "U+{:04X}", u32::from(self.0))
        }
    }
}

fn check(
    what: &'static str,
    name: &str,
    allowed: &'static str,
    first: fn(char) -> bool,
    rest: fn(char) -> bool,
) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > MAX_NAME {
        return Err(NameError::TooLong { what, len: name.len() });
    }
    let wrong = name.char_indices().find(|&(at, c)| if at == 0 { !first(c) } else { !rest(c) });
    match wrong {
        Some((at, found)) => Err(NameError::Character { what, found, at, allowed }),
        None => Ok(()),
    }
}

/// A team we may create: `[a-z0-9][a-z0-9-]*`. Claude Code 2.1.50 scatters a team named otherwise
/// over two directories.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamName(String);

/// A member we may add: `[A-Za-z0-9][A-Za-z0-9_-]*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberName(String);

impl TeamName {
    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TeamName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let allowed = "use a-z, 0-9 and '-', beginning with a letter or digit";
        check("team name", name, allowed, first, rest)?;
        Ok(Self(name.to_owned()))
    }
}

impl MemberName {
    /// The lead's seat.
    pub fn lead() -> Self {
        Self(LEAD.to_owned())
    }

    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that the inbox of this name is nobody else's. `others` are the names on disk, ours or
    /// foreign: `a-b` is refused beside `a.b`, because Claude Code keeps both in `a-b.json`, and
    /// `Bob` beside `bob`, because many file systems do not tell them apart.
    pub fn check_free<'n>(
        &self,
        others: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), NameError> {
        let mine = inbox_stem(&self.0);
        match others.into_iter().find(|other| inbox_stem(other).eq_ignore_ascii_case(&mine)) {
            Some(other) => Err(NameError::Taken { name: self.0.clone(), other: other.to_owned() }),
            None => Ok(()),
        }
    }
}

impl FromStr for MemberName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let first = |c: char| c.is_ascii_alphanumeric();
        let rest = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let allowed = "use A-Z, a-z, 0-9, '-' and '_', beginning with a letter or digit";
        check("member name", name, allowed, first, rest)?;
        if name.eq_ignore_ascii_case(SYSTEM) {
            return Err(NameError::Reserved { what: "member name" });
        }
        Ok(Self(name.to_owned()))
    }
}

/// The file name, without `.json`, of the inbox of any name, and the directory of a foreign team's
/// inboxes and tasks: what Claude Code makes of it. Holds `[A-Za-z0-9_-]` only, so it stays where
/// it is put; empty for an empty name.
pub fn inbox_stem(name: &str) -> String {
    replaced(name, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The directory under `teams/` in which Claude Code keeps the `config.json` of a team of any name.
/// Holds `[a-z0-9-]` only; empty for an empty name.
pub fn team_dir(name: &str) -> String {
    replaced(name, |c| c.is_ascii_alphanumeric()).to_ascii_lowercase()
}

/// JavaScript replaces UTF-16 units, so a character beyond the basic plane leaves two hyphens.
fn replaced(name: &str, keep: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if keep(c) => out.push(c),
            c if c.len_utf16() == 2 => out.push_str("--"),
            _ => out.push('-'),
        }
    }
    out
}

/// `name@team`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId {
    /// The member.
    pub name: MemberName,
    /// Its team.
    pub team: TeamName,
}

impl AgentId {
    /// The lead of `team`.
    pub fn lead(team: TeamName) -> Self {
        Self { name: MemberName::lead(), team }
    }
}

impl FromStr for AgentId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, NameError> {
        let form = NameError::Form { what: "an agent id", form: "name@team" };
        let (name, team) = id.split_once('@').ok_or(form)?;
        Ok(Self { name: name.parse()?, team: team.parse()? })
    }
}

/// A task's number: decimal, from 1, without leading zeros, so that one task has one file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u64);

impl TaskId {
    /// The task `number`, unless it is 0.
    pub fn new(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for TaskId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, NameError> {
        let plain = id.bytes().all(|b| b.is_ascii_digit()) && !id.starts_with('0');
        let number = if plain { id.parse().ok().and_then(Self::new) } else { None };
        number.ok_or(NameError::Form { what: "a task id", form: "a whole number from 1" })
    }
}

macro_rules! written_as {
    ($($name:ident: |$value:ident, $f:ident| $write:expr;)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $value = self;
                $write
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

written_as! {
    TeamName: |name, f| f.write_str(&name.0);
    MemberName: |name, f| f.write_str(&name.0);
    AgentId: |id, f| write!(f, "{}@{}", id.name, id.team);
    TaskId: |id, f| write!(f, "{}", id.0);
}
