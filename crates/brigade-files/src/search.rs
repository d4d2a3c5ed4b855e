//! Searches for texts in all journals of a team.

#[cfg(test)]
mod tests;

use brigade_wire::name::TeamName;

use super::deleted_records::DeletedHistory;
use super::dir::{Dir, is_read_only};
use super::layout::SEARCH_INDEX;
use super::searched_journals::{SearchedJournals, read_from};
use super::sqlite_file::IndexError;
use super::text_index::{TAIL, TextIndex};
use super::{FileStore, watch};
use brigade_core::store::{ReportIndexing, SearchQuery, SearchResults, StoreError};

impl FileStore {
    pub(super) fn search_texts(
        &self,
        team: &TeamName,
        query: &SearchQuery,
        report: ReportIndexing<'_>,
    ) -> Result<SearchResults, StoreError> {
        // Other programs may have written messages and tasks that no journal contains yet.
        let recorded = match self.team_dir(team) {
            Ok(_) => watch::record_changes(self, team),
            Err(StoreError::NoTeam { .. }) => self.record_missed_deletion(team),
            Err(error) => Err(error),
        };
        match recorded {
            Err(error) if !is_read_only(&error) => return Err(error),
            _ => {}
        }
        let Some(team_state) = self.existing_team_state(team)? else {
            return Ok(SearchResults::default());
        };
        let journals = SearchedJournals::list(&team_state)?;
        if journals.total_len()? <= TAIL && team_state.dir.stamp(SEARCH_INDEX)?.is_none() {
            // A short history needs no index.
            return read_all(&team_state.dir, &journals, query);
        }
        match TextIndex::search(&team_state.dir, &journals, query, report) {
            Ok(found) => Ok(found),
            Err(error) => {
                tracing::warn!(%team, %error, "cannot use the index of texts");
                let found = read_all(&team_state.dir, &journals, query)?;
                Ok(with_index_error(found, &error))
            }
        }
    }
}

fn with_index_error(mut found: SearchResults, error: &IndexError) -> SearchResults {
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    found.index_error = Some(format!("{error}{}", source.unwrap_or_default()));
    found
}

/// Searches without an index.
fn read_all(
    team: &Dir,
    journals: &SearchedJournals<'_>,
    query: &SearchQuery,
) -> Result<SearchResults, StoreError> {
    let deleted = DeletedHistory::read(team)?;
    let (mut hits, mut unreadable) = (Vec::new(), 0);
    for name in &journals.names {
        let from = deleted.range(name, &*journals.journal(name)?)?.upto;
        unreadable += read_from(journals, name, from, query, &mut hits)?;
    }
    let mut found = SearchResults::newest(hits, query.limit);
    found.unreadable = unreadable;
    Ok(found)
}
