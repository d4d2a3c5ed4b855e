//! Runs the store contract tests on one server and on a cluster of three.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_nats::{NatsStore, Options};
use brigade_testkit::nats_server::Engine;
use tokio::runtime::Runtime;

/// A store on its own servers. The connection needs a runtime that outlives the test's.
fn store(servers: Engine) -> (Arc<dyn Store>, (Runtime, Engine)) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let options = Options { servers: servers.urls.clone(), ..Options::default() };
    let store = runtime.block_on(NatsStore::connect(options)).unwrap();
    (Arc::new(store), (runtime, servers))
}

mod one_node {
    use super::*;

    brigade_testkit::contract_tests!(store(Engine::single()), NatsServer);
}

mod three_nodes {
    use super::*;

    brigade_testkit::contract_tests!(store(Engine::cluster(3)), NatsServer);
}
