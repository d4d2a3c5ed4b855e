//! A member implemented with brigade-core on the file store.

use std::path::Path;
use std::sync::Arc;

use brigade_core::board::{self, BoardError, TaskPlan};
use brigade_core::event::{Event, MessageKey};
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use brigade_files::{Durability, FileStore, FileStoreOptions};

use crate::{Claim, LibraryMember, block_on, print_heard, print_line, text};

pub(crate) struct Ours {
    seat: Seat,
    reader: String,
}

impl Ours {
    pub(crate) fn new(
        root: &str,
        team: &str,
        name: &str,
        reader: &str,
        durability: Durability,
    ) -> Self {
        let root = Path::new(root);
        let options = FileStoreOptions::new(root.join("claude"), root.join("state/brigade"))
            .with_durability(durability);
        let store = Arc::new(FileStore::open(options));
        let seat = Seat::new(store, team.parse().unwrap(), name.parse().unwrap());
        Self { seat, reader: reader.to_owned() }
    }
}

impl LibraryMember for Ours {
    fn send(&self, number: usize) -> Result<(), String> {
        let text = text(self.seat.name.as_str(), number);
        block_on(mail::send(&self.seat, &self.reader, text.as_str()))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn read(&self) -> usize {
        block_on(mail::inbox(&self.seat, &self.seat.name, InboxFilter::Unread)).unwrap().len()
    }

    fn mark(&self) -> usize {
        let unread =
            block_on(mail::inbox(&self.seat, &self.seat.name, InboxFilter::Unread)).unwrap();
        let keys: Vec<MessageKey> = unread.iter().map(|mail| mail.key).collect();
        block_on(mail::mark(&self.seat, &keys, Mark::Read)).unwrap();
        keys.len()
    }

    fn add(&self, number: usize) -> String {
        let plan = TaskPlan {
            subject: format!("task {number}"),
            description: text("task", number),
            ..TaskPlan::default()
        };
        block_on(board::add(&self.seat, &plan)).unwrap().to_string()
    }

    fn claim(&self, id: &str) -> Claim {
        match block_on(board::claim(&self.seat, id.parse().unwrap())) {
            Ok(()) => Claim::Got,
            Err(BoardError::Taken { .. }) => Claim::Taken,
            Err(error) => Claim::Failed(error.to_string()),
        }
    }

    fn watch(&self) {
        block_on(async {
            let mut watch = self.seat.store.watch(&self.seat.team).await.unwrap();
            print_line("ready");
            while let Some(record) = watch.next().await {
                if let Event::Sent { message, .. } = &record.event {
                    let entry: serde_json::Value = serde_json::from_str(message.get()).unwrap();
                    print_heard(entry["text"].as_str().unwrap_or_default());
                }
            }
        });
    }
}
