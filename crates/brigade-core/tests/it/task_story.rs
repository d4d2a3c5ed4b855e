//! The story of a task.

use std::time::Duration;

use brigade_core::board::{self, TaskPlan};
use brigade_core::event::{Event, TurnOutcome, WorkEvent};
use brigade_core::seat::Seat;
use brigade_core::task_story;
use brigade_testkit::files::in_memory;

async fn work(seat: &Seat, act: WorkEvent) {
    let event = Event::Worked { name: seat.name.to_string(), act };
    seat.store.record(&seat.team, event, &seat.actor()).await.unwrap();
}

/// One turn of an agent that reports the totals of its conversation.
async fn turn(seat: &Seat, input: u64, output: u64, cost: f64) {
    work(seat, WorkEvent::TurnStarted {}).await;
    work(seat, WorkEvent::Used { input, output, cost: Some(cost) }).await;
    work(seat, WorkEvent::TurnEnded { end: TurnOutcome::Done, why: None }).await;
    // A turn that ends in the millisecond of the claim would count as well.
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[test]
fn only_the_turns_of_the_owner_during_the_task_count() {
    in_memory(async |env| {
        let (lead, alice, bob) = (env.seat("team-lead"), env.seat("alice"), env.seat("bob"));
        let id = board::add(&lead, &TaskPlan::new("paint")).await.unwrap();
        turn(&bob, 1000, 100, 0.5).await;
        board::claim(&bob, id).await.unwrap();
        turn(&bob, 1500, 120, 0.75).await;
        turn(&alice, 9000, 900, 9.0).await;
        // A new conversation begins with lower totals.
        turn(&bob, 200, 10, 0.25).await;
        board::done(&bob, id).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        turn(&bob, 5000, 500, 5.0).await;
        let story = task_story::read(&lead, id).await.unwrap();
        assert_eq!(story.turns.len(), 2, "{story:?}");
        assert_eq!(story.tokens(), (700, 30));
        assert_eq!(story.cost(), Some(0.5));
        let steps: Vec<&str> = story.history.iter().map(|step| step.change.as_str()).collect();
        assert_eq!(steps, ["added", "claimed by bob", "completed"]);
    });
}
