//! The eight colours that Claude Code assigns to teammates, in the order of assignment.
//!
//! ```
//! use brigade_wire::color::Color;
//!
//! assert_eq!(Color::nth(0).as_str(), "blue");
//! assert_eq!("green".parse::<Color>(), Ok(Color::Green));
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// A teammate's colour. The lead has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Color {
    Blue,
    Green,
    Yellow,
    Purple,
    Orange,
    Pink,
    Cyan,
    Red,
}

impl Color {
    /// All colours, in the order of assignment.
    pub const ALL: [Self; 8] = [
        Self::Blue,
        Self::Green,
        Self::Yellow,
        Self::Purple,
        Self::Orange,
        Self::Pink,
        Self::Cyan,
        Self::Red,
    ];

    /// Returns the colour of the teammate that joins as number `index`, counted from 0. The ninth teammate gets
    /// the first colour again.
    pub fn nth(index: usize) -> Self {
        Self::ALL.get(index % Self::ALL.len()).copied().unwrap_or(Self::Blue)
    }

    /// Returns the name of the colour in Claude Code's files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Purple => "purple",
            Self::Orange => "orange",
            Self::Pink => "pink",
            Self::Cyan => "cyan",
            Self::Red => "red",
        }
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Color {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The error for text that names none of the eight colours.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a teammate colour; use blue, green, yellow, purple, orange, pink, cyan or red")]
pub struct InvalidColor;

impl FromStr for Color {
    type Err = InvalidColor;

    fn from_str(text: &str) -> Result<Self, InvalidColor> {
        Self::ALL.into_iter().find(|color| color.as_str() == text).ok_or(InvalidColor)
    }
}
