//! The two generations of Claude Code's team files.
//!
//! ```
//! use brigade_wire::generation::Generation;
//! use brigade_wire::team::Team;
//!
//! # fn main() -> Result<(), brigade_wire::Damage> {
//! let team = Team::read(br#"{"name": "demo", "members": []}"#)?;
//! assert_eq!(team.generation(), Generation::Old);
//! # Ok(())
//! # }
//! ```

/// A generation of the team files. It is detected from the files; the user never has to name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Named teams, created with the tool `TeamCreate`; verified with 2.1.50.
    Old,
    /// One implicit team `session-<8 hex>` per session; verified with 2.1.325.
    New,
}

impl Generation {
    /// Returns the generation that a team's name alone suggests. The new generation names teams after
    /// sessions; a user is unlikely to choose such a name.
    pub fn from_team_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix("session-")?;
        let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 8 && digits.bytes().all(hex)).then_some(Self::New)
    }
}
