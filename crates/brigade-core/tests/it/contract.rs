//! Runs the contract tests for stores on the in-memory store.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::env::clock;

brigade_testkit::contract_tests!({
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock()));
    (store, ())
});
