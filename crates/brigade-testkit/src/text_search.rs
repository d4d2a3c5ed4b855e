//! Contract tests for stores: searches for texts.

use std::sync::Arc;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, Record, RecordKind, WorkEvent};
use brigade_core::search_text::SearchText;
use brigade_core::store::{Actor, SearchQuery, Store};

use crate::env::{TestEnv, member, team};

/// A search for a text finds the same records as a look through the whole history.
pub async fn a_text_search_finds_what_the_history_contains(store: Arc<dyn Store>) {
    let env = TestEnv::build(store).await;
    env.say("alice", "bob", "please fix the Parser").await;
    env.say("bob", "alice", "the parser is fixed; 解析器").await;
    let lead = env.seat("team-lead");
    let task = board::add(&lead, &TaskPlan::new("Release the parser")).await.unwrap();
    board::claim(&env.seat("bob"), task).await.unwrap();
    for act in [
        WorkEvent::Said { text: "I parse src/parser.rs".into() },
        WorkEvent::Changed { path: "src/parser.rs".into(), added: 3, removed: 1, diff: None },
    ] {
        let event = Event::Worked { name: "bob".into(), act };
        env.store.record(&team(), event, &Actor("bob".into())).await.unwrap();
    }
    for text in ["parse", "\"parse\"", "fix", "the parser", "src/parser.rs", "解析", "lexer"] {
        let query = SearchQuery::new(SearchText::parse(text).unwrap());
        let queries = [
            SearchQuery { members: vec![member("bob")], ..query.clone() },
            SearchQuery { kinds: vec![RecordKind::Task, RecordKind::Work], ..query.clone() },
            SearchQuery { limit: Some(2), ..query.clone() },
            query,
        ];
        for query in queries {
            check_text_search(&env, &query).await;
        }
    }
    let teams = env.store.recorded_teams().await.unwrap();
    assert_eq!(teams, [team()]);
}

/// Compares the result of a search with a look through the whole history.
pub async fn check_text_search(env: &TestEnv, query: &SearchQuery) {
    let found = env.store.search(&team(), query, &|_| ()).await.unwrap();
    assert_eq!(found.index_error, None);
    let history = env.store.history(&team()).await.unwrap();
    let mut expected: Vec<&Record> =
        history.iter().filter(|record| query.matches(record)).collect();
    expected.sort_by_key(|record| std::cmp::Reverse(record.at));
    expected.truncate(query.limit.unwrap_or(usize::MAX));
    let times = |records: &[&Record]| records.iter().map(|record| record.at).collect::<Vec<_>>();
    let found: Vec<&Record> = found.hits.iter().map(|hit| &hit.record).collect();
    assert_eq!(times(&found), times(&expected), "{query:?}");
    assert!(found.iter().all(|record| query.matches(record)), "{query:?}");
}
