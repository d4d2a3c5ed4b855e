//! Runs the store contract tests on one server and on a cluster of three servers.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::nats_server::TestServers;
use tokio::runtime::Runtime;

/// Connects a store to `servers`. The connection runs in its own runtime, which must outlive the test's runtime.
fn store(servers: TestServers) -> (Arc<dyn Store>, (Runtime, TestServers)) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let options = NatsOptions { servers: servers.urls.clone(), ..NatsOptions::default() };
    let store = runtime.block_on(NatsStore::connect(options)).unwrap();
    (Arc::new(store), (runtime, servers))
}

mod one_node {
    use super::*;

    brigade_testkit::contract_tests!(store(TestServers::single()), NatsServer);
}

mod three_nodes {
    use super::*;

    brigade_testkit::contract_tests!(store(TestServers::cluster(3)), NatsServer);
}
