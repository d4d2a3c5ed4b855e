//! The contract of a store, kept on one server and on three.

use std::sync::Arc;

use brigade_core::store::Store;
use brigade_nats::{NatsStore, Options};
use brigade_testkit::nats_server::Engine;
use tokio::runtime::Runtime;

/// A store on servers of its own. The connection lives in a runtime that outlives the test's.
fn store(engine: Engine) -> (Arc<dyn Store>, (Runtime, Engine)) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let options = Options { servers: engine.urls.clone(), ..Options::default() };
    let store = runtime.block_on(NatsStore::connect(options)).unwrap();
    (Arc::new(store), (runtime, engine))
}

mod one_node {
    use super::*;

    brigade_testkit::contract_tests!(store(Engine::single()));
}

mod three_nodes {
    use super::*;

    brigade_testkit::contract_tests!(store(Engine::cluster(3)));
}
