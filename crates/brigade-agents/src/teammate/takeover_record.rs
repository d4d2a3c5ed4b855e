//! Records in the history that a person continues the session in the agent's own program, and that this has ended.
//!
//! The saved state of the member says whether the end is still to be recorded. So the process that runs the agent again records it,
//! also if the terminal or the member's earlier process was killed.

use brigade_core::event::Event;
use brigade_core::store::StoreError;

use super::{TeammateEvent, TeammateLoop};

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Records that a person has the session.
    pub(super) async fn record_takeover(&mut self) {
        self.is_taken_over = true;
        self.save().await;
        self.record_takeover_event(false).await;
    }

    /// If a person had the session, records that the agent's own program has ended. Call this before the agent is started.
    pub(super) async fn record_takeover_end(&mut self) {
        if self.is_taken_over && self.record_takeover_event(true).await {
            self.is_taken_over = false;
            self.save().await;
        }
    }

    /// Returns whether the event was recorded, or never can be.
    async fn record_takeover_event(&mut self, ended: bool) -> bool {
        let seat = self.config.seat.clone();
        let event = Event::TakenOver {
            name: seat.name.to_string(),
            program: self.config.agent.title.to_owned(),
            session: self.delivery.saved().session.clone(),
            ended,
        };
        match seat.store.record(&seat.team, event, &seat.actor()).await {
            Ok(()) | Err(StoreError::NoTeam { .. }) => true,
            Err(error) => {
                self.trouble("cannot record the takeover of the session", &error);
                false
            }
        }
    }
}
