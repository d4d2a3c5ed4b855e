//! A search finds exactly what a look through all records finds: in random histories, after records were deleted, and after the
//! index was deleted, damaged or left unfinished.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use brigade_core::event::{Event, Record, UncheckedRecord, WorkEvent, one_line};
use brigade_core::search_text::SearchText;
use brigade_core::store::{EventLog as _, IndexingProgress, RecordPlace, SearchHit};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::FileStoreOptions;
use crate::deleted_records::{DeletedHistory, DeletedRange};

const JOURNALS: [&str; 4] = ["team", "mail/alice", "mail/bob", "work/bob"];

/// Texts with few different words, so that queries find something.
const TEXTS: [&str; 8] = [
    "fix the parser",
    "the Parser is fixed",
    "reparse src/parser.rs and src/lexer.rs",
    "修复解析器的错误",
    "foo_bar İstanbul GRÖSSE Größe",
    "",
    "done 🎉 -- parse (all) * \"quoted\"",
    "a a ba a",
];

const QUERIES: [&str; 12] = [
    "parse",
    "\"parse\"",
    "the parser",
    "\"the parser\"",
    "src/parser.rs",
    "解析",
    "器 错",
    "größe",
    "foo_b",
    "🎉",
    "a",
    "\"a a\" ba",
];

/// A change of the history or of the index.
#[derive(Clone, Debug)]
enum Change {
    /// Adds this many records with these texts to a journal. The clock moves by this many seconds before each.
    Add {
        journal: usize,
        text: usize,
        count: usize,
        step: i64,
    },
    /// Adds a line that is not a record.
    AddTorn {
        journal: usize,
    },
    /// Deletes the first records of a journal, up to this part of it in percent. The process may die after a step.
    DeleteOld {
        journal: usize,
        percent: u64,
        steps: usize,
    },
    /// Deletes a journal of work or mail.
    DeleteJournal {
        journal: usize,
    },
    /// Loses the end of a journal.
    Truncate {
        journal: usize,
        percent: u64,
    },
    DeleteIndex,
    DamageIndex {
        offset: u64,
    },
    /// Begins to build the index, and dies after this many transactions.
    BuildPart {
        transactions: u64,
    },
    Search {
        text: usize,
        limit: Option<usize>,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let journal = || 0..JOURNALS.len();
    let search = (0..QUERIES.len(), proptest::option::of(1..8_usize))
        .prop_map(|(text, limit)| Change::Search { text, limit });
    prop_oneof![
        6 => (journal(), 0..TEXTS.len(), 1..30_usize, select(vec![0, 1, 1, 60, -90]))
            .prop_map(|(journal, text, count, step)| Change::Add { journal, text, count, step }),
        1 => journal().prop_map(|journal| Change::AddTorn { journal }),
        1 => (1..JOURNALS.len(), 1..100_u64, 1..4_usize)
            .prop_map(|(journal, percent, steps)| Change::DeleteOld { journal, percent, steps }),
        1 => (1..JOURNALS.len()).prop_map(|journal| Change::DeleteJournal { journal }),
        1 => (journal(), 1..100_u64).prop_map(|(journal, percent)| Change::Truncate { journal, percent }),
        1 => Just(Change::DeleteIndex),
        1 => (0..20_000_u64).prop_map(|offset| Change::DamageIndex { offset }),
        1 => (0..4_u64).prop_map(|transactions| Change::BuildPart { transactions }),
        6 => search,
    ]
}

/// A team with a history.
struct Fixture {
    _home: tempfile::TempDir,
    store: FileStore,
    team: TeamName,
    folder: PathBuf,
    now: Timestamp,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = FileStoreOptions::new(home.path().join("claude"), home.path().join("state"));
        let store = FileStore::open(options);
        let team: TeamName = "demo".parse().unwrap();
        drop(store.team_state(&team).unwrap());
        let folder = store.team_states_path.join("demo");
        let now = "2026-11-18T12:00:00Z".parse().unwrap();
        Self { _home: home, store, team, folder, now }
    }

    fn path(&self, journal: usize) -> PathBuf {
        self.folder.join(format!("{}.jsonl", JOURNALS[journal]))
    }

    fn append(&self, journal: usize, line: &[u8]) {
        let mut file =
            OpenOptions::new().append(true).create(true).open(self.path(journal)).unwrap();
        file.write_all(&[b"\n", line, b"\n"].concat()).unwrap();
    }

