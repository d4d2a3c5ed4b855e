//! The journals that a search goes through.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::index::TEAM;
use super::journal::{self, Journal};
use super::layout::{MAIL, TEAM_JOURNAL, WORK};
use super::team_state::TeamStateDir;
use brigade_core::store::{RecordPlace, SearchHit, SearchQuery, StoreError};

/// How many journals stay open at most. A team may have more members than a process may have open files.
const OPEN_JOURNALS: usize = 64;

/// The journals of a team that existed when the search began.
pub(crate) struct SearchedJournals<'t> {
    team_state: &'t TeamStateDir,
    /// The names in the index: `team`, `mail/bob`, `work/bob`.
    pub(crate) names: Vec<String>,
    open: RefCell<HashMap<String, Rc<Journal>>>,
}

impl<'t> SearchedJournals<'t> {
    /// Lists the journals that exist.
    pub(crate) fn list(team_state: &'t TeamStateDir) -> Result<Self, StoreError> {
        let mut names = vec![TEAM.to_owned()];
        let [mail, work] = team_state.member_journal_folders();
        for (folder, dir) in [(MAIL, mail), (WORK, work)] {
            let files = journal::names(dir)?;
            let members = files.iter().filter_map(|file| file.strip_suffix(".jsonl"));
            names.extend(members.map(|member| format!("{folder}/{member}")));
        }
        Ok(Self { team_state, names, open: RefCell::default() })
    }

    /// Returns the length of all journals.
    pub(crate) fn total_len(&self) -> Result<u64, StoreError> {
        self.names.iter().try_fold(0, |sum, name| Ok(sum + self.journal(name)?.len()?))
    }

    /// Opens a journal.
    pub(crate) fn journal(&self, name: &str) -> Result<Rc<Journal>, StoreError> {
        if let Some(journal) = self.open.borrow().get(name) {
            return Ok(Rc::clone(journal));
        }
        let [mail, work] = self.team_state.member_journal_folders();
        let journal = match name.split_once('/') {
            Some((MAIL, member)) => Journal::open(mail, &format!("{member}.jsonl"))?,
            Some((_, member)) => Journal::open(work, &format!("{member}.jsonl"))?,
            None => Journal::open(&self.team_state.dir, TEAM_JOURNAL)?,
        };
        let journal = Rc::new(journal);
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_JOURNALS {
            open.clear();
        }
        open.insert(name.to_owned(), Rc::clone(&journal));
        Ok(journal)
    }
}

/// Adds the records of a journal from an offset on that the query selects. Returns the number of lines that are not records.
pub(crate) fn read_from(
    journals: &SearchedJournals<'_>,
    name: &str,
    from: u64,
    query: &SearchQuery,
    hits: &mut Vec<SearchHit>,
) -> Result<u64, StoreError> {
    let mut unreadable = 0;
    journals.journal(name)?.scan_lines(from, |offset, record| {
        match record {
            Some(record) if query.matches(&record) => {
                let place = Some(RecordPlace { journal: name.to_owned(), offset });
                hits.push(SearchHit { record, place });
            }
            Some(_) => {}
            None => unreadable += 1,
        }
        ControlFlow::Continue(())
    })?;
    Ok(unreadable)
}
