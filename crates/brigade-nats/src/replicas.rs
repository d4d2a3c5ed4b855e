//! Waits until every replica of a stream is complete.

use std::collections::BTreeMap;
use std::time::Instant;

use brigade_core::store::StoreError;

use crate::connection::NatsConnection;
use crate::read::ReadRange;
use crate::stream_metrics::LONG_TIMEOUT;

impl NatsConnection {
    /// Waits until every server that holds a replica has all messages of the stream.
    ///
    /// The stream leader's report is not enough: the leader reports a replica as current as soon as the replica
    /// has received the start of a snapshot, although the rest may be missing. Instead, this function creates
    /// consumers until each server has run a consumer, and checks that each would deliver all messages.
    pub(crate) async fn wait_for_replicas(&self, stream: &str) -> Result<(), StoreError> {
        let doing = format!("wait until every server has all messages of {stream}");
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        let mut last_progress = Instant::now();
        loop {
            let Some(info) = self.info(stream).await? else { return Ok(()) };
            if info.servers().count() < 2 {
                // There is only one server, so it has all messages.
                return Ok(());
            }
            let has_all = |server: &str| counted.get(server) >= Some(&info.state.messages);
            let Some(behind) = info.servers().find(|server| !has_all(server)) else {
                return Ok(());
            };
            let behind = format!("{behind} does not have all messages yet");
            let consumer = self.create_consumer(stream, ">", ReadRange::From(1), 1, &doing).await?;
            let found = consumer
                .as_ref()
                .and_then(|consumer| Some((consumer.server()?, consumer.num_pending)));
            let changed = found.is_some_and(|(server, count)| {
                counted.insert(server.to_owned(), count) != Some(count)
            });
            if let Some(consumer) = &consumer {
                self.delete_consumer(stream, consumer).await;
            }
            if changed {
                last_progress = Instant::now();
            } else {
                self.wait_before_retry(last_progress, LONG_TIMEOUT, &behind, &doing).await?;
            }
        }
    }
}
