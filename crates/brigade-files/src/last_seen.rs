//! Decides whether the roster as last seen belongs to the team that exists now.
//!
//! A team may be deleted and another one created under the same name while no brigade process runs. Data about the
//! earlier team must not be restored over the files of the later one.

use std::path::Path;

use brigade_wire::name::TeamName;
use brigade_wire::team::Team;

use super::dir::Dir;
use super::layout::{self, CONFIG, LAST_FOLDER, LAST_ROSTER, TEAMS};
use super::lock_id::LockId;
use brigade_core::store::StoreError;

/// Returns the roster as last seen, if it belongs to the team that exists now. The current roster may be torn.
/// Changes no file.
pub fn last_seen_roster(
    claude_dir: &Path,
    state_dir: &Path,
    team: &TeamName,
) -> Result<Option<Vec<u8>>, StoreError> {
    let child = |parent: &Path| -> Result<Option<Dir>, StoreError> {
        Ok(Dir::open(parent)?.map(|parent| parent.child(team.as_str())).transpose()?.flatten())
    };
    let state = child(&layout::team_states_dir(state_dir, claude_dir))?;
    let (Some(state), Some(folder)) = (state, child(&claude_dir.join(TEAMS))?) else {
        return Ok(None);
    };
    let now = folder.read(CONFIG)?.map(|contents| contents.bytes).unwrap_or_default();
    let Some(last) = state.read(LAST_ROSTER)?.map(|contents| contents.bytes) else {
        return Ok(None);
    };
    Ok(is_same_team(&state, &folder, &now, &last)?.then_some(last))
}

/// Returns whether the last seen roster `last` belongs to the same team as `now`, the current contents of
/// `config.json`, which may be torn. If `now` does not show when its team was created, compares the team folder with
/// the folder in which `last` was seen.
pub(crate) fn is_same_team(
    state: &Dir,
    folder: &Dir,
    now: &[u8],
    last: &[u8],
) -> Result<bool, StoreError> {
    let Ok(last) = Team::read(last) else { return Ok(false) };
    match created_at(now) {
        Some(created) => Ok(last.created_at() == Some(created)),
        None => {
            let seen_in = state.read(LAST_FOLDER)?.map(|contents| contents.bytes);
            Ok(seen_in.is_some() && seen_in == folder_mark(folder)?)
        }
    }
}

/// Returns the text that identifies a team folder, or `None` if the folder no longer exists.
pub(crate) fn folder_mark(folder: &Dir) -> Result<Option<Vec<u8>>, StoreError> {
    let id = LockId::find(folder, ".")?;
    Ok(id.map(|LockId { inode, born }| format!("{inode} {born}").into_bytes()))
}

/// Returns the creation time in a `config.json` that may be torn.
pub(crate) fn created_at(config: &[u8]) -> Option<u64> {
    if let Ok(team) = Team::read(config) {
        return team.created_at();
    }
    // A quotation mark inside a JSON string is escaped, so this text is a key.
    let key = b"\"createdAt\"";
    let at = config.windows(key.len()).position(|window| window == key)?;
    let rest = config.get(at + key.len()..)?.trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creation_time_is_found_in_a_torn_roster() {
        for (config, created) in [
            ("", None),
            ("{\"name\":\"demo\",\"createdAt\"", None),
            ("{\"name\":\"demo\",\"createdAt\":17", None),
            ("{\"name\":\"demo\",\"createdAt\" : 17,\"mem", Some(17)),
            ("{\"name\":\"demo\",\"description\":\"\\\"createdAt\\\": 5,", None),
        ] {
            assert_eq!(created_at(config.as_bytes()), created, "{config}");
        }
    }
}
