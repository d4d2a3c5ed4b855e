//! `brigade approvals`

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::approvals::{self, Approval};
use brigade_core::event::{Event, Record};
use brigade_core::handshake::First;
use brigade_core::seat::Seat;
use brigade_core::store::Watch;
use brigade_core::text;
use brigade_host::approval_document::ApprovalDocument;
use brigade_host::history_text::LogFormatter;
use brigade_host::personal_policy::PersonalPolicy;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::approval::{ShownAmount, answered_text, show};
use crate::cli::ApprovalsArgs;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::slow_notice::with_lock_notice;
use crate::{exit, output};

/// While there are no events, check this often whether standard output is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often `--watch` shows the requests again while nothing happens.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// How long `--watch` waits after an event, so that a burst of events is shown once.
const SETTLE: Duration = Duration::from_millis(100);
/// Moves to the upper left corner of the terminal and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(crate) async fn run(context: &CliContext, args: ApprovalsArgs) -> Result<u8, CliError> {
    let seat = context.answering_seat().await?;
    if let Err(error) = PersonalPolicy::of_context(context) {
        output::warning(&format!("no rule answers requests: {}", error.to_one_line()));
    }
    if !args.which.is_empty() {
        return show_all(context, &seat, &args.which).await;
    }
    if args.watch {
        return watch_waiting(context, &seat).await;
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
        let approval = with_lock_notice(approvals::find(seat, request)).await?;
        let first = with_lock_notice(approvals::first_answer(seat, &approval)).await?;
        found.push((approval, first));
    }
    if context.json {
        let documents = found.iter().map(|(approval, first)| {
            ApprovalDocument::new(approval, now).with_answer(first.as_ref())
        });
        output::print_json(&documents.collect::<Vec<_>>())?;
    } else {
        let text = |(approval, first): &(Approval, Option<First>)| {
            let text = show(approval, now, output::width(), ShownAmount::Everything);
            let answer = first.as_ref().map(|first| answered_text(first, now));
            text + &answer.unwrap_or_default()
        };
        output::print(&found.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(exit::DONE)
}

/// Shows the waiting requests on the terminal, and again after each change.
async fn watch_waiting(context: &CliContext, seat: &Seat) -> Result<u8, CliError> {
    if context.json || output::width().is_none() {
        return Err(CliError::usage(CliTrouble::WatchWithoutTerminal)
            .hint("`--follow` prints new requests and answers as lines, also as JSON"));
    }
    let mut watch = seat.watch_without_work().await?;
    loop {
        let (waiting, now) = (approvals::waiting(seat).await?, context.clock.now());
        let texts = waiting
            .iter()
            .map(|approval| show(approval, now, output::width(), ShownAmount::Short))
            .collect::<Vec<_>>();
        let count = text::count(waiting.len(), "request");
        let time = output::local(now).strftime("%H:%M:%S").to_string();
        let rest = texts.join("\n");
        output::print(&format!("{CLEAR}{count} waiting in team {}, {time}\n\n{rest}", seat.team))?;
        // Show the age of the requests again from time to time, also if nothing happens.
        let next = tokio::time::timeout(REFRESH_INTERVAL, watch.next()).await;
        match next {
            Ok(None) => return Ok(exit::DONE),
            Ok(Some(record)) if matches!(record.event, Event::TeamDeleted {}) => {
                return Ok(exit::DONE);
            }
            _ => tokio::time::sleep(SETTLE).await,
        }
    }
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
