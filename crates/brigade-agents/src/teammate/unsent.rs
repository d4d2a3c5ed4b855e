//! Requests and reports that could not be sent to the lead yet, for example because the lead's mailbox is full.

use std::collections::VecDeque;

use super::{TeammateError, TeammateEvent, TeammateLoop};
use crate::driver::{AgentAsk, PermissionAnswer, TurnEnd};
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::{self, MailError};
use brigade_core::store::StoreError;

/// How many unsent reports are kept. If there are more, the oldest is dropped.
const MAX_REPORTS: usize = 100;

/// Requests and reports that could not be sent to the lead yet.
#[derive(Debug, Default)]
pub(super) struct UnsentMail {
    /// The agent's requests, oldest first. The agent waits for their answers.
    pub(super) asks: Vec<AgentAsk>,
    /// The texts of reports, oldest first.
    reports: VecDeque<String>,
    /// Why the last attempt to send failed.
    why: String,
}

impl UnsentMail {
    /// Returns whether anything waits to be sent.
    pub(super) fn is_some(&self) -> bool {
        !self.asks.is_empty() || !self.reports.is_empty()
    }

    /// Returns why the agent's requests could not be sent; `None` if no request waits to be sent.
    pub(super) fn why_not_asked(&self) -> Option<String> {
        (!self.asks.is_empty()).then(|| self.why.clone())
    }
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    /// Sends the agent's request to the lead. If that fails for a reason that may pass, the agent keeps waiting, and the
    /// request is sent later. Otherwise the request is denied.
    pub(super) async fn ask_lead(&mut self, ask: AgentAsk) {
        if let Err(error) = self.forward_request(&ask).await {
            self.trouble("cannot ask the lead", &error);
            if may_pass(&error) {
                self.unsent.why = error.to_string();
                self.unsent.asks.push(ask);
                return;
            }
            let denied = PermissionAnswer::Deny(format!("cannot ask the lead: {error}"));
            self.driver.answer(ask.id, &denied);
        }
    }

    /// Reports to the lead how the member's last turn ended. If the report cannot be sent, it is sent later.
    pub(super) async fn inform_lead(&mut self, end: &TurnEnd) {
        self.read_events();
        let Some(report) = self.report(end) else { return };
        self.send_report(report).await;
    }

    /// Sends a report to the lead. If it cannot be sent, it is sent later.
    pub(super) async fn send_report(&mut self, report: String) {
        self.unsent.reports.push_back(report);
        self.send_reports().await;
        if self.unsent.reports.len() > MAX_REPORTS {
            self.unsent.reports.pop_front();
        }
    }

    /// Tries again to send the requests and reports that could not be sent.
    pub(super) async fn send_unsent(&mut self) {
        self.send_reports().await;
        for ask in std::mem::take(&mut self.unsent.asks) {
            self.ask_lead(ask).await;
        }
    }

    async fn send_reports(&mut self) {
        let Some(lead) = self.lead.clone() else { return };
        while let Some(report) = self.unsent.reports.front() {
            match mail::send_protocol(&self.config.seat, &lead, report).await {
                // `Denied` means that the member left the team during the turn.
                Ok(_) | Err(MailError::Denied(_)) => {
                    self.unsent.reports.pop_front();
                }
                Err(error) => return self.trouble("cannot inform the lead yet", &error),
            }
        }
    }
}

/// Returns whether sending a request may succeed later.
fn may_pass(error: &TeammateError) -> bool {
    let error = match error {
        TeammateError::Handshake(
            HandshakeError::Store(error) | HandshakeError::Send(MailError::Store(error)),
        )
        | TeammateError::Store(error) => error,
        _ => return false,
    };
    !matches!(error, StoreError::NoTeam { .. } | StoreError::Forbidden { .. })
}
