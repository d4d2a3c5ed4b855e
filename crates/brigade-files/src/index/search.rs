//! Searches in the index. The results are offsets in a journal, in order.

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension as _, Params, params_from_iter};

use super::IndexedJournal;
use super::add::{bits, kind_number};
use crate::deleted_records::DeletedRange;
use crate::sqlite_file::{IndexError, signed};
use brigade_core::event::MessageKey;
use brigade_core::store::{MailQuery, RequestQuery};

/// A request in the index.
#[derive(Clone, Debug)]
pub(crate) struct IndexedRequest {
    /// The position among all requests in the journal, counted from 1.
    pub(crate) position: u64,
    pub(crate) offset: u64,
    /// The name that the message gives as its sender.
    pub(crate) sender: String,
}

/// Returns the records that the query selects.
pub(crate) fn mail(
    db: &Connection,
    journal: IndexedJournal,
    query: MailQuery<'_>,
) -> Result<Vec<u64>, IndexError> {
    let keys = |table: &str, keys: &[MessageKey]| {
        let sql = format!("SELECT offset FROM {table} WHERE source = ?1 AND key = ?2");
        let mut found = Vec::new();
        for key in keys {
            found.extend(offsets(db, &sql, (journal.id, bits(*key)))?);
        }
        Ok::<_, IndexError>(found)
    };
    let mut found = match query {
        MailQuery::Messages(wanted) => keys("message", wanted)?,
        MailQuery::Shown(wanted) => keys("shown", wanted)?,
        MailQuery::Topic(kind) => {
            let sql = "SELECT offset FROM topic WHERE source = ?1 AND kind = ?2";
            offsets(db, sql, (journal.id, kind_number(kind)))?
        }
        MailQuery::About(kind, ids) => {
            let sql = "SELECT offset FROM topic WHERE source = ?1 AND kind = ?2 AND id = ?3";
            let mut found = Vec::new();
            for id in ids {
                found.extend(offsets(db, sql, (journal.id, kind_number(kind), id))?);
            }
            found
        }
    };
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the requests of the team created at `created` that the query selects, and the position of the team's first request.
pub(crate) fn requests(
    db: &Connection,
    journal: IndexedJournal,
    deleted: &DeletedRange,
    created: u64,
    query: RequestQuery<'_>,
) -> Result<(Option<u64>, Vec<IndexedRequest>), IndexError> {
    let first = db
        .prepare(FIRST_REQUEST)?
        .query_row((journal.id, signed(created)), |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(first) = deleted.first_request_of(created).map(signed).or(first) else {
        return Ok((None, Vec::new()));
    };
    let value: Box<dyn ToSql> = match query {
        RequestQuery::All | RequestQuery::Unsettled => Box::new(0),
        RequestQuery::Id(id) => Box::new(id.to_owned()),
        RequestQuery::Number(number) => {
            Box::new(i64::try_from(number).unwrap_or(i64::MAX).saturating_add(first - 1))
        }
    };
    let mut select = db.prepare(&select_requests(query))?;
    let values: [&dyn ToSql; 3] = [&journal.id, &signed(created), &value];
    let rows = select.query_map(params_from_iter(values), |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        Ok(IndexedRequest { position: number(0)?, offset: number(1)?, sender: row.get(2)? })
    })?;
    Ok((Some(first.cast_unsigned()), rows.collect::<Result<_, _>>()?))
}

/// Finds the first request of a team. The sign `+` keeps SQLite from using the index of teams: it would read all requests of the team
/// to find the first one.
const FIRST_REQUEST: &str =
    "SELECT position FROM request WHERE source = ?1 AND +team >= ?2 ORDER BY position LIMIT 1";

/// Returns the statement for a query. The values of all conditions are bound, also if a condition does not need them.
fn select_requests(query: RequestQuery<'_>) -> String {
    let (index, condition) = match query {
        RequestQuery::All => ("", "1 = 1"),
        RequestQuery::Unsettled => ("INDEXED BY request_open", "open = 1"),
        RequestQuery::Id(_) => ("INDEXED BY request_id", "id = ?3"),
        RequestQuery::Number(_) => ("", "position = ?3"),
    };
    format!(
        "SELECT position, offset, sender FROM request {index}
        WHERE source = ?1 AND +team >= ?2 AND {condition} AND ?3 = ?3 ORDER BY position"
    )
}

/// Returns the unread messages.
pub(crate) fn unread(db: &Connection, journal: IndexedJournal) -> Result<Vec<u64>, IndexError> {
    let mut found = offsets(db, "SELECT offset FROM unread WHERE source = ?1", [journal.id])?;
    found.sort_unstable();
    Ok(found)
}

/// Returns the ids among `ids` whose answers this member recorded.
pub(crate) fn answered(db: &Connection, by: &str, ids: &[&str]) -> Result<Vec<String>, IndexError> {
    let mut select = db.prepare("SELECT 1 FROM answered WHERE member = ?1 AND id = ?2")?;
    let mut found = Vec::new();
    for id in ids {
        if select.exists((by, id))? {
            found.push((*id).to_owned());
        }
    }
    Ok(found)
}

fn offsets(db: &Connection, sql: &str, values: impl Params) -> Result<Vec<u64>, IndexError> {
    let mut select = db.prepare(sql)?;
    let rows = select.query_map(values, |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::index::schema::FORMAT;

    const REQUESTS: i64 = 5_000;

    /// Returns an index with many settled requests and one open one.
    fn filled() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(FORMAT.tables).unwrap();
        let mut insert = db
            .prepare("INSERT INTO request VALUES (1, ?1, 'r' || ?1, 'bob', ?1, 7, ?1, ?1 = ?2)")
            .unwrap();
        for position in 1..=REQUESTS {
            insert.execute((position, REQUESTS / 2)).unwrap();
        }
        drop(insert);
        db
    }

    /// Returns the number of steps that SQLite takes for a statement, and the number of rows.
    fn steps(sql: &str, values: &[&dyn ToSql]) -> (i32, usize) {
        let db = filled();
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map(params_from_iter(values), |_| Ok(())).unwrap().count();
        (statement.get_status(StatementStatus::VmStep), rows)
    }

    #[test]
    fn the_cost_of_a_query_follows_its_results() {
        let (source, team): (i64, i64) = (1, 7);
        for (sql, value, expected) in [
            (FIRST_REQUEST.to_owned(), None, 1),
            (select_requests(RequestQuery::Unsettled), Some(&0 as &dyn ToSql), 1),
            (select_requests(RequestQuery::Number(3)), Some(&3), 1),
            (select_requests(RequestQuery::Id("r3")), Some(&"r3"), 1),
        ] {
            let values: Vec<&dyn ToSql> =
                [&source as &dyn ToSql, &team].into_iter().chain(value).collect();
            let (steps, rows) = steps(&sql, &values);
            assert_eq!(rows, expected, "{sql}");
            assert!(steps < 100, "{steps} steps: {sql}");
        }
    }
}
