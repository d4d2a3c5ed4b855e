//! Which of the two generations of Claude Code a team's files come from.
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

/// A generation of the team files. Found out from what is on disk, never asked of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Named teams made by the tool `TeamCreate`; measured on 2.1.50.
    Old,
    /// One implicit team `session-<8 hex>` for each session; measured on 2.1.325.
    New,
}

impl Generation {
    /// What a team's name alone suggests: the new generation names teams after sessions, and nobody
    /// else is likely to.
    pub fn of_team_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix("session-")?;
        let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 8 && digits.bytes().all(hex)).then_some(Self::New)
    }
}
