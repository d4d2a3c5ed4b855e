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

/// A generation of the team files. brigade detects it from the files, so the user never has to name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Claude Code with named teams, created with the `TeamCreate` tool. Verified with version 2.1.50.
    Old,
    /// Claude Code with one implicit team `session-<8 hex>` per session. Verified with version 2.1.325.
    New,
}

impl Generation {
    /// Returns the generation that the name of a team suggests. The new generation names teams after sessions, and
    /// a user is unlikely to choose such a name.
    pub fn from_team_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix("session-")?;
        let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 8 && digits.bytes().all(hex)).then_some(Self::New)
    }
}