    fn apply(&mut self, change: &Change) {
        match *change {
            Change::Add { journal, text, count, step } => {
                for number in 0..count {
                    self.now = self.now.saturating_add(SignedDuration::from_secs(step)).unwrap();
                    let text = format!("{} {}", TEXTS[(text + number) % TEXTS.len()], number % 3);
                    let record = record(JOURNALS[journal], &text, self.now);
                    self.append(journal, &serde_json::to_vec(&record).unwrap());
                }
            }
            Change::AddTorn { journal } => {
                self.append(
                    journal,
                    br#"{"at":"2026-11-18T12:00:00Z","event":{"sent":{"to":"parse"#,
                );
            }
            Change::DeleteOld { journal, percent, steps } => {
                self.delete_old(journal, percent, steps);
            }
            Change::DeleteJournal { journal } => {
                let _may_be_missing = std::fs::remove_file(self.path(journal));
            }
            Change::Truncate { journal, percent } => {
                let Ok(bytes) = std::fs::read(self.path(journal)) else { return };
                let len = bytes.len() as u64 * percent / 100;
                OpenOptions::new()
                    .write(true)
                    .open(self.path(journal))
                    .unwrap()
                    .set_len(len)
                    .unwrap();
            }
            Change::DeleteIndex => {
                let _may_be_missing = std::fs::remove_file(self.folder.join(SEARCH_INDEX));
            }
            Change::DamageIndex { offset } => self.damage_index(offset),
            Change::BuildPart { transactions } => self.build_part(transactions),
            Change::Search { text, limit } => self.check(QUERIES[text], limit),
        }
    }

    /// Does the steps with which retention deletes records.
    fn delete_old(&self, journal: usize, percent: u64, steps: usize) {
        let name = JOURNALS[journal];
        if !self.path(journal).exists() {
            return;
        }
        let team_state = self.store.existing_team_state(&self.team).unwrap().unwrap();
        let journals = SearchedJournals::list(&team_state).unwrap();
        let opened = journals.journal(name).unwrap();
        let mut history = DeletedHistory::read(&team_state.dir).unwrap();
        let before = history.range(name, &opened).unwrap();
        let end = opened.line_after(opened.len().unwrap() * percent / 100).unwrap();
        let mut upto = before.upto;
        opened
            .scan_lines(before.upto, |offset, _| {
                if offset < end {
                    // The line break before a record that stays also stays.
                    upto = offset.saturating_sub(1);
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(())
            })
            .unwrap();
        let range = DeletedRange { upto: upto.max(before.upto), ..before };
        history.set_range(name, &opened, range).unwrap();
        history.write(&team_state.dir).unwrap();
        if steps > 1 {
            TextIndex::forget(&team_state.dir, name, &opened, &range).unwrap();
        }
        if steps > 2 && range.upto > 0 {
            opened.punch(0, range.upto).unwrap();
            self.check_forgotten(name, range.upto);
        }
    }

    /// Checks that no block of the index contains deleted records.
    fn check_forgotten(&self, name: &str, upto: u64) {
        let path = self.folder.join(SEARCH_INDEX);
        if !path.exists() {
            return;
        }
        let db = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT count(*) FROM block JOIN journal ON journal.id = block.journal
            WHERE journal.name = ?1 AND block.start < ?2";
        let count = db.query_row(sql, (name, upto.cast_signed()), |row| row.get::<_, i64>(0));
        assert_eq!(count.unwrap_or(0), 0, "blocks of {name} before {upto}");
    }

    fn damage_index(&self, offset: u64) {
        let path = self.folder.join(SEARCH_INDEX);
        let Ok(mut bytes) = std::fs::read(&path) else { return };
        let at = usize::try_from(offset).unwrap();
        if at < 100 {
            bytes.truncate(at);
        } else if let Some(page) = bytes.get_mut(at..) {
            // Damage that SQLite notices: all of the rest.
            page.fill(0xff);
        }
        std::fs::write(&path, bytes).unwrap();
    }

    /// Fails in the progress report, as a process that dies between two transactions.
    fn build_part(&self, transactions: u64) {
        let left = std::sync::atomic::AtomicU64::new(transactions);
        let die = |_: IndexingProgress| {
            let before = left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            assert!(before > 0, "dies here");
        };
        let query = SearchQuery::new(SearchText::parse("x").unwrap());
        let store = Arc::new(&self.store);
        let searched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.search_texts(&self.team, &query, &die)
        }));
        drop(searched);
    }

    fn check(&self, text: &str, limit: Option<usize>) {
        let text = SearchText::parse(text).unwrap();
        let query = SearchQuery { limit, ..SearchQuery::new(text) };
        let found = self.store.search_texts(&self.team, &query, &|_| ()).unwrap();
        assert_eq!(found.index_error, None);
        let team_state = self.store.existing_team_state(&self.team).unwrap().unwrap();
        let deleted = DeletedHistory::read(&team_state.dir).unwrap();
        let journals = SearchedJournals::list(&team_state).unwrap();
        let (mut expected, mut unreadable) = (Vec::new(), 0);
        for name in &journals.names {
            let journal = journals.journal(name).unwrap();
            let upto = deleted.range(name, &journal).unwrap().upto;
            journal
                .scan_lines(upto, |offset, record| {
                    match record {
                        Some(record) if query.matches(&record) => {
                            let place = Some(RecordPlace { journal: name.clone(), offset });
                            expected.push(SearchHit { record, place });
                        }
                        Some(_) => {}
                        None => unreadable += 1,
                    }
                    ControlFlow::Continue(())
                })
                .unwrap();
        }
        let expected = SearchResults::newest(expected, limit);
        let key =
            |hit: &SearchHit| (hit.place.clone(), serde_json::to_string(&hit.record).unwrap());
        let keys = |hits: &[SearchHit]| hits.iter().map(key).collect::<Vec<_>>();
        assert_eq!(keys(&found.hits), keys(&expected.hits), "{query:?}");
        assert_eq!(found.unreadable, unreadable, "lines that are not records");
    }
}

