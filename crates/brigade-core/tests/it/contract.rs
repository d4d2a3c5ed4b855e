//! Runs the store contract tests against each store.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_core::store::file::{Durability, FileStore};
use brigade_core::store::memory::MemoryStore;
use brigade_testkit::house::clock;
use tempfile::TempDir;

use crate::options;

fn file_store(durability: Durability) -> (Arc<dyn Store>, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let options = options(&home).with_durability(durability);
    (Arc::new(FileStore::new(options, clock())), home)
}

mod memory {
    use super::*;

    brigade_testkit::contract_tests!({
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock()));
        (store, ())
    });
}

mod file {
    use super::*;

    brigade_testkit::contract_tests!(file_store(Durability::Process));
}

mod file_power_safe {
    use super::*;

    brigade_testkit::contract_tests!(file_store(Durability::Power));
}
