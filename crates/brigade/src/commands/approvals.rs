//! `brigade approvals`

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::approvals::{self, Approval};
use brigade_core::event::{Event, Record};
use brigade_core::seat::Seat;
use brigade_core::store::Watch;
use brigade_host::history_text::LogFormatter;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::approval::{ApprovalDocument, ShownAmount, show};
use crate::cli::ApprovalsArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::slow_notice::with_lock_notice;
use crate::{exit, output};

/// While there are no events, check this often whether standard output is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &CliContext, args: ApprovalsArgs) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    if !args.which.is_empty() {
        return show_all(context, &seat, &args.which).await;
    }
    let follow = args.follow;
    // Start the watch before reading the waiting requests, so that no later request is missed.
    let watch = if follow { Some(seat.watch_without_work().await?) } else { None };
    let waiting = with_lock_notice(approvals::waiting(&seat)).await?;
    let now = context.clock.now();
    if let Some(watch) = watch {
        let mut follower =
            Follower { context, seat, printed: HashSet::new(), answered: HashSet::new() };
        follower.print_new(waiting)?;
        return follower.follow(watch).await;
    }
    if context.json {
        output::print_json(
            &waiting
                .iter()
                .map(|approval| ApprovalDocument::new(approval, now))
                .collect::<Vec<_>>(),
        )?;
    } else {
        let texts: Vec<String> = waiting
            .iter()
            .map(|approval| show(approval, now, output::width(), ShownAmount::Short))
            .collect();
        output::print(&texts.join("\n"))?;
    }
    if waiting.is_empty() {
        if !context.json {
            output::note("no requests are waiting");
        }
        return Ok(exit::NOTHING);
    }
    Ok(exit::DONE)
}

/// Prints these requests in full, answered or not.
async fn show_all(context: &CliContext, seat: &Seat, which: &[String]) -> Result<u8, CliError> {
    let now = context.clock.now();
    let mut found = Vec::new();
    for request in which {
        found.push(with_lock_notice(approvals::find(seat, request)).await?);
    }
    if context.json {
        let documents = found.iter().map(|approval| ApprovalDocument::new(approval, now));
        output::print_json(&documents.collect::<Vec<_>>())?;
    } else {
        let text = |approval| show(approval, now, output::width(), ShownAmount::Everything);
        output::print(&found.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(exit::DONE)
}

/// The state of `brigade approvals --follow`.
struct Follower<'c> {
    context: &'c CliContext,
    seat: Seat,
    /// Numbers of the requests printed so far.
    printed: HashSet<usize>,
    /// Ids of the requests whose answers were printed.
    answered: HashSet<String>,
}

impl Follower<'_> {
    /// Prints the requests that were not printed before.
    fn print_new(&mut self, waiting: Vec<Approval>) -> Result<(), CliError> {
        let now = self.context.clock.now();
        for approval in waiting {
            if !self.printed.insert(approval.number) {
                continue;
            }
            if self.context.json {
                output::print_json(&json!({ "asked": ApprovalDocument::new(&approval, now) }))?;
            } else {
                output::print(&show(&approval, now, output::width(), ShownAmount::Short))?;
            }
        }
        Ok(())
    }

    async fn follow(&mut self, mut watch: Watch) -> Result<u8, CliError> {
        let start = self.context.clock.now();
        loop {
            let record = match tokio::time::timeout(POLL_INTERVAL, watch.next()).await {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) if output::is_stdout_closed() => break,
                Err(_) => continue,
            };
            match &record.event {
                Event::Sent { to, .. } | Event::Seen { to, .. }
                    if *to == self.seat.name.as_str() =>
                {
                    let waiting = with_lock_notice(approvals::waiting(&self.seat)).await?;
                    self.print_new(waiting)?;
                }
                Event::Answered { request_id, .. }
                    if record.at >= start && self.answered.insert(request_id.clone()) =>
                {
                    self.print_answer(&record)?;
                }
                Event::TeamDeleted {} => break,
                _ => {}
            }
        }
        Ok(exit::DONE)
    }

    fn print_answer(&self, record: &Record) -> Result<(), CliError> {
        if self.context.json {
            output::print_json(&record)?;
        } else {
            output::print(
                &LogFormatter::new(TimeZone::system()).format_record(record, output::width()),
            )?;
        }
        Ok(())
    }
}