fn record(journal: &str, text: &str, at: Timestamp) -> Record {
    let event = match journal.split_once('/') {
        Some(("mail", to)) => {
            let message = serde_json::json!({ "from": "alice", "text": text, "timestamp": at, "read": false });
            let key = brigade_core::event::MessageKey::from_id(&format!("{at}"));
            let message = one_line(message.to_string().as_bytes());
            Event::Seen { to: to.to_owned(), key, message }
        }
        Some((_, name)) => {
            Event::Worked { name: name.to_owned(), act: WorkEvent::Said { text: text.to_owned() } }
        }
        None => {
            let task = serde_json::json!({ "id": "1", "subject": text, "description": "", "status": "pending" });
            Event::Task { id: 1, task: one_line(task.to_string().as_bytes()) }
        }
    };
    UncheckedRecord { at, by: Some("bob".to_owned()), event }.from_local_file()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_scan_finds(changes in proptest::collection::vec(change(), 1..24)) {
        let mut fixture = Fixture::new();
        for change in &changes {
            fixture.apply(change);
        }
        for text in QUERIES {
            fixture.check(text, None);
            fixture.check(text, Some(3));
        }
    }
}

#[test]
fn two_searches_at_once_find_the_same() {
    let mut fixture = Fixture::new();
    for journal in 0..JOURNALS.len() {
        fixture.apply(&Change::Add { journal, text: 0, count: 400, step: 1 });
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fixture.check("parser", None));
        }
    });
}

#[test]
fn deleted_records_are_also_removed_from_a_damaged_index() {
    let mut fixture = Fixture::new();
    fixture.apply(&Change::Add { journal: 1, text: 0, count: 200, step: 1 });
    fixture.check("parser", None);
    fixture.damage_index(4096);
    fixture.delete_old(1, 50, 3);
    fixture.check("parser", None);
}

#[test]
fn deleted_words_are_not_in_the_file_of_the_index() {
    let mut fixture = Fixture::new();
    let path = fixture.folder.join(SEARCH_INDEX);
    let contains = |word: &[u8]| {
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(word.len()).any(|window| window == word)
    };
    let secret = record(JOURNALS[1], "the password is swordfish", fixture.now);
    fixture.append(1, &serde_json::to_vec(&secret).unwrap());
    fixture.apply(&Change::Add { journal: 1, text: 0, count: 200, step: 1 });
    fixture.check("swordfish", None);
    assert!(contains(b"swordfish"));
    fixture.delete_old(1, 10, 3);
    fixture.check("swordfish", None);
    assert!(!contains(b"swordfish"));
}

#[tokio::test]
async fn a_search_reads_the_records_if_there_can_be_no_index() {
    let mut fixture = Fixture::new();
    fixture.apply(&Change::Add { journal: 1, text: 0, count: 100, step: 1 });
    std::fs::create_dir(fixture.folder.join(SEARCH_INDEX)).unwrap();
    let query = SearchQuery::new(SearchText::parse("parser").unwrap());
    let found = fixture.store.search(&fixture.team, &query, &|_| ()).await.unwrap();
    assert!(!found.hits.is_empty());
    assert!(found.index_error.is_some());
}
