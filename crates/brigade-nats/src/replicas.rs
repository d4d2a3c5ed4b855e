//! Waits until every replica of a stream is complete.

use std::collections::BTreeMap;
use std::time::Instant;

use brigade_core::store::StoreError;

use crate::engine::Engine;
use crate::measures::LONG;
use crate::read::Which;

impl Engine {
    /// Waits until every server that holds a replica has all messages of the stream.
    ///
    /// The leader's report is not enough: it counts a replica as current once that has received the start of a
    /// snapshot, while the replica may still be fetching the rest. Instead, create consumers until one was placed
    /// on each server, and compare how many messages each of them has to deliver.
    pub(crate) async fn on_every_server(&self, stream: &str) -> Result<(), StoreError> {
        let doing = format!("wait until every server has all of {stream}");
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        let mut moved = Instant::now();
        loop {
            let Some(info) = self.info(stream).await? else { return Ok(()) };
            if info.servers().count() < 2 {
                // A single server has nothing to wait for.
                return Ok(());
            }
            let has_all = |server: &str| counted.get(server) >= Some(&info.state.messages);
            let Some(behind) = info.servers().find(|server| !has_all(server)) else {
                return Ok(());
            };
            let behind = format!("{behind} does not have all messages yet");
            let made = self.reader(stream, ">", Which::From(1), 1, &doing).await?;
            let found = made.as_ref().and_then(|made| Some((made.server()?, made.num_pending)));
            let is_news = found.is_some_and(|(server, count)| {
                counted.insert(server.to_owned(), count) != Some(count)
            });
            if let Some(made) = &made {
                self.forget(stream, made).await;
            }
            if is_news {
                moved = Instant::now();
            } else {
                self.pause(moved, LONG, &behind, &doing).await?;
            }
        }
    }
}
