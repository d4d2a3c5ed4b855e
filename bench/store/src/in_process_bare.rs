//! Runs the same load on the bare store. The numbers of async tasks, sends, marks, claims and completions are the
//! same, but no message is delivered to a member.

use std::sync::Arc;

use brigade_core::board;
use brigade_core::mail::{self, InboxFilter};
use brigade_core::seat::Seat;
use brigade_core::store::Mark;
use serde_json::json;
use tokio::sync::Barrier;

use crate::children::print_line;
use crate::in_process::{CpuTime, Workload, block_on, create_team, fill_board, join, memory, name};
use crate::temp_team::TeamDirs;

/// Runs the load. Each member marks its unread messages as shown after every `batch` messages that it sends.
pub(crate) fn run(dirs: &TeamDirs, load: Workload, batch: usize) {
    let (turns, (took, processor)) = block_on(async {
        let lead = create_team(dirs).await;
        let mut seats = Vec::new();
        for number in 0..load.members {
            seats.push(join(&lead, number).await);
        }
        let ids = Arc::new(fill_board(&lead, load).await);
        let began = CpuTime::now();
        let all = Arc::new(Barrier::new(load.members));
        let members = seats.into_iter().enumerate().map(|(number, seat)| {
            let (ids, all) = (Arc::clone(&ids), Arc::clone(&all));
            tokio::spawn(async move {
                let mut turns = 0;
                let share = load.messages / load.members;
                for sent in 0..share {
                    let to = name((number + 1 + sent % (load.members - 1)) % load.members);
                    let text = format!("{:.<300}", format!("#{sent}# "));
                    mail::send(&seat, &to, text.as_str()).await.unwrap();
                    tokio::task::yield_now().await;
                    if sent % batch == batch - 1 {
                        turns += mark(&seat).await;
                    }
                }
                all.wait().await;
                turns += mark(&seat).await;
                for layer in ids.chunks(load.members) {
                    if let Some(&id) = layer.get(number) {
                        board::claim(&seat, id).await.unwrap();
                        board::done(&seat, id).await.unwrap();
                    }
                    all.wait().await;
                }
                turns
            })
        });
        let members: Vec<_> = members.collect();
        let mut turns = 0;
        for member in members {
            turns += member.await.unwrap();
        }
        (turns, began.since())
    });
    let sent = load.messages / load.members * load.members;
    let most = memory("VmHWM:");
    let found = json!({
        "took": took, "processor": processor, "sent": sent, "turns": turns, "most": most,
    });
    print_line(&found.to_string());
}

/// Marks the unread messages of a member as shown. Returns the number of store operations: 0 or 1.
async fn mark(seat: &Seat) -> usize {
    let new = mail::inbox(seat, &seat.name, InboxFilter::Unread).await.unwrap();
    let keys: Vec<_> = new.iter().map(|mail| mail.key).collect();
    if keys.is_empty() {
        return 0;
    }
    mail::mark(seat, &keys, Mark::Shown).await.unwrap();
    1
}
