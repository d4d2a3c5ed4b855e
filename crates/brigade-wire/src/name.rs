//! Validated names. A name of one of these types cannot lead out of its directory when it is used in a path, and
//! contains no line breaks and no invisible characters.
//!
//! Claude Code and other tools may have written other names to disk. Those names are read as plain strings, and
//! become part of a path only through [`inbox_stem`] or [`team_dir`].
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

/// The maximum length of a name in bytes. Claude Code has the same limit for teammates.
pub const MAX_NAME: usize = 64;

/// The name that the lead has in every team.
pub const LEAD: &str = "team-lead";

/// The sender's name in Claude Code's own notices. No member may have this name.
pub const SYSTEM: &str = "system";

/// Why a name was rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("the {what} is empty")]
    Empty {
        /// The kind of name, as in "team name".
        what: &'static str,
    },
    /// The name is longer than [`MAX_NAME`] bytes.
    #[error("the {what} is {len} bytes long; at most {MAX_NAME} are allowed")]
    TooLong {
        /// The kind of name, as in "team name".
        what: &'static str,
        /// The length of the name in bytes.
        len: usize,
    },
    /// The name contains a character with a special meaning in paths, text lines or Claude Code's file names.
    #[error("the {what} must not {} {}; {allowed}", position(*at), VisibleChar(*found))]
    Character {
        /// The kind of name, as in "team name".
        what: &'static str,
        /// The first character that is not allowed.
        found: char,
        /// The character's byte offset.
        at: usize,
        /// A description of the allowed characters.
        allowed: &'static str,
    },
    /// The name is reserved for the protocol.
    #[error("the {what} '{SYSTEM}' is reserved: Claude Code's own notices come from it")]
    Reserved {
        /// The kind of name, as in "team name".
        what: &'static str,
    },
    /// Another member already uses the inbox file that belongs to this name.
    #[error("'{name}' would share an inbox with {other:?}; choose another name")]
    Taken {
        /// The requested name.
        name: String,
        /// The existing member's name.
        other: String,
    },
    /// The text does not have the expected form.
    #[error("not {what}; expected {form}")]
    Form {
        /// The kind of id, as in "a task id".
        what: &'static str,
        /// The expected form.
        form: &'static str,
    },
}

/// Returns the words with which an error message describes a character's position.
fn position(at: usize) -> &'static str {
    if at == 0 { "begin with" } else { "contain" }
}

/// Prints a character in a form that is visible and cannot affect the terminal.
struct VisibleChar(char);

impl fmt::Display for VisibleChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ' ' {
            f.write_str("a space")
        } else if self.0.is_ascii_graphic() {
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

/// A team name that brigade may create: `[a-z0-9][a-z0-9-]*`. Claude Code 2.1.50 spreads a team with any other
/// name over two directories.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamName(String);

/// A member name that brigade may add: `[A-Za-z0-9][A-Za-z0-9_-]*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberName(String);

impl TeamName {
    /// Returns the name as text.
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
    /// Returns the lead's name, [`LEAD`].
    pub fn lead() -> Self {
        Self(LEAD.to_owned())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that no existing member uses the same inbox file. `others` are the names on disk, whether valid or
    /// not. `a-b` conflicts with `a.b`, because Claude Code stores both in `a-b.json`, and `Bob` conflicts with
    /// `bob`, because many file systems ignore case.
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

/// Returns the name of a member's inbox file without `.json`, as Claude Code derives it from any member name.
/// Claude Code names the directory of a team's inboxes and tasks in the same way. The result contains only
/// `[A-Za-z0-9_-]`, so it cannot lead out of its directory. It is empty for an empty name.
pub fn inbox_stem(name: &str) -> String {
    replace_chars(name, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns the directory under `teams/` in which Claude Code stores a team's `config.json`, for any team name. The
/// result contains only `[a-z0-9-]`. It is empty for an empty name.
pub fn team_dir(name: &str) -> String {
    replace_chars(name, |c| c.is_ascii_alphanumeric()).to_ascii_lowercase()
}

/// Puts a hyphen in place of each character for which `keep` returns false, as Claude Code does. JavaScript
/// replaces UTF-16 units, so a character outside the basic multilingual plane becomes two hyphens.
fn replace_chars(name: &str, keep: fn(char) -> bool) -> String {
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

/// The id of a member across teams: `name@team`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId {
    /// The member's name.
    pub name: MemberName,
    /// The member's team.
    pub team: TeamName,
}

impl AgentId {
    /// Returns the agent id of the lead of `team`.
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

/// A task's number: decimal, at least 1, without leading zeros, so that each task has exactly one file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u64);

impl TaskId {
    /// Returns the task id with this number; `None` for 0.
    pub fn new(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Returns the number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for TaskId {
    type Err = NameError;

    fn from_str(id: &str) -> Result<Self, NameError> {
        let canonical = id.bytes().all(|b| b.is_ascii_digit()) && !id.starts_with('0');
        let number = if canonical { id.parse().ok().and_then(Self::new) } else { None };
        number.ok_or(NameError::Form { what: "a task id", form: "a whole number, 1 or more" })
    }
}

/// Implements `Display`, `Serialize` and `Deserialize` with the text form of a type.
macro_rules! impl_text_form {
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

impl_text_form! {
    TeamName: |name, f| f.write_str(&name.0);
    MemberName: |name, f| f.write_str(&name.0);
    AgentId: |id, f| write!(f, "{}@{}", id.name, id.team);
    TaskId: |id, f| write!(f, "{}", id.0);
}
