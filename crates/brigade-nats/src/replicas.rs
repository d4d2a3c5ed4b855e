//! Whether what is in a stream is on every server it stands on.

use std::collections::BTreeMap;
use std::time::Instant;

use brigade_core::store::StoreError;

use crate::engine::Engine;
use crate::measures::LONG;
use crate::read::Which;

impl Engine {
    /// Waits until each server a stream stands on has all that is in it.
    ///
    /// The leader does not tell: to it a server is up to date as soon as that has heard of a snapshot,
    /// and it may still be fetching it. So it is counted where it is read. The servers put a reader on
    /// any of them and say on which, and how much there is to read.
    pub(crate) async fn on_every_server(&self, stream: &str) -> Result<(), StoreError> {
        let doing = format!("wait until every server has all of {stream}");
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        let mut moved = Instant::now();
        loop {
            let Some(info) = self.info(stream).await? else { return Ok(()) };
            if info.servers().count() < 2 {
                // One that is alone has answered by itself.
                return Ok(());
            }
            let has_all = |server: &str| counted.get(server) >= Some(&info.state.messages);
            let Some(behind) = info.servers().find(|server| !has_all(server)) else {
                return Ok(());
            };
            let behind = format!("{behind} has not got all of it");
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
