//! Measures how much work the operations of the store cause in the servers.

use brigade_testkit::nats_server::TestServers;
use futures_util::{StreamExt, stream};

use crate::contender::{Contender, LANES};
use crate::server::ServerWork;
use crate::store_contender::StoreContender;
use crate::{Length, block_on};

/// The number of concurrent sends.
const IN_FLIGHT: usize = 64;

/// Measures sends, receives, added tasks and claims on a cluster of `nodes` servers.
pub(crate) fn run(nodes: usize, length: Length) {
    let servers = TestServers::cluster(nodes);
    let sends = length.pick(2_000, 20_000);
    let each = length.pick(40, 1_000);
    block_on(async {
        let store = StoreContender::connect(&servers.urls).await;
        for lane in 0..LANES {
            store.receive(lane, 0).await;
        }
        let print = |name: &str, work: &ServerWork<'_>, count: usize| {
            let line = work.end().per_operation(count as f64);
            println!("{nodes} nodes, {name}: {line}");
        };

        let work = ServerWork::begin(&servers, nodes);
        let all = stream::iter(0..sends).map(|number| store.send(number % LANES, number));
        all.buffer_unordered(IN_FLIGHT).for_each(async |()| ()).await;
        print("a send", &work, sends);

        let work = ServerWork::begin(&servers, nodes);
        let lanes = stream::iter(0..LANES).map(async |lane| {
            for number in 0..each {
                store.receive(lane, number).await;
            }
        });
        lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
        print("a receive: send, wake, read, mark", &work, each * LANES);

        let work = ServerWork::begin(&servers, nodes);
        let lanes = stream::iter(0..LANES).map(|lane| store.add_tasks(lane, 0, each));
        lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
        print("an added task", &work, each * LANES);

        let work = ServerWork::begin(&servers, nodes);
        let lanes = stream::iter(0..LANES).map(async |lane| {
            for number in 0..each {
                store.claim(lane, number).await;
            }
        });
        lanes.buffer_unordered(LANES).for_each(async |()| ()).await;
        print("a claim", &work, each * LANES);
    });
}
