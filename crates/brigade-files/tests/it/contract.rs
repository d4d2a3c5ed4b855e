//! Checks the file store with the tests that every store must pass.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_files::{Durability, FileStore};
use brigade_testkit::env::clock;
use tempfile::TempDir;

use brigade_testkit::files::options;

fn file_store(durability: Durability) -> (Arc<dyn Store>, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let options = options(&home).with_durability(durability);
    (Arc::new(FileStore::new(options, clock())), home)
}

mod file {
    use super::*;

    brigade_testkit::contract_tests!(file_store(Durability::Process));
}

mod file_power_safe {
    use super::*;

    brigade_testkit::contract_tests!(file_store(Durability::Power));
}
